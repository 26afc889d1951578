// The part of MessagePack that the contract allows (spec: connector, 2): nil, booleans, unsigned integers, text, binary,
// arrays and maps, each in its shortest form. A general library can't be made this strict: it takes longer
// forms, mends bad UTF-8 and strips a leading U+FEFF. Invariant: a length is held against the bytes
// that remain before anything is done with it, and reading goes forward only.

import { isAscii, isUtf8 } from "node:buffer";
import { INTEGER_MAX } from "./limits.ts";

/** Thrown by a Reader, caught where a whole value is decoded (decode.ts) and nowhere else. */
export const MALFORMED: unique symbol = Symbol("malformed");

const NIL = 0xc0;
const FALSE = 0xc2;
const TRUE = 0xc3;
const BIN_8 = 0xc4;
const BIN_16 = 0xc5;
const BIN_32 = 0xc6;
const UINT_8 = 0xcc;
const UINT_16 = 0xcd;
const UINT_32 = 0xce;
const UINT_64 = 0xcf;
const STR_8 = 0xd9;
const STR_16 = 0xda;
const STR_32 = 0xdb;
const ARRAY_16 = 0xdc;
const ARRAY_32 = 0xdd;
const FIX_MAP = 0x80;
const FIX_ARRAY = 0x90;
const FIX_STR = 0xa0;
const FIX_COUNT = 16;
const FIX_STR_COUNT = 32;
const TWO_32 = 2 ** 32;
/** Up to here a loop over the bytes is faster than two calls out of JavaScript. */
const SHORT_TEXT_BYTES = 24;

