// What all processes of the bench share: splitting frames without looking into them, templates whose
// numbers are patched in place, and one write per socket and loop turn.

import type { Socket } from "node:net";

const HEADER_BYTES = 4;
/** Digits of every id and call in the bench: fixed, so that a template's numbers can be patched. */
export const DIGITS = 16;

/** Calls `each` with every whole frame of a stream, header included. */
export function splitFrames(socket: Socket, each: (frame: Buffer) => void): void {
  let rest: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (bytes.length - at >= HEADER_BYTES) {
      const end = at + HEADER_BYTES + bytes.readUInt32BE(at);
      if (end > bytes.length) break;
      each(bytes.subarray(at, end));
      at = end;
    }
    rest = bytes.subarray(at);
  });
}

/** Gathers frames for a socket and writes them once per loop turn. */
export function gatherer(socket: Socket): (frame: Buffer) => void {
  let frames: Buffer[] = [];
  return (frame) => {
    if (frames.length === 0) {
      setImmediate(() => {
        const all = frames.length === 1 ? frames[0]! : Buffer.concat(frames);
        frames = [];
        socket.write(all);
      });
    }
    frames.push(frame);
  };
}

export function framed(body: string): Buffer {
  const bytes = Buffer.from(body);
  const frame = Buffer.alloc(HEADER_BYTES + bytes.length);
  frame.writeUInt32BE(bytes.length, 0);
  bytes.copy(frame, HEADER_BYTES);
  return frame;
}

/** A number of exactly DIGITS digits (the first is 1). */
export function fixedNumber(n: number): string {
  return `1${String(n).padStart(DIGITS - 1, "0")}`;
}

const ID_AT = HEADER_BYTES + '{"v":1,"id":'.length;

/** The digits of a frame's id, wherever they end. */
export function idOf(frame: Buffer): string {
  return frame.toString("latin1", ID_AT, frame.indexOf(0x2c, ID_AT));
}
