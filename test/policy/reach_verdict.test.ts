// What all calls of a tool come to, held against the real decision on single calls: random policies from a
// universe so small that grants meet, and every call in it.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLEAN, type Labels } from "../../src/base/labels.ts";
import type { Verdict } from "../../src/policy/conditions.ts";
import { type Decision, decide, type Moment, type Subject } from "../../src/policy/decision.ts";
import { grantsForTool } from "../../src/policy/grant_index.ts";
import type { Grant } from "../../src/policy/policy.ts";
import { type Reachable, serving, TAINTS, verdictAt } from "../../src/policy/reach_verdict.ts";
import { condition, grant, index, NOW, remembered, subject } from "./grants.ts";

const TOOL = "mail.send";
const IDS = ["g0", "g1", "g2", "g3", "g4"];
const SESSIONS = ["s1", "s2"];
const EQUALS = ["these", "others"];
/** What a condition says of each kind of arguments that a call can have. */
const OUTCOMES: readonly Verdict["kind"][] = ["match", "no_match", "error"];

/** Calls differ in `args.kind`, 0 to 2: a condition is a list of what it comes to for each. */
function byKind(outcomes: readonly Verdict["kind"][]) {
  return condition(({ args }) => {
    const kind = outcomes[Number(args.get("kind"))] ?? "error";
    return kind === "error" ? { kind, why: "fake" } : { kind };
  });
}

const often = <T>(usual: T, some: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 2, arbitrary: some });

const anyGrant: fc.Arbitrary<Omit<Grant, "id">> = fc
  .record({
    tools: often<string[]>(["*"], fc.constantFrom(["mail.*"], [TOOL], ["fs.*"], ["z", "m*"])),
    sessions: often<string[]>([], fc.constantFrom(["s1"], ["s*"], ["*"], ["x*"])),
    effect: fc.constantFrom<Grant["effect"]>("allow", "allow", "allow", "ask", "ask", "deny"),
    outcomes: often<readonly Verdict["kind"][] | undefined>(
      undefined,
      fc.array(fc.constantFrom(...OUTCOMES), { minLength: 3, maxLength: 3 }),
    ),
    taintMax: often<Labels>({ class: "restricted", untrusted: true }, fc.constantFrom(...TAINTS)),
    aboveTaint: fc.constantFrom<Grant["aboveTaint"]>("deny", "ask"),
    expiresAtMs: often<number | undefined>(undefined, fc.constantFrom(NOW - 1, NOW, NOW + 1)),
    maxCalls: often<Grant["maxCalls"]>(undefined, fc.constant({ calls: 1, perMs: undefined })),
    remember: often(true, fc.constant(false)),
    remembers: often<string | undefined>(undefined, fc.constantFrom(...IDS)),
    equal: often<string | undefined>(undefined, fc.constantFrom(...EQUALS)),
  })
  .map(({ outcomes, remembers, equal, ...rest }) => {
    const { id: _, ...whole } = grant("", rest.effect);
    const isAllow = rest.effect === "allow";
    return {
      ...whole,
      ...rest,
      when: outcomes === undefined ? undefined : byKind(outcomes),
      taintMax: rest.effect === "deny" ? undefined : rest.taintMax,
      expiresAtMs: rest.effect === "deny" ? undefined : rest.expiresAtMs,
      remembers: isAllow ? remembers : undefined,
      equal: isAllow ? equal : undefined,
    };
  });

const policy: fc.Arbitrary<readonly Grant[]> = fc
  .array(anyGrant, { maxLength: IDS.length })
  .map((grants) => grants.map((one, i) => ({ ...one, id: `g${i}` })));
const spentIds = fc.subarray(IDS, { maxLength: 2 });

function momentOf(spent: readonly string[]): Moment {
  return { nowMs: NOW, isSpent: ({ id }) => spent.includes(id) };
}

function reached(grants: readonly Grant[], taint: Labels, moment: Moment) {
  const serve = grantsForTool(index(grants), "agent", TOOL).map((one) => serving(one, true));
  return verdictAt(serve, taint, moment);
}

/** Every call that the universe has. */
function callsAt(taint: Labels, moment: Moment): readonly Subject[] {
  return SESSIONS.flatMap((session) =>
    EQUALS.flatMap((equal) =>
      OUTCOMES.map((_, kind) =>
        subject({
          ...moment,
          ...{ tool: TOOL, session, taint, equal: () => equal, args: new Map([["kind", BigInt(kind)]]) },
        }),
      ),
    ),
  );
}

function decisions(grants: readonly Grant[], taint: Labels, moment: Moment): Set<Decision["kind"]> {
  return new Set(callsAt(taint, moment).map((call) => decide(index(grants), call).kind));
}

/** What a verdict promises of every call. */
const PROMISED: Readonly<Record<Reachable, readonly Decision["kind"][]>> = {
  allow: ["allow"],
  conditional: ["allow", "ask", "deny"],
  ask: ["ask", "deny"],
  deny: ["deny"],
};

