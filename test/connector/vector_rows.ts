import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ok, type Result } from "../../src/base/faults.ts";
import type { Clock } from "../../src/base/ports.ts";
import {
  decodeRequestFrame,
  decodeResponseFrame,
  encodeRequestFrame,
  encodeResponseFrame,
} from "../../src/connector/carriage.ts";
import { ConnectorClient } from "../../src/connector/client.ts";
import { ConnectorError } from "../../src/connector/client_error.ts";
import { openResponse, sealRequest } from "../../src/connector/client_exchange.ts";
import type { MessageKind, TransportInvocation } from "../../src/connector/contract.ts";
import { decode } from "../../src/connector/decode.ts";
import { replayKey, sha256 } from "../../src/connector/digest.ts";
import {
  ENVELOPE_HEAD,
  PROVIDER_REQUEST,
  TRANSPORT_ENVELOPE,
  TRANSPORT_INVOCATION,
  TRANSPORT_RECEIPT,
  TRANSPORT_RESULT,
} from "../../src/connector/documents.ts";
import { encode } from "../../src/connector/encode.ts";
import { open, seal } from "../../src/connector/envelope.ts";
import { FrameIntake, withLength } from "../../src/connector/frame.ts";
import { frameBytesForPayload, payloadBytesForFrame } from "../../src/connector/frame_arithmetic.ts";
import { fromView, view } from "../../src/connector/json_view.ts";
import type { ReplayStore } from "../../src/connector/replay.ts";
import { MemoryReplay } from "../../src/connector/replay_memory.ts";
import { connectionKey } from "../../src/connector/secret.ts";
import { TransportService } from "../../src/connector/service.ts";
import { checkService, type ServiceConfig } from "../../src/connector/service_config.ts";
import type { Shape } from "../../src/connector/shape.ts";
import { FakeBackend } from "./fake_backend.ts";

// What each row of the connector's vectors asks for, and whether it is met (fixtures/connector/vectors/README.md).

type Row = Readonly<Record<string, unknown>>;
type Met = (row: Row, world: VectorWorld) => boolean | Promise<boolean>;

/** What rows refer to beside themselves. */
export interface VectorWorld {
  readonly profiles: ReadonlyMap<string, ServiceConfig>;
  /** Opens the store of a sequence: the one of the step before, where that ended. */
  readonly store: (sequence: object) => Promise<Result<ReplayStore>>;
}

export const CONNECTOR_VECTOR_FILES = [
  "documents.jsonl",
  "sealed.jsonl",
  "arithmetic.jsonl",
  "client.jsonl",
  "service.jsonl",
  "sequences.jsonl",
  "start.jsonl",
] as const;

export const CONNECTOR_PROFILES = "profiles.jsonl";

/** Configurations that rows name, by their ids; a row that names one which can't be read is not met. */
export function readProfiles(directory: string): Pick<VectorWorld, "profiles"> & {
  readonly isMissing: boolean;
  /** Numbers of lines. */
  readonly unread: readonly number[];
} {
  const file = join(directory, CONNECTOR_PROFILES);
  if (!existsSync(file)) return { profiles: new Map(), isMissing: true, unread: [] };
  const profiles = new Map<string, ServiceConfig>();
  const unread: number[] = [];
  for (const [index, line] of readFileSync(file, "utf8").split("\n").entries()) {
    if (line.trim() === "") continue;
    try {
      const { id, config } = JSON.parse(line) as { readonly id: string; readonly config: ServiceConfig };
      profiles.set(id, config);
    } catch {
      unread.push(index + 1);
    }
  }
  return { profiles, isMissing: false, unread };
}

/** `store`: of sequences; without one they are kept in memory. */
export function vectorWorld(directory: string, store: VectorWorld["store"] = keptInMemory()): VectorWorld {
  return { profiles: readProfiles(directory).profiles, store };
}

function keptInMemory(): VectorWorld["store"] {
  const stores = new WeakMap<object, MemoryReplay>();
  return async (sequence) => {
    const store = stores.get(sequence) ?? new MemoryReplay();
    stores.set(sequence, store);
    return ok(store);
  };
}

