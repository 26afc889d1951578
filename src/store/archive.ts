// Ended calls of one role, as bytes outside the collected heap: a call a minute or fifty thousand a
// second, the collector sees one small number for each. Oldest first out; found by session and call.
// Invariant: what `find` gives is what `append` was given, and stays so: small messages are copied out,
// since the segments that emptied serve again, and large ones are the very buffers that came in.

import { codeNumber, codeOf, labelBits, labelsOf, statusNumber, statusOf } from "./call_codes.ts";
import { CallIndex } from "./call_index.ts";
import type { FoundCall } from "./port.ts";
import type { CallRecord } from "./records.ts";

const SEGMENT_BYTES = 1_048_576;
/** Where a record's fixed part has what; the numbers are little-endian. */
const AT = {
  ended: 0,
  call: 8,
  asked: 16,
  uid: 24,
  flags: 28,
  texts: 32,
  /** Of session, tool and equal digest. */
  lengths: 36,
  messages: 48,
} as const;
const FIXED_BYTES = 52;
const LENGTH_BYTES = 4;
/** From this size on a message is kept as the buffer that it is, not copied; its length then has this bit. */
const LARGE_BYTES = 8192;
const LARGE = 0x8000_0000;
/** Charged beside a record's bytes: its place in the index. */
const INDEX_BYTES = 64;
const NO_UID = 0x80;
const DURABLE = 0x20;
const STATUS_SHIFT = 8;
const CODE_SHIFT = 16;
const STATUS_BITS = 0xf;
const CODE_BITS = 0xff;

/** Where a record is. */
interface Place {
  readonly segment: Segment;
  readonly at: number;
}

interface Segment {
  readonly bytes: Buffer;
  readonly view: DataView;
  /** Large messages of its records, in order; let go with their record. */
  readonly large: (Buffer | undefined)[];
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
  readonly #index = new Map<string, CallIndex>();
  /** Number of the first of `#segments`. */
  #firstNumber = 0;
  /** A segment's bytes that emptied: pages that are there already, for the next one. */
  #spare: Buffer | undefined;
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
    segment.filled = writeRecord(segment, at, record);
    segment.records.push(at);
    this.#bytes += chargedBytes(segment, segment.records.length - 1);
    const position = (this.#firstNumber + this.#segments.length - 1) * SEGMENT_BYTES + at;
    let calls = this.#index.get(session);
    if (calls === undefined) {
      calls = new CallIndex();
      this.#index.set(session, calls);
    }
    calls.put(call, position);
  }

