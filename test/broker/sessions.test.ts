import { describe, expect, it } from "vitest";
import { allow, BASIC, GRANTS, TOOLS } from "./configs.ts";
import { Lives } from "./lives.ts";
import type { Labelled, Reply, RigPeer } from "./rig_peer.ts";

const SECRET = { class: "confidential", untrusted: true } as const;
const CLEAN = { class: "public", untrusted: false } as const;

const TEAM = `[roles.agent]
users = ["agent"]
sessions = "opened"
taint_scope = "session"
[roles.other]
users = ["callgate-mail"]
[roles.files]
users = ["callgate-files"]
class_max = "confidential"
[roles.frontend]
users = ["callgate-frontend"]
[roles.operator]
users = ["operator"]
operator = true
${TOOLS}${GRANTS}
${allow("opens", "frontend", '["callgate.sessions.*"]')}
${allow("others", "other", '["callgate.sessions.*", "callgate.approvals.list", "read"]')}
${allow("files-calls", "files", '["callgate.sessions.*"]')}
`;
const ASKED = `${TEAM}${allow("asks", "agent", '["whole"]').replace('"allow"', '"ask"')}`;

async function open(lives: Lives, session: string, more: object = {}): Promise<Reply> {
  const args = { role: "agent", session, expires_in_seconds: 60, ...more };
  return lives.ask(lives.peer("frontend"), "callgate.sessions.open", args);
}

async function give(lives: Lives, session: string, labels: Labelled = SECRET): Promise<void> {
  const files = lives.peer("files");
  await lives.ask(lives.peer("agent"), "free", {}, session);
  files.take().result("x", labels);
  await lives.settle();
  files.reset();
  await lives.settle();
}

async function show(lives: Lives, args: object): Promise<Readonly<Record<string, unknown>>> {
  return (await lives.ask(lives.peer("operator"), "callgate.sessions.show", args)).json;
}

async function endorse(lives: Lives, args: object, peer: RigPeer = lives.peer("operator")): Promise<Reply> {
  const whole = { ...CLEAN, reason: "read what it read", version: 0, ...args };
  return lives.ask(peer, "callgate.sessions.endorse", whole);
}

const A = { role: "agent", session: "a" };

describe("sessions.list", () => {
  it("shows each caller what it may look at, the latest used first", async () => {
    const lives = await Lives.begin(ASKED);
    for (const session of ["a", "b", "c"]) await open(lives, session);
    lives.peer("files");
    await lives.ask(lives.peer("agent"), "free", {}, "a");
    await lives.pass(1);
    await lives.ask(lives.peer("agent"), "whole", {}, "b");
    await lives.ask(lives.peer("operator"), "callgate.freeze", { role: "agent", session: "c" });
    await lives.ask(lives.peer("other"), "callgate.sessions.show", {}, "own");
    const list = async (role: string, args: object = {}, session = "s") => {
      const reply = await lives.ask(lives.peer(role), "callgate.sessions.list", args, session);
      const { sessions } = reply.json as { sessions: Record<string, unknown>[] };
      return sessions
        .filter((row) => row["role"] !== role)
        .map((row) => `${row["session"]} ${row["state"]} ${row["running"]} ${row["waiting"]}`);
    };
    const ofAgent = ["b open 0 1", "a open 1 0", "c frozen 0 0"];
    expect(await list("operator", { role: "agent" })).toEqual(ofAgent);
    expect(await list("frontend")).toEqual(ofAgent);
    expect(await list("other")).toEqual([]);
    expect(await list("other", { role: "agent" })).toEqual([]);
    expect(await list("operator", { role: "agent", limit: 1 })).toEqual(ofAgent.slice(0, 1));
  });

  it("carries the labels of all sessions that it shows", async () => {
    const lives = await Lives.begin(TEAM);
    for (const session of ["a", "b"]) await open(lives, session);
    await give(lives, "a");
    const listed = await lives.ask(lives.peer("operator"), "callgate.sessions.list", { role: "agent" });
    expect(listed.end).toMatch(/^result confidential untrusted /);
  });
});

describe("sessions.show", () => {
  it("tells a taint's version, which changes with every rise, and the session's watermark", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    const before = await show(lives, A);
    expect(before).toMatchObject({ taint: CLEAN, watermark: null, questions_paused_until_ms: null });
    await give(lives, "a", { class: "internal" });
    const after = await show(lives, A);
    expect(after["version"]).toBeGreaterThan(before["version"] as number);
    await give(lives, "a", { class: "internal" });
    expect((await show(lives, A))["version"]).toBe(after["version"]);
    await lives.pass(86_400_001);
    await open(lives, "b", { expires_in_seconds: 100 });
    await give(lives, "b");
    expect((await show(lives, A))["watermark"]).toMatch(/^[0-9]+$/);
  });

  it("of a store shows operators what was put there, and others nothing", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    await give(lives, "a");
    lives.peer("files");
    await lives.ask(lives.peer("agent"), "write", { path: "/n", text: "x" }, "a");
    const shown = await show(lives, { store: "files" });
    expect(shown).toMatchObject({ taint: SECRET, whole_taint: CLEAN, items_total: 1 });
    expect(shown["items"]).toMatchObject([{ item: "n", taint: SECRET }]);
    const [known, unknown] = [
      await lives.ask(lives.peer("frontend"), "callgate.sessions.show", { store: "files" }),
      await lives.ask(lives.peer("frontend"), "callgate.sessions.show", { store: "nothing" }),
    ];
    expect([known.end, known.sentence]).toEqual(["failed bad_arguments", unknown.sentence]);
  });
});

