// One turn, asked for until it is answered or can't be: which answers are worth asking again, and with which expiry a
// retry finds the turn of the first attempt. Invariant: every attempt is the same request under the same id, so the
// connector runs it once, whatever is asked and lost in between.

import { fault, ok, type Result } from "../../base/faults.ts";
import { ConnectorError, type ConnectorErrorCode, startedBefore } from "../../connector/client_error.ts";
import type { TransportInvocation, TransportResult } from "../../connector/contract.ts";
import { expiriesOf, gridStepOf } from "./turn_request.ts";

export interface TurnSettings {
  /** The connector's `expiry_horizon`, or less. */
  readonly horizonMs: number;
  /** How long ago the same call may have been sent first, for its answer to be found. */
  readonly lookBackMs: number;
  /** How long a connector that is down, or at its capacity, is waited for. */
  readonly patienceMs: number;
  /** How long a turn may take that is running. */
  readonly turnMsMax: number;
}

/** What it needs from outside; tests give their own. */
export interface TurnEffects {
  readonly execute: (
    invocation: TransportInvocation,
    options: { readonly signal: AbortSignal },
  ) => Promise<TransportResult>;
  /** Since the epoch: the connector's clock, which is of the same machine. */
  readonly nowMs: () => number;
  /** Resolves after the time, or when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The same request for any expiry. */
export type InvocationAt = (expiresAtUnixMs: number) => TransportInvocation;

/** `aborted`: nobody waits any more. */
export type Unanswered = ConnectorError | "aborted";

/** The connector's answer, which may be a refusal; or why there is none. */
export async function takeTurn(
  invocationAt: InvocationAt,
  settings: TurnSettings,
  effects: TurnEffects,
  signal: AbortSignal,
): Promise<Result<TransportResult, Unanswered>> {
  const waiting = new Waiting(settings, effects, signal);
  for (;;) {
    const taken = await search(invocationAt, settings, effects, waiting);
    if (taken !== undefined) return taken;
  }
}

/**
 * A new call is answered at its first expiry. Where its id is taken, an earlier attempt may have had an earlier one.
 * Undefined: it waited for a place longer than its expiry allowed, and never ran.
 */
async function search(
  invocationAt: InvocationAt,
  { horizonMs, lookBackMs }: TurnSettings,
  effects: TurnEffects,
  waiting: Waiting,
): Promise<Result<TransportResult, Unanswered> | undefined> {
  let newest: TransportResult | undefined;
  for (const expiry of expiriesOf(effects.nowMs(), gridStepOf(horizonMs), lookBackMs)) {
    const answer = await askUntilAnswered(invocationAt(expiry), effects, waiting);
    if (!answer.ok) return answer;
    const refusal = refusalOf(answer.value);
    const isOver = refusal === "Expired" && expiry < effects.nowMs();
    if (isOver && newest === undefined) return undefined;
    if (!isOver && refusal !== "ReplayConflict") return answer;
    newest ??= answer.value;
  }
  if (newest === undefined) throw new Error("there is an expiry for any time");
  return ok(newest);
}

/** Asks the same thing until there is an answer that stands. An error tells of all attempts, not only of the last. */
async function askUntilAnswered(
  invocation: TransportInvocation,
  effects: TurnEffects,
  waiting: Waiting,
): Promise<Result<TransportResult, Unanswered>> {
  let started = false;
  for (;;) {
    const asked = await ask(invocation, effects, waiting.signal);
    const again = await isAskedAgain(asked, waiting);
    if (waiting.signal.aborted && !asked.ok) return fault("aborted");
    if (!again) return started ? ofAllAttempts(asked) : asked;
    started ||= mayBeStarted(asked);
  }
}

function mayBeStarted(asked: Result<TransportResult, Unanswered>): boolean {
  if (asked.ok) return refusalOf(asked.value) === "InFlight";
  return asked.fault !== "aborted" && asked.fault.mayHaveRun;
}

/** That the last attempt reached nobody says nothing of the earlier one that may have started the turn. */
function ofAllAttempts(asked: Result<TransportResult, Unanswered>): Result<TransportResult, Unanswered> {
  return asked.ok || asked.fault === "aborted" ? asked : fault(startedBefore(asked.fault));
}

/** What runs is ended by the connector: to wait for that is no question of patience. */
async function isAskedAgain(asked: Result<TransportResult, Unanswered>, waiting: Waiting): Promise<boolean> {
  if (!asked.ok) return asked.fault !== "aborted" && LATER.has(asked.fault.code) && waiting.patiently();
  const refusal = refusalOf(asked.value);
  if (refusal === "InFlight") return waiting.on();
  return refusal === "Capacity" && waiting.patiently();
}

function refusalOf({ disposition }: TransportResult) {
  return "Refused" in disposition ? disposition.Refused : undefined;
}

async function ask(
  invocation: TransportInvocation,
  { execute }: TurnEffects,
  signal: AbortSignal,
): Promise<Result<TransportResult, Unanswered>> {
  try {
    return ok(await execute(invocation, { signal }));
  } catch (error) {
    if (signal.aborted) return fault("aborted");
    if (error instanceof ConnectorError) return fault(error);
    throw error;
  }
}

const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 2000;

/** Pauses that grow, until patience or the time for the whole call is over. */
class Waiting {
  readonly signal: AbortSignal;
  readonly #patientUntilMs: number;
  readonly #untilMs: number;
  readonly #effects: TurnEffects;
  #pauseMs = PAUSE_MS_MIN;

  constructor({ patienceMs, turnMsMax }: TurnSettings, effects: TurnEffects, signal: AbortSignal) {
    const nowMs = effects.nowMs();
    this.signal = signal;
    this.#patientUntilMs = nowMs + patienceMs;
    this.#untilMs = nowMs + turnMsMax;
    this.#effects = effects;
  }

  /** False: there is no patience left, or nobody waits any more. */
  async patiently(): Promise<boolean> {
    return this.#effects.nowMs() < this.#patientUntilMs && (await this.on());
  }

  /** False: the time is over, or nobody waits any more. */
  async on(): Promise<boolean> {
    if (this.signal.aborted || this.#effects.nowMs() >= this.#untilMs) return false;
    await this.#effects.pause(this.#pauseMs, this.signal);
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MS_MAX);
    return !this.signal.aborted;
  }
}

/** Nothing came of it, or not the whole answer: the same may be asked again. */
const LATER: ReadonlySet<ConnectorErrorCode> = new Set<ConnectorErrorCode>([
  "Connection",
  "NoAnswer",
  "Timeout",
]);
