// Frames: a 4-byte big-endian length and that many bytes (spec: wire, Frame). A reader that never
// allocates on a declared length and a writer that turns messages into frames back to back.

import { U64_MAX } from "../base/ids.ts";
import { FRAME_BYTES_MAX } from "../base/limits.ts";
import { decodeBody, encodeMessage } from "./envelope.ts";
import { encodeFault, FrameFault } from "./fault.ts";
import { type Envelope, PROTOCOL_VERSION } from "./message.ts";

const HEADER_BYTES = 4;
const PARTIAL_BYTES_MIN = 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Splits a stream into bodies. A body that lies whole in a chunk is a view of it, not a copy; a body
 * in pieces is gathered in a buffer that grows with what has arrived.
 */
export class FrameReader {
  #chunk: Buffer = NOTHING;
  #at = 0;
  /** Header and body of the frame that began in an earlier chunk. */
  #partial: Buffer | undefined;
  #filled = 0;

  /**
   * Takes the next bytes of the stream, which must not change afterwards: bodies are views of them. Call
   * `next` until it gives undefined before the next push; what is left of a chunk costs a copy.
   */
  push(chunk: Buffer): void {
    this.#chunk =
      this.#at < this.#chunk.length ? Buffer.concat([this.#chunk.subarray(this.#at), chunk]) : chunk;
    this.#at = 0;
  }

  /** Bytes held of a frame that is not complete. */
  get heldBytes(): number {
    return this.#filled + this.#chunk.length - this.#at;
  }

