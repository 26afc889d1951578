// One connection: a frame in, at most one out, and the end of it (spec: connector, 6.5). One deadline for the whole
// frame and one for the reply; none while the backend works. Invariants: nothing after the frame is read as anything; every
// silent end looks the same from outside; nothing is kept of a body that was declared and has not come.

import type { Socket } from "node:net";
import type { Clock } from "../base/ports.ts";
import { FrameIntake, withLength } from "./frame.ts";

/** Why there was no whole frame: row 1. */
export type Unread =
  | "bad_length"
  | "ended_early"
  | "too_slow"
  /** Its place, or the memory, was needed for another. */
  | "evicted"
  | "no_place"
  | "not_loopback"
  | "closing";

/** `ended`: what came is only discarded now. */
export type Stage = "reading" | "working" | "replying" | "ended" | "closed";

/** How long what still comes is discarded, so that the answer is not lost to a reset. */
const DISCARD_MS_MAX = 1000;

export interface ConnectionOptions {
  readonly frameBytesMax: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly deliver: (frame: Buffer) => Promise<Buffer | undefined>;
  /** So many bytes more, or fewer, are held of a frame that is not whole: of all connections together there is a bound. */
  readonly held: (bytes: number) => void;
  readonly unread: (why: Unread) => void;
  /** Its place is free. */
  readonly closed: (connection: Connection) => void;
}

export class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #intake: FrameIntake;
  #stage: Stage = "reading";
  #heldBytes = 0;
  #stopTimer: () => void;
  #hurried = false;

  /** The socket must allow itself to be half open. */
  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#intake = new FrameIntake(options.frameBytesMax);
    this.#stopTimer = options.clock.after(options.timeoutMs, () => this.#end("too_slow"));
    socket.setNoDelay(true);
    socket.on("error", () => undefined); // it is closed then, which is all that is to know
    socket.on("close", () => this.#close());
    socket.on("end", () => this.#end("ended_early"));
    socket.on("data", (chunk) => this.#take(chunk));
  }

  get stage(): Stage {
    return this.#stage;
  }

  /** At once; whoever needs its place has it when this returns. */
  evict(): void {
    if (this.#stage === "reading") {
      this.#options.unread("evicted");
      this.#move("ended");
    }
    this.#socket.destroy();
    this.#close();
  }

  /** The server ends: a reply still goes out, nothing else is waited for. */
  hurry(): void {
    this.#hurried = true;
    if (this.#stage === "reading") this.#end("closing");
    if (this.#stage === "ended") this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    if (this.#stage !== "reading") return;
    const intake = this.#intake.take(chunk);
    if (intake.state === "bad_length") return this.#end("bad_length");
    if (intake.state === "whole") return void this.#work(intake.frame);
    this.#heldBytes += chunk.length;
    this.#options.held(chunk.length);
  }

  async #work(frame: Buffer): Promise<void> {
    this.#move("working");
    this.#stopTimer();
    this.#socket.pause();
    const reply = await this.#options.deliver(frame);
    if (this.#stage !== "working") return; // the peer is gone; its turn was run all the same
    if (reply === undefined) this.#discard();
    else this.#reply(reply);
  }

  #reply(reply: Buffer): void {
    const { clock, timeoutMs } = this.#options;
    this.#move("replying");
    this.#stopTimer = clock.after(timeoutMs, () => this.#socket.destroy());
    this.#socket.once("finish", () => this.#discard());
    this.#socket.resume();
    this.#socket.write(withLength(reply));
    this.#socket.end();
  }

  /** Silence: where there is no whole frame, and `why` not. */
  #end(why: Unread): void {
    if (this.#stage !== "reading") return;
    this.#options.unread(why);
    this.#discard();
  }

  /** Our side ends, and for a while what comes is let go of. */
  #discard(): void {
    if (this.#stage === "closed" || this.#stage === "ended") return;
    this.#move("ended");
    this.#stopTimer();
    this.#socket.end();
    this.#socket.resume();
    if (this.#hurried) return void this.#socket.destroy();
    const { clock, timeoutMs } = this.#options;
    this.#stopTimer = clock.after(Math.min(timeoutMs, DISCARD_MS_MAX), () => this.#socket.destroy());
  }

  #close(): void {
    if (this.#stage === "closed") return;
    if (this.#stage === "reading") this.#options.unread("ended_early");
    this.#move("closed");
    this.#stopTimer();
    this.#options.closed(this);
  }

  #move(stage: Stage): void {
    this.#stage = stage;
    if (this.#heldBytes === 0) return;
    const heldBytes = this.#heldBytes;
    this.#heldBytes = 0; // first: giving it back may lead to other connections, and back here
    this.#options.held(-heldBytes);
  }
}