/** Whether a row comes out as the references have it. A row of a kind that is not known is not met. */
export async function isConnectorRowMet(row: Row, world: VectorWorld): Promise<boolean> {
  const met = KINDS[String(row["kind"])];
  return met !== undefined && (await met(row, world));
}

const KINDS: Readonly<Record<string, Met>> = {
  document: isDocumentMet,
  seal: isSealMet,
  arithmetic: isArithmeticMet,
  key: isKeyMet,
  replay_key: (row) =>
    replayKey(text(row, "caller_runtime_id"), text(row, "request_id")).toString("hex") === row["expect"],
  client_accept: isAnswerMet,
  client_local: isRequestMet,
  service: isServiceMet,
  sequence: isSequenceMet,
  start: isStartMet,
};

const SHAPES: Readonly<Record<string, Shape<unknown>>> = {
  provider_request: PROVIDER_REQUEST as Shape<unknown>,
  transport_invocation: TRANSPORT_INVOCATION as Shape<unknown>,
  transport_result: TRANSPORT_RESULT as Shape<unknown>,
  transport_receipt: TRANSPORT_RECEIPT as Shape<unknown>,
  transport_envelope: TRANSPORT_ENVELOPE as Shape<unknown>,
};

function isDocumentMet(row: Row): boolean {
  const shape = SHAPES[text(row, "document")];
  if (shape === undefined) return false;
  const bytes = binary(row, "bytes");
  const { outcome, sha256: digest, view: shown } = expected(row);
  const value = decode(shape, bytes);
  if (value === undefined) return outcome === "malformed";
  const again = encode(shape, value);
  const isSame = outcome === "valid" && again?.equals(bytes) === true;
  if (!isSame || sha256(bytes).toString("hex") !== digest) return false;
  if (shown === undefined) return true;
  const encoded = encode(shape, fromView(shape, shown));
  return encoded?.equals(bytes) === true && JSON.stringify(view(shape, value)) === JSON.stringify(shown);
}

function isSealMet(row: Row): boolean {
  const [caller, requestId] = [text(row, "caller_runtime_id"), text(row, "request_id")];
  const kind = text(row, "message_kind") as MessageKind;
  const key = keyOf(text(row, "secret"));
  const plaintext = binary(row, "plaintext");
  const envelope = seal({ key, caller, requestId, kind, nonce: binary(row, "nonce") }, plaintext);
  const opened = decode(TRANSPORT_ENVELOPE, envelope);
  const head = {
    schema_id: "gamecult.model.transport_envelope.v3",
    caller_runtime_id: caller,
    request_id: requestId,
  };
  const aad = encode(ENVELOPE_HEAD, { ...head, message_kind: kind });
  const frames = [
    encodeRequestFrame(requestId, envelope),
    encodeResponseFrame(requestId, "accepted", envelope),
    encodeResponseFrame(requestId, "rejected", envelope),
  ].filter((frame) => (decodeResponseFrame(frame) === undefined) === (kind === "Invocation"));
  const want = expected(row);
  return (
    opened !== undefined &&
    open(opened, key)?.equals(plaintext) === true &&
    Buffer.from(opened.ciphertext).toString("hex") === want["ciphertext"] &&
    envelope.toString("hex") === want["envelope"] &&
    (row["aad"] === undefined || aad?.toString("hex") === row["aad"]) &&
    (row["key"] === undefined || key.toString("hex") === row["key"]) &&
    frames.some((frame) => frame.toString("hex") === want["frame"]) &&
    frames.some((frame) => withLength(frame).toString("hex") === want["stream"])
  );
}

function isArithmeticMet(row: Row): boolean {
  const argument = Number(row["argument"]);
  if (row["function"] === "frame_bytes_for_payload") return frameBytesForPayload(argument) === row["expect"];
  if (row["function"] !== "payload_bytes_for_frame") return false;
  return (payloadBytesForFrame(argument) ?? null) === row["expect"];
}

function isKeyMet(row: Row): boolean {
  const key = connectionKey(text(row, "secret"));
  const outcome = key.ok ? { outcome: "key", key: key.value.toString("hex") } : { outcome: "refused_secret" };
  return isDeepStrictEqual(outcome, expected(row));
}

