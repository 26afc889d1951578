// `callgate.grants.explain` without a tool: the policy in force as a whole, and who is told how much of it.

import { describe, expect, it } from "vitest";
import { CLEAN } from "../../src/base/labels.ts";
import type { OpenPath, PolicyReach, ToolReach } from "../../src/client/load_answers.ts";
import { allow } from "./configs.ts";
import { ask, GIVING, given, READ, revoke } from "./grants_rig.ts";
import { type Rig, withRig } from "./rig.ts";
import type { Reply } from "./rig_peer.ts";

const EXPLAIN = "callgate.grants.explain";
const SEND = `[tools.send]
role = "mail"
effect = "send"
untrusted = false
`;
const CONFIG = `${GIVING}${SEND}`;

function reachOf({ json }: Reply): PolicyReach {
  return json as unknown as PolicyReach;
}

function toolOf({ roles }: PolicyReach, role: string, tool: string): ToolReach | undefined {
  return roles.find((one) => one.role === role)?.tools.find((one) => one.tool === tool);
}

function verdicts(tool: ToolReach | undefined): readonly string[] | undefined {
  return tool?.at.map(({ verdict }) => verdict);
}

const told = async (rig: Rig, role: string, args: object = {}) =>
  reachOf(await ask(rig, rig.peer(role), EXPLAIN, args));

const OPEN = {
  taint_max: "restricted",
  taint_untrusted: true,
  effect: "allow",
  reason: "for a try",
} as const;

