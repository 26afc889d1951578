// A call's entries as bytes: the intent, each part of the result, the outcome. An outcome names its
// intent and has the call's own words only where there was none (a question that was refused).
// Invariant: what is read is what was written; a value that is none of these is undefined, never a guess.

import type { FailCode } from "../base/faults.ts";
import type { Labels } from "../base/labels.ts";
import { codeNumber, codeOf, labelBits, labelsOf, statusNumber, statusOf } from "./call_codes.ts";
import type { CallRecord, CallStatus } from "./records.ts";
import { partKey, seqKey, TABLE } from "./store_keys.ts";
import type { WriteBatch } from "./write_batch.ts";

/** Of every entry; another one is read by whoever knows it. */
const VERSION = 1;

/** Where an entry's fixed part has what; numbers are little-endian. */
const AT = {
  version: 0,
  flags: 1,
  status: 2,
  code: 3,
  call: 4,
  asked: 12,
  ended: 20,
  intent: 28,
  charged: 36,
  uid: 40,
  parts: 44,
  role: 48,
  session: 50,
  tool: 52,
  equal: 54,
  arguments: 56,
} as const;
const FIXED_BYTES = 60;
const NO_UID = 0x80;

interface Ending {
  readonly status: CallStatus;
  readonly code: FailCode | undefined;
  readonly atMs: number;
  readonly message: Buffer;
  /** Number of its intent's entry; 0 where there is none. */
  readonly intent: number;
  readonly parts: number;
  /** What the call is charged without this entry. */
  readonly charged: number;
}

/** Returns the bytes that the entry takes. */
export function putIntent(batch: WriteBatch, seq: number, record: CallRecord): number {
  return putEntry(batch, seqKey(TABLE.intents, seq), record, undefined);
}

export function putOutcome(batch: WriteBatch, seq: number, record: CallRecord, ending: Ending): number {
  return putEntry(batch, seqKey(TABLE.outcomes, seq), record, ending);
}

/** A part keeps the labels of all parts so far: where no outcome comes, they are what is known. */
export function putPart(
  batch: WriteBatch,
  intent: number,
  seq: number,
  labels: Labels,
  message: Buffer,
): number {
  const at = batch.begin(partKey(intent, seq), 1 + message.length);
  batch.view.setUint8(at, labelBits(labels));
  batch.bytes.set(message, at + 1);
  batch.finish(at + 1 + message.length);
  return 1 + message.length;
}

function putEntry(batch: WriteBatch, key: Buffer, record: CallRecord, ending: Ending | undefined): number {
  const { role, session } = record.key;
  const own = ending === undefined || ending.intent === 0;
  const tool = own ? record.tool : "";
  const equal = own ? (record.equal ?? "") : "";
  const args = own ? record.arguments : "";
  const textChars = role.length + session.length + tool.length + equal.length + args.length;
  const message = ending?.message;
  const start = batch.begin(key, FIXED_BYTES + textChars * 3 + (message?.length ?? 0));
  const { bytes, view } = batch;
  writeFixed(view, start, record, ending);
  let at = start + FIXED_BYTES;
  at = writeText(batch, at, role, start + AT.role);
  at = writeText(batch, at, session, start + AT.session);
  at = writeText(batch, at, tool, start + AT.tool);
  at = writeText(batch, at, equal, start + AT.equal);
  const argumentBytes = args === "" ? 0 : bytes.write(args, at);
  view.setUint32(start + AT.arguments, argumentBytes, true);
  at += argumentBytes;
  if (message !== undefined) {
    bytes.set(message, at);
    at += message.length;
  }
  batch.finish(at);
  const taken = at - start;
  if (ending !== undefined) view.setUint32(start + AT.charged, ending.charged + taken, true);
  return taken;
}

