// The decision on one call: allow, ask or deny, by the grants that match it (spec: broker, Grants and
// the decision). Pure; time and taint are arguments. What an approval is, who answers it and how often
// a grant has been used is not here.
// Invariants: default deny. A deny, an ask, more taint, later time and an unjudgeable condition never
// turn a decision into an allow; an ask that nobody answered is never passed over for an allow.

import type { DenyReason } from "../base/faults.ts";
import type { Labels } from "../base/labels.ts";
import { covers } from "../base/labels.ts";
import type { ConditionInput, Verdict } from "./conditions.ts";
import { type GrantIndex, grantsForTool, grantsOfRole, servesSession, servesTool } from "./grant_index.ts";
import type { Grant, GrantEffect } from "./policy.ts";

/** One call as the decision sees it. `role` is stamped by the broker; tool, session and args are the peer's. */
export interface Subject extends ConditionInput {
  /** Of the session, before the call. */
  readonly taint: Labels;
  /** Since the epoch. Not a time (NaN, infinite, negative): every grant counts as expired. */
  readonly nowMs: number;
  /** `equalDigest` of tool and arguments; asked for where a grant wants it. Left out, such a grant does not match. */
  readonly equal?: () => string;
  /** Whether a grant with `maxCalls` is used up at `nowMs`. Left out, every such grant is. */
  readonly isSpent?: (grant: Grant, nowMs: number) => boolean;
}

export type AllowRow = "allow";
export type AskRow = "ask" | "allow_above_taint_ask";
export type DenyRow =
  | "deny"
  | "ask_expired"
  | "ask_above_taint"
  | "allow_above_taint"
  | "allow_expired"
  | "nothing";
/** Which line of the decision list decided. Stable: records and `calls.why` carry it. */
export type Row = AllowRow | AskRow | DenyRow;

/** How the condition of the deciding grant came out; `none`: it has none, or no grant decided. */
export type DecidedCondition = "none" | "match" | "error";

export type Decision = Ruling & { readonly condition: DecidedCondition };

type Ruling =
  | {
      readonly kind: "allow";
      readonly row: AllowRow;
      readonly grant: Grant;
      /** The remembered approvals that stand in for this call's asks: each is used once by running it. */
      readonly remembered: readonly Grant[];
      /** The asks that they stand in for: these too let the call through. */
      readonly satisfied: readonly Grant[];
    }
  | {
      readonly kind: "ask";
      readonly row: AskRow;
      readonly grant: Grant;
      /** Whose question it is: every unsatisfied ask, or the one allow that is above its taint. Never empty. */
      readonly asks: readonly Grant[];
      /** As above, for the asks that are satisfied. */
      readonly remembered: readonly Grant[];
      readonly satisfied: readonly Grant[];
    }
  | {
      readonly kind: "deny";
      readonly row: DenyRow;
      readonly reason: DenyReason;
      /** undefined: no grant matches. */
      readonly grant: Grant | undefined;
    };

/** How one grant of the role stands to the call. */
export interface TraceStep {
  readonly grant: string;
  readonly effect: GrantEffect;
  /**
   * What did not fit (`equal`: it is for other arguments; `remembers`: the ask it stands in for does
   * not match); undefined: it matches.
   */
  readonly failed: "tool" | "session" | "equal" | "condition" | "remembers" | undefined;
  /** undefined: it has none, or tool, session or arguments did not fit. */
  readonly condition: Verdict | undefined;
  readonly expired: boolean;
  /** Its `maxCalls` are used up, which counts as expired. */
  readonly spent: boolean;
  /** undefined on a deny, which holds at any taint. */
  readonly withinTaint: boolean | undefined;
  /** Of a matching ask: the remembered approval that stands in for it. */
  readonly satisfiedBy: string | undefined;
}

const REASONS: Readonly<Record<DenyRow, DenyReason>> = {
  deny: "denied_by_grant",
  ask_expired: "grant_expired",
  ask_above_taint: "taint_too_high",
  allow_above_taint: "taint_too_high",
  allow_expired: "grant_expired",
  nothing: "no_grant",
};
const MATCH: Verdict = { kind: "match" };

/**
 * Decides. Ends at the first deny; otherwise every condition of a grant whose role, tool, session and
 * arguments fit is evaluated once.
 */
export function decide(index: GrantIndex, subject: Subject): Decision {
  const seen = nothingSeen();
  for (const grant of grantsForTool(index, subject.role, subject.tool)) {
    if (misfitOfTool(grant, subject) !== undefined) continue;
    take(seen, grant, judge(grant, subject), subject);
    if (seen.deny !== undefined) break;
  }
  return conclude(seen, subject);
}

