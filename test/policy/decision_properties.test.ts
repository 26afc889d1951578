// The decision against its slow twin and against the promise that nothing added widens it, over
// random policies from a universe so small that grants meet.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { classAbove, DATA_CLASSES, type Labels } from "../../src/base/labels.ts";
import type { Verdict } from "../../src/policy/conditions.ts";
import { type Decision, decide, explain, type Subject } from "../../src/policy/decision.ts";
import type { Grant } from "../../src/policy/policy.ts";
import { condition, grant, index, subject } from "./grants.ts";
import { type SlowDecision, slowDecide, slowMatching } from "./slow_decider.ts";

const RUNS = { numRuns: 2000 };
const TOOLS = [
  "fs.read",
  "fs.write",
  "mail",
  "mailx",
  "constructor",
  "callgate.status",
  "callgate.a.b",
  "callgate",
  "f",
  "z",
];
const PATTERNS = [
  ...["*", "fs.*", "fs.r*", "f*", "fs.read", "mail", "mail*", "constructor", "c*", "z"],
  ...["callgate*", "callgate.*", "callgate.a.*", "callgate.status"],
];
const VERDICTS = [undefined, "match", "no_match", "error"] as const;

const labels: fc.Arbitrary<Labels> = fc.record({
  class: fc.constantFrom(...DATA_CLASSES),
  untrusted: fc.boolean(),
});
const oftenAll = <T>(all: T, some: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(all) }, { weight: 1, arbitrary: some });

const anyGrant: fc.Arbitrary<Omit<Grant, "id">> = fc
  .record({
    role: oftenAll("agent", fc.constantFrom("agent", "other")),
    tools: oftenAll(
      ["*", "callgate.*"],
      fc.uniqueArray(fc.constantFrom(...PATTERNS), { minLength: 1, maxLength: 3 }),
    ),
    sessions: oftenAll([], fc.uniqueArray(fc.constantFrom("s1", "s2", "s*", "*"), { maxLength: 2 })),
    effect: fc.constantFrom(...["allow", "allow", "allow", "allow", "allow", "ask", "ask", "deny"]),
    verdict: oftenAll<Verdict["kind"] | undefined>(undefined, fc.constantFrom(...VERDICTS)),
    taintMax: fc.oneof(fc.constant<Labels>({ class: "restricted", untrusted: true }), labels),
    aboveTaint: fc.constantFrom("deny", "ask"),
    expiresAtMs: fc.constantFrom(undefined, undefined, 100, 200, 300),
    remembers: oftenAll<number | undefined>(undefined, fc.nat({ max: 5 })),
    maxCalls: oftenAll<Grant["maxCalls"]>(undefined, fc.constant({ calls: 1, perMs: undefined })),
    equal: oftenAll<string | undefined>(undefined, fc.constantFrom("these", "others")),
  })
  .map(({ verdict, remembers, equal, ...rest }) => {
    const { id: _, ...whole } = grant("", rest.effect as Grant["effect"]);
    return {
      ...whole,
      ...(rest as Partial<Grant>),
      taintMax: rest.effect === "deny" ? undefined : rest.taintMax,
      expiresAtMs: rest.effect === "deny" ? undefined : rest.expiresAtMs,
      when: verdict === undefined ? undefined : condition(verdict),
      remembers: rest.effect === "allow" && remembers !== undefined ? `g${remembers}` : undefined,
      equal: rest.effect === "allow" ? equal : undefined,
    };
  });
