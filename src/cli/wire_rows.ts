// One row of `callgate wire decode|encode`: an object in, its answer out. The forms are those of the golden
// vectors (fixtures/wire/README.md). Lines and streams: wire.ts. No fault quotes the row.

import { isSessionId } from "../base/ids.ts";
import { FrameFault } from "../wire/fault.ts";
import { decodeFrame, encodeFrame } from "../wire/frame.ts";
import type { Envelope, Message } from "../wire/message.ts";

export interface DecodeAnswer {
  readonly name: unknown;
  readonly outcome: string;
  readonly detail: number | null;
  readonly reencoded_hex: string | null;
}

export interface EncodeAnswer {
  readonly name: unknown;
  readonly outcome: string;
  readonly detail: number | null;
  readonly hex: string | null;
}

/** A row that is no such object at all: told apart from what a frame can be. */
export class RowFault extends Error {}

export type Row = Readonly<Record<string, unknown>>;

/** @throws RowFault */
export function parseRow(line: string): Row {
  const row = jsonValue(line);
  if (typeof row !== "object" || row === null || Array.isArray(row)) throw new RowFault("not a JSON object");
  return row as Row;
}

function jsonValue(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new RowFault("not a JSON object");
  }
}

/** What the answer is labelled with. */
export function rowName(row: Row): unknown {
  return row["name"] ?? null;
}

const NO_HEX = /[^0-9a-fA-F]/;
/** Beyond any frame: what a recipe may stand for. */
const RECIPE_BYTES_MAX = 16 * 1_048_576;

function hexBytes(value: unknown, what: string): Buffer {
  if (typeof value !== "string" || value.length % 2 !== 0 || NO_HEX.test(value))
    throw new RowFault(`${what} must be a string of hex digit pairs`);
  return Buffer.from(value, "hex");
}

/** The bytes that a row's `hex`, or its `recipe`, stands for. @throws RowFault */
export function rowBytes(row: Row, hexName = "hex", recipeName = "recipe"): Buffer {
  if (typeof row[hexName] === "string") return hexBytes(row[hexName], `"${hexName}"`);
  const recipe = row[recipeName] as Row | null | undefined;
  if (typeof recipe !== "object" || recipe === null)
    throw new RowFault(`"${hexName}" or "${recipeName}" is missing`);
  const fill = hexBytes(recipe["fill_hex"], '"fill_hex"');
  const count = recipe["fill_count"];
  if (
    typeof count !== "number" ||
    !Number.isSafeInteger(count) ||
    count < 0 ||
    count * Math.max(1, fill.length) > RECIPE_BYTES_MAX
  ) {
    throw new RowFault('"fill_count" must be an integer from 0, for at most 16 MiB');
  }
  return Buffer.concat([
    hexBytes(recipe["prefix_hex"], '"prefix_hex"'),
    fill.length > 0 ? Buffer.alloc(fill.length * count, fill) : fill,
    hexBytes(recipe["suffix_hex"], '"suffix_hex"'),
  ]);
}

/** Reads one frame from the start of the row's bytes, taken as the whole stream. @throws RowFault */
export function decodeRow(row: Row): DecodeAnswer {
  const name = rowName(row);
  try {
    const decoded = decodeFrame(rowBytes(row), true);
    const reencoded = decoded && encodeFrame(decoded.envelope).toString("hex");
    return { name, outcome: "ok", detail: null, reencoded_hex: reencoded ?? null };
  } catch (error) {
    if (!(error instanceof FrameFault)) throw error;
    return { name, outcome: error.outcome, detail: error.detail ?? null, reencoded_hex: null };
  }
}

/** Encodes the row's `envelope`; one that is outside the grammar has the outcome `json`. @throws RowFault */
export function encodeRow(row: Row): EncodeAnswer {
  const name = rowName(row);
  if (!Object.hasOwn(row, "envelope")) throw new RowFault('"envelope" is missing');
  try {
    const hex = encodeFrame(rowEnvelope(row["envelope"])).toString("hex");
    return { name, outcome: "ok", detail: null, hex };
  } catch (error) {
    if (!(error instanceof FrameFault)) throw error;
    return { name, outcome: error.outcome, detail: error.detail ?? null, hex: null };
  }
}

const U64_TEXT = /^(?:0|[1-9][0-9]{0,19})$/;

/** The envelope that a row writes with decimal strings and repeated texts; the wrong types become a `json` fault. */
function rowEnvelope(value: unknown): Envelope {
  const envelope = member(value);
  const msg = member(envelope["msg"]);
  exactly(envelope, "v", "id", "final", "msg");
  exactly(msg, "kind", "body");
  const final = envelope["final"];
  if (typeof final !== "boolean") throw new FrameFault("json");
  return {
    v: envelope["v"] as number,
    id: u64(envelope["id"]),
    final,
    msg: rowMessage(msg["kind"], member(msg["body"])),
  };
}

function rowMessage(kind: unknown, body: Row): Message {
  if (kind === "tool_request") {
    exactly(body, "session", "call", "tool", "arguments");
    const session = text(body["session"]);
    if (!isSessionId(session)) throw new FrameFault("json");
    return {
      kind,
      body: {
        session,
        call: u64(body["call"]),
        tool: text(body["tool"]),
        arguments: text(body["arguments"]),
      },
    };
  }
  if (kind === "error") {
    exactly(body, "code", "detail");
    return { kind, body: { code: text(body["code"]) as "internal", detail: text(body["detail"]) } }; // the encoder holds it against its list
  }
  if (kind === "tool_response") return { kind, body: rowResponse(body) };
  throw new FrameFault("json");
}

function rowResponse(body: Row) {
  const status = body["status"];
  if (status === "result") {
    exactly(body, "status", "content", "class", "untrusted", "truncated");
    const { untrusted, truncated } = body;
    if (typeof untrusted !== "boolean" || typeof truncated !== "boolean") throw new FrameFault("json");
    return {
      status,
      content: text(body["content"]),
      class: text(body["class"]) as "public",
      untrusted,
      truncated,
    } as const;
  }
  if (status === "pending_approval") {
    exactly(body, "status", "approval", "expires");
    return { status, approval: text(body["approval"]), expires: u64(body["expires"]) } as const;
  }
  if (status === "failed") {
    exactly(body, "status", "message");
    return { status, message: text(body["message"]) } as const;
  }
  if (status === "denied") {
    exactly(body, "status", "reason");
    return { status, reason: text(body["reason"]) as "no_grant" } as const;
  }
  throw new FrameFault("json");
}

function member(value: unknown): Row {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new FrameFault("json");
  return value as Row;
}

function exactly(row: Row, ...names: string[]): void {
  const present = Object.keys(row);
  if (present.length !== names.length || !names.every((name) => Object.hasOwn(row, name)))
    throw new FrameFault("json");
}

function u64(value: unknown): bigint {
  if (typeof value !== "string" || !U64_TEXT.test(value)) throw new FrameFault("json");
  return BigInt(value);
}

/** A string, or `{"repeat": s, "count": n}`. */
function text(value: unknown): string {
  if (typeof value === "string") return value;
  const { repeat, count } = member(value);
  if (typeof repeat !== "string" || typeof count !== "number" || !Number.isSafeInteger(count) || count < 0) {
    throw new FrameFault("json");
  }
  if (Math.max(1, repeat.length) * count > RECIPE_BYTES_MAX) throw new FrameFault("json");
  return repeat.repeat(count);
}
