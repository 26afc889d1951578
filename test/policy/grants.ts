// Grants, subjects and fake conditions for the tests of the decision.

import { CLEAN, type Labels } from "../../src/base/labels.ts";
import type { Condition, ConditionInput, Verdict } from "../../src/policy/conditions.ts";
import type { Subject } from "../../src/policy/decision.ts";
import { type GrantIndex, indexGrants } from "../../src/policy/grant_index.ts";
import type { Grant, ToolPolicy } from "../../src/policy/policy.ts";

export const NOW = 1_700_000_000_000;
export const TOP: Labels = { class: "restricted", untrusted: true };

/** Serves every tool of the role `agent` at any taint, for ever, unless told otherwise. */
export function grant(id: string, effect: Grant["effect"], more: Partial<Grant> = {}): Grant {
  return {
    id,
    role: "agent",
    tools: ["*"],
    sessions: [],
    effect,
    when: undefined,
    taintMax: effect === "deny" ? undefined : TOP,
    aboveTaint: "deny",
    expiresAtMs: undefined,
    maxCalls: undefined,
    approvalTtlMs: 900_000,
    remember: true,
    refuseForMs: 3_600_000,
    remembers: undefined,
    equal: undefined,
    reason: undefined,
    ...more,
  };
}

export function remembered(id: string, ask: string, more: Partial<Grant> = {}): Grant {
  return grant(id, "allow", { remembers: ask, ...more });
}

export function subject(more: Partial<Subject> = {}): Subject {
  return {
    role: "agent",
    tool: "mail.send",
    session: "s1",
    args: new Map(),
    target: undefined,
    request: undefined,
    taint: CLEAN,
    nowMs: NOW,
    ...more,
  };
}

/** `listed` are tools that the policy configures. */
export function index(grants: readonly Grant[], listed: readonly string[] = []): GrantIndex {
  const tools = new Map(listed.map((name) => [name, { name } as ToolPolicy]));
  return indexGrants({ grants, tools });
}

export interface FakeCondition extends Condition {
  readonly inputs: readonly ConditionInput[];
}

export function condition(verdict: Verdict["kind"] | ((input: ConditionInput) => Verdict)): FakeCondition {
  const inputs: ConditionInput[] = [];
  return {
    argumentNames: new Set(),
    source: typeof verdict === "string" ? verdict : "fake",
    inputs,
    evaluate(input) {
      inputs.push(input);
      if (typeof verdict === "function") return verdict(input);
      return verdict === "error" ? { kind: "error", why: "fake" } : { kind: verdict };
    },
  };
}

/** `args.amount > limit`, an error where that is no number. */
export function amountAbove(limit: number): FakeCondition {
  return condition((input) => {
    const amount = input.args.get("amount");
    if (typeof amount !== "number" && typeof amount !== "bigint") return { kind: "error", why: "no number" };
    return { kind: amount > limit ? "match" : "no_match" };
  });
}