describe("the reach of the policy in force", () => {
  it("has the grants that were added, from their being added to their being revoked", () =>
    withRig(CONFIG, async (rig) => {
      expect(toolOf(await told(rig, "operator"), "agent", "read")).toBeUndefined();
      const frontend = rig.peer("frontend");
      const id = await given(rig, frontend, READ);
      const read = toolOf(await told(rig, "operator"), "agent", "read");
      expect(read).toMatchObject({ provider: "files", effect: "read", brings: CLEAN });
      expect(read?.at[0]).toEqual({ ...CLEAN, verdict: "allow", by: [id] });
      expect(verdicts(read)).toEqual(["allow", "allow", "deny", "deny", "deny", "deny", "deny", "deny"]);
      expect((await revoke(rig, rig.peer("operator"), id)).end).toContain("result");
      expect(toolOf(await told(rig, "operator"), "agent", "read")).toBeUndefined();
    }));

  it("takes a grant whose calls are used up, or whose time is, for none", () =>
    withRig(CONFIG, async (rig) => {
      rig.peer("files").serve = (request) => request.result("done");
      const agent = rig.peer("agent");
      await given(rig, rig.peer("frontend"), { ...READ, max_calls: 1 });
      const now = async () => verdicts(toolOf(await told(rig, "operator"), "agent", "read"))?.[0];
      expect(await now()).toBe("allow");
      await ask(rig, agent, "read", { path: "/a" });
      expect([undefined, "deny"]).toContain(await now());
      await given(rig, rig.peer("frontend"), { ...READ, expires_in_seconds: 60 });
      expect(await now()).toBe("allow");
      await rig.pass(60_000);
      expect(await now()).not.toBe("allow");
    }));

  it("tells operators of the ways that a grant of run time opens, and of the grant", () =>
    withRig(CONFIG, async (rig) => {
      const giver = rig.peer("operator");
      const week = { expires_in_seconds: 3600 };
      expect((await told(rig, "operator")).paths).toEqual([]);
      await given(rig, giver, { ...OPEN, ...week, role: "agent", tools: ["floor"] });
      const id = await given(rig, giver, { ...OPEN, ...week, role: "agent", tools: ["send"] });
      const [path, ...others] = (await told(rig, "operator")).paths;
      expect(others).toEqual([]);
      expect(path).toMatchObject({
        ...{ role: "agent", source: "floor", through: [], sink_role: "agent", sink: "send", effect: "send" },
        ...{ taint: { class: "internal", untrusted: true }, verdict: "allow", by: [id] },
      } satisfies Partial<OpenPath>);
    }));

  it("tells of one role, and the ways that it has a part in, where an operator names it", () =>
    withRig(CONFIG, async (rig) => {
      const giver = rig.peer("operator");
      for (const [role, tools] of [
        ["agent", ["floor", "write"]],
        ["other", ["read", "send"]],
      ])
        await given(rig, giver, { ...OPEN, expires_in_seconds: 3600, role, tools });
      const ofOther = await told(rig, "operator", { role: "other" });
      expect(ofOther.roles.map(({ role }) => role)).toEqual(["other"]);
      expect(ofOther.paths).toMatchObject([
        { role: "other", source: "read", through: [], sink_role: "other", verdict: "conditional" },
        { role: "agent", source: "floor", through: [{ by: "store", store: "files" }], sink_role: "other" },
      ]);
      expect((await told(rig, "operator", { role: "frontend" })).paths).toEqual([]);
    }));

  it("tells a role that is no operator of itself alone: no other role, no way through another", () =>
    withRig(CONFIG, async (rig) => {
      const giver = rig.peer("operator");
      for (const [role, tools] of [
        ["agent", ["floor", "write", "plug.*"]],
        ["other", ["read", "send"]],
      ])
        await given(rig, giver, { ...OPEN, expires_in_seconds: 3600, role, tools });
      const reply = await ask(rig, rig.peer("agent"), EXPLAIN);
      const own = reachOf(reply);
      expect(own.roles.map(({ role }) => role)).toEqual(["agent"]);
      expect(own.paths.filter(({ through }) => through.length > 0)).toEqual([]);
      for (const name of ["other", "files", "mail", "operator", "second"])
        expect(reply.content).not.toContain(`"${name}"`);
      expect((await ask(rig, rig.peer("agent"), EXPLAIN, { role: "other" })).end).toBe(
        "failed bad_arguments",
      );
    }));

  it("carries the labels of the words in it: of an id that a tainted giver chose", () =>
    withRig(CONFIG, async (rig) => {
      const [frontend, files] = [rig.peer("frontend"), rig.peer("files")];
      files.serve = (request) => request.result("x", { class: "internal", untrusted: true });
      await ask(rig, frontend, "floor");
      await given(rig, frontend, READ);
      const operator = rig.peer("operator");
      const ofOther = await ask(rig, operator, EXPLAIN, { role: "other" });
      expect(ofOther.end).toMatch(/^result public \{/);
      expect((await ask(rig, operator, EXPLAIN)).end).toContain("result internal untrusted");
    }));

  it("refuses what is about one call where no tool is named", () =>
    withRig(CONFIG, async (rig) => {
      const operator = rig.peer("operator");
      for (const args of [
        { arguments: "{}" },
        { taint_class: "public" },
        { taint_untrusted: true },
        { session: "s" },
      ]) {
        const reply = await ask(rig, operator, EXPLAIN, args);
        expect(reply.end).toBe("failed bad_arguments");
        expect(reply.sentence).toContain("name its `tool` too");
      }
      expect((await ask(rig, operator, EXPLAIN, { tool: "" })).json).toMatchObject({ verdict: "deny" });
    }));

  it("fits in one message, however large the policy is, and says what it left out", () => {
    const many = (count: number, one: (i: number) => string) =>
      Array.from({ length: count }, (_, i) => one(i)).join("");
    const large = `${CONFIG}${many(600, (i) => `[tools.t${i}]\nrole = "files"\neffect = "${i % 2 === 0 ? "read" : "send"}"\n`)}
${many(12, (i) => `[roles.r${i}]\nusers = ["agent"]\n${allow(`r${i}-uses`, `r${i}`, '["*"]')}`)}`;
    return withRig(large, async (rig) => {
      const whole = await ask(rig, rig.peer("operator"), EXPLAIN);
      expect(whole.end).toContain("result");
      expect(reachOf(whole).more).toBe(true);
      expect(reachOf(whole).paths.length).toBeGreaterThan(100);
      const ofOne = await told(rig, "operator", { role: "r11" });
      expect(ofOne.roles[0]?.tools.length).toBeGreaterThan(500);
    });
  });
});
