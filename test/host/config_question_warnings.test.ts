import { describe, expect, it } from "vitest";
import { ANNOUNCES, APPROVER, compiled, EXTRA_LINE, minimal, warningsOf } from "./config_fixture.ts";

const E = EXTRA_LINE;
const BOUNDS = 'taint_max = "internal"\ntaint_untrusted = false';
const grant = (rest: string, role = "agent", id = "g") =>
  `[[grants]]\nid = "${id}"\nrole = "${role}"\ntools = ["read_file"]\n${rest}\n`;
const ASK = grant(`effect = "ask"\n${BOUNDS}`);
const approver = (users: string, tools: string, rest = "operator = true") =>
  `[roles.approver]\n${users}\n${rest}\n[[grants]]\nid = "approves"\nrole = "approver"\ntools = [${tools}]\n` +
  'effect = "allow"\ntaint_max = "restricted"\ntaint_untrusted = true\n';
const OPERATOR = 'users = ["operator"]';
const ALL = '"callgate.*"';

async function messageOf(text: string, code: string): Promise<string> {
  const found = (await compiled(text)).warnings.filter((warning) => warning.code === code);
  expect(found).toHaveLength(1);
  return found[0]!.message;
}

describe("a question that nobody can answer", () => {
  const nobody = `${E + 4}:10 nobody_answers`;

  it("is told where no operator may approve", async () => {
    expect(await warningsOf(minimal(ASK))).toEqual([nobody]);
    expect(await warningsOf(minimal(ASK + approver(OPERATOR, '"callgate.status"')))).toEqual([nobody]);
    expect(await warningsOf(minimal(ASK + APPROVER))).toEqual([]);
    expect(await messageOf(minimal(ASK), "nobody_answers")).toContain(
      "no role that sees it may use callgate.approvals.approve",
    );
  });

  it("is told where the only one that may approve sees nothing but its own", async () => {
    expect(await warningsOf(minimal(ASK + approver(OPERATOR, '"callgate.*"', "")))).toContain(nobody);
  });

  it("is not told where the role that opens the asker's sessions may approve in them", async () => {
    const opener = approver(OPERATOR, '"callgate.sessions.open", "callgate.approvals.*"', "");
    const opened = minimal(ASK + opener).replace(
      'users = ["agent"]',
      'users = ["agent"]\nsessions = "opened"',
    );
    expect((await warningsOf(opened)).join()).not.toContain("nobody_answers");
    const named = minimal(ASK + opener);
    expect(await warningsOf(named)).toContain(nobody);
    const blind = opened.replace('"callgate.sessions.open", ', "");
    expect((await warningsOf(blind)).join()).toContain("nobody_answers");
  });

  it("is told where the approver's grant has expired, or a deny takes it away", async () => {
    const expired = `${ASK}${APPROVER}expires = 2025-01-01T00:00:00Z\n`;
    expect(await warningsOf(minimal(expired))).toContain(nobody);
    const denied = `[[grants]]\nid = "d"\nrole = "approver"\ntools = ["callgate.approvals.*"]\neffect = "deny"\n`;
    const found = await warningsOf(minimal(ASK + APPROVER + denied));
    expect(found).toContain(nobody);
  });

  it("is told where all who may approve would do so for themselves", async () => {
    const own = ASK + approver('users = ["agent"]', ALL);
    expect(await warningsOf(minimal(own))).toContain(nobody);
    expect(await messageOf(minimal(own), "nobody_answers")).toContain(
      "nobody approves for its own role or user",
    );
    expect(await warningsOf(`allow_same_user = true\n${minimal(own)}`)).not.toContain(nobody);
    const others = ASK + approver('users = ["agent", "operator"]\ngroup = "callgate-operators"', ALL);
    expect(await warningsOf(minimal(others))).not.toContain(nobody);
  });

  it("is told where anyone may be the asking role, so that whoever approves might be it", async () => {
    const open = minimal(ASK + APPROVER).replace('users = ["agent"]', "anyone = true");
    expect(await warningsOf(open)).toContain(nobody);
    expect(await warningsOf(`allow_same_user = true\n${open}`)).not.toContain(nobody);
  });

  it("is told of an allow that asks above its taint, at the word that makes it ask", async () => {
    const above = grant(`effect = "allow"\n${BOUNDS}\nabove_taint = "ask"`);
    expect(await warningsOf(minimal(above))).toEqual([`${E + 7}:15 nobody_answers`]);
    expect(await warningsOf(minimal(above.replace('"ask"', '"deny"')))).toEqual([]);
  });

  it("is not told of an ask that has expired: that is told as what it is", async () => {
    const expired = grant(`effect = "ask"\n${BOUNDS}\nexpires = 2025-01-01T00:00:00Z`);
    expect(await warningsOf(minimal(expired))).toEqual([`${E + 7}:11 expired_grant`]);
  });
});

