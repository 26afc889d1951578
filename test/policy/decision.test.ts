import { describe, expect, it } from "vitest";
import { CLEAN } from "../../src/base/labels.ts";
import { decide, explain } from "../../src/policy/decision.ts";
import type { Grant } from "../../src/policy/policy.ts";
import { condition, grant, index, NOW, remembered, subject } from "./grants.ts";

const TAINTED = { class: "internal", untrusted: true } as const;
const above = { taintMax: CLEAN } as const;
const call = subject({ taint: TAINTED, equal: () => "these" });
/** Nobody says whether it is used up. */
const used = { maxCalls: { calls: 1_000_000, perMs: undefined } } as const;

/** Every state that a grant can be in, most binding first: what it alone comes to. */
const STATES: readonly {
  name: string;
  row: string;
  kind: string;
  reason?: string;
  grants: readonly Grant[];
}[] = [
  {
    name: "a deny",
    row: "deny",
    kind: "deny",
    reason: "denied_by_grant",
    grants: [grant("d", "deny")],
  },
  {
    name: "a deny whose condition fails",
    row: "deny",
    kind: "deny",
    reason: "denied_by_grant",
    grants: [grant("de", "deny", { when: condition("error") })],
  },
  {
    name: "an expired ask",
    row: "ask_expired",
    kind: "deny",
    reason: "grant_expired",
    grants: [grant("ax", "ask", { expiresAtMs: NOW })],
  },
  {
    name: "an expired ask above its taint",
    row: "ask_expired",
    kind: "deny",
    reason: "grant_expired",
    grants: [grant("axt", "ask", { ...above, aboveTaint: "ask", expiresAtMs: NOW })],
  },
  {
    name: "a used-up ask",
    row: "ask_expired",
    kind: "deny",
    reason: "grant_expired",
    grants: [grant("au", "ask", used)],
  },
  {
    name: "a used-up ask with a remembered approval",
    row: "ask_expired",
    kind: "deny",
    reason: "grant_expired",
    grants: [grant("aur", "ask", used), remembered("ru", "aur")],
  },
  {
    name: "an ask above its taint",
    row: "ask_above_taint",
    kind: "deny",
    reason: "taint_too_high",
    grants: [grant("at", "ask", above)],
  },
  {
    name: "an ask above its taint that asks there",
    row: "ask",
    kind: "ask",
    grants: [grant("ata", "ask", { ...above, aboveTaint: "ask" })],
  },
  { name: "an ask within its taint", row: "ask", kind: "ask", grants: [grant("a", "ask")] },
  {
    name: "an ask whose condition fails",
    row: "ask",
    kind: "ask",
    grants: [grant("ae", "ask", { when: condition("error") })],
  },
  {
    name: "an ask with an expired remembered approval",
    row: "ask",
    kind: "ask",
    grants: [grant("arx", "ask"), remembered("rx", "arx", { expiresAtMs: NOW })],
  },
  {
    name: "an ask with a remembered approval above its taint",
    row: "ask",
    kind: "ask",
    grants: [grant("art", "ask"), remembered("rt", "art", { ...above, aboveTaint: "ask" })],
  },
  {
    name: "an ask with a used-up remembered approval",
    row: "ask",
    kind: "ask",
    grants: [grant("aru", "ask"), remembered("uu", "aru", used)],
  },
  {
    name: "an ask with a remembered approval of other arguments",
    row: "ask",
    kind: "ask",
    grants: [grant("aro", "ask"), remembered("oo", "aro", { equal: "others" })],
  },
  {
    name: "an ask whose condition fails with a remembered approval",
    row: "ask",
    kind: "ask",
    grants: [grant("are", "ask", { when: condition("error") }), remembered("re", "are")],
  },
  {
    name: "a satisfied ask",
    row: "allow",
    kind: "allow",
    grants: [grant("as", "ask"), remembered("rs", "as")],
  },
  {
    name: "a satisfied ask that is itself above its taint and expired",
    row: "allow",
    kind: "allow",
    grants: [grant("asx", "ask", { ...above, expiresAtMs: NOW }), remembered("rsx", "asx")],
  },
  { name: "an allow", row: "allow", kind: "allow", grants: [grant("w", "allow")] },
  {
    name: "an allow above its taint that asks there",
    row: "allow_above_taint_ask",
    kind: "ask",
    grants: [grant("wta", "allow", { ...above, aboveTaint: "ask" })],
  },
  {
    name: "an allow above its taint",
    row: "allow_above_taint",
    kind: "deny",
    reason: "taint_too_high",
    grants: [grant("wt", "allow", above)],
  },
  {
    name: "an expired allow",
    row: "allow_expired",
    kind: "deny",
    reason: "grant_expired",
    grants: [grant("wx", "allow", { expiresAtMs: NOW })],
  },
  {
    name: "a used-up allow",
    row: "allow_expired",
    kind: "deny",
    reason: "grant_expired",
    grants: [grant("wu", "allow", used)],
  },
  {
    name: "an allow of other arguments",
    row: "nothing",
    kind: "deny",
    reason: "no_grant",
    grants: [grant("wo", "allow", { equal: "others" })],
  },
  {
    name: "a remembered approval without its ask",
    row: "nothing",
    kind: "deny",
    reason: "no_grant",
    grants: [remembered("r", "gone")],
  },
  {
    name: "an allow whose condition fails",
    row: "nothing",
    kind: "deny",
    reason: "no_grant",
    grants: [grant("we", "allow", { when: condition("error") })],
  },
  { name: "nothing", row: "nothing", kind: "deny", reason: "no_grant", grants: [] },
];

