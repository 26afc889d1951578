import { describe, expect, it } from "vitest";
import { ANNOUNCES, APPROVER, compiled, EXTRA_LINE, minimal, warningsOf } from "./config_fixture.ts";

/** Lines from EXTRA_LINE on. */
const E = EXTRA_LINE;
const UNTRUSTED = 'taint_max = "internal"\ntaint_untrusted = true';
const grant = (tools: string, rest = `effect = "allow"\ntaint_max = "internal"\ntaint_untrusted = false`) =>
  `[[grants]]\nid = "g"\nrole = "agent"\ntools = ${tools}\n${rest}\n`;
const tool = (rest: string) => `[tools.t]\nrole = "files"\n${rest}\n`;
const OPENER = grant('["callgate.sessions.*"]').replace('role = "agent"', 'role = "files"');
const REACHED = grant('["t"]');

describe("a config is warned of", () => {
  it("nothing where there is nothing to say", async () => {
    expect(await warningsOf(minimal())).toEqual([]);
  });

  it("one user that answers to itself, saying what it costs", async () => {
    const { warnings } = await compiled(`allow_same_user = true\n${minimal()}`);
    expect(warnings).toMatchObject([{ line: 1, column: 19, code: "same_user" }]);
    expect(warnings[0]?.message).toContain("the agent's process included, answers to nobody else");
    expect(await warningsOf(`allow_same_user = false\n${minimal()}`)).toEqual([]);
  });

  it.each(["send", "spend", "execute"])(
    "a free %s from a session that has read untrusted text",
    async (effect) => {
      const text = (rest: string) =>
        minimal(
          tool(`effect = "${effect}"\nschema.additionalProperties = false\nschema.type = "object"`) +
            grant('["t"]', rest) +
            APPROVER,
        );
      expect(await warningsOf(text(`effect = "allow"\n${UNTRUSTED}`))).toEqual([
        `${E + 11}:19 untrusted_effect`,
      ]);
      expect(await warningsOf(text(`effect = "allow"\n${UNTRUSTED}\nwhen = "true"`))).toEqual([]);
      expect(await warningsOf(text(`effect = "ask"\n${UNTRUSTED}`))).toEqual([]);
      expect(
        await warningsOf(text(`effect = "allow"\ntaint_max = "internal"\ntaint_untrusted = false`)),
      ).toEqual([]);
    },
  );

  it("a free use of tools that nobody has configured yet, which count as execute", async () => {
    const provides = minimal(grant('["x.*"]', `effect = "allow"\n${UNTRUSTED}`) + ANNOUNCES).replace(
      'users = ["callgate-files"]',
      'users = ["callgate-files"]\nprovides = ["x."]',
    );
    expect(await warningsOf(provides)).toEqual([`${E + 7}:19 untrusted_effect`]);
  });

  it("every tool at once, but not where that only denies", async () => {
    expect(await warningsOf(minimal(grant('["*"]')))).toEqual([`${E + 3}:10 every_tool`]);
    expect(await warningsOf(minimal(grant('["*"]', 'effect = "deny"')))).toEqual([]);
  });

  it("a role that anyone may use and that has effects", async () => {
    const open = minimal(tool('effect = "send"') + REACHED).replace('users = ["agent"]', "anyone = true");
    expect(await warningsOf(open)).toEqual(["2:10 anyone_effects"]);
    expect(await warningsOf(open.replace('effect = "send"', 'effect = "read"'))).toEqual([]);
  });

  it("an operator that anyone may be", async () => {
    expect(await warningsOf(minimal("[roles.o]\nanyone = true\noperator = true"))).toEqual([
      `${E + 1}:10 anyone_operator`,
    ]);
  });

  it("an operator whose user is also that of another role", async () => {
    const operator = (users: string) => minimal(`[roles.o]\nusers = ${users}\noperator = true`);
    expect(await warningsOf(operator('["agent"]'))).toEqual([`${E + 1}:9 operator_shared`]);
    expect(await warningsOf(operator("[1001]"))).toEqual([`${E + 1}:9 operator_shared`]);
    expect(await warningsOf(operator('["operator"]'))).toEqual([]);
    const { warnings } = await compiled(operator('["agent", "callgate-files"]'));
    expect(warnings.filter(({ code }) => code === "operator_shared").map(({ message }) => message)).toEqual([
      "a user or group of each of the roles agent, files may also connect as the operator o; give the operator a user of its own",
    ]);
  });

  it("a provider that anyone may pose as, configured or announcing", async () => {
    const provider = (rest: string) =>
      minimal().replace('users = ["callgate-files"]', `anyone = true\n${rest}`);
    expect(await warningsOf(provider(""))).toEqual(["4:10 anyone_provider"]);
    const announces = ANNOUNCES.replace('"files"', '"o"');
    const announcing = minimal(`[roles.o]\nanyone = true\nprovides = ["x."]\n${announces}`);
    expect(await warningsOf(announcing)).toEqual([`${E + 1}:10 anyone_provider`]);
    expect(await warningsOf(minimal("[roles.o]\nanyone = true"))).toEqual([]);
  });

  it("one user in two roles, who would be both the agent and what it is kept from", async () => {
    const second = (rest: string) => minimal(`[roles.b]\n${rest}\n[roles.c]\nusers = [9]`);
    expect(await warningsOf(second('users = ["agent"]'))).toEqual([`${E + 1}:9 shared_user`]);
    expect(await warningsOf(second("users = [8]"))).toEqual([]);
    const three = minimal('[roles.b]\nusers = ["agent", "callgate-files"]\ngroup = "root"');
    const { warnings } = await compiled(three);
    expect(warnings.map(({ code }) => code)).toEqual(["shared_user"]);
    expect(warnings[0]?.message).toContain("agent, files");
    const many = second('users = ["agent"]\n[roles.d]\nusers = ["agent"]\n[roles.e]\nusers = ["agent", 9]');
    const told = (await compiled(many)).warnings.filter(({ code }) => code === "shared_user");
    expect(told.map(({ message }) => message.split(":")[0])).toEqual([
      "a user or group of role d is also admitted as agent, b",
      "a user or group of role e is also admitted as agent, b, d",
      "a user or group of role c is also admitted as e",
    ]);
  });

  it("sessions opened clean, for a request that an injection may have written", async () => {
    const opener = (rest: string) => minimal(OPENER.replace("taint_untrusted = false", rest));
    expect(await warningsOf(opener("taint_untrusted = true"))).toEqual([`${E + 6}:19 untrusted_opener`]);
    expect(await warningsOf(opener("taint_untrusted = false"))).toEqual([]);
  });

  it("a condition that another allow makes a decoration", async () => {
    const conditional = `effect = "allow"\ntaint_max = "public"\ntaint_untrusted = false\nwhen = "true"`;
    const both = (other: string) =>
      minimal(grant('["read_*"]', conditional) + APPROVER).replace(
        'effect = "allow"\ntaint_max = "internal"\ntaint_untrusted = true',
        other,
      );
    const wide = 'effect = "allow"\ntaint_max = "internal"\ntaint_untrusted = true';
    const found = both(wide);
    expect(await warningsOf(found)).toEqual([`${E + 7}:8 condition_bypassed`]);
    expect(await warningsOf(both(`${wide}\nexpires = 2099-01-01T00:00:00Z`))).toEqual([]);
    expect(await warningsOf(both(`${wide}\nmax_calls = 1\nmax_calls_per = "1h"`))).toEqual([]);
    expect(await warningsOf(both(wide.replace('"allow"', '"ask"')))).toEqual([]);
    expect(await warningsOf(both(`${wide}\nwhen = "true"`))).toEqual([]);
  });

  it("a process that is trusted to keep sessions apart", async () => {
    const text = (rest: string) =>
      minimal(OPENER).replace('users = ["agent"]', `users = ["agent"]\nsessions = "opened"\n${rest}`);
    expect(await warningsOf(text('taint_scope = "session"'))).toEqual(["4:15 sessions_not_isolated"]);
    expect(await warningsOf(text('taint_scope = "session"\nisolated = true'))).toEqual([]);
    expect(await warningsOf(text('taint_scope = "role"'))).toEqual([]);
  });

  it("a role whose sessions nobody opens, or only it itself could", async () => {
    const opened = (rest: string) =>
      minimal(rest).replace('users = ["agent"]', 'users = ["agent"]\nsessions = "opened"');
    expect(await warningsOf(opened(OPENER))).toEqual([]);
    expect(await warningsOf(opened(""))).toEqual(["3:12 sessions_never_opened"]);
    const itself = OPENER.replace('role = "files"', 'role = "agent"');
    expect(await warningsOf(opened(itself))).toEqual(["3:12 sessions_never_opened"]);
  });

  it("a socket that those it admits cannot reach", async () => {
    const role = (rest: string) => minimal(`[roles.o]\n${rest}`);
    expect(await warningsOf(role("users = [7, 8]"))).toEqual([`${E}:8 socket_closed`]);
    expect(await warningsOf(role('groups = ["root"]\nmode = "0600"'))).toEqual([`${E + 2}:8 socket_closed`]);
    expect(await warningsOf(role('groups = ["root"]\ngroup = "root"'))).toEqual([]);
    expect(await warningsOf(role("users = [7]"))).toEqual([]);
  });

  it("a store that forgets taint", async () => {
    expect(await warningsOf(minimal(`${tool('effect = "read"\nstore = false')}${REACHED}`))).toEqual([
      `${E + 3}:9 no_store`,
    ]);
  });

  it("an effect that nobody declared", async () => {
    expect(await warningsOf(minimal(tool("") + REACHED))).toEqual([`${E}:8 effect_assumed`]);
  });

  it("a tool that nobody can call, also where it is only denied", async () => {
    const text = tool('effect = "read"');
    expect(await warningsOf(minimal(text))).toEqual([`${E}:8 unreachable_tool`]);
    expect(await warningsOf(minimal(text + grant('["t"]', 'effect = "deny"')))).toEqual([
      `${E}:8 unreachable_tool`,
    ]);
    expect(await warningsOf(minimal(text + REACHED))).toEqual([]);
  });

  it("a grant that has expired, to the millisecond", async () => {
    const expires = (when: string) =>
      minimal(grant('["read_file"]', `effect = "ask"\n${UNTRUSTED}\nexpires = ${when}`) + APPROVER);
    expect(await warningsOf(expires("2026-01-01T00:00:00Z"))).toEqual([`${E + 7}:11 expired_grant`]);
    expect(await warningsOf(expires("2026-01-01T00:00:00.001Z"))).toEqual([]);
  });

  it("a tool that is only announced one day, and a pattern that matches nothing", async () => {
    const text = (tools: string) =>
      minimal(grant(tools, 'effect = "deny"') + ANNOUNCES).replace(
        'users = ["callgate-files"]',
        'users = ["callgate-files"]\nprovides = ["x."]',
      );
    expect(await warningsOf(text('["x.send"]'))).toEqual([`${E + 4}:10 not_configured`]);
    expect(await warningsOf(text('["x.*", "x.y*", "callgate.*"]'))).toEqual([]);
    const { warnings } = await compiled(text('["x.*", "x.read", "x.send"]'));
    expect(warnings).toMatchObject([{ line: E + 4, column: 17, code: "not_configured" }]);
    expect(warnings[0]?.message).toMatch(/^"x\.read", "x\.send" are not configured: each does nothing until/);
    expect(await warningsOf(text('["y.*", "c*", "callgate.none*"]'))).toEqual([
      `${E + 4}:10 matches_nothing`,
      `${E + 4}:17 matches_nothing`,
      `${E + 4}:23 matches_nothing`,
    ]);
  });

  it("an operator's tool in the hands of somebody else", async () => {
    expect(await warningsOf(minimal(grant('["callgate.*"]')))).toEqual([`${E + 3}:10 operator_tool`]);
    expect(await warningsOf(minimal(grant('["callgate.freeze"]', 'effect = "deny"')))).toEqual([]);
    expect(await warningsOf(minimal(grant('["callgate.status"]')))).toEqual([]);
  });
});