function isAnswerMet(row: Row): boolean {
  const invocation = decode(TRANSPORT_INVOCATION, binary(row, "invocation"));
  if (invocation === undefined) return false;
  const key = keyOf(text(row, "secret"));
  const frameBytesMax = Number(row["max_frame_bytes"]);
  // Whether the request itself would fit is no question of these rows.
  const sealed = sealRequest(invocation, { key, frameBytesMax: 2 ** 32 - 1 }, () => Buffer.alloc(12));
  if (!sealed.ok) return false;
  const intake = new FrameIntake(frameBytesMax).take(binary(row, "stream"));
  // What the client's socket makes of these (client_socket.ts).
  if (intake.state !== "whole") return isError(row, intake.state === "partial" ? "NoAnswer" : "FrameSize");
  const result = openResponse(intake.frame, sealed.value.asked, key);
  return isDeepStrictEqual(
    result.ok
      ? { outcome: "result", result: plain(view(TRANSPORT_RESULT, result.value)) }
      : { outcome: "client_error", error: result.fault.code },
    expected(row),
  );
}

function isRequestMet(row: Row): boolean {
  const options = row["client"] as Row;
  const maxFrameBytes = Number(options["max_frame_bytes"]);
  const secret = text(options, "secret");
  try {
    new ConnectorClient({
      host: text(options, "host"),
      port: Number(options["port"]),
      secret,
      maxFrameBytes,
      responseTimeoutMs: options["response_timeout_ms"] as number | undefined,
    });
  } catch (error) {
    return error instanceof ConnectorError && isError(row, error.code);
  }
  const invocation = fromView(TRANSPORT_INVOCATION, row["invocation"]) as TransportInvocation;
  const bounds = { key: keyOf(secret), frameBytesMax: maxFrameBytes };
  const sealed = sealRequest(invocation, bounds, () => binary(row, "nonce"));
  if (!sealed.ok) return isError(row, sealed.fault.code);
  const stream = withLength(sealed.value.frame).toString("hex");
  return isDeepStrictEqual({ outcome: "frame", stream }, expected(row));
}

function isError(row: Row, error: string): boolean {
  return isDeepStrictEqual({ outcome: "client_error", error }, expected(row));
}

/** A service whose time and nonces the rows give. */
class Rig {
  readonly backend = new FakeBackend();
  #nowMs = 0;
  #nonce: Buffer = Buffer.alloc(12);
  #service: TransportService | undefined;

