// The one error that the client library gives to its user: why a call or a connection ended without
// the broker's answer. Of what came over the wire it carries the broker's own words on why, and nothing
// else. A denial, a failure and a question are answers (ToolResponse), never errors.

import { visibleLine } from "../base/display.ts";
import type { ErrorCode } from "../wire/message.ts";

/**
 * - `unreachable`: no connection could be made; nothing was sent.
 * - `lost`: the connection is gone and was not made again in time (over a descriptor it never can be).
 * - `refused`: the broker answered with an `error` envelope; `wireCode` is its code.
 * - `protocol`: the broker sent bytes that are no envelope, or answers that contradict each other.
 * - `closed`: this client was closed.
 * - `aborted`: the signal was aborted before the call was sent.
 * - `not_cancelled`: the broker refused to cancel, or did not answer; the call may go on.
 * - `bad_call`: the session, id or arguments are outside the grammar; nothing was sent.
 * - `too_large`: the request does not fit a frame (nothing was sent), or the answer is above `resultCharsMax`.
 * - `not_announced`: the broker did not take the tools that a provider announced.
 */
export type ClientErrorCode =
  | "unreachable"
  | "lost"
  | "refused"
  | "protocol"
  | "closed"
  | "aborted"
  | "not_cancelled"
  | "bad_call"
  | "too_large"
  | "not_announced";

const WORDS_CHARS_MAX = 200;

export interface ErrorContext {
  /** Of the call that ended so, with `call`. */
  readonly session?: string;
  readonly call?: bigint;
  /** Whether the provider may have run (or may still). */
  readonly mayHaveRun?: boolean;
  readonly wireCode?: ErrorCode;
  /** What the broker said of it, as it came. */
  readonly brokerSaid?: string | undefined;
}

/** Where `mayHaveRun`: ask again with the same `session` and `call` (and arguments), and the tool runs once all the same. */
export class CallgateError extends Error {
  readonly code: ClientErrorCode;
  readonly mayHaveRun: boolean;
  readonly session: string | undefined;
  readonly call: bigint | undefined;
  readonly wireCode: ErrorCode | undefined;
  /** The broker's own words, which end the message too: escaped, on one line, bounded. */
  readonly brokerSaid: string | undefined;
  readonly #sentence: string;

  constructor(code: ClientErrorCode, sentence: string, context: ErrorContext = {}) {
    const said = context.brokerSaid ? visibleLine(context.brokerSaid, WORDS_CHARS_MAX) : undefined;
    super(`${code}: ${sentence}${said === undefined ? "" : `; the broker said: ${said}`}`);
    this.name = "CallgateError";
    this.code = code;
    this.mayHaveRun = context.mayHaveRun ?? false;
    this.session = context.session;
    this.call = context.call;
    this.wireCode = context.wireCode;
    this.brokerSaid = said;
    this.#sentence = sentence;
  }

  /** The same reason, told of one call. */
  of(session: string, call: bigint, mayHaveRun: boolean): CallgateError {
    const fate = mayHaveRun
      ? "; whether the tool ran is not known: ask again with the same session and call"
      : "";
    const { wireCode, brokerSaid } = this;
    return new CallgateError(this.code, this.#sentence + fate, {
      ...{ session, call, mayHaveRun, brokerSaid },
      ...(wireCode === undefined ? {} : { wireCode }),
    });
  }
}
