// An envelope's bytes: decoding in one strict pass, and the canonical encoding (spec: wire, Envelope).
// The names of all bodies' members are distinct, so a body is read before its kind or status is
// known and the set of members seen is held against what the kind or status asks for.

import { DENY_REASONS, type DenyReason } from "../base/faults.ts";
import { isSessionId, U64_MAX } from "../base/ids.ts";
import { DATA_CLASSES, type DataClass } from "../base/labels.ts";
import { Cursor, closedNames, type Names } from "./cursor.ts";
import { encodeFault, FrameFault } from "./fault.ts";
import { JsonString, stringToken } from "./json_string.ts";
import {
  type Envelope,
  ERROR_CODES,
  type ErrorCode,
  type Message,
  PROTOCOL_VERSION,
  type ToolResponse,
} from "./message.ts";

const ENVELOPE = closedNames("v", "id", "final", "msg");
const MESSAGE = closedNames("kind", "body");
const BODY = closedNames(
  ...["session", "call", "tool", "arguments"],
  ...["status", "approval", "expires", "content", "class", "untrusted", "truncated", "message", "reason"],
  ...["code", "detail"],
);

const KINDS = closedNames("tool_request", "tool_response", "error");
const STATUSES = closedNames("pending_approval", "result", "failed", "denied");
const CLASSES = closedNames(...DATA_CLASSES);
const REASONS = closedNames(...DENY_REASONS);
const CODES = closedNames(...ERROR_CODES);

function mask(fields: Names, ...names: string[]): number {
  return names.reduce((bits, name) => bits | (1 << fields.names.indexOf(name)), 0);
}

const ENVELOPE_MASK = mask(ENVELOPE, ...ENVELOPE.names);
const MESSAGE_MASK = mask(MESSAGE, ...MESSAGE.names);
const REQUEST_MASK = mask(BODY, "session", "call", "tool", "arguments");
const PENDING_MASK = mask(BODY, "status", "approval", "expires");
const RESULT_MASK = mask(BODY, "status", "content", "class", "untrusted", "truncated");
const FAILED_MASK = mask(BODY, "status", "message");
const DENIED_MASK = mask(BODY, "status", "reason");
const ERROR_MASK = mask(BODY, "code", "detail");

/** Decodes one body. @throws FrameFault `json`, or `bad_version` for a valid envelope whose `v` is not 1 */
export function decodeBody(body: Buffer): Envelope {
  const { v, id, final, msg } = decodeEnvelope(body);
  return { v, id, final, msg: textMessage(msg) };
}

/** The same with long texts left as the bytes they are: what the broker reads. The bytes must not change. */
export function decodeEnvelope(body: Buffer): Envelope<JsonString> {
  const cursor = new Cursor(body);
  let seen = 0;
  let v = 0;
  let id = 0n;
  let final = false;
  let msg: Message<JsonString> | undefined;
  cursor.open();
  for (let i = cursor.field(ENVELOPE, 0, true); i >= 0; i = cursor.field(ENVELOPE, i + 1, false)) {
    seen = once(seen, i);
    if (i === 0) v = cursor.u32();
    else if (i === 1) id = cursor.u64();
    else if (i === 2) final = cursor.boolean();
    else msg = readMessage(cursor);
  }
  cursor.close();
  if (seen !== ENVELOPE_MASK || msg === undefined) throw new FrameFault("json");
  if (v !== PROTOCOL_VERSION) throw new FrameFault("bad_version", v);
  return { v, id, final, msg };
}

function once(seen: number, index: number): number {
  if ((seen & (1 << index)) !== 0) throw new FrameFault("json");
  return seen | (1 << index);
}

