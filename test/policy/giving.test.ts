// What a role may give: every call that a given grant reaches lies within one entry of the config.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toolPatternMatches } from "../../src/base/ids.ts";
import { DATA_CLASSES, type Labels } from "../../src/base/labels.ts";
import { type Given, givingFault, isWithin } from "../../src/policy/giving.ts";
import type { Giving } from "../../src/policy/policy.ts";
import { TOP } from "./grants.ts";

const GIVING: Giving = {
  role: "frontend",
  to: ["agent", "other"],
  tools: ["fs.read*", "mail.send"],
  taintMax: { class: "internal", untrusted: false },
  longestMs: 3_600_000,
  effects: ["ask", "allow"],
};
const GIVEN: Given = {
  role: "agent",
  tools: ["fs.readme", "mail.send"],
  effect: "allow",
  taintMax: { class: "internal", untrusted: false },
  aboveTaint: "deny",
  lastsMs: 3_600_000,
};

describe("giving", () => {
  it("is possible up to the bounds of an entry, and no further than each of them", () => {
    expect(givingFault([GIVING], "frontend", GIVEN)).toBeUndefined();
    const beyond: readonly [Partial<Given>, string][] = [
      [{ role: "files" }, "anything to a role of that name"],
      [{ tools: ["fs.readme", "mail.sendx"] }, "these tools to that role"],
      [{ tools: ["fs.rea*"] }, "these tools to that role"],
      [{ tools: ["*"] }, "these tools to that role"],
      [{ tools: ["mail.send*"] }, "these tools to that role"],
      [{ taintMax: { class: "confidential", untrusted: false } }, "a grant up to that taint"],
      [{ taintMax: { class: "public", untrusted: true } }, "a grant up to that taint"],
      [{ taintMax: undefined }, "a grant up to that taint"],
      [{ aboveTaint: "ask" }, "a grant that asks above its taint"],
      [{ lastsMs: 3_600_001 }, "a grant that lasts so long"],
      [{ lastsMs: undefined }, "a grant that lasts so long"],
      [{ lastsMs: Number.NaN }, "a grant that lasts so long"],
    ];
    for (const [more, what] of beyond) {
      const why = givingFault([GIVING], "frontend", { ...GIVEN, ...more });
      expect(why).toBe(`The config (\`gives\`) does not let role \`frontend\` give ${what}`);
    }
    expect(givingFault([GIVING], "agent", GIVEN)).toContain("role `agent`");
    expect(givingFault([], "frontend", GIVEN)).toContain("anything");
  });

  it("of an allow needs more than the leave to ask, also where the allow has a condition", () => {
    const asking: Giving = { ...GIVING, effects: ["ask"] };
    expect(givingFault([asking], "frontend", GIVEN)).toContain("that effect");
    expect(givingFault([asking], "frontend", { ...GIVEN, effect: "ask" })).toBeUndefined();
  });

  it("never adds up the parts of two entries", () => {
    const other: Giving = { ...GIVING, tools: ["pay"], taintMax: TOP, longestMs: 9e9 };
    expect(givingFault([GIVING, other], "frontend", { ...GIVEN, tools: ["pay", "mail.send"] })).toContain(
      "these tools",
    );
    expect(givingFault([GIVING, other], "frontend", { ...GIVEN, taintMax: TOP })).toContain("that taint");
    expect(givingFault([other, GIVING], "frontend", { ...GIVEN, lastsMs: 9e9 })).toContain("so long");
  });

  it("of what asks above its taint needs an entry for every taint, and the leave to ask", () => {
    const asks: Given = { ...GIVEN, aboveTaint: "ask" };
    expect(givingFault([{ ...GIVING, taintMax: TOP }], "frontend", asks)).toBeUndefined();
    const allowing: Giving = { ...GIVING, taintMax: TOP, effects: ["allow"] };
    expect(givingFault([allowing], "frontend", asks)).toContain("asks above");
  });

  it("of a deny asks for role and tools alone", () => {
    const deny: Given = { ...GIVEN, effect: "deny", taintMax: undefined, lastsMs: undefined };
    expect(givingFault([{ ...GIVING, effects: ["ask"] }], "frontend", deny)).toBeUndefined();
    expect(givingFault([GIVING], "frontend", { ...deny, tools: ["pay"] })).toContain("these tools");
    expect(givingFault([GIVING], "frontend", { ...deny, role: "files" })).toContain("anything");
  });
});

