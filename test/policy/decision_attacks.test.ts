// The agent as attacker, against the decision alone.

import { describe, expect, it } from "vitest";
import type { Json } from "../../src/base/json.ts";
import { CLEAN } from "../../src/base/labels.ts";
import { decide, explain } from "../../src/policy/decision.ts";
import { grantsForTool } from "../../src/policy/grant_index.ts";
import type { Grant } from "../../src/policy/policy.ts";
import { amountAbove, condition, grant, index, NOW, remembered, subject } from "./grants.ts";

function paying(amount: Json) {
  return subject({ tool: "pay", args: new Map([["amount", amount]]) });
}

describe("an ask beside a plain allow", () => {
  const allow = grant("pay", "allow");
  const big = (more: Partial<Grant> = {}) =>
    index([allow, grant("big", "ask", { when: amountAbove(100), ...more })]);

  it("lets small amounts through and asks for large ones", () => {
    expect(decide(big(), paying(100n)).kind).toBe("allow");
    expect(decide(big(), paying(101n)).kind).toBe("ask");
  });

  it("does not fall through to the allow when the amount is a string, a list, nothing or not there", () => {
    for (const amount of ["1000", "", [1n], null, true]) {
      expect(decide(big(), paying(amount))).toMatchObject({ kind: "ask", asks: [{ id: "big" }] });
    }
    expect(decide(big(), subject({ tool: "pay" })).kind).toBe("ask");
  });

  it("does not fall through to the allow when the session's taint is above the ask's", () => {
    const taint = { class: "public", untrusted: true } as const;
    const clean = big({ taintMax: CLEAN });
    expect(decide(clean, { ...paying(1000n), taint })).toMatchObject({
      kind: "deny",
      reason: "taint_too_high",
    });
    expect(decide(clean, { ...paying("1000"), taint })).toMatchObject({
      kind: "deny",
      reason: "taint_too_high",
    });
  });

  it("does not fall through to the allow when the ask has expired", () => {
    for (const amount of [1000n, "1000"]) {
      const decision = decide(big({ expiresAtMs: NOW }), paying(amount));
      expect(decision).toMatchObject({ kind: "deny", reason: "grant_expired" });
    }
  });

  it("is not satisfied by a remembered approval where its condition could not judge the call", () => {
    const grants = index([allow, grant("big", "ask", { when: amountAbove(100) }), remembered("r", "big")]);
    expect(decide(grants, paying(1000n)).kind).toBe("allow");
    expect(decide(grants, paying("1000000")).kind).toBe("ask");
  });
});

it("a deny whose condition cannot judge the call holds, and an allow does not", () => {
  const unjudged = { when: condition("error") };
  expect(decide(index([grant("w", "allow"), grant("d", "deny", unjudged)]), subject()).row).toBe("deny");
  expect(decide(index([grant("w", "allow", unjudged)]), subject()).row).toBe("nothing");
});

describe("built-in tools", () => {
  const BUILTINS = ["callgate.status", "callgate.approvals.approve", "callgate."];

  it("are not reached by a pattern that does not itself begin callgate., listed or not", () => {
    for (const pattern of ["*", "c*", "call*", "callgate*"]) {
      const config = [grant("w", "allow", { tools: [pattern, "callgate.tools.list"] })];
      for (const tool of BUILTINS) {
        for (const grants of [index(config), index(config, BUILTINS)]) {
          expect(decide(grants, subject({ tool })).row).toBe("nothing");
          expect(explain(grants, subject({ tool })).trace[0]?.failed).toBe("tool");
        }
      }
    }
  });

  it("are reached by the patterns that do", () => {
    const grants = index([
      grant("all", "ask", { tools: ["callgate.*"] }),
      grant("approvals", "deny", { tools: ["callgate.approvals.*"] }),
      grant("star", "allow"),
    ]);
    expect(decide(grants, subject({ tool: "callgate.status" })).row).toBe("ask");
    expect(decide(grants, subject({ tool: "callgate.approvals.approve" })).row).toBe("deny");
    expect(decide(grants, subject({ tool: "callgatex" })).row).toBe("allow");
  });
});