function readMessage(cursor: Cursor): Message<JsonString> {
  let seen = 0;
  let kind: Message["kind"] | undefined;
  let body: BodyFields | undefined;
  cursor.open();
  for (let i = cursor.field(MESSAGE, 0, true); i >= 0; i = cursor.field(MESSAGE, i + 1, false)) {
    seen = once(seen, i);
    if (i === 0) kind = cursor.oneOf(KINDS);
    else body = readBody(cursor);
  }
  if (seen !== MESSAGE_MASK || body === undefined) throw new FrameFault("json");
  if (kind === "tool_request") return { kind, body: body.request() };
  if (kind === "tool_response") return { kind, body: body.response() };
  if (kind === "error") return { kind, body: body.error() };
  throw new FrameFault("json"); // not reached: `seen` has `kind`
}

/** Everything that a body may hold; which of it is there is told by `seen`, and nothing else is looked at. */
class BodyFields {
  seen = 0;
  session = "";
  call = 0n;
  tool = "";
  arguments: JsonString | undefined;
  status: ToolResponse["status"] | undefined;
  approval = "";
  expires = 0n;
  content: JsonString | undefined;
  class: DataClass = "restricted";
  untrusted = true;
  truncated = true;
  message = "";
  reason: DenyReason = "no_grant";
  code: ErrorCode = "bad_message";
  detail = "";

  request() {
    if (this.seen !== REQUEST_MASK || this.arguments === undefined) throw new FrameFault("json");
    return { session: this.session, call: this.call, tool: this.tool, arguments: this.arguments };
  }

  response(): ToolResponse<JsonString> {
    const { status, seen } = this;
    if (status === "result" && seen === RESULT_MASK && this.content !== undefined) {
      const { content, untrusted, truncated } = this;
      return { status, content, class: this.class, untrusted, truncated };
    }
    if (status === "failed" && seen === FAILED_MASK) return { status, message: this.message };
    if (status === "denied" && seen === DENIED_MASK) return { status, reason: this.reason };
    if (status === "pending_approval" && seen === PENDING_MASK) {
      return { status, approval: this.approval, expires: this.expires };
    }
    throw new FrameFault("json");
  }

  error() {
    if (this.seen !== ERROR_MASK) throw new FrameFault("json");
    return { code: this.code, detail: this.detail };
  }
}

function readBody(cursor: Cursor): BodyFields {
  const body = new BodyFields();
  cursor.open();
  for (let i = cursor.field(BODY, 0, true); i >= 0; i = cursor.field(BODY, i + 1, false)) {
    body.seen = once(body.seen, i);
    readBodyField(cursor, body, i);
  }
  return body;
}

function readBodyField(cursor: Cursor, body: BodyFields, index: number): void {
  switch (BODY.names[index]) {
    case "session":
      body.session = sessionId(cursor.text());
      return;
    case "arguments":
      body.arguments = cursor.string();
      return;
    case "content":
      body.content = cursor.string();
      return;
    case "call":
      body.call = cursor.u64();
      return;
    case "expires":
      body.expires = cursor.u64();
      return;
    case "untrusted":
      body.untrusted = cursor.boolean();
      return;
    case "truncated":
      body.truncated = cursor.boolean();
      return;
    case "tool":
      body.tool = cursor.text();
      return;
    case "status":
      body.status = cursor.oneOf(STATUSES);
      return;
    case "approval":
      body.approval = cursor.text();
      return;
    case "class":
      body.class = cursor.oneOf(CLASSES);
      return;
    case "message":
      body.message = cursor.text();
      return;
    case "reason":
      body.reason = cursor.oneOf(REASONS);
      return;
    case "code":
      body.code = cursor.oneOf(CODES);
      return;
    default:
      body.detail = cursor.text();
  }
}

function sessionId(text: string): string {
  if (typeof text !== "string" || !isSessionId(text)) throw new FrameFault("json");
  return text;
}