  get service(): TransportService {
    if (this.#service === undefined) throw new Error("the service is not open");
    return this.#service;
  }

  /** Whatever of its time and its nonce a row or step names. */
  at(row: Row): void {
    if (row["now_unix_ms"] !== undefined) this.#nowMs = Number(row["now_unix_ms"]);
    if (row["reply_nonce"] !== undefined) this.#nonce = binary(row, "reply_nonce");
  }

  async open(config: ServiceConfig | undefined, store: () => Promise<Result<ReplayStore>>): Promise<void> {
    if (config === undefined) throw new Error("there is no such profile");
    const clock: Clock = {
      nowMs: () => this.#nowMs,
      after: () => () => undefined,
      afterInput: (run) => void setImmediate(run),
    };
    const random = (bytes: number) => (bytes === 12 ? this.#nonce : randomBytes(bytes));
    const log = () => undefined;
    const opened = await TransportService.open({ config, backend: this.backend, store, clock, random, log });
    if (!opened.ok) throw new Error(JSON.stringify(opened.fault));
    this.#service = opened.value;
  }

  /** The first frame of a stream, answered. */
  async deliver(row: Row): Promise<Buffer | undefined> {
    this.at(row);
    const frame = frameOf(binary(row, "stream"), this.service.config.frameBytesMax);
    return frame === undefined ? undefined : this.service.deliver(frame);
  }
}

async function isServiceMet(row: Row, { profiles }: VectorWorld): Promise<boolean> {
  const rig = new Rig();
  await rig.open(profiles.get(text(row, "profile")), async () => ok(new MemoryReplay()));
  const reply = await rig.deliver(row);
  return isReplyMet(reply, row) && rig.backend.calls === expected(row)["provider_calls"];
}

function isReplyMet(reply: Buffer | undefined, row: Row): boolean {
  const want = expected(row);
  if (reply === undefined) return want["outcome"] === "dropped";
  const status = decodeResponseFrame(reply)?.status;
  const outcome = status === "rejected" ? "refused" : "transported";
  return (
    want["outcome"] === outcome &&
    want["status"] === status &&
    withLength(reply).toString("hex") === want["stream"]
  );
}

async function isSequenceMet(row: Row, { profiles, store }: VectorWorld): Promise<boolean> {
  const rig = new Rig();
  const running = new Map<
    unknown,
    { readonly reply: Promise<Buffer | undefined>; readonly go: () => void }
  >();
  let met = true;
  for (const step of row["steps"] as readonly Row[]) {
    switch (step["op"]) {
      case "open":
        await rig.open(profiles.get(text(step, "profile")), () => store(row));
        break;
      case "deliver":
        met &&= isReplyMet(await rig.deliver(step), step);
        break;
      case "begin": {
        const begun = await begin(rig, step);
        met &&= begun !== undefined && expected(step)["outcome"] === "executing";
        if (begun !== undefined) running.set(step["claim"], begun);
        break;
      }
      case "finish": {
        rig.at(step);
        const held = running.get(step["claim"]);
        held?.go();
        met &&= isReplyMet(await held?.reply, step);
        break;
      }
      case "prune":
        rig.at(step);
        met &&= (await rig.service.prune()) === expected(step)["removed"];
        break;
      case "provider_calls":
        met &&= rig.backend.calls === step["expect"];
        break;
      case "crash": // what is held is given up without a record, which is what a crash leaves
      case "close":
        await rig.service.close();
        break;
      default:
        return false;
    }
  }
  await rig.service.close();
  return met;
}

/** Resolves once the backend holds the turn; undefined: it was answered without. */
async function begin(rig: Rig, step: Row) {
  rig.backend.held = true;
  const entered = rig.backend.entered();
  const reply = rig.deliver(step);
  const first = await Promise.race([
    entered.then(() => "entered" as const),
    reply.then(() => "answered" as const),
  ]);
  rig.backend.held = false;
  if (first === "answered") return undefined;
  const carried = decodeRequestFrame(binary(step, "stream").subarray(LENGTH_BYTES));
  const envelope = carried && decode(TRANSPORT_ENVELOPE, carried.envelope);
  const [caller, requestId] = [envelope?.caller_runtime_id ?? "", envelope?.request_id ?? ""];
  return { reply, go: () => rig.backend.release(caller, requestId) };
}

const LENGTH_BYTES = 4;

function isStartMet(row: Row): boolean {
  const checked = checkService(row["config"] as ServiceConfig, "fake_v1");
  if (checked.ok) return isDeepStrictEqual({ outcome: "started" }, expected(row));
  const { kind: error, ...details } = checked.fault;
  const { field, needed } = details as { readonly field?: string; readonly needed?: number };
  const outcome = {
    outcome: "start_error",
    error,
    ...(field === undefined ? {} : { field }),
    ...(needed === undefined ? {} : { needed }),
  };
  return isDeepStrictEqual(outcome, expected(row));
}

/** Undefined: the stream ends before a whole frame, or its length is none. */
function frameOf(stream: Buffer, frameBytesMax: number): Buffer | undefined {
  const intake = new FrameIntake(frameBytesMax).take(stream);
  return intake.state === "whole" ? intake.frame : undefined;
}

function keyOf(secret: string): Buffer {
  const key = connectionKey(secret);
  if (!key.ok) throw new Error(key.fault);
  return key.value;
}

function expected(row: Row): Row {
  return row["expect"] as Row;
}

function text(row: Row, name: string): string {
  const value = row[name];
  if (typeof value !== "string") throw new Error(`${name} is no text`);
  return value;
}

function binary(row: Row, name: string): Buffer {
  return Buffer.from(text(row, name), "hex");
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