  /** The next body, or undefined until more bytes are pushed. @throws FrameFault empty, too_large; and again, if asked again */
  next(): Buffer | undefined {
    if (this.#partial !== undefined) return this.#nextFromPartial();
    const available = this.#chunk.length - this.#at;
    if (available === 0) {
      this.#release();
      return undefined;
    }
    let frameBytes = HEADER_BYTES + FRAME_BYTES_MAX;
    if (available >= HEADER_BYTES) {
      frameBytes = HEADER_BYTES + checkedLength(this.#chunk.readUInt32BE(this.#at));
      if (available >= frameBytes) {
        const start = this.#at + HEADER_BYTES;
        this.#at += frameBytes;
        return this.#chunk.subarray(start, this.#at);
      }
    }
    // Room for twice what has arrived, not for what was declared; a frame that is mostly there gets all it needs.
    this.#partial = Buffer.allocUnsafeSlow(Math.min(frameBytes, Math.max(PARTIAL_BYTES_MIN, available * 2)));
    this.#take(available, frameBytes);
    this.#release();
    return undefined;
  }

  /** Lets go of a chunk that is read: a quiet connection must not hold on to it. */
  #release(): void {
    this.#chunk = NOTHING;
    this.#at = 0;
  }

  /** What the end of the stream means now: a clean end between frames, or a cut one. */
  end(): FrameFault {
    return new FrameFault(this.heldBytes === 0 ? "closed" : "io");
  }

  #nextFromPartial(): Buffer | undefined {
    if (this.#filled < HEADER_BYTES) {
      this.#take(HEADER_BYTES - this.#filled, HEADER_BYTES);
      if (this.#filled < HEADER_BYTES) {
        this.#release();
        return undefined;
      }
    }
    const frameBytes = HEADER_BYTES + checkedLength(this.#partial!.readUInt32BE(0));
    this.#take(frameBytes - this.#filled, frameBytes);
    if (this.#filled < frameBytes) {
      this.#release();
      return undefined;
    }
    const body = this.#partial!.subarray(HEADER_BYTES, frameBytes);
    this.#partial = undefined;
    this.#filled = 0;
    return body;
  }

  /** Moves at most `wanted` bytes from the chunk to the partial frame, which at most doubles for them, up to its whole. */
  #take(wanted: number, frameBytes: number): void {
    const bytes = Math.min(wanted, this.#chunk.length - this.#at);
    const needed = this.#filled + bytes;
    if (needed > this.#partial!.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(frameBytes, needed * 2)));
      this.#partial!.copy(grown, 0, 0, this.#filled);
      this.#partial = grown;
    }
    this.#chunk.copy(this.#partial!, this.#filled, this.#at, this.#at + bytes);
    this.#filled = needed;
    this.#at += bytes;
  }
}

function checkedLength(length: number): number {
  if (length === 0) throw new FrameFault("empty");
  if (length > FRAME_BYTES_MAX) throw new FrameFault("too_large", length);
  return length;
}

/** `{"v":1,"id":ID,"final":F,"msg":` as text; the message's bytes and `}` follow. @throws FrameFault json */
function envelopeHead(v: number, id: bigint, final: boolean): string {
  if (!Number.isInteger(v) || v < 0 || v > 0xffff_ffff)
    throw new FrameFault("json", undefined, "`v` is no u32");
  if (typeof id !== "bigint" || id < 0n || id > U64_MAX)
    throw new FrameFault("json", undefined, "`id` is no u64");
  if (typeof final !== "boolean") throw new FrameFault("json", undefined, "`final` is no boolean");
  return `{"v":${v},"id":${id},"final":${final},"msg":`;
}

const CLOSE_BRACE = 0x7d;

/** Writes a frame's length and its head at `at`; returns where the message goes. The caller has made room. */
function putHead(target: Buffer, at: number, head: string, message: Buffer): number {
  target.writeUInt32BE(head.length + message.length + 1, at);
  target.write(head, at + HEADER_BYTES, "latin1");
  return at + HEADER_BYTES + head.length;
}

/** Writes one frame at `at`; returns its end. The caller has made room. */
function putFrame(target: Buffer, at: number, head: string, message: Buffer): number {
  const start = putHead(target, at, head, message);
  target.set(message, start);
  const end = start + message.length;
  target[end] = CLOSE_BRACE;
  return end + 1;
}

function checkedBody(head: string, message: Buffer): number {
  const bodyBytes = head.length + message.length + 1;
  if (bodyBytes > FRAME_BYTES_MAX) throw new FrameFault("too_large", bodyBytes);
  return HEADER_BYTES + bodyBytes;
}

/**
 * One envelope as a frame; whatever `v` it has is written, so that a test can make a peer of another version.
 * @throws FrameFault too_large (nothing is written), json for a value outside the grammar; nothing else, whoever calls
 */
export function encodeFrame(envelope: Envelope): Buffer {
  try {
    return envelopeFrame(envelope);
  } catch (error) {
    throw encodeFault(error);
  }
}

function envelopeFrame({ v, id, final, msg }: Envelope): Buffer {
  const head = envelopeHead(v, id, final);
  const message = encodeMessage(msg);
  const frame = Buffer.allocUnsafe(checkedBody(head, message));
  putFrame(frame, 0, head, message);
  return frame;
}

/**
 * Reads the frame at the start of `bytes`: its envelope and how many bytes it took, or undefined where
 * more bytes may complete it. With `ended` the stream holds nothing more.
 * @throws FrameFault of any outcome; `closed` and `io` only with `ended`
 */
export function decodeFrame(
  bytes: Buffer,
  ended = false,
): { envelope: Envelope; frameBytes: number } | undefined {
  const reader = new FrameReader();
  reader.push(bytes);
  const body = reader.next();
  if (body !== undefined) return { envelope: decodeBody(body), frameBytes: HEADER_BYTES + body.length };
  if (ended) throw reader.end();
  return undefined;
}

const BLOCK_BYTES = 16_384;
/** From this size on a message is handed on as the buffer that it is, not copied. */
const HANDED_ON_BYTES = 8192;

/** Frames back to back, gathered for one write. A message must not change once it is appended. */
export class FrameWriter {
  /** What is complete, in order; the block goes behind it. */
  #parts: Buffer[] = [];
  #block: Buffer | undefined;
  #filled = 0;
  #pendingBytes = 0;

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Appends a frame around a message that `encodeMessage` made. @throws FrameFault too_large, json; nothing is appended then */
  append(id: bigint, final: boolean, message: Buffer): void {
    const head = envelopeHead(PROTOCOL_VERSION, id, final);
    const frameBytes = checkedBody(head, message);
    if (message.length < HANDED_ON_BYTES) {
      this.#filled = putFrame(this.#room(frameBytes), this.#filled, head, message);
    } else {
      this.#filled = putHead(this.#room(HEADER_BYTES + head.length), this.#filled, head, message);
      this.#seal();
      this.#parts.push(message);
      this.#room(1)[this.#filled] = CLOSE_BRACE;
      this.#filled += 1;
    }
    this.#pendingBytes += frameBytes;
  }

  /** What was gathered, given away, in order; empty where there is nothing. */
  take(): readonly Buffer[] {
    this.#seal();
    const parts = this.#parts;
    this.#parts = [];
    this.#pendingBytes = 0;
    return parts;
  }

  /**
   * What the block holds becomes a part and is never touched again; what is left of it serves on. A block
   * for one large frame is let go: a quiet connection must not hold on to what one burst took.
   */
  #seal(): void {
    if (this.#block === undefined || this.#filled === 0) return;
    this.#parts.push(this.#block.subarray(0, this.#filled));
    const left =
      this.#block.buffer.byteLength === BLOCK_BYTES ? this.#block.subarray(this.#filled) : undefined;
    this.#block = left?.length ? left : undefined;
    this.#filled = 0;
  }

  #room(bytes: number): Buffer {
    if (this.#block !== undefined && this.#block.length - this.#filled >= bytes) return this.#block;
    this.#seal();
    if (this.#block === undefined || this.#block.length < bytes)
      this.#block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes));
    return this.#block;
  }
}
