// What must hold for any bytes and any value, whoever sends them: the codec against the slow decoder and
// against itself. Each check gives the name of the promise that was broken, or undefined.

import { isUtf8 } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import { classifyBroken } from "../../src/wire/broken.ts";
import { decodeBody, decodeEnvelope, encodeMessage } from "../../src/wire/envelope.ts";
import { FrameFault, type FrameOutcome } from "../../src/wire/fault.ts";
import { decodeFrame, encodeFrame, FrameReader, FrameWriter } from "../../src/wire/frame.ts";
import type { JsonString } from "../../src/wire/json_string.ts";
import type { Envelope, Message } from "../../src/wire/message.ts";
import { slowDecode } from "./slow_decoder.ts";

export type Finding = string | undefined;

/** A value, or the outcome of the fault; anything else that is thrown goes through. */
export function attempt<T>(run: () => T): T | FrameOutcome {
  try {
    return run();
  } catch (error) {
    if (error instanceof FrameFault) return error.outcome;
    throw error;
  }
}

export function checkBody(body: Buffer): Finding {
  const told = slowDecode(body);
  const decoded = attempt(() => decodeBody(body));
  if (!isDeepStrictEqual(decoded, told)) return "the codec decodes as the slow decoder does";
  if (typeof decoded !== "string") return checkAccepted(body, decoded);
  const undecoded = attempt(() => decodeEnvelope(body));
  if (undecoded !== decoded) return "decodeEnvelope and decodeBody have one outcome";
  return checkBroken(body);
}

function checkAccepted(body: Buffer, decoded: Envelope): Finding {
  const frame = encodeFrameOrFault(decoded);
  // No way of writing an envelope is shorter than the canonical one, so this never grows over the bound.
  if (typeof frame === "string") return "what is accepted can be encoded";
  const canonical = frame.subarray(4);
  if (!isDeepStrictEqual(decodeBody(canonical), decoded)) return "what is encoded decodes to the same";
  if (!encodeFrame(decodeBody(canonical)).equals(frame)) return "encoding is a fixpoint";
  const { msg } = decodeEnvelope(body);
  if (!encodeMessage(msg).equals(encodeMessage(decoded.msg))) return "undecoded texts encode as decoded ones";
  const writer = new FrameWriter();
  writer.append(decoded.id, decoded.final, encodeMessage(msg));
  if (!Buffer.concat(writer.take()).equals(frame)) return "FrameWriter writes what encodeFrame does";
  return checkLongText(msg);
}

function encodeFrameOrFault(envelope: Envelope): Buffer | FrameOutcome {
  return attempt(() => encodeFrame(envelope));
}

function longText(msg: Message<JsonString>): JsonString | undefined {
  if (msg.kind === "tool_request") return msg.body.arguments;
  return msg.kind === "tool_response" && msg.body.status === "result" ? msg.body.content : undefined;
}

function checkLongText(msg: Message<JsonString>): Finding {
  const long = longText(msg);
  if (long === undefined) return undefined;
  const token = Buffer.alloc(long.tokenBytes);
  long.copyToken(token, 0);
  if (long.canonical !== token.equals(Buffer.from(JSON.stringify(long.text))))
    return "canonical tells the truth";
  if (long.textBytes !== Buffer.byteLength(long.text)) return "textBytes tells the truth";
  return undefined;
}

/** Against JSON.parse, which knows neither duplicates nor how a number was written. */
function checkBroken(body: Buffer): Finding {
  const { code, detail } = classifyBroken(body);
  if (detail.length > 80) return "the detail for a peer is short";
  const value = parsed(body);
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if ((code === "bad_frame") === isObject) return "bad_frame means no JSON object";
  if (!isObject) return undefined;
  const { v } = value as { v?: unknown };
  if (code === "bad_version") {
    return typeof v === "number" && v !== 1 ? undefined : "bad_version means another number";
  }
  const mayHaveTwo = (body.toString("latin1").match(/"(?:v|\\u0076)"/g)?.length ?? 0) > 1;
  return typeof v === "number" && v !== 1 && !mayHaveTwo ? "another number means bad_version" : undefined;
}

function parsed(body: Buffer): unknown {
  if (!isUtf8(body)) return undefined;
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    return undefined;
  }
}

/** What a reader makes of a stream that comes in these pieces: its bodies, then its fault. */
export function readPieces(
  pieces: readonly Buffer[],
): readonly [bodies: Buffer[], fault: FrameOutcome, detail?: number] {
  const reader = new FrameReader();
  const bodies: Buffer[] = [];
  try {
    for (const piece of pieces) {
      reader.push(piece);
      for (let body = reader.next(); body !== undefined; body = reader.next()) bodies.push(body);
    }
  } catch (error) {
    if (!(error instanceof FrameFault)) throw error;
    return error.detail === undefined ? [bodies, error.outcome] : [bodies, error.outcome, error.detail];
  }
  return [bodies, reader.end().outcome];
}

export function splitAt(stream: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...cuts.map((cut) => cut % (stream.length + 1)), stream.length].sort((a, b) => a - b);
  return ends.map((end, i) => stream.subarray(i === 0 ? 0 : ends[i - 1]!, end));
}

export function checkStream(stream: Buffer, cuts: readonly number[]): Finding {
  const whole = readPieces([stream]);
  if (!isDeepStrictEqual(readPieces(splitAt(stream, cuts)), whole)) return "a split changes nothing";
  const first = attempt(() => decodeFrame(stream, true));
  const [bodies, fault] = whole;
  if (bodies.length === 0 && first !== fault) return "decodeFrame has the reader's outcome";
  return undefined;
}

/** A value that may be no envelope at all: it encodes to what decodes, or the fault is of two outcomes. */
export function checkValue(value: unknown): Finding {
  const frame = encodeFrameOrFault(value as Envelope); // the encoder's promise holds for untyped callers too
  if (typeof frame === "string")
    return frame === "json" || frame === "too_large" ? undefined : "the encoder has two faults";
  const told = slowDecode(frame.subarray(4));
  return told === "json" ? "what is encoded is an envelope" : undefined;
}
