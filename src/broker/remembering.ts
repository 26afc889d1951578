// An approval that is remembered becomes a grant: it stands in for the one ask that it came from, for these
// arguments or this tool, up to the taint that was shown, until a time and a number of times.

import { fault, ok, type Result } from "../base/faults.ts";
import { type Grant, QUESTION_DEFAULTS } from "../policy/policy.ts";
import type { Core } from "./core.ts";
import { askingOf, type Standing } from "./standing.ts";

const GRANT_ID_BYTES = 12;
export const REMEMBER_MS_MAX = 30 * 86_400_000;

export interface Wish {
  readonly what: "arguments" | "tool";
  readonly seconds: number;
  readonly calls: number | undefined;
}

/** The ask that could be remembered, or why none can: a sentence for people. */
export function rememberable({ verdict }: Standing): Result<Grant> {
  const asking = askingOf(verdict);
  if (asking === undefined) return fault("Nobody has to be asked any more, so there is nothing to remember");
  if (asking.row === "doubt")
    return fault("It is asked since nobody knows how an equal call ended; that is asked each time");
  if (asking.row === "allow_above_taint_ask")
    return fault("It is asked since the session's taint is above the grant's; that is asked each time");
  const [ask, ...others] = asking.grants;
  if (ask === undefined || others.length > 0)
    return fault("Several grants ask for it, and an approval stands in for one only");
  if (!ask.remember) return fault(`Grant ${ask.id} says that its approvals are not remembered`);
  return ok(ask);
}

/** A number of calls has to be said where each of them may cost or destroy something. */
export function needsNumber({ live }: Standing): boolean {
  const { effect } = live.tool;
  return effect === "spend" || effect === "execute";
}

/** The latest time until which it can be remembered. */
export function rememberUntilMsMax(ask: Grant, nowMs: number): number {
  return Math.min(nowMs + REMEMBER_MS_MAX, ask.expiresAtMs ?? Number.POSITIVE_INFINITY);
}

/** The sessions that it would cover; empty: all of the role. */
export function rememberedSessions(core: Core, { live }: Standing, what: Wish["what"]): readonly string[] {
  const opened = core.runtime.policy.roles.get(live.key.role)?.sessions !== "any";
  return opened || what === "tool" ? [live.key.session] : [];
}

/** The grant that remembers an approval, or why it can't be: a sentence for people. */
export function rememberedGrant(core: Core, shown: Standing, wish: Wish): Result<Grant> {
  const ask = rememberable(shown);
  if (!ask.ok) return ask;
  if (needsNumber(shown) && wish.calls === undefined)
    return fault("The tool may spend or execute, so `remember` needs a number of calls (`calls`)");
  const nowMs = core.clock.nowMs();
  const expiresAtMs = Math.min(nowMs + wish.seconds * 1000, rememberUntilMsMax(ask.value, nowMs));
  const { question, live, taint } = shown;
  const grant: Grant = {
    id: `remembered.${core.random(GRANT_ID_BYTES)}`,
    role: live.key.role,
    tools: [question.tool],
    sessions: rememberedSessions(core, shown, wish.what),
    effect: "allow",
    when: undefined,
    taintMax: taint,
    aboveTaint: "deny",
    expiresAtMs,
    maxCalls: wish.calls === undefined ? undefined : { calls: wish.calls, perMs: undefined },
    ...QUESTION_DEFAULTS,
    remember: false,
    remembers: ask.value.id,
    equal: wish.what === "arguments" ? question.equal : undefined,
    reason: undefined,
  };
  const refusal = core.grants.refusal(grant, nowMs);
  return refusal === undefined ? ok(grant) : fault(refusal);
}
