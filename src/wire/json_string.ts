// A JSON string as it stands in a frame: validated once, byte by byte, and decoded only where
// somebody needs its text. What is canonical is passed on as the very bytes that were validated.
// Invariant: a JsonString exists only for a valid token (UTF-8, no raw control, no lone surrogate).

import { isUtf8 } from "node:buffer";
import { FrameFault } from "./fault.ts";

const PLAIN = 0;
const QUOTE = 1;
const BACKSLASH = 2;
const CONTROL = 3;
const HIGH = 4;

const KIND = new Uint8Array(256).fill(HIGH, 0x80).fill(CONTROL, 0, 0x20);
KIND[0x22] = QUOTE;
KIND[0x5c] = BACKSLASH;

export class JsonString {
  readonly #bytes: Buffer;
  readonly #start: number;
  readonly #end: number;
  readonly #ascii: boolean;
  readonly #escaped: boolean;
  /** The token is exactly what the encoder would write for its text. */
  readonly canonical: boolean;
  #text: string | undefined;

  /** `start` and `end` enclose the token with its quotes. The bytes are not copied and must not change. */
  constructor(
    bytes: Buffer,
    start: number,
    end: number,
    ascii: boolean,
    escaped: boolean,
    canonical: boolean,
  ) {
    this.#bytes = bytes;
    this.#start = start;
    this.#end = end;
    this.#ascii = ascii;
    this.#escaped = escaped;
    this.canonical = canonical;
  }

  get text(): string {
    this.#text ??= this.#decode();
    return this.#text;
  }

  /** Bytes of the token with its quotes: a bound on the bytes and UTF-16 units of the text. */
  get tokenBytes(): number {
    return this.#end - this.#start;
  }

  /** Bytes of the text in UTF-8, told without decoding where nothing is escaped. */
  get textBytes(): number {
    return this.#escaped ? Buffer.byteLength(this.text) : this.#end - this.#start - 2;
  }

  /** Copies the token with its quotes; only a canonical one is to be passed on so. */
  copyToken(target: Buffer, at: number): number {
    return this.#bytes.copy(target, at, this.#start, this.#end);
  }

  #decode(): string {
    if (this.#escaped) return JSON.parse(this.#bytes.toString("utf8", this.#start, this.#end)) as string;
    return this.#ascii
      ? this.#bytes.toString("latin1", this.#start + 1, this.#end - 1)
      : this.#bytes.toString("utf8", this.#start + 1, this.#end - 1);
  }
}

/** Reads the string token that begins at `start` (a quote) and ends before `end`. @throws FrameFault json */
export function scanString(bytes: Buffer, start: number, end: number): JsonString {
  const words = end - start >= WORDS_FROM_BYTES ? new Words(bytes, end) : undefined;
  let ascii = true;
  let escaped = false;
  let canonical = true;
  let at = start + 1;
  for (;;) {
    const near = words === undefined ? end : Math.min(end, at + SHORT_RUN_BYTES);
    at = plainEnd(bytes, at, near);
    if (at === near && words !== undefined) at = words.plainEnd(at);
    if (at >= end) throw new FrameFault("json");
    const kind = KIND[bytes[at]!];
    if (kind === BACKSLASH) {
      escaped = true;
      const length = escapeLength(bytes, at, end);
      if (canonical && !isCanonicalEscape(bytes, at, length)) canonical = false;
      at += length;
    } else if (kind === HIGH) {
      ascii = false;
      do at += 1;
      while (at < end && bytes[at]! >= 0x80);
    } else if (kind === QUOTE) {
      break;
    } else {
      throw new FrameFault("json"); // a control
    }
  }
  if (!ascii && !isUtf8(bytes.subarray(start, at))) throw new FrameFault("json");
  return new JsonString(bytes, start, at + 1, ascii, escaped, canonical);
}

/** Where the run of plain ASCII from `from` on ends: at a quote, a backslash, a control, a byte above ASCII or `end`. */
export function plainEnd(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && KIND[bytes[at]!] === PLAIN) at += 1;
  return at;
}