describe("what all calls of a tool come to", () => {
  it("is never less than what the decision on one of them is: nothing is let through or asked about that it denies", () => {
    const told = new Set<string>();
    fc.assert(
      fc.property(policy, fc.constantFrom(...TAINTS), spentIds, (grants, taint, spent) => {
        const moment = momentOf(spent);
        const { verdict } = reached(grants, taint, moment);
        told.add(verdict);
        for (const kind of decisions(grants, taint, moment)) expect(PROMISED[verdict]).toContain(kind);
      }),
      { numRuns: 4000 },
    );
    expect([...told].sort()).toEqual(["allow", "ask", "conditional", "deny"]);
  });

  it("is exact where no grant has a condition, names sessions or remembers arguments", () => {
    const plain = policy.map((grants) =>
      grants.map((one) => ({ ...one, when: undefined, sessions: [], equal: undefined })),
    );
    fc.assert(
      fc.property(plain, fc.constantFrom(...TAINTS), spentIds, (grants, taint, spent) => {
        const moment = momentOf(spent);
        expect([reached(grants, taint, moment).verdict]).toEqual([...decisions(grants, taint, moment)]);
      }),
      { numRuns: 4000 },
    );
  });

  it("only narrows as the taint rises", () => {
    const rank: readonly Reachable[] = ["deny", "ask", "conditional", "allow"];
    fc.assert(
      fc.property(policy, spentIds, (grants, spent) => {
        const at = TAINTS.map((taint) => rank.indexOf(reached(grants, taint, momentOf(spent)).verdict));
        for (const [i, taint] of TAINTS.entries()) {
          for (const [j, higher] of TAINTS.entries()) {
            const isAbove = (higher.untrusted || !taint.untrusted) && j % 4 >= i % 4;
            if (isAbove) expect(at[j]).toBeLessThanOrEqual(at[i] ?? -1);
          }
        }
      }),
      { numRuns: 1000 },
    );
  });

  it("comes from grants that serve the tool", () => {
    fc.assert(
      fc.property(policy, fc.constantFrom(...TAINTS), (grants, taint) => {
        const serve = grantsForTool(index(grants), "agent", TOOL).map(({ id }) => id);
        for (const id of reached(grants, taint, momentOf([])).by) expect(serve).toContain(id);
      }),
    );
  });
});

const AT_NOW = momentOf([]);
const UNTRUSTED: Labels = { class: "public", untrusted: true };

describe("single cases of it", () => {
  const told = (...grants: readonly Grant[]) => reached(grants, CLEAN, AT_NOW);

  it("an allow beside a conditional deny lets some calls through, by the allow", () => {
    expect(told(grant("a", "allow"), grant("d", "deny", { when: condition("no_match") }))).toEqual({
      verdict: "conditional",
      by: ["a"],
    });
  });

  it("an allow beside a conditional ask does too, and beside a plain ask none", () => {
    expect(told(grant("a", "allow"), grant("q", "ask", { when: condition("match") })).verdict).toBe(
      "conditional",
    );
    expect(told(grant("a", "allow"), grant("q", "ask"))).toEqual({ verdict: "ask", by: ["q"] });
  });

  it("an expired or too clean ask shuts what an allow beside it would open", () => {
    expect(told(grant("a", "allow"), grant("q", "ask", { expiresAtMs: NOW }))).toEqual({
      verdict: "deny",
      by: ["q"],
    });
    const clean = grant("q", "ask", { taintMax: CLEAN });
    expect(reached([grant("a", "allow"), clean], UNTRUSTED, AT_NOW)).toEqual({ verdict: "deny", by: ["q"] });
  });

  it("an answer remembered for exact arguments lets those through, and no others", () => {
    const answer = remembered("r", "q", { tools: [TOOL], equal: "these" });
    expect(told(grant("q", "ask"), answer)).toEqual({ verdict: "conditional", by: ["r"] });
    const elsewhere = remembered("r", "q", { tools: [TOOL], sessions: ["s1"] });
    expect(told(grant("q", "ask"), elsewhere).verdict).toBe("conditional");
    expect(told(grant("q", "ask", { remember: false }), answer).verdict).toBe("ask");
  });

  it("an ask whose condition can fail is asked then, whatever was remembered of it", () => {
    const answer = remembered("r", "q");
    const failing = grant("q", "ask", { when: condition("error") });
    expect(decide(index([grant("a", "allow"), failing, answer]), subject()).kind).toBe("ask");
    expect(told(grant("a", "allow"), failing, answer).verdict).toBe("conditional");
    expect(told(grant("a", "allow"), grant("q", "ask"), answer).verdict).toBe("allow");
  });

  it("above its taint an allow asks where it says so, and denies where it does not", () => {
    const asks = grant("a", "allow", { taintMax: CLEAN, aboveTaint: "ask" });
    expect(reached([asks], UNTRUSTED, AT_NOW)).toEqual({ verdict: "ask", by: ["a"] });
    const denies = grant("a", "allow", { taintMax: CLEAN });
    expect(reached([denies], UNTRUSTED, AT_NOW)).toEqual({ verdict: "deny", by: ["a"] });
  });

  it("a grant that is used up opens nothing, and one that has uses left opens all", () => {
    const counted = grant("g0", "allow", { maxCalls: { calls: 1, perMs: undefined } });
    expect(reached([counted], CLEAN, momentOf([])).verdict).toBe("allow");
    expect(reached([counted], CLEAN, momentOf(["g0"])).verdict).toBe("deny");
  });
});
