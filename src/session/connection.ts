// One peer's connection: a stream of bytes to validated envelopes and back. It knows frames, their
// deadline, what may be queued and how a broken peer is let go; it knows nothing of calls or grants.
// Invariant: after `close` began no message reaches the receiver, and every byte charged is given back.
// A peer whose answers pile up is no longer read from; requests to a provider don't count for that, since
// one that writes before it reads would then never get to read them.

import type { Duplex } from "node:stream";
import type { Clock, Log } from "../base/ports.ts";
import { classifyBroken } from "../wire/broken.ts";
import { decodeEnvelope, encodeMessage } from "../wire/envelope.ts";
import { FrameFault } from "../wire/fault.ts";
import { FrameReader, FrameWriter } from "../wire/frame.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { Envelope, ErrorCode } from "../wire/message.ts";
import type { PeerCredentials } from "./peer.ts";
import type { LimitName, Quota } from "./quota.ts";

/** What a connection tells whoever owns it. */
export interface Receiver {
  message(connection: Connection, envelope: Envelope<JsonString>): void;
  /** The peer sends nothing more; answers still reach it. */
  ended(connection: Connection): void;
  /** Gone for good; said once. */
  closed(connection: Connection): void;
  /** More is queued to the role's connections than its limit; whose queue is longest is the receiver's to find. */
  overfull(connection: Connection): void;
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

/** Bytes of answers queued to a peer at which it is no longer read from. */
const READ_PAUSE_BYTES = 1_048_576;

/** Bytes handed to the stream at once: a slow reader that takes so many within a deadline is let be. */
const WRITE_BYTES_MAX = 262_144;
/** Gathered bytes that don't wait for the end of the loop turn: the peer works on them meanwhile. */
const WRITE_EARLY_BYTES = 8192;

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
  /** The stream ended while it was not read from: what had arrived before is handled first. */
  #endWaits = false;
  #heldBytes = 0;
  #queuedBytes = 0;
  /** Of those, answers to what the peer asked. */
  #answerBytes = 0;
  /** Of those, in the writer. */
  #answersGathered = 0;
  /** Taken from the writer and not yet handed to the stream, and the answers in it. */
  #parts: readonly Buffer[] = [];
  #partsAnswers = 0;
  #writing = false;
  #flushAsked = false;
  readonly #flushAfterInput = () => {
    this.#flushAsked = false;
    this.#flush();
  };
  #frameDeadline: (() => void) | undefined;
  #writeDeadline: (() => void) | undefined;
  /** Until when a peer that is being let go may stay. */
  #farewell: (() => void) | undefined;

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

  /** Queues an answer; all of a loop turn go out in one write. @throws FrameFault too_large, with nothing queued */
  send(id: bigint, final: boolean, message: Buffer): void {
    if (!this.writable) return;
    const added = this.#append(id, final, message);
    this.#answerBytes += added;
    this.#answersGathered += added;
    this.#charge(added);
  }

  /** Queues a request of ours to a provider. @throws FrameFault too_large, with nothing queued */
  ask(id: bigint, message: Buffer): void {
    if (this.writable) this.#charge(this.#append(id, true, message));
  }

  #append(id: bigint, final: boolean, message: Buffer): number {
    const before = this.#writer.pendingBytes;
    this.#writer.append(id, final, message);
    return this.#writer.pendingBytes - before;
  }

  #charge(added: number): void {
    this.#queuedBytes += added;
    const kept = this.#options.quota.charge("queued_bytes_out", added);
    if (this.#writer.pendingBytes >= WRITE_EARLY_BYTES) this.#flush();
    else this.#askFlush();
    if (!kept) this.#options.receiver.overfull(this);
  }

  /** Tells the peer what it did wrong and lets it go. `detail` never quotes what the peer sent. */
  fail(code: ErrorCode, detail: string, limit?: LimitName): void {
    if (!this.writable) return;
    const event = limit === undefined ? "connection.refused" : "limit.reached";
    this.#options.log("warn", event, { role: this.role, connection: this.number, code, detail, limit });
    this.#writer.append(0n, true, encodeMessage({ kind: "error", body: { code, detail } }));
    // What still arrives is thrown away for a moment, so that the peer gets to read why.
    this.#end(FAREWELL_MS);
  }

  /** Ends our side once everything queued is written; a peer that does not end its own is dropped. */
  finish(): void {
    if (this.writable) this.#end(this.#options.frameTimeoutMs);
  }

  /** Lets a peer go that does not read what is queued to it. */
  drop(limit: LimitName | "frame_timeout"): void {
    if (!this.writable && this.#state !== "closing") return;
    this.#options.log("warn", "connection.too_slow", {
      role: this.role,
      connection: this.number,
      limit,
      queued_bytes: this.#queuedBytes,
    });
    this.close();
  }

  /** Drops the connection now. What it held is given back at once; `closed` follows with the stream's own end. */
  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closing";
    this.#giveBack();
    this.#stream.destroy();
  }

  #end(withinMs: number): void {
    while (this.#takeParts()) this.#hand(Number.POSITIVE_INFINITY);
    this.#state = "closing";
    this.#watchFrame(true);
    if (!this.#reading) this.#stream.resume(); // else the peer's own end would never be seen
    this.#stream.end();
    this.#farewell = this.#options.clock.after(withinMs, () => this.close());
  }

  #received(chunk: Buffer): void {
    if (this.#state !== "open") return;
    this.#reader.push(chunk);
    this.#read();
  }

  /** Hands over the messages that are there, until the peer's answers pile up or it is being let go. */
  #read(): void {
    let frames = 0;
    try {
      for (let body = this.#next(); body !== undefined; body = this.#next()) {
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

  #next(): Buffer | undefined {
    if (this.#answerBytes <= READ_PAUSE_BYTES) return this.#reader.next();
    this.#stopReading();
    return undefined;
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
    if (!kept && grew)
      this.fail("bad_frame", "the role's limit queued_bytes_in is reached", "queued_bytes_in");
  }

  /** A frame that has begun must be complete by its deadline; slow bytes don't move it. */
  #watchFrame(progressed: boolean): void {
    const watched = this.#heldBytes > 0 && this.#reading && this.#state === "open";
    if (!watched || progressed) {
      this.#frameDeadline?.();
      this.#frameDeadline = undefined;
    }
    if (watched) {
      this.#frameDeadline ??= this.#options.clock.after(this.#options.frameTimeoutMs, () => this.#stalled());
    }
  }

  /** Where it was us who stood still, the rest has arrived and is read first. */
  #stalled(): void {
    const deadline = this.#frameDeadline;
    this.#options.clock.afterInput(() => {
      if (this.#frameDeadline === deadline && this.#state === "open")
        this.fail("bad_frame", "the stream stalled inside a frame");
    });
  }

  #peerEnded(): void {
    if (this.#state !== "open") return;
    if (!this.#reading) {
      this.#endWaits = true;
      return;
    }
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
    this.#options.clock.afterInput(this.#flushAfterInput);
  }

  /** One write at a time; what comes meanwhile is gathered for the next. */
  #flush(): void {
    if (!this.writable || this.#writing || !this.#takeParts()) return;
    this.#hand(WRITE_BYTES_MAX);
    if (this.#stream.writableLength > 0) this.#armWriteDeadline(); // the kernel did not take all of it at once
    if (this.#answerBytes > READ_PAUSE_BYTES) this.#stopReading();
  }

  #takeParts(): boolean {
    if (this.#parts.length > 0) return true;
    this.#parts = this.#writer.take();
    this.#partsAnswers = this.#answersGathered;
    this.#answersGathered = 0;
    return this.#parts.length > 0;
  }

  /** Hands the first of what was taken to the stream, in one write; its answers count as written with the last of it. */
  #hand(bytesMax: number): void {
    const [now, later] = firstBytes(this.#parts, bytesMax);
    const answers = later.length === 0 ? this.#partsAnswers : 0;
    this.#parts = later;
    this.#writing = true;
    this.#writeAll(now, answers);
  }

  #writeAll(parts: readonly Buffer[], answers: number): void {
    const stream = this.#stream;
    const [first] = parts;
    if (first !== undefined && parts.length === 1) {
      stream.write(first, () => this.#written(first.length, answers));
      return;
    }
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    const written = () => this.#written(bytes, answers);
    stream.cork();
    for (const [i, part] of parts.entries()) stream.write(part, i === parts.length - 1 ? written : undefined);
    stream.uncork();
  }

  #written(length: number, answers: number): void {
    if (this.#state === "closed") return;
    const charged = Math.min(length, this.#queuedBytes); // an error envelope is not charged
    this.#queuedBytes -= charged;
    this.#answerBytes = Math.max(0, this.#answerBytes - answers);
    this.#options.quota.release("queued_bytes_out", charged);
    this.#writeDeadline?.();
    this.#writeDeadline = undefined;
    this.#writing = false;
    if (this.#parts.length > 0)
      this.#flush(); // else the loop turn's own flush takes what was gathered
    else if (this.#queuedBytes > 0) this.#askFlush();
    if (!this.#reading && this.#answerBytes <= READ_PAUSE_BYTES / 2 && this.readable) this.#readOn();
  }

  #armWriteDeadline(): void {
    this.#writeDeadline ??= this.#options.clock.after(this.#options.frameTimeoutMs, () =>
      this.drop("frame_timeout"),
    );
  }

  #stopReading(): void {
    if (!this.#reading) return;
    this.#reading = false;
    this.#stream.pause();
    this.#watchFrame(false);
  }

  /** First what had arrived already; that may be enough to stop again. */
  #readOn(): void {
    this.#reading = true;
    this.#read();
    if (!this.#reading || !this.readable) return;
    if (this.#endWaits) this.#peerEnded();
    else this.#stream.resume();
  }

  #giveBack(): void {
    this.#options.quota.release("queued_bytes_in", this.#heldBytes);
    this.#options.quota.release("queued_bytes_out", this.#queuedBytes);
    this.#heldBytes = 0;
    this.#queuedBytes = 0;
    this.#answerBytes = 0;
  }

  #gone(): void {
    if (this.#state === "closed") return;
    this.#giveBack();
    this.#state = "closed";
    this.#frameDeadline?.();
    this.#writeDeadline?.();
    this.#farewell?.();
    this.#options.receiver.closed(this);
  }
}

const NO_PARTS: readonly Buffer[] = [];

/** The parts that begin within the first `bytesMax` bytes, the last of them cut there, and the rest. */
function firstBytes(
  parts: readonly Buffer[],
  bytesMax: number,
): readonly [readonly Buffer[], readonly Buffer[]] {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined && only.length <= bytesMax) return [parts, NO_PARTS];
  let room = bytesMax;
  for (const [i, part] of parts.entries()) {
    if (part.length <= room) {
      room -= part.length;
      continue;
    }
    const cut = room > 0 ? [part.subarray(0, room)] : [];
    return [
      [...parts.slice(0, i), ...cut],
      [part.subarray(room), ...parts.slice(i + 1)],
    ];
  }
  return [parts, NO_PARTS];
}