function writeFixed(view: DataView, start: number, record: CallRecord, ending: Ending | undefined): void {
  const { uid, labels } = record;
  const flags = (uid === undefined ? NO_UID : 0) | labelBits(labels);
  view.setUint8(start + AT.version, VERSION);
  view.setUint8(start + AT.flags, flags);
  view.setUint8(start + AT.status, statusNumber(ending?.status));
  view.setUint8(start + AT.code, codeNumber(ending?.code));
  view.setBigUint64(start + AT.call, record.key.call, true);
  view.setFloat64(start + AT.asked, record.askedAtMs, true);
  view.setFloat64(start + AT.ended, ending?.atMs ?? 0, true);
  view.setFloat64(start + AT.intent, ending?.intent ?? 0, true);
  view.setUint32(start + AT.charged, 0, true);
  view.setUint32(start + AT.uid, uid ?? 0, true);
  view.setUint32(start + AT.parts, ending?.parts ?? 0, true);
}

function writeText(batch: WriteBatch, at: number, text: string, lengthAt: number): number {
  const length = text === "" ? 0 : batch.bytes.write(text, at);
  batch.view.setUint16(lengthAt, length, true);
  return at + length;
}

/** What an entry says of its call without its long texts. */
export interface EntryHead {
  readonly role: string;
  readonly session: string;
  readonly call: bigint;
  readonly askedAtMs: number;
  readonly endedAtMs: number;
  /** 0: there is none. */
  readonly intent: number;
  readonly charged: number;
  readonly parts: number;
}

export function readHead(value: Buffer): EntryHead | undefined {
  if (value.length < FIXED_BYTES || value[AT.version] !== VERSION) return undefined;
  const sessionAt = FIXED_BYTES + value.readUInt16LE(AT.role);
  return {
    // Names of roles and sessions are ASCII by their grammar.
    role: value.toString("latin1", FIXED_BYTES, sessionAt),
    session: value.toString("latin1", sessionAt, sessionAt + value.readUInt16LE(AT.session)),
    call: value.readBigUInt64LE(AT.call),
    askedAtMs: value.readDoubleLE(AT.asked),
    endedAtMs: value.readDoubleLE(AT.ended),
    intent: value.readDoubleLE(AT.intent),
    charged: value.readUInt32LE(AT.charged),
    parts: value.readUInt32LE(AT.parts),
  };
}

/** A call from its intent (or an outcome without one), its parts and its outcome. */
export function readCall(
  own: Buffer,
  outcome: Buffer | undefined,
  parts: readonly Buffer[],
): CallRecord | undefined {
  const head = readHead(own);
  if (head === undefined) return undefined;
  const toolAt = FIXED_BYTES + own.readUInt16LE(AT.role) + own.readUInt16LE(AT.session);
  const equalAt = toolAt + own.readUInt16LE(AT.tool);
  const argumentsAt = equalAt + own.readUInt16LE(AT.equal);
  const flags = own[AT.flags]!;
  return {
    key: { role: head.role, session: head.session, call: head.call },
    tool: own.toString("utf8", toolAt, equalAt),
    arguments: own.toString("utf8", argumentsAt, argumentsAt + own.readUInt32LE(AT.arguments)),
    uid: (flags & NO_UID) === 0 ? own.readUInt32LE(AT.uid) : undefined,
    durable: true,
    equal: argumentsAt === equalAt ? undefined : own.toString("latin1", equalAt, argumentsAt),
    askedAtMs: head.askedAtMs,
    ...endingOf(own, outcome, parts),
  };
}

function endingOf(own: Buffer, outcome: Buffer | undefined, parts: readonly Buffer[]) {
  const lastPart = parts.at(-1);
  const flags = outcome?.[AT.flags] ?? lastPart?.[0] ?? own[AT.flags]!;
  const received = parts.map((part) => part.subarray(1));
  const state = outcome === undefined ? ("dispatched" as const) : ("ended" as const);
  return {
    state,
    status: outcome && statusOf(outcome[AT.status]!),
    code: outcome && codeOf(outcome[AT.code]!),
    messages: outcome === undefined ? received : [...received, messageOf(outcome)],
    labels: labelsOf(flags),
    endedAtMs: outcome?.readDoubleLE(AT.ended) ?? 0,
  };
}

function messageOf(outcome: Buffer): Buffer {
  const lengths = [AT.role, AT.session, AT.tool, AT.equal].map((at) => outcome.readUInt16LE(at));
  const textBytes = lengths.reduce((sum, length) => sum + length, outcome.readUInt32LE(AT.arguments));
  return outcome.subarray(FIXED_BYTES + textBytes);
}
