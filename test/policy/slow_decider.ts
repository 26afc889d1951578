// The decision, once more and slowly: written from the text of the specification (broker, Grants and
// the decision), a sentence at a time, sharing no code with src/policy. The tests compare the two.

import type { DataClass, Labels } from "../../src/base/labels.ts";
import type { Subject } from "../../src/policy/decision.ts";
import type { Grant } from "../../src/policy/policy.ts";

export interface SlowDecision {
  readonly kind: "allow" | "ask" | "deny";
  readonly row: string;
  readonly reason?: string;
  readonly grant: string | undefined;
  readonly asks?: readonly string[];
}

const CLASSES: readonly DataClass[] = ["public", "internal", "confidential", "restricted"];

export function slowDecide(grants: readonly Grant[], call: Subject): SlowDecision {
  const matching = slowMatching(grants, call);
  const denies = matching.filter((g) => g.effect === "deny");
  const asks = matching.filter((g) => g.effect === "ask");
  const open = asks.filter((ask) => !satisfied(ask, matching, call));
  const allows = matching.filter((g) => g.effect === "allow").filter((g) => counts(g, asks));
  const live = allows.filter((g) => !expired(g, call));
  const above = live.filter((g) => !within(g, call.taint));

  // 1. a deny
  if (denies.length > 0) return deny("deny", "denied_by_grant", denies);
  // 2. an ask that no remembered approval of its own satisfies; the most restrictive of several
  const openExpired = open.filter((g) => expired(g, call));
  if (openExpired.length > 0) return deny("ask_expired", "grant_expired", openExpired);
  const openAbove = open.filter((g) => !within(g, call.taint) && g.aboveTaint === "deny");
  if (openAbove.length > 0) return deny("ask_above_taint", "taint_too_high", openAbove);
  if (open.length > 0) return ask("ask", open);
  // 3. a live allow within its taint: the policy's own first, then what stands in for an ask
  const holding = live.filter((g) => within(g, call.taint));
  const named = holding.find((g) => g.remembers === undefined) ?? firstStandIn(asks, holding);
  if (named !== undefined) return { kind: "allow", row: "allow", grant: named.id };
  // 4. a live allow above its taint with above_taint = "ask"
  const aboveAsk = above.filter((g) => g.aboveTaint === "ask");
  if (aboveAsk.length > 0) return ask("allow_above_taint_ask", aboveAsk.slice(0, 1));
  // 5. a live allow above its taint
  if (above.length > 0) return deny("allow_above_taint", "taint_too_high", above);
  // 6. an expired allow
  if (allows.length > 0) return deny("allow_expired", "grant_expired", allows);
  // 7. nothing
  return deny("nothing", "no_grant", []);
}

/** The grants that match role, tool, session and condition. */
export function slowMatching(grants: readonly Grant[], call: Subject): readonly Grant[] {
  return grants
    .filter((g) => g.role === call.role)
    .filter((g) => g.tools.some((p) => fits(p, call.tool) && reachesBuiltin(p, call.tool)))
    .filter((g) => g.sessions.length === 0 || g.sessions.some((p) => fits(p, call.session)))
    .filter((g) => g.effect !== "allow" || isForArguments(g, call))
    .filter((g) => ["match", g.effect === "allow" ? "match" : "error"].includes(verdict(g, call)));
}

/** One that remembers exact arguments serves these alone, and nobody whose arguments are not known. */
function isForArguments(g: Grant, call: Subject): boolean {
  if (g.equal === undefined) return true;
  return call.equal !== undefined && call.equal() === g.equal;
}

function fits(pattern: string, text: string): boolean {
  const prefix = /^(.*)\*$/.exec(pattern)?.[1];
  return prefix === undefined ? pattern === text : text.slice(0, prefix.length) === prefix;
}

/** Only a pattern that begins `callgate.` matches a built-in. */
function reachesBuiltin(pattern: string, tool: string): boolean {
  return !/^callgate\./.test(tool) || /^callgate\./.test(pattern);
}

function verdict(g: Grant, call: Subject): string {
  return g.when === undefined ? "match" : g.when.evaluate(call).kind;
}

/**
 * A remembered approval satisfies its own ask while it matches, is live and within its taint; never what the
 * ask could not judge, never more calls than the ask lets through, and nothing of an ask that forbids it.
 */
function satisfied(ask: Grant, matching: readonly Grant[], call: Subject): boolean {
  if (!ask.remember || verdict(ask, call) === "error" || usedUp(ask, call)) return false;
  return matching.some(
    (g) => g.effect === "allow" && g.remembers === ask.id && !expired(g, call) && within(g, call.taint),
  );
}

/** A remembered approval is an allow only beside the ask that it came from. */
function counts(allow: Grant, asks: readonly Grant[]): boolean {
  return allow.remembers === undefined || asks.some((ask) => ask.id === allow.remembers);
}

function firstStandIn(asks: readonly Grant[], holding: readonly Grant[]): Grant | undefined {
  return asks.flatMap((ask) => holding.filter((g) => g.remembers === ask.id))[0];
}

/** Used up counts as expired. */
function expired(g: Grant, call: Subject): boolean {
  if (usedUp(g, call)) return true;
  return g.expiresAtMs !== undefined && call.nowMs >= g.expiresAtMs;
}

function usedUp(g: Grant, call: Subject): boolean {
  if (g.maxCalls === undefined) return false;
  return call.isSpent === undefined || call.isSpent(g, call.nowMs);
}

function within(g: Grant, taint: Labels): boolean {
  if (g.taintMax === undefined) return false;
  if (CLASSES.indexOf(taint.class) > CLASSES.indexOf(g.taintMax.class)) return false;
  return g.taintMax.untrusted || !taint.untrusted;
}

function ask(row: string, asks: readonly Grant[]): SlowDecision {
  return { kind: "ask", row, grant: asks[0]!.id, asks: asks.map((g) => g.id) };
}

function deny(row: string, reason: string, of: readonly Grant[]): SlowDecision {
  return { kind: "deny", row, reason, grant: of[0]?.id };
}