describe("sessions.endorse", () => {
  it("lowers a session's taint to what the operator says, and what flows in later raises it again", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    await give(lives, "a");
    const { version } = await show(lives, A);
    const endorsed = await endorse(lives, { ...A, version });
    expect(endorsed.json).toMatchObject({ scope: "session", taint: CLEAN, remaining: 0 });
    expect(await show(lives, A)).toMatchObject({ taint: CLEAN, version: endorsed.json["version"] });
    await give(lives, "a");
    expect((await show(lives, A))["taint"]).toEqual(SECRET);
    const [change] = lives.store.written.filter(({ kind }) => kind === "endorsed");
    expect(change).toMatchObject({ before: SECRET, labels: CLEAN, reason: "read what it read" });
    expect(lives.log.filter(({ event }) => event === "taint.endorsed")).toHaveLength(1);
  });

  it("says that it is the role's taint that it lowers, where the scope is the role's", async () => {
    const lives = await Lives.begin(TEAM.replace('taint_scope = "session"', 'taint_scope = "role"'));
    for (const session of ["a", "b"]) await open(lives, session);
    await give(lives, "a");
    const { version } = await show(lives, A);
    expect((await endorse(lives, { ...A, version })).json).toMatchObject({ scope: "role", taint: CLEAN });
    expect((await show(lives, { role: "agent", session: "b" }))["taint"]).toEqual(CLEAN);
  });

  it("lowers an item of a store, so that what is read from there is what its writer was", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    await give(lives, "a");
    const files = lives.peer("files");
    await lives.ask(lives.peer("agent"), "write", { path: "/n", text: "x" }, "a");
    files.take().result("ok");
    await lives.settle();
    const item = { store: "files", item: "/n" };
    const { version } = await show(lives, item);
    const lowered = await endorse(lives, { role: "files", ...item, version });
    expect(lowered.json).toMatchObject({ scope: "store", taint: CLEAN });
    const read = await lives.ask(lives.peer("other"), "read", { path: "n" });
    files.take().result("n");
    await lives.settle();
    expect(read.end).toBe("result public n");
  });

  it("is an operator's alone, never of its own role or user, and tells others nothing", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    await give(lives, "a");
    const { version } = await show(lives, A);
    const asFiles = lives.peer("files");
    const replies = [
      await endorse(lives, { ...A, version }, asFiles),
      await endorse(lives, { ...A, role: "nobody", version }, asFiles),
      await endorse(lives, { role: "files", version }, asFiles),
      await endorse(lives, { role: "operator", version }),
      await endorse(lives, { role: "other", store: "files", version }),
      await endorse(lives, { ...A, session: "nothing", version }),
      await endorse(lives, { ...A, version, reason: "  " }),
      await endorse(lives, { ...A, version, class: "restricted" }),
    ];
    expect(new Set(replies.map(({ end }) => end))).toEqual(new Set(["failed bad_arguments"]));
    expect(replies[0]?.sentence).toBe(replies[1]?.sentence);
    expect((await endorse(lives, { ...A, version: (version as number) - 1 })).end).toBe("failed conflict");
    expect((await show(lives, A))["taint"]).toEqual(SECRET);
  });

  it("by a user who may connect as that role too is refused, unless the owner allows it", async () => {
    const shared = TEAM.replace('users = ["operator"]', 'users = ["operator", "agent"]');
    for (const [toml, end] of [
      [shared, "failed bad_arguments"],
      [`allow_same_user = true\n${shared}`, "result public"],
    ] as const) {
      const lives = await Lives.begin(toml);
      await open(lives, "a");
      await give(lives, "a");
      const { version } = await show(lives, A);
      const reply = await endorse(lives, { ...A, version }, lives.peer("operator", { uid: 1001 }));
      expect(reply.end.split(" ").slice(0, 2).join(" ")).toBe(end);
    }
  });

  it.each([
    ["that was written first", 1, SECRET],
    ["that is written with it", 2, SECRET],
  ])("loses against what is delivered meanwhile: a rise %s stays", async (_, releases, taint) => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    await give(lives, "a");
    const { version } = await show(lives, A);
    const files = lives.peer("files");
    await lives.ask(lives.peer("agent"), "free", {}, "a");
    const operator = lives.peer("operator");
    lives.store.mode = "held";
    const endorsed = operator.ask("callgate.sessions.endorse", {
      ...A,
      version,
      ...CLEAN,
      reason: "in a hurry",
    });
    await lives.settle();
    lives.store.release(1); // its intent: now the endorsement itself is being written
    await lives.settle();
    files.take().result("x", SECRET);
    await lives.settle();
    lives.store.release(releases);
    await lives.settle();
    lives.store.mode = "at_once";
    lives.store.release();
    await lives.settle();
    expect(endorsed.end).toContain("result public");
    expect((await show(lives, A))["taint"]).toEqual(taint);
    const kept = [...lives.kept.load().taints].find(({ scope }) => scope.of === "session");
    expect(kept?.labels).toEqual(SECRET);
  });
});

