// Lowering a taint, the one thing that does: of a role, of one session, of a store or one of its items.
// Who may is not decided here. Invariant: nothing is lower in memory before it is in the store, and what
// rose since the operator looked, or while it is being written, stays.

import { covers, join, type Labels } from "../base/labels.ts";
import type { Actor, Change, TaintScope } from "../store/records.ts";
import { RoleSessions } from "./role_sessions.ts";
import type { StoreTaint } from "./store_taints.ts";
import { meet, type Taint } from "./taint.ts";

export type EndorseTarget =
  /** `leftovers`: what its sessions were given while each had a taint of its own goes with it. */
  | { readonly of: "role"; readonly role: string; readonly leftovers: boolean }
  | { readonly of: "session"; readonly role: string; readonly session: string }
  /** Without an item: the store with all its items. */
  | { readonly of: "store"; readonly store: string; readonly item: string | undefined };

export interface Lowering {
  readonly target: EndorseTarget;
  /** Of the taint that the operator saw. */
  readonly version: number;
  readonly labels: Labels;
  readonly by: Actor;
  readonly reason: string;
}

/** In force once its changes are written; then, or when they can't be, `settled` has to be told. */
export interface Endorsement {
  readonly changes: readonly Change[];
  /** As they will be, unless something rises meanwhile. */
  readonly taint: Labels;
  readonly version: number;
  /** Taints of single sessions or items that are too many for one transaction: endorse again. */
  readonly remaining: number;
  readonly settled: (written: boolean) => void;
}

/**
 * Why not: there is no such taint; it is not what the operator saw; it does not cover the labels; it is that
 * already; the role's (or the whole store's) own is above the labels; another endorsement of it is being written.
 */
export type EndorseRefusal = "unknown" | "changed" | "not_covered" | "not_lower" | "above" | "busy";

/** Taints of single sessions or items that one transaction lowers. */
export const LOWERED_MAX = 4096;

interface Step {
  readonly scope: TaintScope;
  readonly taint: Taint;
}

/** What there is to lower. */
interface Plan {
  readonly now: Labels;
  readonly version: number;
  /** What the target can't be below. */
  readonly above?: Labels;
  readonly steps: readonly Step[];
  readonly remaining: number;
}

export function endorseTaints(
  lowering: Lowering,
  taints: RoleSessions | StoreTaint | undefined,
): Endorsement | EndorseRefusal {
  const plan = taints === undefined ? undefined : planOf(lowering, taints);
  if (plan === undefined) return "unknown";
  const refusal = refusalOf(lowering, plan);
  return refusal ?? begin(lowering, plan, taints);
}

function planOf({ target, labels }: Lowering, taints: RoleSessions | StoreTaint): Plan | undefined {
  if (taints instanceof RoleSessions) {
    if (target.of === "role") return ofRole(taints, target, labels);
    return target.of === "session" ? ofSession(taints, target) : undefined;
  }
  if (target.of !== "store") return undefined;
  return target.item === undefined
    ? ofStore(taints, target.store, labels)
    : ofItem(taints, target.store, target.item);
}

function ofRole(
  sessions: RoleSessions,
  { role, leftovers }: Extract<EndorseTarget, { of: "role" }>,
  labels: Labels,
): Plan {
  const steps: Step[] = [{ scope: { of: "role", role }, taint: sessions.taint }];
  let remaining = 0;
  for (const [session, taint] of leftovers ? sessions.tainted() : []) {
    if (covers(labels, taint.now)) continue;
    if (steps.length < LOWERED_MAX) steps.push({ scope: { of: "session", role, session }, taint });
    else remaining += 1;
  }
  const { now, version } = sessions.taint;
  return { now, version, steps, remaining };
}

function ofSession(
  sessions: RoleSessions,
  { role, session }: Extract<EndorseTarget, { of: "session" }>,
): Plan | undefined {
  const own = sessions.byId.get(session)?.own;
  if (own === undefined) return undefined;
  const above = sessions.taint.now;
  return {
    now: join(above, own.now),
    version: Math.max(own.version, sessions.taint.version),
    above,
    steps: [{ scope: { of: "session", role, session }, taint: own }],
    remaining: 0,
  };
}

function ofStore(taints: StoreTaint, store: string, labels: Labels): Plan {
  const items: Step[] = [];
  let remaining = 0;
  for (const [key, taint] of taints.items) {
    if (covers(labels, taint.now)) continue;
    if (items.length < LOWERED_MAX) items.push({ scope: { of: "store", store, key }, taint });
    else remaining += 1;
  }
  const whole: Step = { scope: { of: "store", store, key: undefined }, taint: taints.whole };
  const version = taints.version(undefined);
  return { now: taints.of(undefined), version, steps: [whole, ...items], remaining };
}

function ofItem(taints: StoreTaint, store: string, item: string): Plan | undefined {
  const taint = taints.items.get(item);
  if (taint === undefined) return undefined;
  return {
    now: taints.of(item),
    version: taints.version(item),
    above: taints.whole.now,
    steps: [{ scope: { of: "store", store, key: item }, taint }],
    remaining: 0,
  };
}

function refusalOf({ version, labels }: Lowering, plan: Plan): EndorseRefusal | undefined {
  if (plan.steps.some(({ taint }) => taint.isEndorsing)) return "busy";
  if (plan.version !== version) return "changed";
  if (!covers(plan.now, labels)) return "not_covered";
  if (plan.above !== undefined && !covers(labels, plan.above)) return "above";
  const isLow = plan.steps.every(({ taint }) => covers(labels, taint.now));
  return isLow && plan.remaining === 0 ? "not_lower" : undefined;
}

function begin(
  { labels, by, reason }: Lowering,
  plan: Plan,
  taints: RoleSessions | StoreTaint | undefined,
): Endorsement {
  const changes: Change[] = [];
  const steps = plan.steps.filter(({ taint }) => !covers(labels, taint.now));
  let { version } = plan;
  for (const { scope, taint } of steps) {
    const before = taint.now;
    const lowered = meet(before, labels);
    version = taint.endorse(lowered);
    changes.push({ kind: "endorsed", scope, before, labels: lowered, by, reason });
  }
  const settled = (written: boolean): void => {
    for (const { taint } of steps) taint.endorsed(written);
    if (written && taints !== undefined && !(taints instanceof RoleSessions)) taints.lowered(version);
  };
  const taint = plan.remaining > 0 ? plan.now : labels;
  return { changes, taint, version, remaining: plan.remaining, settled };
}