/** The index is of the config's grants and the runtime grants behind them: either may come first. */
function bothOrders(one: readonly Grant[], other: readonly Grant[]): readonly (readonly Grant[])[] {
  return [
    [...one, ...other],
    [...other, ...one],
  ];
}

describe("the decision list", () => {
  for (const [place, upper] of STATES.entries()) {
    for (const lower of STATES.slice(place)) {
      it(`answers as for ${upper.name} where there is also ${lower.name}`, () => {
        for (const grants of bothOrders(upper.grants, lower === upper ? [] : lower.grants)) {
          const decision = decide(index(grants), call);
          expect(decision).toMatchObject({ row: upper.row, kind: upper.kind });
          if (decision.kind === "deny") expect(decision.reason).toBe(upper.reason);
          expect(explain(index(grants), call).decision).toEqual(decision);
        }
      });
    }
  }

  it("asks with every open ask at once, and never with one that is satisfied", () => {
    const grants = STATES.filter((state) => state.row === "ask" || state.name === "a satisfied ask");
    const decision = decide(index(grants.flatMap((state) => state.grants)), call);
    expect(decision).toMatchObject({
      kind: "ask",
      grant: { id: "ata" },
      asks: [
        { id: "ata" },
        { id: "a" },
        { id: "ae" },
        { id: "arx" },
        { id: "art" },
        { id: "aru" },
        { id: "aro" },
        { id: "are" },
      ],
      remembered: [{ id: "rs" }],
    });
  });

  it("lets the most restrictive of several open asks win, in any order", () => {
    const asks = STATES.slice(2, 9).flatMap((state) => state.grants);
    expect(decide(index(asks), call).row).toBe("ask_expired");
    expect(decide(index([...asks].reverse()), call).row).toBe("ask_expired");
    expect(
      decide(
        index(asks.filter((ask) => ask.expiresAtMs === undefined && ask.maxCalls === undefined).reverse()),
        call,
      ).row,
    ).toBe("ask_above_taint");
  });

  it("names the allow above its taint as the one that asks", () => {
    const decision = decide(index([grant("w", "allow", { ...above, aboveTaint: "ask" })]), call);
    expect(decision).toMatchObject({ kind: "ask", asks: [{ id: "w" }], remembered: [] });
  });
});

