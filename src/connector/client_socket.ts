// One frame out and one frame back over one connection (spec: connector, 7, steps 4 and 5). Invariant: however the peer
// behaves, there is one ending, after which the socket is destroyed and no timer runs.

import { connect, type Socket } from "node:net";
import { fault, ok, type Result } from "../base/faults.ts";
import { type ConnectorFault, sent, unsent } from "./client_error.ts";
import { FrameIntake, withLength } from "./frame.ts";
import { addressText } from "./loopback.ts";

export interface Route {
  readonly host: string;
  readonly port: number;
  readonly frameBytesMax: number;
  readonly connectMs: number;
  /** For writing, and again for the whole answer; undefined: without end. */
  readonly responseMs: number | undefined;
}

/** Runs `run` once in `ms`; the function returned calls it off. */
export type After = (ms: number, run: () => void) => () => void;

export type Answer = Result<Buffer, ConnectorFault>;

/**
 * The frame that came back for this one. Faults: Connection, Timeout, FrameSize, NoAnswer. An abort ends the wait, not
 * the turn. @throws the reason of the signal, and nothing else
 */
export async function exchange(
  frame: Buffer,
  route: Route,
  after: After,
  signal?: AbortSignal,
): Promise<Answer> {
  signal?.throwIfAborted();
  const { promise, resolve } = promiseOfAnswer();
  const one = new Exchange(frame, route, after, resolve);
  const abort = () => one.abandon();
  signal?.addEventListener("abort", abort, { once: true });
  const answer = await promise;
  signal?.removeEventListener("abort", abort);
  if (answer === undefined) throw signal?.reason;
  return answer;
}

/** What a connector's silence means: it tells a peer that it can't authenticate nothing. */
const SILENCE =
  "it does so where it does not admit the caller, the secret is another, the frame is over its bound, or it can't record the turn";

type End = (answer: Answer | undefined) => void;

function promiseOfAnswer(): { readonly promise: Promise<Answer | undefined>; readonly resolve: End } {
  let resolve: End = () => {};
  const promise = new Promise<Answer | undefined>((given) => {
    resolve = given;
  });
  return { promise, resolve };
}

type Stage = "connecting" | "writing" | "waiting" | "over";

class Exchange {
  readonly #route: Route;
  readonly #after: After;
  readonly #end: End;
  readonly #intake: FrameIntake;
  readonly #socket: Socket;
  #stage: Stage = "connecting";
  #callOff: () => void = () => {};

  constructor(frame: Buffer, route: Route, after: After, end: End) {
    this.#route = route;
    this.#after = after;
    this.#end = end;
    this.#intake = new FrameIntake(route.frameBytesMax);
    const { host, port } = route;
    this.#socket = connect({ host, port, noDelay: true });
    this.#socket
      .on("connect", () => this.#write(frame))
      .on("data", (chunk) => this.#read(chunk))
      .on("end", () => this.#lost(""))
      .on("error", (error) => this.#lost(codeOf(error)))
      .on("close", () => this.#lost(""));
    this.#within(route.connectMs, "connecting to the connector");
  }

  /** Ends without an answer. */
  abandon(): void {
    this.#finish(undefined);
  }

  #write(frame: Buffer): void {
    if (this.#stage !== "connecting") return;
    this.#stage = "writing";
    this.#within(this.#route.responseMs, "writing the request");
    this.#socket.write(withLength(frame), (error) => {
      if (this.#stage !== "writing" || error) return; // an error has its own event
      this.#stage = "waiting";
      this.#within(this.#route.responseMs, "waiting for the answer");
    });
  }

  /** An answer that comes before the request is wholly taken is one all the same. */
  #read(chunk: Buffer): void {
    if (this.#stage === "over") return;
    const intake = this.#intake.take(chunk);
    if (intake.state === "whole") this.#finish(ok(intake.frame));
    if (intake.state === "bad_length") this.#finish(fault(this.#badLength(intake.declaredBytes)));
  }

  #badLength(declaredBytes: number): ConnectorFault {
    const says = `the answer says that it has ${declaredBytes} bytes`;
    const must = `and must have 1 to ${this.#intake.frameBytesMax}`;
    return sent("FrameSize", `${says}, ${must}; what listens there may be no connector`);
  }

  /** The stream is over: `code` is the system's word for what broke it, empty where the peer ended it. */
  #lost(code: string): void {
    const { host, port } = this.#route;
    const why = code === "" ? "" : ` (${code})`;
    if (this.#stage === "connecting")
      this.#fail(unsent("Connection", `no connection to a connector at ${addressText(host, port)}${why}`));
    else if (this.#stage === "writing" && code !== "")
      this.#fail(sent("Connection", `the connection broke while the request was written${why}`));
    else if (this.#intake.hasBegun)
      this.#fail(sent("NoAnswer", `the connector ended the connection within its answer${why}`));
    else
      this.#fail(sent("NoAnswer", `the connector ended the connection without an answer${why}; ${SILENCE}`));
  }

  /** Starts the one timer over. */
  #within(ms: number | undefined, doing: string): void {
    this.#callOff();
    this.#callOff = () => {};
    if (ms === undefined) return;
    const connecting = this.#stage === "connecting";
    this.#callOff = this.#after(ms, () => {
      const sentence = `${doing} took longer than ${ms} ms`;
      this.#fail(connecting ? unsent("Timeout", sentence) : sent("Timeout", sentence));
    });
  }

  #fail(why: ConnectorFault): void {
    this.#finish(fault(why));
  }

  #finish(answer: Answer | undefined): void {
    if (this.#stage === "over") return;
    this.#stage = "over";
    this.#callOff();
    this.#socket.destroy();
    this.#end(answer);
  }
}

/** The system's word for what happened; its sentence may name more than a person needs. */
function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "broken";
}