/** The same decision, and how every grant of the role stands to the call, in the order considered. */
export function explain(
  index: GrantIndex,
  subject: Subject,
): { readonly decision: Decision; readonly trace: readonly TraceStep[] } {
  const seen = nothingSeen();
  const judged = grantsOfRole(index, subject.role).map((grant) => {
    const failed = misfit(grant, subject);
    const verdict = failed === undefined ? judge(grant, subject) : undefined;
    if (verdict !== undefined) take(seen, grant, verdict, subject);
    return { grant, failed, verdict };
  });
  const trace = judged.map(({ grant, failed, verdict }) => step(grant, failed, verdict, seen, subject));
  return { decision: conclude(seen, subject), trace };
}

/** What the matching grants come to so far: of each kind the first, except where all of them count. */
interface Seen {
  deny: Grant | undefined;
  asks: SeenAsk[] | undefined;
  /** Remembered approvals that match, are live and within their taint. */
  remembered: Grant[] | undefined;
  allow: Grant | undefined;
  allowAboveTaintAsk: Grant | undefined;
  allowAboveTaint: Grant | undefined;
  allowExpired: Grant | undefined;
  /** Grants that match because their condition failed. */
  errored: Grant[] | undefined;
}

interface SeenAsk {
  readonly grant: Grant;
  /** false: it matches because its condition failed. What it could not judge nobody has approved. */
  readonly judged: boolean;
}

function nothingSeen(): Seen {
  return {
    deny: undefined,
    asks: undefined,
    remembered: undefined,
    allow: undefined,
    allowAboveTaintAsk: undefined,
    allowAboveTaint: undefined,
    allowExpired: undefined,
    errored: undefined,
  };
}

type Misfit = "tool" | "session" | "equal" | undefined;

function misfit(grant: Grant, subject: Subject): Misfit {
  return servesTool(grant, subject.tool) ? misfitOfTool(grant, subject) : "tool";
}

/** Of a grant that serves the tool. `equal` narrows what allows, and nothing else. */
function misfitOfTool(grant: Grant, subject: Subject): Exclude<Misfit, "tool"> {
  if (!servesSession(grant, subject.session)) return "session";
  if (grant.effect !== "allow" || grant.equal === undefined) return undefined;
  return grant.equal === subject.equal?.() ? undefined : "equal";
}

function judge(grant: Grant, subject: Subject): Verdict {
  if (grant.when === undefined) return MATCH;
  // Not `subject` itself: a condition must have no way to look at the taint.
  const { args, session, role, tool, target, request } = subject;
  return grant.when.evaluate({ args, session, role, tool, target, request });
}

/** An error matches for whatever narrows; so does an effect that is none of the three, as a deny. */
function take(seen: Seen, grant: Grant, verdict: Verdict, subject: Subject): void {
  if (verdict.kind === "no_match") return;
  const judged = verdict.kind === "match";
  if (!judged) {
    seen.errored ??= [];
    seen.errored.push(grant);
  }
  if (grant.effect === "allow") {
    if (judged) takeAllow(seen, grant, subject);
  } else if (grant.effect === "ask") {
    seen.asks ??= [];
    seen.asks.push({ grant, judged });
  } else {
    seen.deny ??= grant;
  }
}

function takeAllow(seen: Seen, grant: Grant, subject: Subject): void {
  const expired = hasEnded(grant, subject);
  const within = isWithinTaint(grant, subject.taint);
  if (grant.remembers !== undefined) {
    // One that no longer holds leaves its ask open, and that decides: it is no allow to be told about.
    if (expired || !within) return;
    seen.remembered ??= [];
    seen.remembered.push(grant);
  } else if (expired) seen.allowExpired ??= grant;
  else if (within) seen.allow ??= grant;
  else if (grant.aboveTaint === "ask") seen.allowAboveTaintAsk ??= grant;
  else seen.allowAboveTaint ??= grant;
}

/** Walks the decision list. */
function conclude(seen: Seen, subject: Subject): Decision {
  const ruling = rule(seen, subject);
  return { ...ruling, condition: conditionOf(seen, ruling.grant) };
}

function conditionOf(seen: Seen, grant: Grant | undefined): DecidedCondition {
  if (grant?.when === undefined) return "none";
  return seen.errored?.includes(grant) ? "error" : "match";
}

function rule(seen: Seen, subject: Subject): Ruling {
  if (seen.deny !== undefined) return denial("deny", seen.deny);
  if (seen.asks !== undefined) return concludeAsks(seen, seen.asks, subject);
  if (seen.allow !== undefined) return allowance(seen.allow, NONE_SATISFIED);
  const above = seen.allowAboveTaintAsk;
  if (above !== undefined) return question("allow_above_taint_ask", above, [above], NONE_SATISFIED);
  if (seen.allowAboveTaint !== undefined) return denial("allow_above_taint", seen.allowAboveTaint);
  if (seen.allowExpired !== undefined) return denial("allow_expired", seen.allowExpired);
  return denial("nothing", undefined);
}

