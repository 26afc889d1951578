import { afterEach, describe, expect, it } from "vitest";
import { fitted } from "../../src/cli/text_table.ts";
import { AnsweringBroker, type Answers, at, Desk, NOW_MS } from "./desk.ts";

// How the answers of the operators' tools read.

let broker: AnsweringBroker | undefined;
afterEach(() => broker?.remove());

const ATTACK = "\u001b[2J\u202e\nfake line";
const LABELS = { class: "internal", untrusted: true };

async function ran(answers: Answers, words: readonly string[], types?: readonly (string | undefined)[]) {
  broker = await AnsweringBroker.start(answers);
  const desk = new Desk(types);
  const status = await at(desk, broker, ...words);
  return { desk, status, asked: broker.asked };
}

describe("callgate calls", () => {
  const call = {
    role: "agent",
    session: "one",
    call: "18446744073709551615",
    tool: "send_mail",
    state: "ended",
    status: "failed",
    code: "timeout",
    asked_at_ms: NOW_MS - 60_000,
    ended_at_ms: NOW_MS - 59_500,
  };
  const unknown = { ...call, call: "2", state: "unknown", status: null, code: null, ended_at_ms: null };

  it("list shows how calls ended, and how to settle those of which nobody knows", async () => {
    const { desk } = await ran({ "calls.list": { calls: [call, unknown] } }, ["calls", "list"]);
    expect(desk.out_).toMatch(
      /^agent {2}one {6}18446744073709551615 {2}send_mail {2}failed timeout {2}500 ms {2}2026-/m,
    );
    expect(desk.out_).toMatch(/^agent {2}one {6}2 {21}send_mail {2}unknown {9}1 min {3}2026-/m);
    expect(desk.out_).toContain("callgate calls settle CALL --role ROLE --of SESSION");
    expect(desk.out_).not.toContain("older calls");
  });

  it("list says where it did not look at all calls", async () => {
    const { desk } = await ran({ "calls.list": { calls: [], all_seen: false } }, ["calls", "list"]);
    expect(desk.out_).toBe("no such calls\nolder calls were not looked at: narrow it with --role or --of\n");
  });

  it("show has the exact arguments, the decision and the messages, escaped and folded until --full", async () => {
    const content = {
      ...call,
      uid: 0,
      labels: LABELS,
      arguments: `{"n":1.0,"text":${JSON.stringify(ATTACK)}}`,
      messages: [`{"body":{"message":${JSON.stringify(`${ATTACK}${"x".repeat(900)}`)}}}`],
      decision: { row: "allow", grant: "g", reason: ATTACK },
    };
    const words = ["calls", "show", call.call, "--role", "agent", "--of", "one"];
    const { desk, asked } = await ran({ "calls.show": content }, words);
    expect(asked[0]?.args).toEqual({ call: call.call, session: "one", role: "agent" });
    expect(desk.out_).toContain('  "n": 1.0,\n');
    expect(desk.out_).toContain("characters hidden");
    expect(desk.out_).not.toMatch(/(?!\n)\p{C}/u);
    expect(desk.out_).not.toMatch(/^fake line/m);
    await broker?.remove();
    const full = await ran({ "calls.show": content }, [...words, "--full"]);
    expect(full.desk.out_).not.toContain("hidden");
  });

  it("show says where the decision is of a call that is not kept, since it was denied", async () => {
    const gone = { status: "failed", code: "bad_arguments", message: "No such call is kept." };
    const { desk, status } = await ran({ "calls.show": () => gone }, ["calls", "show", "7"]);
    expect(status).toBe(4);
    expect(desk.err_).toContain("callgate calls why CALL");
  });

  it("show takes no id that is none", async () => {
    const { status, asked } = await ran({}, ["calls", "show", "x"]);
    expect([status, asked]).toEqual([2, []]);
  });

  it("settle sends what was found, and says what follows from it", async () => {
    const words = ["calls", "settle", "2", "--role", "agent", "--of", "one", "--as", "result"];
    const more = ["--text", "Sent at 14:05.", "--class", "internal", "--trusted"];
    const { desk, asked } = await ran({ "calls.settle": { settled: true } }, [...words, ...more]);
    expect(asked[0]?.args).toEqual({
      call: "2",
      session: "one",
      role: "agent",
      as: "result",
      text: "Sent at 14:05.",
      class: "internal",
      untrusted: false,
    });
    expect(desk.out_).toContain("it was not run again");
  });
});

describe("callgate tools list", () => {
  const tool = { name: "mail.send", description: ATTACK, effect: "send", in_service: true, schema: {} };

  it("is a table, escaped, and says what waits for a look; schemas are left to --json", async () => {
    const announced = { name: "mail.drop", in_service: false, announced: true, definition: "waiting" };
    const { desk } = await ran({ "tools.list": { tools: [announced, tool] } }, ["tools", "list"]);
    expect(desk.out_.split("\n")).toEqual([
      "TOOL       EFFECT  IN SERVICE  DEFINITION  DESCRIPTION",
      "mail.drop  -       no          waiting     -",
      "mail.send  send    yes         -           \\u{1b}[2J\\u{202e}\\nfake line",
      "1 definition to look at: callgate tools diff TOOL (or PREFIX.*)",
      "",
    ]);
  });

  it("says so where there is none", async () => {
    const { desk } = await ran({ "tools.list": { tools: [] } }, ["tools", "list"]);
    expect(desk.out_).toBe("no such tools\n");
  });
});