it("a grant for one tool does not serve the longer names beside it", () => {
  const grants = index([
    grant("one", "allow", { tools: ["mail", "mail.send"] }),
    grant("under", "ask", { tools: ["mail*"] }),
    grant("dotted", "deny", { tools: ["mail.x*"], when: condition("no_match") }),
  ]);
  for (const tool of ["mail2", "mail.send2", "mail.x", "mail.xy"]) {
    expect(grantsForTool(grants, "agent", tool).map((one) => one.id)).not.toContain("one");
  }
  expect(grantsForTool(grants, "agent", "mail").map((one) => one.id)).toEqual(["one", "under"]);
  expect(grantsForTool(grants, "agent", "mail.xy").map((one) => one.id)).toEqual(["under", "dotted"]);
});

describe("names of prototypes", () => {
  const NAMES = ["constructor", "__proto__", "toString", "hasOwnProperty", "prototype"];

  it("are tools like any other that does not exist", () => {
    const grants = index([grant("w", "allow", { tools: ["mail.send"] })], ["mail.send"]);
    for (const tool of NAMES) {
      expect(decide(grants, subject({ tool }))).toMatchObject({ row: "nothing", grant: undefined });
    }
  });

  it("are roles and sessions without a grant", () => {
    const grants = index([grant("w", "allow", { sessions: ["s1"] })]);
    for (const name of NAMES) {
      expect(decide(grants, subject({ role: name })).row).toBe("nothing");
      expect(decide(grants, subject({ session: name })).row).toBe("nothing");
      expect(explain(grants, subject({ role: name })).trace).toEqual([]);
    }
  });
});

describe("endless tool names", () => {
  it("leave nothing behind in the index", () => {
    const patterns = ["*", "a*", "ab*", "mail.*", "mail.send", "callgate.*"];
    const grants = index(
      patterns.map((pattern, i) => grant(`g${i}`, "allow", { tools: [pattern] })),
      ["mail.send", "fs.read"],
    );
    const size = entries(grants);
    const found = new Set<readonly Grant[]>();
    for (let i = 0; i < 100_000; i++) {
      const tool = `${["x", "a", "ab", "mail.", "callgate."][i % 5]}${i}`;
      found.add(grantsForTool(grants, "agent", tool));
      if (i % 100 === 0) expect(decide(grants, subject({ tool })).kind).toBe("allow");
    }
    expect(entries(grants)).toBe(size);
    // One list for each longest prefix, shared by all names under it.
    expect(found.size).toBe(5);
  });
});

describe("a condition", () => {
  it("is evaluated once, and only where role, tool and session fit", () => {
    const conditions = Array.from({ length: 8 }, () => condition("match"));
    const at = (i: number, more: Partial<Grant>) => grant(`g${i}`, "allow", { when: conditions[i], ...more });
    const config = [
      at(0, { tools: ["mail.*", "mail.send", "*"] }),
      at(1, { tools: ["fs.*"] }),
      at(2, { sessions: ["s2"] }),
      at(3, { role: "other" }),
    ];
    const runtime = [
      at(4, { tools: ["*", "mail.send"], sessions: ["*", "s1"] }),
      at(5, { tools: ["fs.*"] }),
      at(6, { sessions: ["s2"] }),
      at(7, { role: "other" }),
    ];
    const grants = index([...config, ...runtime], ["mail.send"]);
    decide(grants, subject());
    expect(conditions.map((one) => one.inputs.length)).toEqual([1, 0, 0, 0, 1, 0, 0, 0]);
    explain(grants, subject());
    expect(conditions.map((one) => one.inputs.length)).toEqual([2, 0, 0, 0, 2, 0, 0, 0]);
  });

  it("never sees the taint or the time", () => {
    const when = condition("match");
    const target = { role: "agent", tool: "pay", session: "s9" };
    decide(index([grant("w", "allow", { when })]), subject({ target, request: "pay the rent" }));
    expect(when.inputs).toEqual([
      { args: new Map(), role: "agent", tool: "mail.send", session: "s1", target, request: "pay the rent" },
    ]);
  });
});

/** Elements of all maps and lists within, each counted wherever it is reached. */
function entries(value: unknown): number {
  if (value instanceof Map) {
    return [...value.values()].reduce((sum: number, one) => sum + 1 + entries(one), 0);
  }
  if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + 1 + entries(one), 0);
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, one) => sum + 1 + entries(one), 0);
}