/** From how many bytes on, and after how many plain ones, looking at four at once pays. */
const WORDS_FROM_BYTES = 256;
const SHORT_RUN_BYTES = 16;

/** The bytes before `end` as words of four, to get over long plain runs. */
class Words {
  readonly #bytes: Buffer;
  readonly #end: number;
  readonly #words: Int32Array;
  /** By how many bytes the first word begins before the body. */
  readonly #skew: number;

  constructor(bytes: Buffer, end: number) {
    this.#bytes = bytes;
    this.#end = end;
    this.#skew = bytes.byteOffset & 3;
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset - this.#skew, (this.#skew + end) >> 2);
  }

  /** Where the plain run that `at` is in, or just behind, ends. */
  plainEnd(at: number): number {
    const border = ((at + this.#skew + 3) & ~3) - this.#skew;
    const near = plainEnd(this.#bytes, at, Math.min(border, this.#end));
    if (near !== border) return near;
    const words = this.#words;
    let i = (border + this.#skew) >> 2;
    while (i < words.length && isPlain(words[i]!)) i += 1;
    return plainEnd(this.#bytes, i * 4 - this.#skew, this.#end);
  }
}

/**
 * Whether none of a word's four bytes is a quote, a backslash, a control or above ASCII. Among ASCII bytes
 * each difference has the upper bit of a byte set only where that byte is one of those, or one below it is.
 */
function isPlain(word: number): boolean {
  const quote = (word ^ 0x22222222) - 0x01010101;
  const backslash = (word ^ 0x5c5c5c5c) - 0x01010101;
  const control = word - 0x20202020;
  return ((quote | backslash | control | word) & 0x80808080) === 0;
}

/** Length of the escape at `at`: 2, 6, or 12 for a surrogate pair. */
function escapeLength(bytes: Buffer, at: number, end: number): number {
  if (at + 1 >= end) throw new FrameFault("json");
  switch (bytes[at + 1]) {
    case 0x22: // "
    case 0x5c: // backslash
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return 2;
    case 0x75:
      break;
    default:
      throw new FrameFault("json");
  }
  const unit = hex4(bytes, at + 2, end);
  if (unit < 0xd800 || unit > 0xdfff) return 6;
  if (unit > 0xdbff || bytes[at + 6] !== 0x5c || bytes[at + 7] !== 0x75) throw new FrameFault("json");
  const low = hex4(bytes, at + 8, end);
  if (low < 0xdc00 || low > 0xdfff) throw new FrameFault("json");
  return 12;
}

function hex4(bytes: Buffer, at: number, end: number): number {
  if (at + 4 > end) throw new FrameFault("json");
  let unit = 0;
  for (let i = at; i < at + 4; i += 1) unit = unit * 16 + hexDigit(bytes[i]!);
  return unit;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  if (lower >= 0x61 && lower <= 0x66) return lower - 0x57;
  throw new FrameFault("json");
}

/** Shortest escapes only: the two-letter ones but `\/`, and `\u00xx` in lower case for the other controls. */
function isCanonicalEscape(bytes: Buffer, at: number, length: number): boolean {
  if (length === 2) return bytes[at + 1] !== 0x2f;
  if (length !== 6 || bytes[at + 2] !== 0x30 || bytes[at + 3] !== 0x30) return false;
  const high = bytes[at + 4]!;
  const low = bytes[at + 5]!;
  if (high !== 0x30 && high !== 0x31) return false;
  if (low >= 0x41 && low <= 0x46) return false;
  const control = (high - 0x30) * 16 + hexDigit(low);
  return !(control === 8 || control === 9 || control === 10 || control === 12 || control === 13);
}

/** The canonical token of a text. @throws FrameFault json where it holds a lone surrogate, or is none */
export function stringToken(text: string): string {
  if (typeof text !== "string") throw new FrameFault("json", undefined, "a text is no string");
  if (!text.isWellFormed()) throw new FrameFault("json", undefined, "a text holds a lone surrogate");
  return JSON.stringify(text);
}