describe("whoever answers questions is warned of", () => {
  it("where it asks some itself, which another would have to answer", async () => {
    const own = grant(`effect = "ask"\n${BOUNDS}`, "approver");
    const second = approver(OPERATOR, ALL).replaceAll("approve", "other").replace('"operator"', "7");
    expect(await warningsOf(minimal(own + APPROVER + second))).toEqual([
      `${E + 2}:8 approver_asks`,
      expect.stringContaining("judge_calls"),
    ]);
  });

  it("where it shares a user with the role that asks, and not a second time as a shared operator", async () => {
    const shared = ASK + approver('users = ["agent", "operator"]\ngroup = "callgate-operators"', ALL);
    expect(await warningsOf(minimal(shared))).toEqual([`${E + 8}:9 approver_shares_users`]);
    expect(await messageOf(`allow_same_user = true\n${minimal(shared)}`, "approver_shares_users")).toContain(
      "lets it approve what it itself asked",
    );
    const unasked = approver('users = ["agent", "operator"]\ngroup = "callgate-operators"', ALL);
    expect(await warningsOf(minimal(unasked))).toEqual([`${E + 1}:9 operator_shared`]);
  });

  it("where it may approve and not look", async () => {
    const blind = minimal(ASK + approver(OPERATOR, '"callgate.approvals.approve"'));
    expect(await warningsOf(blind)).toEqual([`${E + 7}:8 approver_blind`]);
    const denied = `[[grants]]\nid = "d"\nrole = "approver"\ntools = ["callgate.approvals.s*"]\neffect = "deny"\n`;
    expect(await warningsOf(minimal(ASK + APPROVER + denied))).toContain(`${E + 7}:8 approver_blind`);
  });

  it("where it also serves calls, or reads what may talk it into an answer", async () => {
    const provides = minimal(ASK + APPROVER).replace('role = "files"', 'role = "approver"');
    expect(await warningsOf(provides)).toEqual([`${E + 9}:12 judge_provides`]);
    const calls = minimal(ASK + APPROVER + grant(`effect = "allow"\n${BOUNDS}`, "approver", "looks"));
    expect(await warningsOf(calls)).toEqual([`${E + 9}:12 judge_calls`]);
    expect(await messageOf(calls, "judge_calls")).toContain("read_file");
    const onlyDenied = minimal(ASK + APPROVER + grant('effect = "deny"', "approver", "none"));
    expect(await warningsOf(onlyDenied)).toEqual([]);
  });
});

describe("a grant or tool is warned of", () => {
  it("whose question outlives it", async () => {
    const text = (ttl: string) =>
      minimal(grant(`effect = "ask"\n${BOUNDS}\nexpires = 2026-01-01T01:00:00Z\n${ttl}`) + APPROVER);
    expect(await warningsOf(text('approval_ttl = "61m"'))).toEqual([`${E + 8}:16 question_outlives_grant`]);
    expect(await warningsOf(text('approval_ttl = "60m"'))).toEqual([]);
    expect(await warningsOf(text(""))).toEqual([]);
  });

  it("whose answers could be remembered, it says, and never are", async () => {
    const text = (remember: string) =>
      minimal(grant(`effect = "allow"\n${BOUNDS}\nabove_taint = "ask"\n${remember}`) + APPROVER);
    expect(await warningsOf(text("remember = true"))).toEqual([`${E + 8}:12 never_remembered`]);
    expect(await warningsOf(text("remember = false"))).toEqual([]);
    expect(await warningsOf(minimal(`${ASK}remember = true\n${APPROVER}`))).toEqual([]);
  });

  it("that is used up for good after some calls", async () => {
    const text = (rest: string) => minimal(grant(`effect = "allow"\n${BOUNDS}\nmax_calls = 3\n${rest}`));
    expect(await warningsOf(text(""))).toEqual([`${E + 7}:13 used_up_for_good`]);
    expect(await warningsOf(text('max_calls_per = "1d"'))).toEqual([]);
    expect(await warningsOf(text("expires = 2099-01-01T00:00:00Z"))).toEqual([]);
  });

  it('whose record = "memory" does not count where it is asked', async () => {
    const text = (rest: string) =>
      minimal(rest + APPROVER).replace('effect = "read"', 'effect = "read"\nrecord = "memory"');
    expect(await warningsOf(text(ASK))).toEqual(["8:10 memory_asked"]);
    expect(await messageOf(text(ASK), "memory_asked")).toContain("(by g)");
    expect(await warningsOf(text(""))).toEqual([]);
  });

  it("that may announce tools and is granted no way to", async () => {
    const text = (rest: string) =>
      minimal(rest).replace('users = ["callgate-files"]', 'users = ["callgate-files"]\nprovides = ["x."]');
    expect(await warningsOf(text(""))).toEqual(["5:12 never_announces"]);
    expect(await warningsOf(text(ANNOUNCES))).toEqual([]);
  });
});