describe("a session that is closed", () => {
  it("ends its questions and what runs in it at once, and no approval releases them", async () => {
    const lives = await Lives.begin(ASKED);
    await open(lives, "a");
    const agent = lives.peer("agent");
    const files = lives.peer("files");
    const [waiting, running] = [
      await lives.ask(agent, "whole", {}, "a"),
      await lives.ask(agent, "free", {}, "a"),
    ];
    expect([waiting.seen, files.requests.length]).toEqual([["part: pending_approval"], 1]);
    const closed = await lives.ask(lives.peer("frontend"), "callgate.sessions.close", A);
    expect(closed.json).toMatchObject({ state: "closed", stopped: { calls: 2 } });
    expect([waiting.end, running.end]).toEqual(["failed cancelled", "failed cancelled"]);
    const pending = await lives.ask(lives.peer("operator"), "callgate.approvals.list");
    expect(pending.json["approvals"]).toEqual([]);
    await lives.restart(ASKED);
    expect(lives.log[0]?.fields["approvals"]).toBe(0);
  });

  it("of a role that names its own is not used again either, nor after a restart and a day of idling", async () => {
    const lives = await Lives.begin(BASIC);
    await lives.ask(lives.peer("agent"), "callgate.sessions.close", { session: "mine" }, "mine");
    const use = async () => (await lives.ask(lives.peer("agent"), "callgate.status", {}, "mine")).end;
    expect(await use()).toBe("denied grant_expired");
    await lives.restart(BASIC);
    await lives.pass(86_400_001);
    expect(await use()).toBe("denied grant_expired");
  });

  it("makes room for others, and is known for good: endless opening and closing reuses no id", async () => {
    const lives = await Lives.begin(`${TEAM}[roles.agent.limits]\nsessions = 2\n`);
    const frontend = lives.peer("frontend");
    for (let i = 0; i < 1030; i += 1) {
      const session = `s${i}`;
      frontend.ask("callgate.sessions.open", { role: "agent", session, expires_in_seconds: 60 });
      frontend.ask("callgate.sessions.close", { role: "agent", session });
    }
    await lives.settle();
    for (const session of ["s0", "s1029"])
      expect((await open(lives, session)).end).toBe("failed bad_arguments");
    const used = await lives.ask(lives.peer("agent"), "callgate.status", {}, "s0");
    expect(used.end).toBe("denied grant_expired");
    expect((await open(lives, "fresh")).end).toContain("result public");
  });
});

describe("a secret that was put into a pending call", () => {
  it("keeps its labels where the question is listed", async () => {
    const lives = await Lives.begin(ASKED);
    await open(lives, "a");
    await give(lives, "a");
    lives.peer("files");
    await lives.ask(lives.peer("agent"), "whole", { text: "SECRET" }, "a");
    const listed = await lives.ask(lives.peer("operator"), "callgate.approvals.list");
    expect(listed.end).toMatch(/^result confidential untrusted /);
    const others = await lives.ask(lives.peer("other"), "callgate.approvals.list");
    expect(others.json["approvals"]).toEqual([]);
  });
});

describe("freeze", () => {
  it("ends the questions of a session, and lets its calls be asked afresh only once it goes on", async () => {
    const lives = await Lives.begin(ASKED);
    await open(lives, "a");
    const agent = lives.peer("agent");
    lives.peer("files");
    const waiting = await lives.ask(agent, "whole", {}, "a");
    const frozen = await lives.ask(lives.peer("operator"), "callgate.freeze", A);
    expect(frozen.json).toMatchObject({ stopped: { calls: 1 } });
    expect(waiting.end).toBe("failed cancelled");
    await lives.restart(ASKED);
    expect(lives.log[0]?.fields["approvals"]).toBe(0);
    const asked = await lives.ask(lives.peer("agent"), "whole", {}, "a");
    expect(asked.end).toBe("denied denied_by_grant");
  });
});