  find(session: string, call: bigint): CallRecord | undefined {
    const position = this.#index.get(session)?.find(call);
    if (position === undefined) return undefined;
    const segment = this.#segments[Math.floor(position / SEGMENT_BYTES) - this.#firstNumber];
    return segment && readRecord(segment, position % SEGMENT_BYTES, this.#role);
  }

  /** Those that ended last come first; nothing may be added or taken while one looks. */
  *newestFirst(): Generator<CallRecord> {
    for (const segment of this.#segments.toReversed()) {
      for (let number = segment.records.length - 1; number >= segment.oldest; number -= 1) {
        yield readRecord(segment, segment.records[number]!, this.#role);
      }
    }
  }

  /** The same without reading them: of those that ended by `endedMaxMs`, and only what comes after `behind` where that is kept. */
  *found(
    endedMaxMs: number,
    behind?: { readonly session: string; readonly call: bigint },
  ): Generator<FoundCall> {
    const position = behind && this.#index.get(behind.session)?.find(behind.call);
    for (let index = this.#segments.length - 1; index >= 0; index -= 1) {
      const segment = this.#segments[index]!;
      const start = (this.#firstNumber + index) * SEGMENT_BYTES;
      for (let number = segment.records.length - 1; number >= segment.oldest; number -= 1) {
        const at = segment.records[number]!;
        if (position !== undefined && start + at >= position) continue;
        const endedAtMs = segment.view.getFloat64(at + AT.ended, true);
        if (endedAtMs <= endedMaxMs) yield this.#found(segment, number, endedAtMs);
      }
    }
  }

  #found(segment: Segment, number: number, endedAtMs: number): FoundCall {
    const at = segment.records[number]!;
    const role = this.#role;
    const key = { role, ...readKey(segment, at) };
    const bytes = chargedBytes(segment, number);
    return { key, endedAtMs, number: 0, bytes, read: () => readRecord(segment, at, role) };
  }

  /** Lets the oldest go while there are more than `bytesMax`, or that ended before `endedBeforeMs`. */
  prune(bytesMax: number, endedBeforeMs: number, gone: (session: string, call: bigint) => void): void {
    for (let place = this.#oldest(); place !== undefined; place = this.#oldest()) {
      const { segment, at } = place;
      if (this.#bytes <= bytesMax && segment.view.getFloat64(at + AT.ended, true) >= endedBeforeMs) return;
      const key = readKey(segment, at);
      this.#bytes -= chargedBytes(segment, segment.oldest);
      forEachMessage(segment, at, (_, index) => {
        if (index !== undefined) segment.large[index] = undefined;
      });
      segment.oldest += 1;
      const calls = this.#index.get(key.session);
      calls?.take(key.call);
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
      if (segment.bytes.length === SEGMENT_BYTES) this.#spare = segment.bytes;
    }
    return undefined;
  }

  #takeSpare(): Buffer | undefined {
    const spare = this.#spare;
    this.#spare = undefined;
    return spare;
  }

  /**
   * Room behind the last record, in a new segment where the last has none left. A segment made larger for
   * one record takes no other behind its SEGMENT_BYTES: an offset from there on would name the next segment.
   */
  #reserve(record: CallRecord): Place {
    const needed = recordBytesMax(record);
    const last = this.#segments.at(-1);
    if (last !== undefined && SEGMENT_BYTES - last.filled >= needed)
      return { segment: last, at: last.filled };
    const bytes =
      (needed <= SEGMENT_BYTES && this.#takeSpare()) ||
      Buffer.allocUnsafeSlow(Math.max(SEGMENT_BYTES, needed));
    const view = new DataView(bytes.buffer);
    const segment: Segment = { bytes, view, large: [], filled: 0, records: [], oldest: 0 };
    this.#segments.push(segment);
    return { segment, at: 0 };
  }
}

/** Of the record with that number in its segment: its bytes, its large messages, its place in the index. */
function chargedBytes(segment: Segment, number: number): number {
  const at = segment.records[number]!;
  let bytes = (segment.records[number + 1] ?? segment.filled) - at + INDEX_BYTES;
  forEachMessage(segment, at, (message, index) => {
    if (index !== undefined) bytes += message.length;
  });
  return bytes;
}

function recordBytesMax({ key, tool, equal = "", arguments: args, messages }: CallRecord): number {
  let bytes = FIXED_BYTES + (key.session.length + tool.length + equal.length) * 3 + textBytesMax(args);
  for (const message of messages) bytes += LENGTH_BYTES + Math.min(message.length, LARGE_BYTES);
  return bytes;
}

/** A UTF-16 unit takes at most three bytes of UTF-8; a long text is measured, so that it takes no room for three. */
function textBytesMax(text: string): number {
  return text.length < LARGE_BYTES ? text.length * 3 : Buffer.byteLength(text);
}

function writeRecord(segment: Segment, start: number, record: CallRecord): number {
  const { bytes, view } = segment;
  const { key, uid, messages, tool, equal = "" } = record;
  view.setFloat64(start + AT.ended, record.endedAtMs, true);
  view.setBigUint64(start + AT.call, key.call, true);
  view.setFloat64(start + AT.asked, record.askedAtMs, true);
  view.setUint32(start + AT.uid, uid ?? 0, true);
  view.setUint32(start + AT.flags, flagsOf(record), true);
  const textBytes = bytes.write(key.session + tool + equal + record.arguments, start + FIXED_BYTES);
  view.setUint32(start + AT.texts, textBytes, true);
  view.setUint32(start + AT.lengths, key.session.length, true);
  view.setUint32(start + AT.lengths + 4, tool.length, true);
  view.setUint32(start + AT.lengths + 8, equal.length, true);
  view.setUint32(start + AT.messages, messages.length, true);
  let at = start + FIXED_BYTES + textBytes;
  for (const message of messages) at = writeMessage(segment, at, message);
  return at;
}

function flagsOf({ uid, durable, labels, status, code }: CallRecord): number {
  const marks = (uid === undefined ? NO_UID : 0) | (durable ? DURABLE : 0) | labelBits(labels);
  return marks | (statusNumber(status) << STATUS_SHIFT) | (codeNumber(code) << CODE_SHIFT);
}

function writeMessage({ bytes, view, large }: Segment, at: number, message: Buffer): number {
  if (message.length >= LARGE_BYTES) {
    view.setUint32(at, LARGE + large.push(message) - 1, true);
    return at + LENGTH_BYTES;
  }
  view.setUint32(at, message.length, true);
  bytes.set(message, at + LENGTH_BYTES);
  return at + LENGTH_BYTES + message.length;
}

/** Each message of the record at `start`; `index` is its place among the segment's large ones. */
function forEachMessage(
  segment: Segment,
  start: number,
  each: (message: Buffer, index: number | undefined) => void,
): void {
  const { bytes, view, large } = segment;
  let at = start + FIXED_BYTES + view.getUint32(start + AT.texts, true);
  for (let left = view.getUint32(start + AT.messages, true); left > 0; left -= 1) {
    const length = view.getUint32(at, true);
    at += LENGTH_BYTES;
    if (length >= LARGE) {
      each(large[length - LARGE]!, length - LARGE);
    } else {
      each(bytes.subarray(at, at + length), undefined);
      at += length;
    }
  }
}

/** A session id is ASCII by its grammar, and stands first. */
function readKey(
  { bytes, view }: Segment,
  start: number,
): { readonly session: string; readonly call: bigint } {
  const from = start + FIXED_BYTES;
  const session = bytes.toString("latin1", from, from + view.getUint32(start + AT.lengths, true));
  return { session, call: view.getBigUint64(start + AT.call, true) };
}

function readRecord(segment: Segment, start: number, role: string): CallRecord {
  const { bytes, view } = segment;
  const from = start + FIXED_BYTES;
  const texts = bytes.toString("utf8", from, from + view.getUint32(start + AT.texts, true));
  const sessionEnd = view.getUint32(start + AT.lengths, true);
  const toolEnd = sessionEnd + view.getUint32(start + AT.lengths + 4, true);
  const equalEnd = toolEnd + view.getUint32(start + AT.lengths + 8, true);
  const flags = view.getUint32(start + AT.flags, true);
  const messages: Buffer[] = [];
  forEachMessage(segment, start, (message, index) => {
    messages.push(index === undefined ? Buffer.from(message) : message);
  });
  return {
    key: { role, session: texts.slice(0, sessionEnd), call: view.getBigUint64(start + AT.call, true) },
    tool: texts.slice(sessionEnd, toolEnd),
    arguments: texts.slice(equalEnd),
    uid: (flags & NO_UID) === 0 ? view.getUint32(start + AT.uid, true) : undefined,
    durable: (flags & DURABLE) !== 0,
    equal: equalEnd === toolEnd ? undefined : texts.slice(toolEnd, equalEnd),
    askedAtMs: view.getFloat64(start + AT.asked, true),
    state: "ended",
    status: statusOf((flags >>> STATUS_SHIFT) & STATUS_BITS),
    code: codeOf((flags >>> CODE_SHIFT) & CODE_BITS),
    messages,
    labels: labelsOf(flags),
    endedAtMs: view.getFloat64(start + AT.ended, true),
  };
}
