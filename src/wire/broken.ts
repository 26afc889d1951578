// What to tell a peer whose frame's body did not decode (spec: wire, Frame). The slow path, taken once
// before a disconnect: one pass over the body by the grammar of JSON alone, since the peer may speak a
// version whose messages are unknown here. It builds no values; its stack takes one bit for each level.

import { isUtf8 } from "node:buffer";
import { type ErrorCode, PROTOCOL_VERSION } from "./message.ts";

export interface Broken {
  readonly code: Extract<ErrorCode, "bad_frame" | "bad_version" | "bad_message">;
  /** A sentence; of the input it holds at most the number `v`. */
  readonly detail: string;
}

const BAD_FRAME: Broken = { code: "bad_frame", detail: "the body of a frame is no JSON object" };
const BAD_MESSAGE: Broken = { code: "bad_message", detail: "a message is none of this protocol" };

/** `v` as it may be written: nobody needs more digits to see what he sent. */
const VERSION_CHARS_MAX = 20;

/**
 * `bad_frame` where the body is no JSON object, `bad_version` where the object's `v` is a number other
 * than 1 (compared as a double), else `bad_message`. An object with two `v` names no version, whichever they are:
 * `bad_message`. A lone surrogate escape is within the grammar of JSON, so it does not hide a version.
 * Never throws; time is linear in the body, memory an eighth of it at most.
 */
export function classifyBroken(body: Buffer): Broken {
  if (!isUtf8(body)) return BAD_FRAME;
  const pass = new GrammarPass(body);
  if (!pass.isObject()) return BAD_FRAME;
  const { version } = pass;
  if (version === undefined || pass.versions > 1) return BAD_MESSAGE;
  if (!/^[-0-9]/.test(version) || Number(version) === PROTOCOL_VERSION) return BAD_MESSAGE;
  const named = version.length <= VERSION_CHARS_MAX ? `version ${version}` : "the version";
  return { code: "bad_version", detail: `${named} is not known here, only ${PROTOCOL_VERSION}` };
}

const LITERALS = [Buffer.from("true"), Buffer.from("false"), Buffer.from("null")];

/** What the grammar asks for next: a value; after an opening bracket the first member or the end; a comma or the end. */
type Wanted = "value" | "first" | "next";

class GrammarPass {
  readonly #bytes: Buffer;
  #at = 0;
  #depth = 0;
  /** One bit for each level: it is an object. */
  readonly #objects: Uint8Array;
  #wanted: Wanted = "value";
  #versionFollows = false;
  /** How many members `v` the outermost object has, and the token of the first: of one that is no scalar the bracket. */
  versions = 0;
  version: string | undefined;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#objects = new Uint8Array((bytes.length >> 3) + 1);
  }

  /** Whether all of the bytes are one JSON object. */
  isObject(): boolean {
    this.#space();
    if (this.#bytes[this.#at] !== 0x7b) return false;
    do if (!this.#step()) return false;
    while (this.#depth > 0);
    this.#space();
    return this.#at === this.#bytes.length;
  }

  #step(): boolean {
    this.#space();
    if (this.#wanted === "value") return this.#value();
    const inObject = this.#inObject();
    if (this.#bytes[this.#at] === (inObject ? 0x7d : 0x5d)) {
      this.#at += 1;
      this.#depth -= 1;
      this.#wanted = "next";
      return true;
    }
    if (this.#wanted === "next" && !this.#skip(0x2c)) return false;
    this.#wanted = "value";
    return !inObject || this.#name();
  }

  #value(): boolean {
    const start = this.#at;
    const opened = this.#open();
    const valid = opened || this.#scalar();
    if (this.#versionFollows) {
      this.versions += 1;
      this.version ??= this.#bytes.toString("latin1", start, this.#at);
      this.#versionFollows = false;
    }
    this.#wanted = opened ? "first" : "next";
    return valid;
  }

  #open(): boolean {
    const byte = this.#bytes[this.#at];
    if (byte !== 0x7b && byte !== 0x5b) return false;
    this.#at += 1;
    const bit = 1 << (this.#depth & 7);
    if (byte === 0x7b) this.#objects[this.#depth >> 3]! |= bit;
    else this.#objects[this.#depth >> 3]! &= ~bit;
    this.#depth += 1;
    return true;
  }

  #inObject(): boolean {
    const level = this.#depth - 1;
    return (this.#objects[level >> 3]! & (1 << (level & 7))) !== 0;
  }

  #name(): boolean {
    this.#space();
    const start = this.#at;
    if (!this.#string()) return false;
    this.#versionFollows = this.#depth === 1 && this.#isVersionName(start);
    this.#space();
    return this.#skip(0x3a);
  }

  /** Whether the name that begins at `start` and was just read is `v`, in either way of writing it. */
  #isVersionName(start: number): boolean {
    const nameBytes = this.#at - start;
    if (nameBytes === 3) return this.#bytes[start + 1] === 0x76;
    return nameBytes === 8 && this.#bytes.toString("latin1", start, this.#at) === '"\\u0076"';
  }

  #scalar(): boolean {
    if (this.#bytes[this.#at] === 0x22) return this.#string();
    for (const literal of LITERALS) {
      const end = this.#at + literal.length;
      if (this.#bytes.subarray(this.#at, end).equals(literal)) {
        this.#at = end;
        return true;
      }
    }
    return this.#number();
  }

  #string(): boolean {
    if (!this.#skip(0x22)) return false;
    for (let byte = this.#bytes[this.#at]; byte !== undefined && byte >= 0x20; byte = this.#bytes[this.#at]) {
      this.#at += 1;
      if (byte === 0x22) return true;
      if (byte === 0x5c && !this.#escape()) return false;
    }
    return false;
  }

  #escape(): boolean {
    const byte = this.#bytes[this.#at] ?? 0;
    this.#at += 1;
    if (byte !== 0x75) return '"\\/bfnrt'.includes(String.fromCharCode(byte));
    const digits = this.#bytes.toString("latin1", this.#at, this.#at + 4);
    this.#at += 4;
    return /^[0-9a-fA-F]{4}$/.test(digits);
  }

  #number(): boolean {
    this.#skip(0x2d);
    if (!this.#skip(0x30) && !this.#digits()) return false;
    if (this.#skip(0x2e) && !this.#digits()) return false;
    if (!this.#skip(0x65) && !this.#skip(0x45)) return true;
    if (!this.#skip(0x2b)) this.#skip(0x2d);
    return this.#digits();
  }

  /** At least one. */
  #digits(): boolean {
    const start = this.#at;
    for (let byte = this.#bytes[start]; byte !== undefined && byte >= 0x30 && byte <= 0x39; ) {
      this.#at += 1;
      byte = this.#bytes[this.#at];
    }
    return this.#at > start;
  }

  #skip(byte: number): boolean {
    if (this.#bytes[this.#at] !== byte) return false;
    this.#at += 1;
    return true;
  }

  #space(): void {
    for (let byte = this.#bytes[this.#at]; isSpace(byte); byte = this.#bytes[this.#at]) this.#at += 1;
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