/** Every method reads one thing, or throws MALFORMED. */
export class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Whether nil comes next; then it is read. */
  nil(): boolean {
    if (this.#bytes[this.#at] !== NIL) return false;
    this.#at++;
    return true;
  }

  boolean(): boolean {
    const head = this.#bytes[this.#at++];
    if (head === TRUE) return true;
    if (head === FALSE) return false;
    throw MALFORMED;
  }

  integer(): number {
    const head = this.#byte();
    if (head < 0x80) return head;
    if (head === UINT_8) return this.#sized(1, 0x80);
    if (head === UINT_16) return this.#sized(2, 0x100);
    if (head === UINT_32) return this.#sized(4, 0x1_0000);
    if (head !== UINT_64) throw MALFORMED;
    const high = this.#sized(4, 1);
    const low = this.#sized(4, 0);
    const value = high * TWO_32 + low;
    if (value > INTEGER_MAX) throw MALFORMED;
    return value;
  }

  /** The head of a map with exactly so many entries, at most 15. */
  map(entries: number): void {
    if (this.#bytes[this.#at++] !== FIX_MAP + entries) throw MALFORMED;
  }

  /** How many items follow: no more than bytes do. */
  array(): number {
    const head = this.#byte();
    if (head >= FIX_ARRAY && head < FIX_ARRAY + FIX_COUNT) return this.#fitting(head - FIX_ARRAY);
    if (head === ARRAY_16) return this.#fitting(this.#sized(2, FIX_COUNT));
    if (head === ARRAY_32) return this.#fitting(this.#sized(4, 0x1_0000));
    throw MALFORMED;
  }

  /** Whether exactly this encoding comes next; then it is read. */
  takes(encoded: Uint8Array): boolean {
    const end = this.#at + encoded.length;
    for (let i = 0; i < encoded.length; i++) {
      if (this.#bytes[this.#at + i] !== encoded[i]) return false;
    }
    this.#at = end;
    return true;
  }

  /** Well-formed UTF-8 of at most so many bytes. */
  text(bytesMax: number): string {
    const length = this.#textLength();
    if (length > bytesMax) throw MALFORMED;
    const start = this.#at;
    this.#at += length;
    if (length <= SHORT_TEXT_BYTES && this.#isAscii(start))
      return this.#bytes.toString("latin1", start, this.#at);
    const bytes = this.#bytes.subarray(start, this.#at);
    if (isAscii(bytes)) return bytes.toString("latin1");
    if (!isUtf8(bytes)) throw MALFORMED;
    return this.#bytes.toString("utf8", start, this.#at);
  }

  /** A view of the bytes that are read from, of a length within the bounds. */
  binary(bytesMin: number, bytesMax: number): Buffer {
    const length = this.#binaryLength();
    if (length < bytesMin || length > bytesMax) throw MALFORMED;
    const start = this.#at;
    this.#at += length;
    return this.#bytes.subarray(start, this.#at);
  }

  #textLength(): number {
    const head = this.#byte();
    if (head >= FIX_STR && head < FIX_STR + FIX_STR_COUNT) return this.#fitting(head - FIX_STR);
    if (head === STR_8) return this.#fitting(this.#sized(1, FIX_STR_COUNT));
    if (head === STR_16) return this.#fitting(this.#sized(2, 0x100));
    if (head === STR_32) return this.#fitting(this.#sized(4, 0x1_0000));
    throw MALFORMED;
  }

  #binaryLength(): number {
    const head = this.#byte();
    if (head === BIN_8) return this.#fitting(this.#sized(1, 0));
    if (head === BIN_16) return this.#fitting(this.#sized(2, 0x100));
    if (head === BIN_32) return this.#fitting(this.#sized(4, 0x1_0000));
    throw MALFORMED;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw MALFORMED;
    return byte;
  }

  /** An unsigned integer of so many bytes; a smaller one has a shorter form. */
  #sized(count: number, least: number): number {
    if (count > this.#bytes.length - this.#at) throw MALFORMED;
    const value = this.#bytes.readUIntBE(this.#at, count);
    this.#at += count;
    if (value < least) throw MALFORMED;
    return value;
  }

  #fitting(count: number): number {
    if (count > this.#bytes.length - this.#at) throw MALFORMED;
    return count;
  }

  #isAscii(from: number): boolean {
    for (let at = from; at < this.#at; at++) {
      if ((this.#bytes[at] ?? 0x80) > 0x7f) return false;
    }
    return true;
  }
}

/** Writes shortest forms one behind the other. What it is given is checked by encode.ts. */
export class Writer {
  #bytes: Buffer;
  #at = 0;

  /** Room for so many bytes to begin with; it grows where more is written. */
  constructor(bytes: number) {
    this.#bytes = Buffer.allocUnsafe(bytes);
  }

  /** What was written; the writer must not be used again. */
  end(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  nil(): void {
    this.#room(1);
    this.#bytes[this.#at++] = NIL;
  }

  boolean(value: boolean): void {
    this.#room(1);
    this.#bytes[this.#at++] = value ? TRUE : FALSE;
  }

  /** 0 to INTEGER_MAX. */
  integer(value: number): void {
    if (value < 0x80) this.#head(value, 0, 0);
    else if (value < 0x100) this.#head(UINT_8, value, 1);
    else if (value < 0x1_0000) this.#head(UINT_16, value, 2);
    else if (value < TWO_32) this.#head(UINT_32, value, 4);
    else {
      this.#head(UINT_64, Math.floor(value / TWO_32), 4);
      this.#room(4);
      this.#at = this.#bytes.writeUInt32BE(value % TWO_32, this.#at);
    }
  }

  map(entries: number): void {
    this.#head(FIX_MAP + entries, 0, 0);
  }

  array(items: number): void {
    if (items < FIX_COUNT) this.#head(FIX_ARRAY + items, 0, 0);
    else if (items < 0x1_0000) this.#head(ARRAY_16, items, 2);
    else this.#head(ARRAY_32, items, 4);
  }

  text(text: string, length: number): void {
    this.#textHead(length);
    this.#room(length);
    this.#at += this.#bytes.write(text, this.#at, "utf8");
  }

  binary(bytes: Uint8Array): void {
    const { length } = bytes;
    if (length < 0x100) this.#head(BIN_8, length, 1);
    else if (length < 0x1_0000) this.#head(BIN_16, length, 2);
    else this.#head(BIN_32, length, 4);
    this.encoded(bytes);
  }

  /** Bytes that are an encoding already. */
  encoded(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #textHead(length: number): void {
    if (length < FIX_STR_COUNT) this.#head(FIX_STR + length, 0, 0);
    else if (length < 0x100) this.#head(STR_8, length, 1);
    else if (length < 0x1_0000) this.#head(STR_16, length, 2);
    else this.#head(STR_32, length, 4);
  }

  #head(head: number, value: number, count: number): void {
    this.#room(1 + count);
    this.#bytes[this.#at++] = head;
    if (count > 0) this.#at = this.#bytes.writeUIntBE(value, this.#at, count);
  }

  #room(count: number): void {
    const needed = this.#at + count;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}

/** The head of a text that takes so many bytes, fewer than 256. */
export function textHead(length: number): Buffer {
  return Buffer.from(length < FIX_STR_COUNT ? [FIX_STR + length] : [STR_8, length]);
}
