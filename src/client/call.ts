// One call as its user sees it, and the bookkeeping that makes its messages come exactly once although
// connections come and go. It does not know the connection.

import { join as joinLabels } from "../base/labels.ts";
import type { ToolResponse, ToolResult } from "../wire/message.ts";
import { CallgateError } from "./error.ts";
import { joinParts } from "./parts.ts";

/**
 * Iterate it for each message as it comes (every iteration begins with the first), or await `final`.
 * Messages are kept until the call is forgotten, at most `resultCharsMax` of them. Leaving an
 * iteration early cancels nothing: abort the call's signal for that.
 */
export interface Call extends AsyncIterable<ToolResponse> {
  readonly session: string;
  /** With the session it names this call for good: give both to ask for the same call again. */
  readonly call: bigint;
  /**
   * The last message, with the parts of a result joined into one. Denials and failures are values;
   * it rejects with a CallgateError where the broker's answer did not come. Nobody need await it.
   */
  readonly final: Promise<ToolResponse>;
}

/** Charged for each message beside its content, so that empty ones are bounded too. */
const MESSAGE_CHARS = 64;

export class OpenCall implements Call {
  readonly session: string;
  readonly call: bigint;
  readonly final: Promise<ToolResponse>;
  readonly #charsMax: number;
  readonly #messages: ToolResponse[] = [];
  readonly #parts: ToolResult[] = [];
  readonly #approvals = new Set<string>();
  /** How many of `#parts` have come again on this connection. */
  #repeated = 0;
  #chars = 0;
  #end: "open" | "answered" | CallgateError = "open";
  #settle!: { resolve(response: ToolResponse): void; reject(error: CallgateError): void };
  #wake: (() => void)[] = [];

  constructor(session: string, call: bigint, resultCharsMax: number) {
    this.session = session;
    this.call = call;
    this.#charsMax = resultCharsMax;
    this.final = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.final.catch(() => {}); // whoever only iterates hears of the error there
  }

  /** Whether a part of its result has been delivered. */
  get isHeard(): boolean {
    return this.#parts.length > 0;
  }

  /** The request was sent on a new connection: all messages come again, from the first. */
  restart(): void {
    this.#repeated = 0;
  }

  /** Takes the next message from the broker. The error is for a message that cannot be taken; it does not end the call. */
  take(response: ToolResponse, final: boolean): CallgateError | undefined {
    const repeat = this.#isRepeat(response, final);
    if (repeat === "contradiction") return this.#error("protocol", "its messages came again and were others");
    if (repeat === "yes") return undefined;
    this.#chars += MESSAGE_CHARS + textOf(response).length;
    if (this.#chars > this.#charsMax) return this.#error("too_large", "its answer is above resultCharsMax");
    this.#messages.push(response);
    if (response.status === "result") {
      this.#parts.push(response);
      this.#repeated = this.#parts.length;
    }
    if (final) this.#answer(response);
    this.#notify();
    return undefined;
  }

  fail(error: CallgateError): void {
    if (this.#end !== "open") return;
    this.#end = error;
    this.#settle.reject(error);
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ToolResponse, void, void> {
    for (let next = 0; ; next += 1) {
      while (next >= this.#messages.length) {
        if (this.#end === "answered") return;
        if (this.#end !== "open") throw this.#end;
        await new Promise<void>((resolve) => this.#wake.push(resolve));
      }
      yield this.#messages[next]!;
    }
  }

  /**
   * Joined calls give everything from the first message, replayed ones leave `pending_approval` out
   * (spec: broker, Replay): so parts are told by their position, questions by their id.
   */
  #isRepeat(response: ToolResponse, final: boolean): "yes" | "no" | "contradiction" {
    if (response.status === "pending_approval") {
      const known = this.#approvals.has(response.approval);
      this.#approvals.add(response.approval);
      return known && !final ? "yes" : "no";
    }
    if (response.status !== "result" || this.#repeated === this.#parts.length) return "no";
    const known = this.#parts[this.#repeated]!;
    if (final || !sameResult(response, known)) return "contradiction";
    // Labels may have risen since it was first given, and the whole must not claim less than any of its parts.
    this.#parts[this.#repeated] = { ...known, ...joinLabels(known, response) };
    this.#repeated += 1;
    return "yes";
  }

  #answer(response: ToolResponse): void {
    this.#end = "answered";
    this.#settle.resolve(response.status === "result" ? joinParts(this.#parts) : response);
  }

  #error(code: "protocol" | "too_large", sentence: string): CallgateError {
    return new CallgateError(code, sentence, { session: this.session, call: this.call, mayHaveRun: true });
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const resolve of wake) resolve();
  }
}

/** The one text of a message that may be long. */
function textOf(response: ToolResponse): string {
  switch (response.status) {
    case "result":
      return response.content;
    case "failed":
      return response.message;
    case "pending_approval":
      return response.approval;
    case "denied":
      return response.reason;
  }
}

function sameResult(a: ToolResult, b: ToolResult): boolean {
  return a.content === b.content && a.truncated === b.truncated;
}