describe("remembered approvals", () => {
  it("are told with the allow even where a plain allow is named, so that each use is counted", () => {
    const grants = [grant("w", "allow"), grant("a1", "ask"), grant("a2", "ask")];
    const decision = decide(index([...grants, remembered("r2", "a2"), remembered("r1", "a1")]), call);
    expect(decision).toMatchObject({
      kind: "allow",
      grant: { id: "w" },
      remembered: [{ id: "r1" }, { id: "r2" }],
      satisfied: [{ id: "a1" }, { id: "a2" }],
    });
  });

  it("stand in for their own ask only", () => {
    const grants = [grant("a1", "ask"), grant("a2", "ask")];
    const decision = decide(index([...grants, remembered("r1", "a1")]), call);
    expect(decision).toMatchObject({ kind: "ask", asks: [{ id: "a2" }], remembered: [{ id: "r1" }] });
  });

  it("are no allow where the condition of their ask does not match this call", () => {
    const grants = [grant("a1", "ask", { when: condition("no_match") })];
    expect(decide(index([...grants, remembered("r1", "a1")]), call)).toMatchObject({ row: "nothing" });
  });

  it("of another role's session, tool or failing condition do not stand in", () => {
    const grants = [grant("a1", "ask")];
    for (const more of [
      { role: "other" },
      { sessions: ["s2"] },
      { tools: ["mail.read"] },
      { when: condition("no_match") },
      { when: condition("error") },
    ]) {
      expect(decide(index([...grants, remembered("r1", "a1", more)]), call)).toMatchObject({ row: "ask" });
    }
  });

  it("may be several for one ask, of which the first that holds is used", () => {
    const approvals = [
      remembered("r1", "a1", { expiresAtMs: NOW }),
      remembered("r2", "a1"),
      remembered("r3", "a1"),
    ];
    expect(decide(index([grant("a1", "ask"), ...approvals]), call)).toMatchObject({
      kind: "allow",
      grant: { id: "r2" },
      remembered: [{ id: "r2" }],
    });
  });
});

describe("a number of calls", () => {
  const spent = (...ids: string[]) => ({ ...call, isSpent: (one: Grant) => ids.includes(one.id) });

  it("lets calls through until it is used up, each grant by its own count and at the time of the call", () => {
    const grants = index([grant("w1", "allow", used), grant("w2", "allow", used)]);
    expect(decide(grants, spent())).toMatchObject({ row: "allow", grant: { id: "w1" } });
    expect(decide(grants, spent("w1"))).toMatchObject({ row: "allow", grant: { id: "w2" } });
    expect(decide(grants, spent("w1", "w2"))).toMatchObject({ row: "allow_expired", grant: { id: "w1" } });
    const times: number[] = [];
    decide(grants, { ...call, isSpent: (_, nowMs) => times.push(nowMs) > 9 });
    expect(new Set(times)).toEqual(new Set([NOW]));
  });

  it("of an ask holds for what somebody has approved for ever, too", () => {
    const grants = index([grant("w", "allow"), grant("a", "ask", used), remembered("r", "a")]);
    expect(decide(grants, spent()).row).toBe("allow");
    expect(decide(grants, spent("a")).row).toBe("ask_expired");
  });

  it("of a deny means nothing: it holds for every call", () => {
    expect(decide(index([grant("d", "deny", used)]), spent("d")).row).toBe("deny");
  });
});

describe("a grant of exact arguments", () => {
  it("serves a call with these alone, and computes what the call equals only where one asks", () => {
    let computed = 0;
    const equal = () => {
      computed += 1;
      return "these";
    };
    const grants = [grant("a", "ask"), remembered("r", "a", { equal: "these" })];
    expect(decide(index(grants), { ...call, equal }).row).toBe("allow");
    expect(decide(index(grants), { ...call, equal: () => "others" }).row).toBe("ask");
    expect(computed).toBe(1);
    decide(index([grant("a", "ask"), remembered("r", "a")]), { ...call, equal });
    expect(computed).toBe(1);
  });

  it("that denies or asks is not narrowed by them", () => {
    for (const effect of ["deny", "ask"] as const) {
      expect(decide(index([grant("x", effect, { equal: "others" })]), call).row).toBe(effect);
    }
  });
});

describe("time", () => {
  const allow = index([grant("w", "allow", { expiresAtMs: NOW })]);

  it("ends a grant at the very millisecond that it names", () => {
    expect(decide(allow, subject({ nowMs: NOW - 1 })).row).toBe("allow");
    expect(decide(allow, subject({ nowMs: NOW })).row).toBe("allow_expired");
    expect(decide(allow, subject({ nowMs: NOW + 1 })).row).toBe("allow_expired");
  });

  it("that is no time expires everything, also what has no end", () => {
    const endless = index([grant("w", "allow")]);
    const asking = index([grant("w", "allow"), grant("a", "ask"), remembered("r", "a")]);
    for (const nowMs of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1]) {
      expect(decide(allow, subject({ nowMs })).row).toBe("allow_expired");
      expect(decide(endless, subject({ nowMs })).row).toBe("allow_expired");
      expect(decide(asking, subject({ nowMs })).row).toBe("ask_expired");
    }
  });

  it("never lets a grant live whose end is no time", () => {
    for (const expiresAtMs of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1]) {
      expect(decide(index([grant("w", "allow", { expiresAtMs })]), subject()).row).toBe("allow_expired");
    }
  });
});

