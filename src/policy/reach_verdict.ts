// What all calls of one tool by one role come to at one taint, whatever their arguments and sessions are: the
// decision list (decision.ts) taken over every call at once. A condition, a session pattern and the arguments that
// a remembered answer is for are things that some calls meet and others do not; nothing is known about which.
// Invariants (test/policy/reach_verdict.test.ts holds them against the real decision): `deny`: no call is let through
// or asked about. `ask`: none is let through without a person. `allow`: every call is. `conditional`: all else.

import { DATA_CLASSES, type Labels } from "../base/labels.ts";
import { hasEnded, isSpent, isWithinTaint, type Moment } from "./decision.ts";
import type { Grant } from "./policy.ts";

/** All labels, from the cleanest: the trusted ones by class, then the untrusted ones. */
export const TAINTS: readonly Labels[] = [false, true].flatMap((untrusted) =>
  DATA_CLASSES.map((dataClass) => ({ class: dataClass, untrusted })),
);

export type Reachable = "allow" | "conditional" | "ask" | "deny";

export interface ReachVerdict {
  readonly verdict: Reachable;
  /** Ids of the grants that it comes from (the first 16): what lets through, what asks, or what denies. */
  readonly by: readonly string[];
}

/** A grant that serves a tool. */
export interface Serving {
  readonly grant: Grant;
  /** It serves every call of the tool; else those that it is meant for, and nobody here knows which. */
  readonly certain: boolean;
}

/** `everyName`: it serves all tools that are looked at as one (an announced prefix). */
export function serving(grant: Grant, everyName: boolean): Serving {
  const everySession = grant.sessions.length === 0 || grant.sessions.includes("*");
  const everyCall = grant.when === undefined && (grant.effect !== "allow" || grant.equal === undefined);
  return { grant, certain: everyName && everySession && everyCall };
}

/** Whether some call of it is let through without a person. */
export function isOpen(verdict: Reachable): verdict is "allow" | "conditional" {
  return verdict === "allow" || verdict === "conditional";
}

/** Over all grants of the role that serve the tool, in any order. */
export function verdictAt(servings: readonly Serving[], taint: Labels, moment: Moment): ReachVerdict {
  const denies = servings.filter(({ grant }) => grant.effect !== "allow" && grant.effect !== "ask");
  const firm = denies.find(({ certain }) => certain);
  if (firm !== undefined) return { verdict: "deny", by: [firm.grant.id] };
  const allows = allowsAt(servings, taint, moment);
  const asks = servings
    .filter(({ grant }) => grant.effect === "ask")
    .map((ask) => askAt(ask, allows.remembered, taint, moment));
  const letting = lettingThrough(allows, asks);
  if (letting.length === 0) return asked(allows, asks);
  const all = denies.length === 0 && letsEveryCallThrough(allows, asks);
  return { verdict: all ? "allow" : "conditional", by: idsOf(letting) };
}

interface Allows {
  /** Live and within their taint. */
  readonly holding: readonly Serving[];
  /** Likewise, of those that stand in for an ask. */
  readonly remembered: readonly Serving[];
  /** Live, above their taint, and then they ask. */
  readonly asking: readonly Serving[];
  /** Those that do not hold now. */
  readonly failing: readonly Serving[];
}

function allowsAt(servings: readonly Serving[], taint: Labels, moment: Moment): Allows {
  const found = {
    holding: [] as Serving[],
    remembered: [] as Serving[],
    asking: [] as Serving[],
    failing: [] as Serving[],
  };
  for (const one of servings) {
    const { grant } = one;
    if (grant.effect !== "allow") continue;
    const ended = hasEnded(grant, moment);
    const holds = !ended && isWithinTaint(grant, taint);
    if (grant.remembers !== undefined) {
      if (holds) found.remembered.push(one);
    } else if (holds) found.holding.push(one);
    else if (!ended && grant.aboveTaint === "ask") found.asking.push(one);
    else found.failing.push(one);
  }
  return found;
}

interface Ask extends Serving {
  /** Remembered answers that can stand in for it. */
  readonly standIns: readonly Serving[];
  /** Open, it is a question; else it denies. */
  readonly askable: boolean;
}

/** As `standIn` of the decision: used up, or no longer to be remembered, it is answered by nobody. */
function askAt(ask: Serving, remembered: readonly Serving[], taint: Labels, moment: Moment): Ask {
  const { grant } = ask;
  const satisfiable = grant.remember && !isSpent(grant, moment);
  const standIns = satisfiable ? remembered.filter((one) => one.grant.remembers === grant.id) : [];
  const inReach = grant.aboveTaint === "ask" || isWithinTaint(grant, taint);
  return { ...ask, standIns, askable: !hasEnded(grant, moment) && inReach };
}

/** What lets some call through without a person; empty: nothing does. */
function lettingThrough(allows: Allows, asks: readonly Ask[]): readonly Serving[] {
  const firm = asks.filter(({ certain }) => certain);
  if (firm.some(({ standIns }) => standIns.length === 0)) return [];
  // Where every call is asked about, only what stands in for that opens; an allow beside it adds nothing.
  if (firm.length > 0) return firm.flatMap(({ standIns }) => standIns);
  return [...allows.holding, ...asks.flatMap(({ standIns }) => standIns)];
}

/** Where nothing denies. A condition of an ask can fail, and then nobody has answered it. */
function letsEveryCallThrough(allows: Allows, asks: readonly Ask[]): boolean {
  const answered = (ask: Ask) => ask.grant.when === undefined && ask.standIns.some(({ certain }) => certain);
  if (!asks.every(answered)) return false;
  return allows.holding.some(({ certain }) => certain) || asks.some(({ certain }) => certain);
}

/** Where nothing is let through: whether some call is at least asked about. */
function asked(allows: Allows, asks: readonly Ask[]): ReachVerdict {
  const firm = asks.filter(({ certain }) => certain);
  const shut = firm.filter(({ askable, standIns }) => !askable && standIns.length === 0);
  if (shut.length > 0) return { verdict: "deny", by: idsOf(shut) };
  const asking = [...asks.filter(({ askable }) => askable), ...(firm.length === 0 ? allows.asking : [])];
  if (asking.length > 0) return { verdict: "ask", by: idsOf(asking) };
  return { verdict: "deny", by: idsOf([...asks, ...allows.failing]) };
}

/** Remembered answers can be many. */
const IDS_MAX = 16;

function idsOf(servings: readonly Serving[]): readonly string[] {
  return [...new Set(servings.map(({ grant }) => grant.id))].slice(0, IDS_MAX);
}