const policy: fc.Arbitrary<Grant[]> = fc.array(anyGrant, { maxLength: 6 }).map((grants) => {
  const withIds = grants.map((one, i) => ({ id: `g${i}`, ...one }));
  const asks = withIds.filter((one) => one.effect === "ask");
  return withIds.map((one, i) =>
    one.remembers === undefined || asks.length === 0 ? one : { ...one, remembers: asks[i % asks.length]!.id },
  );
});
const anyCall: fc.Arbitrary<Subject> = fc
  .record({
    tool: fc.constantFrom(...TOOLS),
    session: fc.constantFrom("s1", "s2", "t"),
    taint: labels,
    nowMs: fc.constantFrom(0, 99, 100, 150, 200, 299, 300),
    equal: fc.constantFrom<Subject["equal"]>(
      undefined,
      () => "these",
      () => "these",
    ),
    spent: fc.option(fc.subarray(["g0", "g1", "g2", "g3", "g4", "g5", "new"]), { nil: undefined }),
  })
  .map(({ spent, equal, ...rest }) =>
    subject({ ...rest, ...(equal && { equal }), ...(spent && { isSpent: isOneOf(spent) }) }),
  );

function isOneOf(ids: readonly string[]): NonNullable<Subject["isSpent"]> {
  return (one) => ids.includes(one.id);
}

const listed = fc.subarray(TOOLS);
const place = fc.nat({ max: 6 });

function summary(decision: Decision): SlowDecision {
  const base = { kind: decision.kind, row: decision.row, grant: decision.grant?.id };
  if (decision.kind === "ask") return { ...base, asks: decision.asks.map((one) => one.id) };
  return decision.kind === "deny" ? { ...base, reason: decision.reason } : base;
}

describe("the decision and its slow twin", () => {
  it("agree, explained or not, and whichever tools are listed", () => {
    const rows = new Set<string>();
    fc.assert(
      fc.property(policy, anyCall, listed, (grants, call, tools) => {
        const slow = slowDecide(grants, call);
        rows.add(slow.row);
        const decision = decide(index(grants, tools), call);
        expect(summary(decision)).toEqual(slow);
        const explained = explain(index(grants, tools), call);
        expect(explained.decision).toEqual(decision);
      }),
      RUNS,
    );
    expect([...rows].sort()).toEqual([
      "allow",
      "allow_above_taint",
      "allow_above_taint_ask",
      "allow_expired",
      "ask",
      "ask_above_taint",
      "ask_expired",
      "deny",
      "nothing",
    ]);
  });

  it("find the same grants to match, and the trace tells of each grant of the role once, in order", () => {
    fc.assert(
      fc.property(policy, anyCall, (grants, call) => {
        const { trace } = explain(index(grants), call);
        expect(trace.map((step) => step.grant)).toEqual(
          grants.filter((one) => one.role === call.role).map((one) => one.id),
        );
        const matching = slowMatching(grants, call).map((one) => one.id);
        const told = trace.filter((step) => step.failed === undefined || step.failed === "remembers");
        expect(told.map((step) => step.grant)).toEqual(matching);
      }),
      RUNS,
    );
  });

  it("use only remembered approvals whose own ask is among the grants", () => {
    fc.assert(
      fc.property(policy, anyCall, (grants, call) => {
        const decision = decide(index(grants), call);
        if (decision.kind === "deny") return;
        const asks = slowMatching(grants, call).filter((one) => one.effect === "ask");
        const open = decision.kind === "ask" ? decision.asks.filter((one) => one.effect === "ask") : [];
        expect(decision.remembered.map((one) => one.remembers)).toEqual(
          asks.filter((ask) => !open.includes(ask)).map((ask) => ask.id),
        );
        expect(decision.satisfied.map((ask) => ask.id)).toEqual(
          decision.remembered.map((one) => one.remembers),
        );
      }),
      RUNS,
    );
  });
});

const RANK = { deny: 0, ask: 1, allow: 2 } as const;

function narrowed(before: Decision, after: Decision): void {
  expect(RANK[after.kind]).toBeLessThanOrEqual(RANK[before.kind]);
}

/**
 * For an ask that comes to match. Where no grant decided, or allows alone that do not hold, it is a
 * grant of its own: the question may be put. That is the one way up, never to an allow, and the
 * question is its own.
 */
