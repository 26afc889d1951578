// One call at the broker as the requests that wait for it see it. It outlives them: a client that leaves, or whose time
// is over, ends its request and not the call.

import type { CallgateError } from "../../../client/error.ts";
import type { ToolResponse } from "../../../wire/message.ts";
import type { ProgressNotice } from "../progress.ts";

/** The broker's last word, or why there is none. */
export type Answer = ToolResponse | CallgateError;

/** What a person is asked about the call. */
export interface Question {
  readonly approval: string;
  readonly expiresAtMs: number;
}

export interface AskedCall {
  /** The broker's name of the tool. */
  readonly tool: string;
  /** Of the tool and its arguments: call_key.ts. */
  readonly key: string;
  /** Arguments as they go to the broker: the same bytes whenever the call is asked for again. */
  readonly text: string;
  readonly isRead: boolean;
}

export class OpenCall {
  readonly asked: AskedCall;
  /** The broker's id of it. */
  readonly id: bigint;
  readonly sinceMs: number;
  /** Requests that wait for it. */
  attached = 1;
  /** Whether its answer was given to a request that was still there. */
  delivered = false;
  /** The client has called it off: whoever asks the same now means a new call. */
  calledOff = false;
  readonly callOff: () => void;
  #question: Question | undefined;
  #answer: Answer | undefined;
  #notice: ProgressNotice | undefined;
  readonly #listeners = new Set<() => void>();

  constructor(asked: AskedCall, id: bigint, sinceMs: number, callOff: () => void) {
    this.asked = asked;
    this.id = id;
    this.sinceMs = sinceMs;
    this.callOff = callOff;
  }

  get question(): Question | undefined {
    return this.#question;
  }

  get answer(): Answer | undefined {
    return this.#answer;
  }

  /** What the tool's server has said last of how far it is. */
  get notice(): ProgressNotice | undefined {
    return this.#notice;
  }

  asking(question: Question): void {
    this.#question = question;
    this.#tell();
  }

  /** Whoever was asked has answered, since it runs. */
  progressed(notice: ProgressNotice): void {
    this.#question = undefined;
    this.#notice = notice;
    this.#tell();
  }

  end(answer: Answer): void {
    this.#answer = answer;
    this.#tell();
  }

  /** Told when a person is asked, when it gets on, and when it ends. The function returned calls it off. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
