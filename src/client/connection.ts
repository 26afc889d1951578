// One connection from its first byte to its end: bytes to envelopes and back. It does not know calls
// and never connects again. `closed` is told exactly once, and nothing is received after it.

import type { Writable } from "node:stream";
import { classifyBroken } from "../wire/broken.ts";
import { decodeBody } from "../wire/envelope.ts";
import { FrameFault } from "../wire/fault.ts";
import { encodeFrame, FrameReader } from "../wire/frame.ts";
import { type Envelope, type ErrorCode, PROTOCOL_VERSION } from "../wire/message.ts";
import type { Transport } from "./address.ts";
import type { Effects } from "./effects.ts";

export interface ConnectionListener {
  received(envelope: Envelope): void;
  /** With the fault where the broker sent what is no envelope; without one where the stream just ended, even inside a frame. */
  closed(why: FrameFault | undefined): void;
}

/** Above it `drained` waits: bytes written and not yet taken by the kernel. */
const HELD_BYTES_HIGH = 262_144;
/** How long a broker that does not read may keep us from closing. */
const FINISH_MS_MAX = 2_000;

export class Connection {
  readonly #transport: Transport;
  readonly #listener: ConnectionListener;
  readonly #effects: Pick<Effects, "after">;
  readonly #reader = new FrameReader();
  #batch: Buffer[] = [];
  #batchBytes = 0;
  #waiting: (() => void)[] = [];
  #over = false;

  constructor(transport: Transport, listener: ConnectionListener, effects: Pick<Effects, "after">) {
    this.#transport = transport;
    this.#listener = listener;
    this.#effects = effects;
    const { input, output } = transport;
    input.on("data", (chunk: Buffer) => this.#read(chunk));
    const lost = () => this.#close();
    for (const stream of new Set([input, output])) stream.on("error", lost).on("close", lost);
    input.on("end", lost);
  }

  /** Takes a whole frame. Frames of one turn of the event loop leave in one write, in order. */
  write(frame: Buffer): void {
    if (this.#over) return;
    this.#batch.push(frame);
    this.#batchBytes += frame.length;
    if (this.#batch.length === 1) setImmediate(() => this.#flush());
  }

  /** Resolves when little enough waits to be sent, or nothing ever will be: for those who could write without end. */
  drained(): Promise<void> {
    if (this.#over || this.#heldBytes() <= HELD_BYTES_HIGH) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Tells the broker what was wrong with what it sent, and ends. */
  refuse(code: ErrorCode, detail: string, why?: FrameFault): void {
    const msg = { kind: "error", body: { code, detail } } as const;
    this.write(encodeFrame({ v: PROTOCOL_VERSION, id: 0n, final: true, msg }));
    void this.#finish(why);
  }

  /** Sends what was written, then ends; `closed` is told at once. Resolves when it is sent, or can't be. */
  finish(): Promise<void> {
    return this.#finish(undefined);
  }

  async #finish(why: FrameFault | undefined): Promise<void> {
    if (this.#over) return;
    this.#flush();
    this.#over = true;
    this.#release();
    this.#listener.closed(why);
    await endOutput(this.#transport.output, this.#effects);
    this.#destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#over) return;
    let body: Buffer | undefined;
    try {
      this.#reader.push(chunk);
      for (body = this.#reader.next(); body !== undefined; body = this.#reader.next()) {
        const envelope = decodeBody(body);
        this.#listener.received(envelope);
        if (this.#over) return;
      }
    } catch (error) {
      if (!(error instanceof FrameFault)) throw error;
      const { code, detail } = body === undefined ? badLength(error) : classifyBroken(body);
      this.refuse(code, detail, error);
    }
  }

  #flush(): void {
    if (this.#over || this.#batch.length === 0) return;
    const bytes = this.#batch.length === 1 ? this.#batch[0]! : Buffer.concat(this.#batch, this.#batchBytes);
    this.#batch = [];
    this.#batchBytes = 0;
    this.#transport.output.write(bytes, () => {
      if (this.#heldBytes() <= HELD_BYTES_HIGH) this.#release();
    });
  }

  #heldBytes(): number {
    return this.#batchBytes + this.#transport.output.writableLength;
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#batch = [];
    this.#release();
    this.#destroy();
    this.#listener.closed(undefined);
  }

  #destroy(): void {
    this.#transport.input.destroy();
    this.#transport.output.destroy();
  }
}

function badLength(fault: FrameFault): { readonly code: ErrorCode; readonly detail: string } {
  return { code: "bad_frame", detail: fault.message };
}

function endOutput(output: Writable, effects: Pick<Effects, "after">): Promise<void> {
  return new Promise((resolve) => {
    const callOff = effects.after(FINISH_MS_MAX, done);
    function done(): void {
      callOff();
      resolve();
    }
    output.once("close", done);
    output.end(done);
  });
}
