// Two streams joined as a pair of Unix sockets is: bytes arrive as they were written, a full other side
// makes a write wait, its end is an end, and once it is gone reading ends and writing fails.

import { Duplex } from "node:stream";

/** Bytes that the other side holds before a write waits. */
const KERNEL_BUFFER_BYTES = 65_536;

export class PairedSocket extends Duplex {
  #other: PairedSocket | undefined;
  #waiting: ((error?: Error) => void) | undefined;
  #finished = false;
  /** The other side is closed for good. */
  peerGone = false;

  constructor() {
    super({ allowHalfOpen: true, readableHighWaterMark: KERNEL_BUFFER_BYTES });
  }

  join(other: PairedSocket): void {
    this.#other = other;
  }

  override _read(): void {
    const waiting = this.#other?.takeWaiting();
    waiting?.();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    const other = this.#other;
    if (other === undefined || this.peerGone || other.destroyed) {
      process.nextTick(done, new Error("EPIPE"));
      return;
    }
    this.#waiting = done;
    if (other.push(Buffer.from(chunk))) process.nextTick(() => this.takeWaiting()?.());
  }

  override _final(done: () => void): void {
    this.#finish();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#finish();
    this.#other?.lose();
    done(error);
  }

  /** The connection breaks: the other side hears it at once, not at its next write. */
  reset(): void {
    this.#other?.destroy(new Error("ECONNRESET"));
    this.destroy();
  }

  takeWaiting() {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  lose(): void {
    this.peerGone = true;
    this.takeWaiting()?.(new Error("EPIPE"));
  }

  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    if (this.#other?.destroyed === false) this.#other.push(null);
  }
}

export function socketPair(): [PairedSocket, PairedSocket] {
  const pair: [PairedSocket, PairedSocket] = [new PairedSocket(), new PairedSocket()];
  pair[0].join(pair[1]);
  pair[1].join(pair[0]);
  return pair;
}
