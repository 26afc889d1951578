// The decision with the real conditions and the real parser of arguments: whatever form an amount or a
// path is sent in, what the owner meant to be asked about or denied does not reach the allow beside it.

import { beforeAll, describe, expect, it } from "vitest";
import { parseJson } from "../../src/base/json.ts";
import { ARGUMENTS_LIMITS } from "../../src/base/limits.ts";
import {
  type Condition,
  type ConditionCompiler,
  loadConditionCompiler,
} from "../../src/policy/conditions.ts";
import { type Decision, decide, explain } from "../../src/policy/decision.ts";
import type { GrantIndex } from "../../src/policy/grant_index.ts";
import type { Grant } from "../../src/policy/policy.ts";
import { grant, index, remembered, subject } from "./grants.ts";

let compiler: ConditionCompiler;
beforeAll(async () => {
  compiler = await loadConditionCompiler();
});

function when(source: string): Condition {
  const compiled = compiler.compile(source);
  if (!compiled.ok) throw new Error(compiled.fault);
  return compiled.value;
}

function callWith(text: string) {
  const args = parseJson(text, ARGUMENTS_LIMITS);
  if (!args.ok || !(args.value instanceof Map)) throw new Error("no object");
  return subject({ tool: "pay", args: args.value });
}

function decideText(grants: GrantIndex, text: string): Decision {
  return decide(grants, callWith(text));
}

describe("`ask when args.amount > 100` beside a plain allow", () => {
  const grants = (...more: Grant[]) =>
    index([grant("pay", "allow"), grant("big", "ask", { when: when("args.amount > 100") }), ...more]);

  it("asks about what is larger or can't be compared, and about nothing else", () => {
    for (const amount of ["100", "1", "-5", "99.5", "1e2"]) {
      expect(decideText(grants(), `{"amount":${amount}}`).row).toBe("allow");
    }
    for (const amount of ["101", "100.5", "1e300", '"5"', "null", "[1]", "{}", "18446744073709551616"]) {
      expect(decideText(grants(), `{"amount":${amount}}`)).toMatchObject({
        kind: "ask",
        asks: [{ id: "big" }],
      });
    }
    for (const text of ["{}", '{"Amount":1000}', '{"__proto__":{"amount":1}}']) {
      expect(decideText(grants(), text).row).toBe("ask");
    }
  });

  it("takes no remembered approval for an amount that could not be compared", () => {
    const standing = grants(remembered("r", "big"));
    expect(decide(standing, callWith('{"amount":101}')).kind).toBe("allow");
    expect(decide(standing, callWith('{"amount":"101"}')).kind).toBe("ask");
  });

  it("is explained with the error, which does not quote the argument", () => {
    const { trace } = explain(grants(), callWith('{"amount":"very secret"}'));
    const verdict = trace.find((step) => step.grant === "big")?.condition;
    expect(verdict?.kind).toBe("error");
    expect(JSON.stringify(trace)).not.toContain("very secret");
  });
});

it('`deny when under(args.path, "/etc")` beside a plain allow denies every path that it cannot judge', () => {
  const grants = index([
    grant("fs", "allow"),
    grant("etc", "deny", { when: when('under(args.path, "/etc")') }),
  ]);
  for (const path of ["/etcetera", "/srv/etc"]) {
    expect(decideText(grants, JSON.stringify({ path })).row).toBe("allow");
  }
  for (const path of [
    "/etc",
    "/etc/shadow",
    "etc/shadow",
    "/srv/../etc/shadow",
    "//etc/shadow",
    "/srv\0",
    "",
    5,
  ]) {
    expect(decideText(grants, JSON.stringify({ path })).row).toBe("deny");
  }
});
