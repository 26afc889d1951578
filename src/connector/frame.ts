// Frames on a stream (spec: connector, 5): a 4-byte big-endian length, and that many bytes. One connection carries one
// frame each way, so a reader reads one. Invariant: a declared length is checked before anything is kept of the
// body, and what is kept at most doubles with what has arrived.

import { constants } from "node:buffer";

const HEADER_BYTES = 4;
const GATHERED_BYTES_MIN = 1024;

/**
 * The largest frame that can be worked on: it holds a text, and this is the longest that the engine holds (about 2^29
 * characters). A bound above it is legal, and a frame above it is over the bound.
 */
export const FRAME_BYTES_WORKABLE = constants.MAX_STRING_LENGTH;

export type Intake =
  | { readonly state: "partial" }
  /** Zero, or above the bound; nothing after it is a frame. */
  | { readonly state: "bad_length"; readonly declaredBytes: number }
  | { readonly state: "whole"; readonly frame: Buffer };

const PARTIAL: Intake = { state: "partial" };

/** Reads one frame; whatever comes after it, or after a bad length, is let go of unread. */
export class FrameIntake {
  /** The bound that holds: the one given, or what can be worked on. */
  readonly frameBytesMax: number;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #gathered: Buffer | undefined;
  #gatheredBytes = 0;
  #ending: Intake | undefined;

  /** `frameBytesMax`: without the length before it. */
  constructor(frameBytesMax: number) {
    this.frameBytesMax = Math.min(frameBytesMax, FRAME_BYTES_WORKABLE);
  }

  /** Whether anything of a frame has come, whole or not. */
  get hasBegun(): boolean {
    return this.#headerBytes > 0;
  }

  /** Takes the next bytes of the stream, which must not change afterwards: a frame may be a view of them. */
  take(chunk: Buffer): Intake {
    if (this.#ending !== undefined) return this.#ending;
    const headerEnd = Math.min(HEADER_BYTES - this.#headerBytes, chunk.length);
    chunk.copy(this.#header, this.#headerBytes, 0, headerEnd);
    this.#headerBytes += headerEnd;
    if (this.#headerBytes < HEADER_BYTES) return PARTIAL;
    const declaredBytes = this.#header.readUInt32BE();
    if (declaredBytes === 0 || declaredBytes > this.frameBytesMax)
      return this.#end({ state: "bad_length", declaredBytes });
    return this.#takeBody(chunk.subarray(headerEnd), declaredBytes);
  }

  #takeBody(chunk: Buffer, declaredBytes: number): Intake {
    const missing = declaredBytes - this.#gatheredBytes;
    if (this.#gathered === undefined && chunk.length >= missing)
      return this.#end({ state: "whole", frame: chunk.subarray(0, missing) });
    const gathered = this.#gather(chunk.subarray(0, missing), declaredBytes);
    if (this.#gatheredBytes < declaredBytes) return PARTIAL;
    return this.#end({ state: "whole", frame: gathered.subarray(0, declaredBytes) });
  }

  #gather(bytes: Buffer, declaredBytes: number): Buffer {
    const needed = this.#gatheredBytes + bytes.length;
    if (this.#gathered === undefined || this.#gathered.length < needed) {
      const room = Math.min(declaredBytes, Math.max(GATHERED_BYTES_MIN, needed * 2));
      const grown = Buffer.allocUnsafeSlow(room);
      this.#gathered?.copy(grown, 0, 0, this.#gatheredBytes);
      this.#gathered = grown;
    }
    bytes.copy(this.#gathered, this.#gatheredBytes);
    this.#gatheredBytes = needed;
    return this.#gathered;
  }

  #end(ending: Intake): Intake {
    this.#ending = ending;
    this.#gathered = undefined;
    return ending;
  }
}

/** A frame as it goes over the wire. @throws RangeError for one whose length does not fit before it */
export function withLength(frame: Uint8Array): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(frame.length);
  return Buffer.concat([header, frame]);
}