const LETTERS = fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 4 });
const name = LETTERS.map((rest) => `a${rest}`);
const pattern = fc.oneof(
  name,
  LETTERS.map((rest) => `a${rest}*`),
  fc.constantFrom("*", "callgate.*", "callgate.a"),
);
const labels: fc.Arbitrary<Labels> = fc.record({
  class: fc.constantFrom(...DATA_CLASSES),
  untrusted: fc.boolean(),
});

describe("a pattern within another", () => {
  it("matches no tool that the other does not, and none of the broker's own", () => {
    fc.assert(
      fc.property(
        pattern,
        pattern,
        fc.oneof(name, fc.constantFrom("callgate.a", "callgate.ab", "z")),
        (one, by, tool) => {
          if (!isWithin(one, by) || !toolPatternMatches(one, tool)) return;
          expect(toolPatternMatches(by, tool)).toBe(true);
          expect(tool.startsWith("callgate.")).toBe(false);
        },
      ),
      { numRuns: 20_000 },
    );
  });

  it("is told exactly: what is not within matches some tool that the other does not", () => {
    fc.assert(
      fc.property(pattern, pattern, (one, by) => {
        if (isWithin(one, by) || one.startsWith("callgate.") || by.startsWith("callgate.")) return;
        const witness = one.endsWith("*") ? `${one.slice(0, -1)}zz` : one;
        const shortest = one.endsWith("*") ? one.slice(0, -1) : one;
        const both = [witness, shortest].every((tool) => toolPatternMatches(by, tool));
        expect(both).toBe(false);
      }),
      { numRuns: 20_000 },
    );
  });
});

it("a grant that may be given stays within one entry, whatever it is", () => {
  const anyGiving: fc.Arbitrary<Giving> = fc.record({
    role: fc.constantFrom("frontend", "other"),
    to: fc.subarray(["agent", "files"]),
    tools: fc.array(pattern, { maxLength: 2 }),
    taintMax: labels,
    longestMs: fc.constantFrom(1, 5),
    effects: fc.subarray<"allow" | "ask">(["allow", "ask"]),
  });
  const anyGiven: fc.Arbitrary<Given> = fc.record({
    role: fc.constantFrom("agent", "files"),
    tools: fc.array(pattern, { minLength: 1, maxLength: 2 }),
    effect: fc.constantFrom("allow", "ask"),
    taintMax: fc.option(labels, { nil: undefined }),
    aboveTaint: fc.constantFrom("deny", "ask"),
    lastsMs: fc.constantFrom(undefined, 1, 5, 6),
  });
  let given = 0;
  fc.assert(
    fc.property(fc.array(anyGiving, { maxLength: 3 }), anyGiven, name, (gives, one, tool) => {
      if (givingFault(gives, "frontend", one) !== undefined) return;
      given += 1;
      const covering = gives.filter(
        (giving) =>
          giving.role === "frontend" &&
          giving.to.includes(one.role) &&
          giving.effects.some((effect) => effect === one.effect) &&
          (one.lastsMs ?? 7) <= giving.longestMs &&
          DATA_CLASSES.indexOf(one.taintMax!.class) <= DATA_CLASSES.indexOf(giving.taintMax.class) &&
          (giving.taintMax.untrusted || !one.taintMax!.untrusted),
      );
      const reached = one.tools.some((by) => toolPatternMatches(by, tool));
      const within = covering.some(({ tools }) => tools.some((by) => toolPatternMatches(by, tool)));
      expect(covering.length).toBeGreaterThan(0);
      expect(reached && !within).toBe(false);
    }),
    { numRuns: 20_000 },
  );
  expect(given).toBeGreaterThan(20);
});
