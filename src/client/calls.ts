// The calls that wait for an answer: giving them ids, matching answers, sending them again on a new
// connection, cancelling. The link is below it, the user's Caller above.
// A call leaves the table exactly when it ends; messages for ids that are not in it are ignored.

import { BUILTIN_PREFIX, isSessionId, U64_MAX } from "../base/ids.ts";
import { FrameFault } from "../wire/fault.ts";
import { encodeFrame } from "../wire/frame.ts";
import { PROTOCOL_VERSION, type ToolRequest, type ToolResponse } from "../wire/message.ts";
import { type Call, OpenCall } from "./call.ts";
import { newCallId } from "./call_ids.ts";
import type { Effects } from "./effects.ts";
import { CallgateError } from "./error.ts";
import type { Link } from "./link.ts";

export interface CallOptions {
  readonly session?: string | undefined;
  /** Given: this very call, again. Left out: a new, time-ordered id. */
  readonly call?: bigint | undefined;
  /**
   * Abort it to cancel the call: the broker is asked to (`callgate.calls.cancel`, which the role must be
   * granted), and the call ends with what the broker then answers, usually `failed` with `cancelled`.
   * It does not undo what the provider has done. A call that was not sent yet ends at once (`aborted`).
   */
  readonly signal?: AbortSignal | undefined;
}

/** The model's JSON object: as text that goes out as it is, or as a value. Values lose integers beyond 2^53. */
export type Arguments = string | Readonly<Record<string, unknown>>;

export interface CallsSettings {
  readonly session: string;
  readonly resultCharsMax: number;
  readonly cancelWaitMs: number;
  readonly effects: Effects;
}

/**
 * Whether a lost connection ends a call. `unless_heard`: the broker's own tools, whose answers are not recorded,
 * so what came after a part already delivered would belong to another answer. `never`: it is about that connection.
 */
type Resend = "always" | "unless_heard" | "never";

interface Entry {
  readonly open: OpenCall;
  readonly frame: Buffer;
  readonly resend: Resend;
  sent: boolean;
  release: () => void;
}

const CANCEL_TOOL = "callgate.calls.cancel";

export class Calls {
  readonly #link: Link;
  readonly #settings: CallsSettings;
  readonly #entries = new Map<bigint, Entry>();
  #lastId = 0n;

  constructor(link: Link, settings: CallsSettings) {
    this.#link = link;
    this.#settings = settings;
  }

  start(tool: string, args: Arguments, options: CallOptions = {}): Call {
    return this.#start(tool, args, options, tool.startsWith(BUILTIN_PREFIX) ? "unless_heard" : "always");
  }

  /** A call that is about the present connection, and ends with it. */
  startHere(tool: string, args: Arguments): Call {
    return this.#start(tool, args, {}, "never");
  }

  #start(tool: string, args: Arguments, options: CallOptions, resend: Resend): Call {
    const session = options.session ?? this.#settings.session;
    const call = options.call ?? newCallId(this.#settings.effects);
    const open = new OpenCall(session, call, this.#settings.resultCharsMax);
    const id = this.#lastId + 1n;
    const frame = requestFrame(id, session, call, tool, args);
    if (frame instanceof CallgateError) open.fail(frame);
    else if (options.signal?.aborted === true) open.fail(aborted(session, call));
    else if (this.#link.endedBy !== undefined) open.fail(this.#link.endedBy.of(session, call, false));
    else {
      this.#lastId = id;
      const entry = { open, frame, resend, sent: this.#link.write(frame), release: () => {} };
      this.#entries.set(id, entry);
      this.#watch(id, entry, options.signal);
    }
    return open;
  }

  /** A new connection: every call that waits is asked again, in the order in which they began. */
  opened(): void {
    for (const entry of this.#entries.values()) {
      entry.open.restart();
      entry.sent = this.#link.write(entry.frame) || entry.sent;
    }
  }

  received(id: bigint, response: ToolResponse, final: boolean): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    const error = entry.open.take(response, final);
    if (error !== undefined) this.#fail(id, error);
    else if (final) this.#remove(id);
  }

  lost(): void {
    for (const [id, { resend, open }] of this.#entries) {
      if (resend === "never" || (resend === "unless_heard" && open.isHeard))
        this.#fail(id, new CallgateError("lost", "its connection is gone"));
    }
  }

  /** Ends one call, or all of them, for a reason that is not the call's own. */
  ended(why: CallgateError, onlyId?: bigint): void {
    for (const id of onlyId === undefined ? [...this.#entries.keys()] : [onlyId]) this.#fail(id, why);
  }

  #fail(id: bigint, why: CallgateError): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#remove(id);
    const { session, call } = entry.open;
    entry.open.fail(why.call === undefined ? why.of(session, call, entry.sent) : why);
  }

  #remove(id: bigint): void {
    this.#entries.get(id)?.release();
    this.#entries.delete(id);
  }

  #watch(id: bigint, entry: Entry, signal: AbortSignal | undefined): void {
    if (signal === undefined) return;
    const onAbort = () => this.#cancel(id, entry);
    signal.addEventListener("abort", onAbort, { once: true });
    entry.release = () => signal.removeEventListener("abort", onAbort);
  }

  #cancel(id: bigint, entry: Entry): void {
    const { session, call } = entry.open;
    if (!entry.sent) {
      this.#fail(id, aborted(session, call));
      return;
    }
    const refuse = (sentence: string) =>
      this.#fail(id, new CallgateError("not_cancelled", sentence, { session, call, mayHaveRun: true }));
    const { effects, cancelWaitMs } = this.#settings;
    const callOff = effects.after(cancelWaitMs, () => refuse("the broker did not answer in time"));
    entry.release = callOff;
    const cancel = this.start(CANCEL_TOOL, { session, call: String(call) }, { session });
    cancel.final.then(
      (answer) => answer.status !== "result" && refuse("the broker does not cancel this call"),
      () => refuse("the broker could not be asked"),
    );
  }
}

function aborted(session: string, call: bigint): CallgateError {
  return new CallgateError("aborted", "the signal was aborted before the call was sent", { session, call });
}

function requestFrame(
  id: bigint,
  session: string,
  call: bigint,
  tool: string,
  args: Arguments,
): Buffer | CallgateError {
  const bad = (sentence: string) => new CallgateError("bad_call", sentence, { session, call });
  if (!isSessionId(session)) return bad("the session is no SessionId");
  if (typeof call !== "bigint" || call < 0n || call > U64_MAX)
    return bad("the call id is no u64 as a bigint");
  const text = argumentsText(args);
  if (text === undefined) return bad("the arguments can't be written as a JSON object");
  const body: ToolRequest = { session, call, tool, arguments: text };
  try {
    return encodeFrame({ v: PROTOCOL_VERSION, id, final: true, msg: { kind: "tool_request", body } });
  } catch (error) {
    if (!(error instanceof FrameFault)) throw error;
    if (error.outcome !== "too_large") return bad("a text is not well-formed Unicode");
    return new CallgateError("too_large", "the request does not fit a frame", { session, call });
  }
}

function argumentsText(args: Arguments): string | undefined {
  if (typeof args === "string") return args;
  if (typeof args !== "object" || args === null || Array.isArray(args)) return undefined;
  try {
    return JSON.stringify(args);
  } catch {
    return undefined; // a cycle, a bigint, or a toJSON that threw
  }
}