function narrowedByAsk(before: Decision, after: Decision, ask: string): void {
  const askedAnew =
    ["allow_above_taint", "allow_expired", "nothing"].includes(before.row) && after.kind === "ask";
  if (askedAnew) expect(summary(after)).toMatchObject({ row: "ask", asks: [ask] });
  else narrowed(before, after);
}

describe("nothing widens the decision", () => {
  it("when a deny is added", () => {
    fc.assert(
      fc.property(policy, anyCall, anyGrant, place, (grants, call, one, at) => {
        const added = { ...one, id: "new", effect: "deny", remembers: undefined } as const;
        narrowed(decide(index(grants), call), decide(index(grants.toSpliced(at, 0, added)), call));
      }),
      RUNS,
    );
  });

  it("when an ask is added", () => {
    fc.assert(
      fc.property(policy, anyCall, anyGrant, place, (grants, call, one, at) => {
        const added = { ...one, id: "new", effect: "ask", remembers: undefined } as const;
        const before = decide(index(grants), call);
        narrowedByAsk(before, decide(index(grants.toSpliced(at, 0, added)), call), "new");
      }),
      RUNS,
    );
  });

  it("when the taint rises", () => {
    fc.assert(
      fc.property(policy, anyCall, labels, (grants, call, more) => {
        const taint = {
          class: classAbove(more.class, call.taint.class) ? more.class : call.taint.class,
          untrusted: call.taint.untrusted || more.untrusted,
        };
        narrowed(decide(index(grants), call), decide(index(grants), { ...call, taint }));
      }),
      RUNS,
    );
  });

  it("when time passes", () => {
    fc.assert(
      fc.property(policy, anyCall, fc.constantFrom(1, 50, 100, 1000), (grants, call, ms) => {
        narrowed(decide(index(grants), call), decide(index(grants), { ...call, nowMs: call.nowMs + ms }));
      }),
      RUNS,
    );
  });

  it("when more grants are used up", () => {
    fc.assert(
      fc.property(policy, anyCall, fc.nat({ max: 5 }), (grants, call, one) => {
        const isSpent = (of: Grant, nowMs: number) =>
          of.id === `g${one}` || call.isSpent?.(of, nowMs) !== false;
        narrowed(decide(index(grants), call), decide(index(grants), { ...call, isSpent }));
      }),
      RUNS,
    );
  });

  it("when nobody says what is used up, or what the call equals", () => {
    fc.assert(
      fc.property(policy, anyCall, (grants, call) => {
        const { isSpent: _, equal: __, ...bare } = call;
        narrowed(decide(index(grants), call), decide(index(grants), bare));
      }),
      RUNS,
    );
  });

  it("when a grant is given a number of calls, or an allow other arguments", () => {
    fc.assert(
      fc.property(policy, anyCall, place, fc.boolean(), (grants, call, at, counted) => {
        const one = grants[at];
        if (one === undefined || (!counted && one.effect !== "allow")) return;
        const less = counted ? { maxCalls: { calls: 1, perMs: undefined } } : { equal: "others" };
        const narrower = grants.with(at, { ...one, ...less });
        narrowed(decide(index(grants), call), decide(index(narrower), call));
      }),
      RUNS,
    );
  });

  it("when a condition fails that matched or did not", () => {
    fc.assert(
      fc.property(policy, anyCall, place, (grants, call, at) => {
        const one = grants[at];
        if (one === undefined) return;
        const failing = grants.with(at, { ...one, when: condition("error") });
        const before = decide(index(grants), call);
        const after = decide(index(failing), call);
        if (one.effect === "ask") narrowedByAsk(before, after, one.id);
        else narrowed(before, after);
      }),
      RUNS,
    );
  });

  it("when an allow is taken away", () => {
    fc.assert(
      fc.property(policy, anyCall, place, (grants, call, at) => {
        if (grants[at]?.effect !== "allow") return;
        narrowed(decide(index(grants), call), decide(index(grants.toSpliced(at, 1)), call));
      }),
      RUNS,
    );
  });
});
