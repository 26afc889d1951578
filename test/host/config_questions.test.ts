import { describe, expect, it } from "vitest";
import { APPROVER, compiled, expectFault, faultLines, minimal } from "./config_fixture.ts";

const BOUNDS = 'taint_max = "public"\ntaint_untrusted = false';
const grant = (rest: string) =>
  minimal(`[[grants]]\nid = "g"\nrole = "agent"\ntools = ["read_file"]\n${rest}\n${APPROVER}`);
const ask = (rest: string) => grant(`effect = "ask"\n${BOUNDS}\n${rest}`);
const allow = (rest: string) => grant(`effect = "allow"\n${BOUNDS}\n${rest}`);
const deny = (rest: string) => grant(`effect = "deny"\n${rest}`);
const tool = (rest: string) =>
  minimal(`[tools.other]\nrole = "files"\n${rest}
schema = { type = "object", properties = { to = { type = "string" } }, additionalProperties = false }`);

async function second(text: string) {
  return (await compiled(text)).config.policy.grants[1];
}

describe("what a grant says of its questions", () => {
  it("is carried, on an ask and on an allow that asks above its taint", async () => {
    const keys = 'approval_ttl = "2d"\nremember = false\nrefuse_for = "0s"';
    const expected = { approvalTtlMs: 172_800_000, remember: false, refuseForMs: 0 };
    expect(await second(ask(keys))).toMatchObject(expected);
    expect(await second(allow(`above_taint = "ask"\n${keys}`))).toMatchObject(expected);
  });

  it("has its defaults where it says nothing", async () => {
    const expected = { approvalTtlMs: 900_000, remember: true, refuseForMs: 3_600_000, maxCalls: undefined };
    expect(await second(ask(""))).toMatchObject(expected);
  });

  const KEYS = ['approval_ttl = "1h"', "remember = true", 'refuse_for = "1h"'];

  it.each(KEYS)("%s where nothing is ever asked is refused, with what would make it ask", async (key) => {
    const message =
      "is about a question to a human, and this allow never asks one; remove it, or write above_taint";
    await expectFault(allow(`${key} #!`), "@:1", message);
    await expectFault(allow(`above_taint = "deny"\n${key} #!`), "@:1", message);
    await expectFault(deny(`${key} #!`), "@:1", "and this deny never asks one; remove it");
  });

  it("is no second fault where the effect itself was refused", async () => {
    for (const text of [
      grant(`effect = "asks" #!\n${BOUNDS}\nremember = true`),
      allow('above_taint = "asks" #!\nremember = true'),
    ]) {
      const lines = await faultLines(text);
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain("must be one of");
    }
  });

  it.each([
    ['approval_ttl = "0s" #!', "@:16", 'approval_ttl must be a duration from "1s" to "30d"'],
    ['approval_ttl = "31d" #!', "@:16", 'approval_ttl must be a duration from "1s" to "30d"'],
    ["approval_ttl = 900 #!", "@:16", "approval_ttl must be a duration"],
    ['refuse_for = "31d" #!', "@:14", 'refuse_for must be a duration from "0s" to "30d"'],
    ['remember = "no" #!', "@:12", "remember must be true or false"],
    ['aproval_ttl = "1h" #!', "@:1", 'unknown key "aproval_ttl" in a grant; did you mean "approval_ttl"?'],
  ])("%s is refused", (text, at, message) => expectFault(ask(text), at, message));
});

describe("how often a grant serves", () => {
  it("is a number of calls, in a period or ever", async () => {
    expect(await second(allow("max_calls = 3"))).toMatchObject({ maxCalls: { calls: 3, perMs: undefined } });
    expect(await second(ask('max_calls = 1_000_000_000\nmax_calls_per = "366d"'))).toMatchObject({
      maxCalls: { calls: 1_000_000_000, perMs: 31_622_400_000 },
    });
  });

  it.each([
    ["max_calls = 0 #!", "@:13", "max_calls must be a whole number from 1 to 1000000000"],
    ["max_calls = 1_000_000_001 #!", "@:13", "max_calls must be a whole number"],
    ['max_calls = "3" #!', "@:13", "max_calls must be a whole number"],
    ['max_calls = 3\nmax_calls_per = "0s" #!', "@:17", "max_calls_per must be a duration"],
    ['max_calls = 3\nmax_calls_per = "367d" #!', "@:17", "max_calls_per must be a duration"],
    ['max_calls_per = "1h" #!', "@:1", "max_calls_per is the period of max_calls, which is missing"],
  ])("%s is refused", (text, at, message) => expectFault(allow(text), at, message));

  it("is nothing that a deny could have", async () => {
    await expectFault(deny("max_calls = 3 #!"), "@:1", "a deny holds for every call; remove max_calls");
    await expectFault(
      deny('max_calls_per = "1h" #!'),
      "@:1",
      "a deny holds for every call; remove max_calls_per",
    );
  });
});

describe("an id of a grant that is made at run time", () => {
  it.each(["remembered.x", "remembered.", "runtime.1"])("%s is not the config's to take", (id) =>
    expectFault(
      minimal(`[[grants]]\nid = "${id}" #!\nrole = "agent"\ntools = ["read_file"]\neffect = "deny"`),
      "@:6",
      "are those of grants that are made at run time",
    ),
  );

  it.each(["remembered", "runtime", "runtime-1", "remembered-x"])("%s only begins like one", async (id) => {
    const text = `[[grants]]\nid = "${id}"\nrole = "agent"\ntools = ["read_file"]\neffect = "deny"`;
    expect((await second(minimal(text)))?.id).toBe(id);
  });
});

describe("how a tool's calls are recorded", () => {
  const policyOf = async (rest: string) => (await compiled(tool(rest))).config.policy.tools.get("other");

  it("is carried", async () => {
    expect(await policyOf('effect = "read"\nrecord = "memory"\naudit_arguments = ["to"]')).toMatchObject({
      record: "memory",
      auditArguments: ["to"],
    });
    expect(await policyOf('effect = "send"\nrecord = "durable"')).toMatchObject({ record: "durable" });
  });

  it.each(["write", "send", "spend", "execute"])(
    "a %s that a restart forgets could run twice: refused",
    (effect) =>
      expectFault(tool(`effect = "${effect}"\nrecord = "memory" #!`), "@:10", `this one has "${effect}"`),
  );

  it("a tool that declares no effect is none that may be forgotten", () =>
    expectFault(tool('record = "memory" #!'), "@:10", "this one declares none"));

  it("a misspelt effect is told once, not as what it does to record too", () =>
    expectFault(tool('effect = "reed" #!\nrecord = "memory"'), "@:10", "effect must be one of"));

  it.each([
    ['record = "disk" #!', "@:10", 'record must be one of "durable", "memory"'],
    ['audit_arguments = "to" #!', "@:19", "audit_arguments must be a list of names of arguments"],
    ['audit_arguments = ["to", "to"] #!', "@:26", 'audit_arguments names "to" twice'],
    ['audit_arguments = ["too"] #!', "@:20", 'declares no argument "too"; did you mean "to"?'],
    ['audit_arguments = ["__proto__"] #!', "@:20", 'declares no argument "__proto__"'],
  ])("%s is refused", (text, at, message) => expectFault(tool(`effect = "read"\n${text}`), at, message));
});