function textMessage(msg: Message<JsonString>): Message {
  if (msg.kind === "tool_request") {
    const { session, call, tool, arguments: long } = msg.body;
    return { kind: msg.kind, body: { session, call, tool, arguments: long.text } };
  }
  if (msg.kind === "tool_response" && msg.body.status === "result") {
    const { status, content, class: dataClass, untrusted, truncated } = msg.body;
    return {
      kind: msg.kind,
      body: { status, content: content.text, class: dataClass, untrusted, truncated },
    };
  }
  return msg as Message; // the other bodies hold no T
}

/**
 * Bytes of a message (the value of `msg`), canonical: what is recorded, replayed and delivered.
 * A canonical JsonString goes in as the bytes it is; any other is decoded and written anew.
 * Callers need not be typed: each member is read once and held against the grammar; others are left out.
 * @throws FrameFault json for a value outside the grammar, and nothing else
 */
export function encodeMessage(msg: Message<string | JsonString>): Buffer {
  try {
    return messageBytes(msg);
  } catch (error) {
    throw encodeFault(error);
  }
}

function messageBytes({ kind, body }: Message<string | JsonString>): Buffer {
  switch (kind) {
    case "tool_request": {
      const { session, call, tool } = body;
      const head = `{"kind":"tool_request","body":{"session":"${sessionId(session)}","call":${u64(call)},"tool":${stringToken(tool)},"arguments":`;
      return splice(head, body.arguments, "}}");
    }
    case "tool_response":
      return responseBytes(body);
    case "error": {
      const { code, detail } = body;
      return Buffer.from(
        `{"kind":"error","body":{"code":"${oneOf(ERROR_CODES, code)}","detail":${stringToken(detail)}}}`,
      );
    }
    default:
      throw new FrameFault("json", undefined, "a kind of message is unknown");
  }
}

const RESPONSE_HEAD = '{"kind":"tool_response","body":{"status":';

function responseBytes(body: ToolResponse<string | JsonString>): Buffer {
  switch (body.status) {
    case "result": {
      const { untrusted, truncated } = body;
      const tail = `,"class":"${oneOf(DATA_CLASSES, body.class)}","untrusted":${flag(untrusted)},"truncated":${flag(truncated)}}}`;
      return splice(`${RESPONSE_HEAD}"result","content":`, body.content, tail);
    }
    case "pending_approval": {
      const { approval, expires } = body;
      return Buffer.from(
        `${RESPONSE_HEAD}"pending_approval","approval":${stringToken(approval)},"expires":${u64(expires)}}}`,
      );
    }
    case "failed":
      return Buffer.from(`${RESPONSE_HEAD}"failed","message":${stringToken(body.message)}}}`);
    case "denied":
      return Buffer.from(`${RESPONSE_HEAD}"denied","reason":"${oneOf(DENY_REASONS, body.reason)}"}}`);
    default:
      throw new FrameFault("json", undefined, "a status is unknown");
  }
}

function oneOf<T extends string>(known: readonly T[], text: string): T {
  const found = known.find((one) => one === text);
  if (found === undefined) throw new FrameFault("json", undefined, "a name is not one of the list");
  return found;
}

function u64(value: bigint): bigint {
  if (typeof value !== "bigint" || value < 0n || value > U64_MAX)
    throw new FrameFault("json", undefined, "a number is no u64");
  return value;
}

/** Never a default: a label that was forgotten must not become `false`. */
function flag(value: boolean): boolean {
  if (typeof value !== "boolean") throw new FrameFault("json", undefined, "a flag is no boolean");
  return value;
}

/** One exact buffer of a head, a long text and an ASCII tail. */
function splice(head: string, long: string | JsonString, tail: string): Buffer {
  if (!(long instanceof JsonString)) return Buffer.from(head + stringToken(long) + tail);
  if (!long.canonical) return Buffer.from(head + stringToken(long.text) + tail);
  const headBytes = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafe(headBytes + long.tokenBytes + tail.length);
  bytes.write(head, 0);
  long.copyToken(bytes, headBytes);
  bytes.write(tail, headBytes + long.tokenBytes, "latin1");
  return bytes;
}