describe("callgate sessions", () => {
  const session = {
    role: "bot",
    session: "chat-1",
    state: "open",
    taint: LABELS,
    running: 1,
    waiting: 0,
    opened_by: "front",
    expires_at_ms: NOW_MS + 60_000,
    last_used_at_ms: NOW_MS - 1000,
    version: 41,
    raised_by: { role: "bot", session: "chat-1", call: "7" },
    request: ATTACK,
    watermark: "6",
    taint_scope: "session",
    role_taint: { taint: { class: "public", untrusted: false }, version: 3, raised_by: null },
    questions_paused_until_ms: NOW_MS + 1_800_000,
  };
  const endorsed = { scope: "session", taint: { class: "public", untrusted: false }, version: 42 };
  const lower = ["sessions", "endorse", "chat-1", "--role", "bot", "--class", "public", "--reason", "looked"];

  it("list shows taint and load", async () => {
    const { desk } = await ran({ "sessions.list": { sessions: [session] } }, ["sessions", "list"]);
    expect(desk.out_).toMatch(
      /^bot {3}chat-1 {3}open {3}internal, untrusted {2}1 {8}0 {8}front {6}2026-.*\(1 s ago\)/m,
    );
  });

  it("show has what raised the taint, its version and what stands in the way of questions", async () => {
    const { desk } = await ran({ "sessions.show": session }, ["sessions", "show", "chat-1", "--role", "bot"]);
    expect(desk.out_).toMatch(/^taint +internal, untrusted \(version 41\)$/m);
    expect(desk.out_).toMatch(/^raised by +bot, session chat-1, call 7$/m);
    expect(desk.out_).toMatch(/^role's taint +public, trusted \(version 3\), below which/m);
    expect(desk.out_).toMatch(/^oldest calls +ids up to 6 are never run again$/m);
    expect(desk.out_).toMatch(/^questions +paused until .*\(in 30 min\): too many were refused$/m);
    expect(desk.out_).toMatch(/^request +\\u\{1b\}\[2J\\u\{202e\}\\nfake line$/m);
  });

  it("endorse shows the taint, asks, and names the version that was shown", async () => {
    const answers = { "sessions.show": session, "sessions.endorse": endorsed };
    const { desk, status, asked } = await ran(answers, [...lower, "--trusted"], ["yes"]);
    expect(status).toBe(0);
    expect(desk.questions[0]).toContain("it counts as public, trusted");
    expect(asked[1]?.args).toEqual({
      role: "bot",
      session: "chat-1",
      version: 41,
      class: "public",
      untrusted: false,
      reason: "looked",
    });
    expect(desk.out_).toContain("endorsed  the session's taint is now public, trusted (version 42)\n");
  });

  it("endorse changes nothing without a yes", async () => {
    const answers = { "sessions.show": session, "sessions.endorse": endorsed };
    const { desk, status, asked } = await ran(answers, [...lower, "--trusted"], [undefined]);
    expect(status).toBe(4);
    expect(desk.err_).toContain("nothing was changed\n");
    expect(asked.map(({ tool }) => tool)).toEqual(["sessions.show"]);
  });

  it.each([
    ["nothing said of trust", []],
    ["both said of trust", ["--trusted", "--untrusted"]],
    ["no version and nobody to ask", ["--trusted"]],
    ["a version that is none", ["--trusted", "--version", "new"]],
  ])("endorse takes %s as wrong use", async (_, more) => {
    const { status, asked } = await ran({ "sessions.endorse": endorsed }, [...lower, ...more]);
    expect([status, asked]).toEqual([2, []]);
  });

  it("endorse with a version asks nobody", async () => {
    const { status, asked } = await ran({ "sessions.endorse": endorsed }, [
      ...lower,
      "--untrusted",
      "--version",
      "1839150677169156",
    ]);
    expect(status).toBe(0);
    expect(asked[0]?.args).toMatchObject({ version: 1_839_150_677_169_156, untrusted: true });
  });
});

describe("callgate grants", () => {
  const grant = {
    id: "remembered.1",
    role: "agent",
    effect: "allow",
    tools: ["send_mail"],
    sessions: ["one"],
    when: ATTACK,
    taint_max: "internal",
    taint_untrusted: false,
    above_taint: "ask",
    expires_at_ms: NOW_MS + 3_600_000,
    expired: false,
    reason: ATTACK,
    runtime: true,
    by: { role: "operator", uid: 0 },
    added_at_ms: NOW_MS - 60_000,
    max_calls: { calls: 5, per_ms: 3_600_000, used: 2, since_ms: NOW_MS },
    remembers: "mail-asks",
    exact_arguments: true,
  };

  it("list shows bounds, use, end and origin of each, escaped", async () => {
    const { desk } = await ran({ "grants.list": { grants: [grant] } }, ["grants", "list"]);
    const [head, below, when, reason] = desk.out_.split("\n");
    expect(head).toBe("remembered.1  allow  agent: send_mail");
    expect(below).toMatch(
      /^ {4}sessions one; taint up to internal, trusted, above that a person is asked; used 2 of 5 per 1 h; expires .* \(in 1 h\); remembers an answer to mail-asks about those very arguments, given by operator, root \(uid 0\), .* \(1 min ago\)$/,
    );
    expect(when).toBe("    when \\u{1b}[2J\\u{202e}\\nfake line");
    expect(reason).toBe("    reason: \\u{1b}[2J\\u{202e}\\nfake line");
  });

  it("add sends what was written, and nothing that was not", async () => {
    const words = [
      "grants",
      "add",
      "agent",
      "send_mail,read_*",
      "--effect",
      "allow",
      "--reason",
      "for today",
    ];
    const more = ["--class", "internal", "--trusted", "--expires", "1h", "--max-calls", "5"];
    const { desk, asked } = await ran(
      { "grants.add": { grant: "runtime.1", expires_at_ms: NOW_MS + 3_600_000 } },
      [...words, ...more],
    );
    expect(asked[0]?.args).toEqual({
      role: "agent",
      tools: ["send_mail", "read_*"],
      effect: "allow",
      taint_max: "internal",
      taint_untrusted: false,
      expires_in_seconds: 3600,
      max_calls: 5,
      reason: "for today",
    });
    expect(desk.out_).toMatch(/^added grant runtime\.1, until .* \(in 1 h\)\n$/);
  });

  it("revoke takes one back", async () => {
    const { desk, asked } = await ran({ "grants.revoke": { grant: "runtime.1", revoked: true } }, [
      "grants",
      "revoke",
      "runtime.1",
    ]);
    expect(asked[0]?.args).toEqual({ grant: "runtime.1" });
    expect(desk.out_).toBe("revoked grant runtime.1\n");
  });
});

describe("callgate status", () => {
  const status = {
    role: "operator",
    draining: false,
    policy: "ab".repeat(32),
    version: "1.2.3",
    policy_stale: true,
    policy_stale_because: `line 3: ${ATTACK}`,
    uptime_ms: 7_500_000,
    running_calls: 2,
    pending_approvals: 3,
    unknown_calls: 1,
    store: { condition: "failing" },
    audit: { seq: "12" },
    tools: 1,
    grants: 2,
    roles: [
      {
        role: "agent",
        connections: 1,
        asking: 2,
        serving: 0,
        frozen: true,
        frozen_sessions: 0,
        taint: LABELS,
      },
    ],
    warning: "allow_same_user: …",
  };

  it("says what is wrong first, then what waits for somebody", async () => {
    const { desk } = await ran({ status }, ["status"]);
    const lines = desk.out_.split("\n");
    expect(lines[0]).toMatch(/^WARNING: the store can't be written/);
    expect(lines[1]).toMatch(/^WARNING: the config was changed and refused, .*: line 3: \\u\{1b\}\[2J/);
    expect(lines.slice(2, 4)).toEqual(["WARNING: allow_same_user: …", "WARNING: frozen: agent"]);
    expect(desk.out_).toMatch(/^questions +3 wait for an answer \(callgate approvals list\)$/m);
    expect(desk.out_).toMatch(
      /^unknown +1 call with an unknown outcome \(callgate calls list --state unknown\)$/m,
    );
    expect(desk.out_).toMatch(/^version +1\.2\.3$/m);
    expect(desk.out_).toMatch(/^policy +abababababab, 1 tool, 2 grants, STALE$/m);
    expect(desk.out_).toMatch(/^agent +1 +2 +0 +internal, untrusted, FROZEN$/m);
  });

  it("shows a role that is no operator what it may see", async () => {
    const { role, draining, policy, uptime_ms } = status;
    const own = { role, draining, policy, policy_stale: false, uptime_ms };
    const { desk } = await ran({ status: own }, ["status"]);
    expect(desk.out_).toBe("as role  operator\nup       2 h 5 min\npolicy   abababababab, in force\n");
  });
});

describe("lines on a terminal", () => {
  it("that go on are marked, so that no padded text passes for a line of ours", () => {
    const spoof = `${"x".repeat(40)}  destinations  to = "me"`;
    const lines = fitted(`  text  ${spoof}\nnext`, 48).split("\n");
    expect(lines).toEqual([`  text  ${"x".repeat(40)}`, '  ┆   destinations  to = "me"', "next"]);
  });

  it("never are wider than it, whatever a character takes", () => {
    const text = "😀漢a\u0301".repeat(100);
    const pieces = fitted(text, 30).split("\n");
    expect(pieces.join("").replaceAll("  ┆ ", "")).toBe(text);
    const columns = (line: string) => [...line].reduce((sum, one) => sum + (one < "\u1100" ? 1 : 2), 0);
    expect(Math.max(...pieces.map(columns))).toBeLessThanOrEqual(31); // the mark is counted as wide here
  });

  it("stay whole where nobody knows its width", () => {
    expect(fitted("x".repeat(5000), undefined)).toHaveLength(5000);
  });
});