/**
 * With asks among the grants. Of several open ones the most restrictive decides, so that one more
 * never widens. Where none is open, what stands in for them is itself a live allow within its taint.
 */
function concludeAsks(seen: Seen, asks: readonly SeenAsk[], subject: Subject): Ruling {
  const open: Grant[] = [];
  const remembered: Grant[] = [];
  const satisfied: Grant[] = [];
  for (const ask of asks) {
    const approval = standIn(seen, ask, subject);
    if (approval === undefined) open.push(ask.grant);
    else {
      remembered.push(approval);
      satisfied.push(ask.grant);
    }
  }
  const first = open[0];
  const standing = { remembered, satisfied };
  if (first === undefined) return allowance(seen.allow ?? remembered[0]!, standing);
  const expired = open.find((ask) => hasEnded(ask, subject));
  if (expired !== undefined) return denial("ask_expired", expired);
  const above = open.find((ask) => ask.aboveTaint !== "ask" && !isWithinTaint(ask, subject.taint));
  if (above !== undefined) return denial("ask_above_taint", above);
  return question("ask", first, open, standing);
}

/**
 * An ask that is used up lets no more calls through, whoever has approved them; and one whose approvals are
 * not to be remembered (since a reload, say) is not satisfied by those that were.
 */
function standIn(seen: Seen, ask: SeenAsk, subject: Subject): Grant | undefined {
  if (!ask.judged || !ask.grant.remember || isSpent(ask.grant, subject)) return undefined;
  return seen.remembered?.find((approval) => approval.remembers === ask.grant.id);
}

interface Standing {
  readonly remembered: readonly Grant[];
  readonly satisfied: readonly Grant[];
}

const NONE_SATISFIED: Standing = { remembered: [], satisfied: [] };

function allowance(grant: Grant, { remembered, satisfied }: Standing): Ruling {
  return { kind: "allow", row: "allow", grant, remembered, satisfied };
}

function question(
  row: AskRow,
  grant: Grant,
  asks: readonly Grant[],
  { remembered, satisfied }: Standing,
): Ruling {
  return { kind: "ask", row, grant, asks, remembered, satisfied };
}

function denial(row: DenyRow, grant: Grant | undefined): Ruling {
  return { kind: "deny", row, reason: REASONS[row], grant };
}

/** When a grant is looked at, and what is used up by then. */
export type Moment = Pick<Subject, "nowMs" | "isSpent">;

/** A grant whose calls are used up has ended like one whose time is. */
export function hasEnded(grant: Grant, moment: Moment): boolean {
  return isExpired(grant, moment.nowMs) || isSpent(grant, moment);
}

/** Whether its `maxCalls` are used up. */
export function isSpent(grant: Grant, { isSpent, nowMs }: Moment): boolean {
  return grant.maxCalls !== undefined && (isSpent?.(grant, nowMs) ?? true);
}

/** Expired from the very millisecond on. Written so that what is no number is expired. */
function isExpired(grant: Grant, nowMs: number): boolean {
  if (!(nowMs >= 0 && nowMs < Number.POSITIVE_INFINITY)) return true;
  if (grant.expiresAtMs === undefined) return false;
  return !(nowMs < grant.expiresAtMs && grant.expiresAtMs < Number.POSITIVE_INFINITY);
}

/** A grant that does not say up to which taint it holds is above it at every one. */
export function isWithinTaint(grant: Grant, taint: Labels): boolean {
  return grant.taintMax !== undefined && covers(grant.taintMax, taint);
}

function step(
  grant: Grant,
  misfitted: Misfit,
  verdict: Verdict | undefined,
  seen: Seen,
  subject: Subject,
): TraceStep {
  const failed = misfitted ?? unmatched(grant, verdict, seen);
  const ask = seen.asks?.find((one) => one.grant === grant);
  return {
    grant: grant.id,
    effect: grant.effect,
    failed,
    condition: grant.when === undefined ? undefined : verdict,
    expired: isExpired(grant, subject.nowMs),
    spent: isSpent(grant, subject),
    withinTaint: grant.effect === "deny" ? undefined : isWithinTaint(grant, subject.taint),
    satisfiedBy: ask === undefined ? undefined : standIn(seen, ask, subject)?.id,
  };
}

function unmatched(grant: Grant, verdict: Verdict | undefined, seen: Seen): TraceStep["failed"] {
  if (verdict?.kind === "no_match") return "condition";
  if (grant.effect !== "allow") return undefined;
  if (verdict?.kind !== "match") return "condition";
  if (grant.remembers === undefined) return undefined;
  return seen.asks?.some((ask) => ask.grant.id === grant.remembers) ? undefined : "remembers";
}
