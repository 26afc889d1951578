// One peer's connection: a stream of bytes to validated envelopes and back. It knows frames, their
// deadline, what may be queued and how a broken peer is let go; it knows nothing of calls or grants.
// Invariant: after `close` began no message reaches the receiver, and every byte charged is given back.

import type { Duplex } from "node:stream";
import type { Clock, Log } from "../base/ports.ts";
import { classifyBroken } from "../wire/broken.ts";
import { decodeEnvelope, encodeMessage } from "../wire/envelope.ts";
import { FrameFault } from "../wire/fault.ts";
import { FrameReader, FrameWriter } from "../wire/frame.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { Envelope, ErrorCode } from "../wire/message.ts";
import type { PeerCredentials } from "./peer.ts";
import type { Quota } from "./quota.ts";

/** What a connection tells whoever owns it. */
export interface Receiver {
  message(connection: Connection, envelope: Envelope<JsonString>): void;
  /** The peer sends nothing more; answers still reach it. */
  ended(connection: Connection): void;
  /** Gone for good; said once. */
  closed(connection: Connection): void;
}

export interface ConnectionOptions {
  readonly number: number;
  readonly role: string;
  readonly peer: PeerCredentials | undefined;
  readonly quota: Quota;
  readonly clock: Clock;
  readonly log: Log;
  /** A frame is there this long after its first byte, and queued bytes move within this time. */
  readonly frameTimeoutMs: number;
  readonly receiver: Receiver;
}

/** Bytes queued to a peer at which it is no longer read from. */
const READ_PAUSE_BYTES = 1_048_576;

/** How long a peer that was told to go may take to read it. */
const FAREWELL_MS = 1000;

type State = "open" | "half_closed" | "closing" | "closed";

export class Connection {
  readonly number: number;
  readonly role: string;
  readonly peer: PeerCredentials | undefined;
  readonly #options: ConnectionOptions;
  readonly #stream: Duplex;
  readonly #reader = new FrameReader();
  readonly #writer = new FrameWriter();
  #state: State = "open";
  #reading = true;
  #heldBytes = 0;
  #queuedBytes = 0;
  #flushAsked = false;
  #frameDeadline: (() => void) | undefined;
  #writeDeadline: (() => void) | undefined;

  constructor(stream: Duplex, options: ConnectionOptions) {
    this.number = options.number;
    this.role = options.role;
    this.peer = options.peer;
    this.#options = options;
    this.#stream = stream;
    stream.on("data", (chunk: Buffer) => this.#received(chunk));
    stream.on("end", () => this.#peerEnded());
    stream.on("error", () => this.close()); // EPIPE, ECONNRESET: the peer is gone, which is no fault of ours
    stream.on("close", () => this.#gone());
  }

  /** Whether messages can still be sent. */
  get writable(): boolean {
    return this.#state === "open" || this.#state === "half_closed";
  }

  /** Whether the peer can still answer. */
  get readable(): boolean {
    return this.#state === "open";
  }

  /** Bytes that wait for the peer to read. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Queues one message; all of a loop turn go out in one write. @throws FrameFault too_large, with nothing queued */
  send(id: bigint, final: boolean, message: Buffer): void {
    if (!this.writable) return;
    const before = this.#writer.pendingBytes;
    this.#writer.append(id, final, message);
    const added = this.#writer.pendingBytes - before;
    this.#queuedBytes += added;
    if (!this.#options.quota.charge("queued_bytes_out", added)) {
      this.#disconnect("queued_bytes_out", "connection.too_slow");
      return;
    }
    this.#askFlush();
  }

  /** Tells the peer what it did wrong and lets it go. `detail` never quotes what the peer sent. */
  fail(code: ErrorCode, detail: string, event = "connection.refused"): void {
    if (!this.writable) return;
    this.#options.log("warn", event, { role: this.role, connection: this.number, code, detail });
    this.#writer.append(0n, true, encodeMessage({ kind: "error", body: { code, detail } }));
    this.#flush();
    this.#state = "closing";
    this.#watchFrame(true);
    this.#stream.end();
    // What still arrives is thrown away for a moment, so that the peer gets to read why.
    this.#options.clock.after(FAREWELL_MS, () => this.close());
  }

  /** Ends our side once everything queued is written. */
  finish(): void {
    if (!this.writable) return;
    this.#flush();
    this.#state = "closing";
    this.#stream.end();
    this.#armWriteDeadline();
  }

  /** Drops the connection now. */
  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closing";
    this.#stream.destroy();
  }

  #received(chunk: Buffer): void {
    if (this.#state !== "open") return;
    this.#reader.push(chunk);
    let frames = 0;
    try {
      for (let body = this.#reader.next(); body !== undefined; body = this.#reader.next()) {
        frames += 1;
        if (!this.#deliver(body) || !this.readable) return;
      }
    } catch (error) {
      if (!(error instanceof FrameFault)) throw error;
      this.fail("bad_frame", error.message);
      return;
    }
    this.#chargeHeld();
    this.#watchFrame(frames > 0);
  }

  #deliver(body: Buffer): boolean {
    let envelope: Envelope<JsonString>;
    try {
      envelope = decodeEnvelope(body);
    } catch (error) {
      if (!(error instanceof FrameFault)) throw error;
      const { code, detail } = classifyBroken(body);
      this.fail(code, detail);
      return false;
    }
    this.#options.receiver.message(this, envelope);
    return true;
  }

  /** Charges the bytes of a frame that is not complete. */
  #chargeHeld(): void {
    const held = this.#reader.heldBytes;
    if (held === this.#heldBytes) return;
    const kept = this.#options.quota.charge("queued_bytes_in", held - this.#heldBytes);
    const grew = held > this.#heldBytes;
    this.#heldBytes = held;
    if (!kept && grew) this.fail("bad_frame", `the role's limit queued_bytes_in is reached`, "limit.reached");
  }

  /** A frame that has begun must be complete by its deadline; slow bytes don't move it. */
  #watchFrame(progressed: boolean): void {
    const watched = this.#heldBytes > 0 && this.#reading && this.#state === "open";
    if (!watched || progressed) {
      this.#frameDeadline?.();
      this.#frameDeadline = undefined;
    }
    if (watched) {
      this.#frameDeadline ??= this.#options.clock.after(this.#options.frameTimeoutMs, () =>
        this.fail("bad_frame", "the stream stalled inside a frame"),
      );
    }
  }

