// A cursor over one frame's body: the few tokens that an envelope is made of, strictly, in one pass.
// Every method throws FrameFault json where the bytes are anything else.

import { U64_MAX } from "../base/ids.ts";
import { FrameFault } from "./fault.ts";
import { type JsonString, plainEnd, scanString } from "./json_string.ts";

/** The names that a string may be: an object's members, in canonical order, or an enumeration. At most 31, for a bit mask. */
export interface Names<T extends string = string> {
  readonly names: readonly T[];
  readonly tokens: readonly Buffer[];
}

export function closedNames<const T extends string>(...names: readonly T[]): Names<T> {
  return { names, tokens: names.map((name) => Buffer.from(`"${name}"`)) };
}

const NUMBER_DIGITS_EXACT = 15;
const U64_DIGITS = 20;
const SHORT_TEXT_BYTES = 128;
const U32_MAX = 0xffff_ffff;

export class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Reads `{`. */
  open(): void {
    this.#punctuation(0x7b);
  }

  /**
   * After `open` or a member's value: the index of the next member's name with its colon read, or -1
   * after the closing brace. `expected` is the index to try first; 0 stands only for the first member.
   */
  field(fields: Names, expected: number, first: boolean): number {
    this.#space();
    if (this.#bytes[this.#at] === 0x7d) {
      this.#at += 1;
      return -1;
    }
    if (!first) {
      this.#punctuation(0x2c);
      this.#space();
    }
    const index = this.#name(fields, expected);
    this.#punctuation(0x3a);
    this.#space();
    return index;
  }

  /** Nothing but white space is left. */
  close(): void {
    this.#space();
    if (this.#at !== this.#bytes.length) throw new FrameFault("json");
  }

  string(): JsonString {
    if (this.#bytes[this.#at] !== 0x22) throw new FrameFault("json");
    const token = scanString(this.#bytes, this.#at, this.#bytes.length);
    this.#at += token.tokenBytes;
    return token;
  }

  /** A string as its text. Most are short and plain: those need no JsonString. */
  text(): string {
    const bytes = this.#bytes;
    const start = this.#at + 1;
    const end = plainEnd(bytes, start, Math.min(bytes.length, start + SHORT_TEXT_BYTES));
    if (bytes[start - 1] !== 0x22 || bytes[end] !== 0x22) return this.string().text;
    this.#at = end + 1;
    return bytes.toString("latin1", start, end);
  }

  /** A string that is one of `names`, which are tried from the first on. */
  oneOf<T extends string>(names: Names<T>): T {
    return names.names[this.#name(names, 0)]!; // #name gives an index of it or throws
  }

  boolean(): boolean {
    if (this.#startsWith(TRUE)) {
      this.#at += TRUE.length;
      return true;
    }
    if (!this.#startsWith(FALSE)) throw new FrameFault("json");
    this.#at += FALSE.length;
    return false;
  }

  u32(): number {
    const value = this.#unsigned();
    if (typeof value !== "number" || value > U32_MAX) throw new FrameFault("json");
    return value;
  }

  u64(): bigint {
    return BigInt(this.#unsigned());
  }

  /** A number where its digits are few enough to be exact so. */
  #unsigned(): number | bigint {
    const start = this.#at;
    let small = 0;
    let at = start;
    for (let digit = this.#bytes[at]! - 0x30; digit >= 0 && digit <= 9; digit = this.#bytes[at]! - 0x30) {
      at += 1;
      if (at - start <= NUMBER_DIGITS_EXACT) small = small * 10 + digit;
    }
    const digits = at - start;
    if (digits === 0 || digits > U64_DIGITS || (digits > 1 && this.#bytes[start] === 0x30))
      throw new FrameFault("json");
    this.#at = at;
    this.#endOfNumber();
    if (digits <= NUMBER_DIGITS_EXACT) return small;
    const value = BigInt(this.#bytes.toString("latin1", start, at));
    if (value > U64_MAX) throw new FrameFault("json");
    return value;
  }

  /** No fraction or exponent: what follows a number is checked by whoever reads on, but `.`, `e` and `E` begin no token. */
  #endOfNumber(): void {
    const byte = this.#bytes[this.#at];
    if (byte === 0x2e || byte === 0x65 || byte === 0x45) throw new FrameFault("json");
  }

  /** The index of the name that is read, tried from `expected` on. */
  #name({ names, tokens }: Names, expected: number): number {
    const count = tokens.length;
    for (let tried = 0, index = expected; tried < count; tried += 1, index += 1) {
      if (index >= count) index = 0;
      const token = tokens[index]!;
      if (this.#startsWith(token)) {
        this.#at += token.length;
        return index;
      }
    }
    const index = names.indexOf(this.text()); // written with escapes, or unknown
    if (index < 0) throw new FrameFault("json");
    return index;
  }

  #startsWith(token: Buffer): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    if (at + token.length > bytes.length) return false;
    for (let i = 0; i < token.length; i += 1) if (bytes[at + i] !== token[i]) return false;
    return true;
  }

  #punctuation(byte: number): void {
    this.#space();
    if (this.#bytes[this.#at] !== byte) throw new FrameFault("json");
    this.#at += 1;
  }

  #space(): void {
    let byte = this.#bytes[this.#at];
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
      this.#at += 1;
      byte = this.#bytes[this.#at];
    }
  }
}

const TRUE = Buffer.from("true");
const FALSE = Buffer.from("false");