describe("malformed grants", () => {
  it("without a taint are above it at every taint", () => {
    expect(decide(index([grant("w", "allow", { taintMax: undefined })]), subject()).row).toBe(
      "allow_above_taint",
    );
    expect(decide(index([grant("a", "ask", { taintMax: undefined })]), subject()).row).toBe(
      "ask_above_taint",
    );
  });

  it("with an unknown effect deny", () => {
    const odd = grant("x", "Deny" as Grant["effect"]);
    expect(decide(index([grant("w", "allow"), odd]), subject()).row).toBe("deny");
  });

  it("with an unknown class never hold", () => {
    const odd = { class: "__proto__", untrusted: true } as unknown as Grant["taintMax"];
    expect(decide(index([grant("w", "allow", { taintMax: odd })]), subject()).row).toBe("allow_above_taint");
    const taint = { class: "secret", untrusted: false } as unknown as typeof CLEAN;
    expect(decide(index([grant("w", "allow")]), subject({ taint })).row).toBe("allow_above_taint");
  });
});

describe("explain", () => {
  it("tells of every grant of the role what did not fit", () => {
    const grants = [
      grant("tool", "deny", { tools: ["fs.*"] }),
      grant("session", "deny", { sessions: ["other*"] }),
      grant("foreign", "deny", { role: "other" }),
      grant("nomatch", "deny", { when: condition("no_match") }),
      grant("ask-error", "ask", { when: condition("error") }),
      grant("allow-error", "allow", { when: condition("error") }),
      grant("late", "allow", { expiresAtMs: NOW }),
      grant("low", "allow", above),
      grant("ask", "ask"),
      grant("plain", "allow"),
      grant("used", "allow", used),
    ];
    const runtime = [
      remembered("exact", "ask", { equal: "others" }),
      remembered("r", "ask"),
      remembered("orphan", "gone"),
      remembered("alien", "x", { role: "b" }),
    ];
    const { decision, trace } = explain(index([...grants, ...runtime]), call);
    expect(decision).toMatchObject({ kind: "ask", asks: [{ id: "ask-error" }] });
    const base = {
      condition: undefined,
      expired: false,
      spent: false,
      withinTaint: true,
      satisfiedBy: undefined,
    };
    const deny = { ...base, effect: "deny", withinTaint: undefined };
    const error = { kind: "error", why: "fake" };
    expect(trace).toStrictEqual([
      { ...deny, grant: "tool", failed: "tool" },
      { ...deny, grant: "session", failed: "session" },
      { ...deny, grant: "nomatch", failed: "condition", condition: { kind: "no_match" } },
      { ...base, grant: "ask-error", effect: "ask", failed: undefined, condition: error },
      { ...base, grant: "allow-error", effect: "allow", failed: "condition", condition: error },
      { ...base, grant: "late", effect: "allow", failed: undefined, expired: true },
      { ...base, grant: "low", effect: "allow", failed: undefined, withinTaint: false },
      { ...base, grant: "ask", effect: "ask", failed: undefined, satisfiedBy: "r" },
      { ...base, grant: "plain", effect: "allow", failed: undefined },
      { ...base, grant: "used", effect: "allow", failed: undefined, spent: true },
      { ...base, grant: "exact", effect: "allow", failed: "equal" },
      { ...base, grant: "r", effect: "allow", failed: undefined },
      { ...base, grant: "orphan", effect: "allow", failed: "remembers" },
    ]);
  });

  it("goes on behind a deny, where the decision alone stops", () => {
    const later = condition("match");
    const grants = [grant("d", "deny"), grant("w", "allow", { when: later })];
    expect(decide(index(grants), call).row).toBe("deny");
    expect(later.inputs).toHaveLength(0);
    expect(explain(index(grants), call).trace[1]?.condition).toEqual({ kind: "match" });
    expect(later.inputs).toHaveLength(1);
  });
});
