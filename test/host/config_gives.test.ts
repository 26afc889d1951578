import { describe, expect, it } from "vitest";
import {
  APPROVER,
  compiled,
  EXTRA_LINE,
  expectFault,
  faultLines,
  minimal,
  warningsOf,
} from "./config_fixture.ts";

const WHOLE: Readonly<Record<string, string>> = {
  role: '"approver"',
  to: '["agent"]',
  tools: '["read_file"]',
  taint_max: '"internal"',
  taint_untrusted: "false",
  longest: '"8h"',
};

/** An entry with some keys changed, or (undefined) left out; its first line is `EXTRA_LINE`. */
function gives(changes: Readonly<Record<string, string | undefined>> = {}): string {
  const lines = Object.entries({ ...WHOLE, ...changes }).map(([key, value]) =>
    value === undefined ? "" : `${key} = ${value}`,
  );
  return minimal(`[[gives]]\n${lines.join("\n")}\n${APPROVER}`);
}

describe("what a role may give", () => {
  it("is carried, and is nothing but asks where it does not say more", async () => {
    const { config, warnings } = await compiled(gives());
    expect(warnings).toEqual([]);
    expect(config.policy.gives).toEqual([
      {
        role: "approver",
        to: ["agent"],
        tools: ["read_file"],
        taintMax: { class: "internal", untrusted: false },
        longestMs: 28_800_000,
        effects: ["ask"],
      },
    ]);
    const more = await compiled(
      gives({ effects: '["allow", "ask"]', to: '["agent", "files"]', tools: '["read_*"]' }),
    );
    expect(more.config.policy.gives[0]).toMatchObject({ effects: ["allow", "ask"], to: ["agent", "files"] });
  });

  it.each(Object.keys(WHOLE))("an entry without %s is refused: no bound is assumed", async (key) => {
    const lines = await faultLines(gives({ [key]: undefined }));
    expect(lines).toEqual([`${EXTRA_LINE}:3 an entry of gives needs "${key}", which is missing`]);
  });

  it.each([
    [{ role: '"aprover" #!' }, "@:8", 'no role "aprover"; did you mean "approver"?'],
    [{ to: '["agnt"] #!' }, "@:7", 'no role "agnt"; did you mean "agent"?'],
    [{ to: '["agent", "approver"] #!' }, "@:16", "role approver cannot give to itself"],
    [{ to: "[] #!" }, "@:6", "to must not be empty; name the roles"],
    [{ to: '["agent", "agent"] #!' }, "@:16", 'to names "agent" twice'],
    [{ tools: '["read_fil"] #!' }, "@:10", 'no such tool "read_fil"; did you mean "read_file"?'],
    [{ tools: '["callgate.status"] #!' }, "@:10", "is the broker's own, and nobody can give that"],
    [{ tools: '["callgate.*"] #!' }, "@:10", "is the broker's own, and nobody can give that"],
    [{ tools: '["callgate.nothing"] #!' }, "@:10", "is the broker's own, and nobody can give that"],
    [{ tools: "[] #!" }, "@:9", "tools must not be empty"],
    [{ taint_max: '"secret" #!' }, "@:13", 'taint_max must be one of "public"'],
    [{ taint_untrusted: '"no" #!' }, "@:19", "taint_untrusted must be true or false"],
    [{ longest: '"367d" #!' }, "@:11", 'longest must be a duration from "1s" to "366d"'],
    [{ longest: '"0s" #!' }, "@:11", "longest must be a duration"],
    [{ effects: "[] #!" }, "@:11", 'effects must not be empty; write ["ask"]'],
    [{ effects: '["deny"] #!' }, "@:12", 'each of effects must be one of "allow", "ask"'],
    [{ effects: '["ask", "ask"] #!' }, "@:19", 'effects names "ask" twice'],
    [{ efects: '["ask"] #!' }, "@:1", 'unknown key "efects" in an entry of gives; did you mean "effects"?'],
  ])("%j is refused", (changes, at, message) => expectFault(gives(changes), at, message));

  it("must be a list of tables", () =>
    expectFault(minimal("[gives] #!"), "@:2", "gives must be a list of tables, each begun with [[gives]]"));
});

describe("an entry of gives is warned of", () => {
  const line = (key: string) => EXTRA_LINE + 1 + Object.keys({ ...WHOLE, effects: "" }).indexOf(key);

  it("that lets an allow be given where an injection is in the session, or all is known", async () => {
    const freely = [`${line("effects")}:11 gives_freely`];
    const allows = { effects: '["allow"]' };
    expect(await warningsOf(gives({ ...allows, taint_untrusted: "true" }))).toEqual(freely);
    expect(await warningsOf(gives({ ...allows, taint_max: '"restricted"' }))).toEqual(freely);
    expect(await warningsOf(gives({ ...allows, taint_max: '"confidential"' }))).toEqual([]);
    expect(await warningsOf(gives({ effects: '["ask"]', taint_untrusted: "true" }))).toEqual([]);
  });

  it("that gives every tool, or one that there is not", async () => {
    expect(await warningsOf(gives({ tools: '["*"]' }))).toEqual([`${line("tools")}:10 every_tool`]);
    expect(await warningsOf(gives({ tools: '["write_*"]' }))).toEqual([
      `${line("tools")}:10 matches_nothing`,
    ]);
  });

  it("whose role has no grant to give, or is denied it", async () => {
    const never = [`${line("role")}:8 never_gives`];
    expect(await warningsOf(gives({ role: '"files"' }))).toEqual(never);
    const denied = `[[grants]]\nid = "d"\nrole = "approver"\ntools = ["callgate.grants.*"]\neffect = "deny"\n`;
    expect(await warningsOf(`${gives()}${denied}`)).toEqual(never);
  });

  it("that the broker would refuse, since giver and taker are one user", async () => {
    const one = gives().replace('users = ["operator"]', 'users = ["agent"]');
    expect((await warningsOf(one)).filter((each) => each.includes("gives"))).toEqual([
      `${line("to")}:7 gives_to_itself`,
    ]);
    expect((await warningsOf(`allow_same_user = true\n${one}`)).join()).not.toContain("gives_to_itself");
  });

  it("and a tool that can only be given is none that nobody can call", async () => {
    const text = gives({ tools: '["t"]' }).concat('[tools.t]\nrole = "files"\neffect = "read"\n');
    expect(await warningsOf(text)).toEqual([]);
  });
});