  #peerEnded(): void {
    if (this.#state !== "open") return;
    if (this.#reader.heldBytes > 0) {
      this.fail("bad_frame", this.#reader.end().message);
      return;
    }
    this.#state = "half_closed";
    this.#options.receiver.ended(this);
  }

  #askFlush(): void {
    if (this.#flushAsked) return;
    this.#flushAsked = true;
    this.#options.clock.afterInput(() => {
      this.#flushAsked = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#state === "closed") return;
    const bytes = this.#writer.take();
    if (bytes === undefined) return;
    const { length } = bytes;
    this.#stream.write(bytes, () => this.#written(length));
    if (this.#stream.writableLength > 0) this.#armWriteDeadline(); // the kernel did not take all of it at once
    if (this.#queuedBytes > READ_PAUSE_BYTES) this.#stopReading();
  }

  #written(length: number): void {
    const charged = Math.min(length, this.#queuedBytes); // an error envelope is not charged
    this.#queuedBytes -= charged;
    this.#options.quota.release("queued_bytes_out", charged);
    this.#writeDeadline?.();
    this.#writeDeadline = undefined;
    if (this.#queuedBytes > 0) this.#armWriteDeadline();
    if (!this.#reading && this.#queuedBytes <= READ_PAUSE_BYTES / 2 && this.readable) {
      this.#reading = true;
      this.#stream.resume();
      this.#watchFrame(false);
    }
  }

  #armWriteDeadline(): void {
    this.#writeDeadline ??= this.#options.clock.after(this.#options.frameTimeoutMs, () =>
      this.#disconnect("frame_timeout", "connection.too_slow"),
    );
  }

  #stopReading(): void {
    if (!this.#reading) return;
    this.#reading = false;
    this.#stream.pause();
    this.#watchFrame(false);
  }

  #disconnect(limit: string, event: string): void {
    this.#options.log("warn", event, {
      role: this.role,
      connection: this.number,
      limit,
      queued_bytes: this.#queuedBytes,
    });
    this.close();
  }

  #gone(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#frameDeadline?.();
    this.#writeDeadline?.();
    this.#options.quota.release("queued_bytes_in", this.#heldBytes);
    this.#options.quota.release("queued_bytes_out", this.#queuedBytes);
    this.#heldBytes = 0;
    this.#queuedBytes = 0;
    this.#options.receiver.closed(this);
  }
}
