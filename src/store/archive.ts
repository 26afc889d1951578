// Ended calls of one role, as bytes outside the collected heap: a call a minute or fifty thousand a
// second, the collector sees one small number for each. Oldest first out; found by session and call.
// Invariant: what `find` gives is what `append` was given, and its bytes are never written again.

import { DATA_CLASSES } from "../base/labels.ts";
import type { CallRecord } from "./records.ts";

const SEGMENT_BYTES = 1_048_576;
/** Bytes of a record's fixed part: ended, uid, call, labels and uid's presence, lengths. */
const FIXED_BYTES = 8 + 4 + 8 + 1 + 4 * 4;
const LENGTH_BYTES = 4;
/** Charged beside a record's bytes: its place in the index. */
const INDEX_BYTES = 64;
const NO_UID = 0x80;
const UNTRUSTED = 0x40;

/** Where a record is. */
interface Place {
  readonly segment: Segment;
  readonly at: number;
}

interface Segment {
  readonly bytes: Buffer;
  filled: number;
  /** Offsets of its records, in order. */
  readonly records: number[];
  /** Index into `records` of the oldest that is kept. */
  oldest: number;
}

export class CallArchive {
  readonly #role: string;
  readonly #segments: Segment[] = [];
  /** By session and call: the segment's number times SEGMENT_BYTES, and the offset in it. */
  readonly #index = new Map<string, Map<bigint, number>>();
  /** Number of the first of `#segments`. */
  #firstNumber = 0;
  #bytes = 0;

  constructor(role: string) {
    this.#role = role;
  }

  /** Bytes of the records kept, with their places in the index. */
  get bytes(): number {
    return this.#bytes;
  }

  append(record: CallRecord): void {
    const { session, call } = record.key;
    const { segment, at } = this.#reserve(record);
    const end = writeRecord(segment.bytes, at, record);
    segment.filled = end;
    segment.records.push(at);
    this.#bytes += end - at + INDEX_BYTES;
    const number = this.#firstNumber + this.#segments.length - 1;
    const calls = this.#index.get(session);
    if (calls === undefined) this.#index.set(session, new Map([[call, number * SEGMENT_BYTES + at]]));
    else calls.set(call, number * SEGMENT_BYTES + at);
  }

  find(session: string, call: bigint): CallRecord | undefined {
    const position = this.#index.get(session)?.get(call);
    if (position === undefined) return undefined;
    const segment = this.#segments[Math.floor(position / SEGMENT_BYTES) - this.#firstNumber];
    return segment && readRecord(segment.bytes, position % SEGMENT_BYTES, this.#role);
  }

  /** Lets the oldest go while there are more than `bytesMax`, or that ended before `endedBeforeMs`. */
  prune(bytesMax: number, endedBeforeMs: number, gone: (session: string, call: bigint) => void): void {
    for (let place = this.#oldest(); place !== undefined; place = this.#oldest()) {
      const { segment, at } = place;
      if (this.#bytes <= bytesMax && segment.bytes.readDoubleLE(at) >= endedBeforeMs) return;
      const key = readKey(segment.bytes, at);
      segment.oldest += 1;
      this.#bytes -= recordEnd(segment, segment.oldest) - at + INDEX_BYTES;
      const calls = this.#index.get(key.session);
      calls?.delete(key.call);
      if (calls?.size === 0) this.#index.delete(key.session);
      gone(key.session, key.call);
    }
  }

  #oldest(): Place | undefined {
    for (let segment = this.#segments[0]; segment !== undefined; segment = this.#segments[0]) {
      const at = segment.records[segment.oldest];
      if (at !== undefined) return { segment, at };
      this.#segments.shift();
      this.#firstNumber += 1;
    }
    return undefined;
  }

  /** Room behind the last record, in a new segment where the last has none left. */
  #reserve(record: CallRecord): Place {
    const needed = recordBytesMax(record);
    const last = this.#segments.at(-1);
    if (last !== undefined && last.bytes.length - last.filled >= needed)
      return { segment: last, at: last.filled };
    const bytes = Buffer.allocUnsafeSlow(Math.max(SEGMENT_BYTES, needed));
    const segment: Segment = { bytes, filled: 0, records: [], oldest: 0 };
    this.#segments.push(segment);
    return { segment, at: 0 };
  }
}

function recordEnd(segment: Segment, next: number): number {
  return segment.records[next] ?? segment.filled;
}

/** A UTF-16 unit takes at most three bytes of UTF-8. */
function recordBytesMax({ key, tool, arguments: args, messages }: CallRecord): number {
  let bytes = FIXED_BYTES + (key.session.length + tool.length + args.length) * 3;
  for (const message of messages) bytes += LENGTH_BYTES + message.length;
  return bytes;
}

function writeRecord(bytes: Buffer, start: number, record: CallRecord): number {
  const { key, uid, labels, messages } = record;
  bytes.writeDoubleLE(record.endedAtMs, start);
  bytes.writeUInt32LE(uid ?? 0, start + 8);
  bytes.writeBigUInt64LE(key.call, start + 12);
  const flags = (uid === undefined ? NO_UID : 0) | (labels.untrusted ? UNTRUSTED : 0);
  bytes[start + 20] = flags | DATA_CLASSES.indexOf(labels.class);
  let at = start + FIXED_BYTES;
  at = writeText(bytes, start + 21, at, key.session);
  at = writeText(bytes, start + 25, at, record.tool);
  at = writeText(bytes, start + 29, at, record.arguments);
  bytes.writeUInt32LE(messages.length, start + 33);
  for (const message of messages) {
    bytes.writeUInt32LE(message.length, at);
    bytes.set(message, at + LENGTH_BYTES);
    at += LENGTH_BYTES + message.length;
  }
  return at;
}

/** Writes a text at `at` and its length at `lengthAt`; returns the text's end. */
function writeText(bytes: Buffer, lengthAt: number, at: number, text: string): number {
  const length = bytes.write(text, at);
  bytes.writeUInt32LE(length, lengthAt);
  return at + length;
}

function readKey(bytes: Buffer, start: number): { readonly session: string; readonly call: bigint } {
  const from = start + FIXED_BYTES;
  const session = bytes.toString("latin1", from, from + bytes.readUInt32LE(start + 21)); // ASCII by its grammar
  return { session, call: bytes.readBigUInt64LE(start + 12) };
}

function readRecord(bytes: Buffer, start: number, role: string): CallRecord {
  const flags = bytes[start + 20] ?? 0;
  let at = start + FIXED_BYTES;
  const text = (i: number): string => {
    const from = at;
    at += bytes.readUInt32LE(start + 21 + i * LENGTH_BYTES);
    return bytes.toString("utf8", from, at);
  };
  const session = text(0);
  const tool = text(1);
  const args = text(2);
  const messages = Array.from({ length: bytes.readUInt32LE(start + 33) }, () => {
    const from = at + LENGTH_BYTES;
    at = from + bytes.readUInt32LE(at);
    return bytes.subarray(from, at);
  });
  return {
    key: { role, session, call: bytes.readBigUInt64LE(start + 12) },
    tool,
    arguments: args,
    uid: (flags & NO_UID) === 0 ? bytes.readUInt32LE(start + 8) : undefined,
    state: "ended",
    messages,
    labels: { class: DATA_CLASSES[flags & 3] ?? "restricted", untrusted: (flags & UNTRUSTED) !== 0 },
    endedAtMs: bytes.readDoubleLE(start),
  };
}
