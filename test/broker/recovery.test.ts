import { describe, expect, it } from "vitest";
import { allow, BASIC, GRANTS, ROLES, TOOLS } from "./configs.ts";
import { Lives } from "./lives.ts";
import type { RigPeer, Served } from "./rig_peer.ts";

const SECRET = { class: "confidential", untrusted: true } as const;
const CLEAN = { class: "public", untrusted: false } as const;

/** Agents whose sessions a frontend opens, each with a taint of its own; a provider that calls in turn. */
const TEAM = `[roles.agent]
users = ["agent"]
sessions = "opened"
taint_scope = "session"
[roles.files]
users = ["callgate-files"]
class_max = "confidential"
[roles.mail]
users = ["callgate-mail"]
provides = ["mail."]
[roles.frontend]
users = ["callgate-frontend"]
[roles.operator]
users = ["operator"]
operator = true
${TOOLS}${GRANTS}
[tools."mail.named"]
role = "mail"
effect = "read"
${allow("opens", "frontend", '["callgate.sessions.*", "callgate.status"]')}
${allow("announces", "mail", '["callgate.tools.announce", "free", "callgate.sessions.show"]')}
${allow("agent-mails", "agent", '["mail.*"]')}
`;
const IN_ROLE_SCOPE = TEAM.replace('taint_scope = "session"', 'taint_scope = "role"');

async function open(lives: Lives, session: string, more: object = {}) {
  const frontend = lives.peer("frontend");
  const args = { role: "agent", session, expires_in_seconds: 60, ...more };
  return lives.ask(frontend, "callgate.sessions.open", args);
}

/** The agent reads something secret with a tool of no store. */
async function taint(lives: Lives, session = "s"): Promise<void> {
  const [agent, files] = [lives.peer("agent"), lives.peer("files")];
  const reply = await lives.ask(agent, "free", {}, session);
  files.take().result("x", SECRET);
  await lives.settle();
  expect(reply.end).toBe("result confidential untrusted x");
}

async function taintOf(lives: Lives, args: object) {
  return (await lives.ask(lives.peer("operator"), "callgate.sessions.show", args)).json["taint"];
}

async function use(lives: Lives, session: string): Promise<string> {
  const reply = await lives.ask(lives.peer("agent"), "callgate.status", {}, session);
  return reply.end.split(" ").slice(0, 2).join(" ");
}

describe("after a restart", () => {
  it("says what was kept", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    await taint(lives, "a");
    await lives.ask(lives.peer("operator"), "callgate.freeze", { role: "mail" });
    await lives.restart(TEAM);
    expect(lives.log[0]).toMatchObject({
      event: "broker.recovered",
      level: "info",
      fields: { sessions: 1, taints: 1, frozen: 1, pins: 0, approvals: 0, unknown_calls: 0 },
    });
  });

  it("an opened session goes on, an ended one stays ended, and no id is used twice", async () => {
    const lives = await Lives.begin(TEAM);
    for (const session of ["open", "closed"]) await open(lives, session);
    await open(lives, "short", { expires_in_seconds: 1 });
    await lives.ask(lives.peer("frontend"), "callgate.sessions.close", { role: "agent", session: "closed" });
    await lives.restart(TEAM);
    const uses = [];
    for (const session of ["open", "closed", "short", "never"]) uses.push(await use(lives, session));
    expect(uses).toEqual([
      "result public",
      "denied grant_expired",
      "denied grant_expired",
      "denied no_grant",
    ]);
    for (const session of ["open", "closed", "short"])
      expect((await open(lives, session)).end).toBe("failed bad_arguments");
  });

  it("a session expires when it was to, however often the broker has died meanwhile", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    for (let i = 0; i < 3; i += 1) {
      await lives.pass(15_000);
      await lives.restart(TEAM);
    }
    expect(await use(lives, "a")).toBe("result public");
    await lives.pass(11_000);
    await lives.restart(TEAM);
    expect(await use(lives, "a")).toBe("denied grant_expired");
  });

  it("the opener's words and their labels are there while the session lives, and nowhere later", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a", { request: "CANARY: my words" });
    await lives.restart(TEAM);
    const show = async () =>
      (await lives.ask(lives.peer("operator"), "callgate.sessions.show", { role: "agent", session: "a" }))
        .json["request"];
    expect(await show()).toBe("CANARY: my words");
    await lives.pass(61_000);
    await lives.restart(TEAM);
    expect(await show()).toBeNull();
  });

  it("neither a fresh session name, nor a restart, nor a role that comes back is a clean slate", async () => {
    const lives = await Lives.begin(BASIC);
    await taint(lives);
    await lives.restart(ROLES.replace(/\[roles\.agent\]\nusers = \["agent"\]\n/, "") + TOOLS);
    await lives.restart(BASIC);
    const agent = lives.peer("agent");
    for (const session of ["s", "fresh"]) {
      const shown = await lives.ask(agent, "callgate.sessions.show", {}, session);
      expect(shown.json["taint"]).toEqual(SECRET);
    }
  });

  it("a session's own taint is its own, with the call that raised it", async () => {
    const lives = await Lives.begin(TEAM);
    for (const session of ["a", "b"]) await open(lives, session);
    await taint(lives, "a");
    await lives.restart(TEAM);
    const shown = await lives.ask(lives.peer("operator"), "callgate.sessions.show", {
      role: "agent",
      session: "a",
    });
    expect(shown.json).toMatchObject({ taint: SECRET, raised_by: { role: "agent", session: "a" } });
    expect(await taintOf(lives, { role: "agent", session: "b" })).toEqual(CLEAN);
  });

  it("in another scope the role is tainted by what its sessions were given, the ended ones too", async () => {
    const lives = await Lives.begin(TEAM);
    for (const session of ["a", "b"]) await open(lives, session);
    await taint(lives, "a");
    await lives.ask(lives.peer("frontend"), "callgate.sessions.close", { role: "agent", session: "a" });
    await lives.restart(IN_ROLE_SCOPE);
    expect(await taintOf(lives, { role: "agent", session: "b" })).toEqual(SECRET);
    await lives.restart(TEAM);
    expect(await taintOf(lives, { role: "agent", session: "b" })).toEqual(CLEAN);
    expect(await taintOf(lives, { role: "agent", session: "a" })).toEqual(SECRET);
  });

  it("a secret written to a file is one when it is read back", async () => {
    const lives = await Lives.begin(BASIC);
    await taint(lives);
    const wrote = await lives.ask(lives.peer("agent"), "write", { path: "/notes", text: "x" });
    const reader = `[roles.reader]\nusers = ["callgate-mail"]\n${allow("reads", "reader", '["read"]')}`;
    await lives.restart(`${BASIC}${reader}`);
    expect(wrote.end).toBe("nothing yet");
    const [other, files] = [lives.peer("reader", { uid: 1004 }), lives.peer("files")];
    const clean = await lives.ask(other, "read", { path: "/other" });
    files.take().result("o");
    await lives.settle();
    const secret = await lives.ask(other, "read", { path: "//notes/" });
    files.take().result("n");
    await lives.settle();
    expect([clean.end, secret.end]).toEqual(["result public o", "result confidential untrusted n"]);
  });

  it("a role that calls in turn carries what it was sent", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    await taint(lives, "a");
    const mail = lives.peer("mail");
    const announced = { tools: [{ name: "mail.named" }] };
    await lives.ask(mail, "callgate.tools.announce", announced);
    await lives.ask(lives.peer("agent"), "mail.named", { text: "CANARY" }, "a");
    expect(mail.requests).toHaveLength(1);
    await lives.restart(TEAM);
    const own = await lives.ask(lives.peer("mail"), "callgate.sessions.show", {}, "own");
    expect(own.json["taint"]).toEqual(SECRET);
    expect(own.json["raised_by"]).toBeNull(); // another role's call is not its to see
  });

  it("what was frozen is frozen: a role, a session, and a session that nobody has used since", async () => {
    const lives = await Lives.begin(BASIC);
    const operator = lives.peer("operator");
    await use(lives, "known");
    for (const session of ["known", "unknown"])
      await lives.ask(operator, "callgate.freeze", { role: "agent", session });
    await lives.ask(operator, "callgate.freeze", { role: "files" });
    await lives.restart(BASIC);
    const uses = [];
    for (const session of ["known", "unknown", "third"]) uses.push(await use(lives, session));
    expect(uses).toEqual(["denied denied_by_grant", "denied denied_by_grant", "result public"]);
    const files = lives.peer("files");
    await lives.settle();
    expect(files.gone).toBe(true);
  });

  it("what was let go on after a freeze goes on", async () => {
    const lives = await Lives.begin(BASIC);
    await lives.ask(lives.peer("operator"), "callgate.freeze", { role: "agent", session: "s" });
    await lives.restart(BASIC);
    const thaw = { role: "agent", session: "s", frozen: false };
    expect((await lives.ask(lives.peer("operator"), "callgate.freeze", thaw)).end).toContain("result");
    await lives.restart(BASIC);
    expect(await use(lives, "s")).toBe("result public");
  });

  it("an endorsement holds, and one that was not written before the crash does not", async () => {
    const lives = await Lives.begin(BASIC);
    await taint(lives);
    const endorse = async () => {
      const operator = lives.peer("operator");
      const shown = await lives.ask(operator, "callgate.sessions.show", { role: "agent", session: "s" });
      return operator.ask("callgate.sessions.endorse", {
        role: "agent",
        version: shown.json["version"],
        ...CLEAN,
        reason: "looked at it",
      });
    };
    await use(lives, "s");
    const lost = await (async () => {
      const operator = lives.peer("operator");
      const shown = await lives.ask(operator, "callgate.sessions.show", { role: "agent", session: "s" });
      lives.store.mode = "held";
      return operator.ask("callgate.sessions.endorse", {
        role: "agent",
        version: shown.json["version"],
        ...CLEAN,
        reason: "looked at it",
      });
    })();
    await lives.settle();
    expect(lost.end).toBe("nothing yet");
    await lives.restart(BASIC);
    await use(lives, "s");
    expect(await taintOf(lives, { role: "agent", session: "s" })).toEqual(SECRET);
    const held = await endorse();
    await lives.settle();
    expect(held.json).toMatchObject({ scope: "role", taint: CLEAN });
    await lives.restart(BASIC);
    await use(lives, "s");
    expect(await taintOf(lives, { role: "agent", session: "s" })).toEqual(CLEAN);
  });

  it("a version that was seen before is not taken: what has happened since is not known", async () => {
    const lives = await Lives.begin(BASIC);
    await taint(lives);
    const show = { role: "agent", session: "s" };
    const seen = await lives.ask(lives.peer("operator"), "callgate.sessions.show", show);
    await lives.restart(BASIC);
    await use(lives, "s");
    const endorsed = await lives.ask(lives.peer("operator"), "callgate.sessions.endorse", {
      role: "agent",
      version: seen.json["version"],
      ...CLEAN,
      reason: "seen yesterday",
    });
    expect(endorsed.end).toBe("failed conflict");
  });
});

describe("pinned definitions after a restart", () => {
  const NAMED = { name: "mail.named", description: "CANARY one" };

  async function announce(lives: Lives, mail: RigPeer, tool: object) {
    const reply = await lives.ask(mail, "callgate.tools.announce", { tools: [tool] });
    return (reply.json["tools"] as { state: string }[]).map(({ state }) => state);
  }

  it("serve as before, and another definition of the name is still out of service", async () => {
    const lives = await Lives.begin(TEAM);
    expect(await announce(lives, lives.peer("mail"), NAMED)).toEqual(["in_service"]);
    await lives.restart(TEAM);
    await open(lives, "a");
    const mail = lives.peer("mail");
    const before = await lives.ask(lives.peer("agent"), "mail.named", {}, "a");
    expect(before.end).toBe("failed no_provider"); // this connection has announced nothing
    expect(await announce(lives, mail, NAMED)).toEqual(["in_service"]);
    await lives.ask(lives.peer("agent"), "mail.named", {}, "a");
    expect(mail.requests).toHaveLength(1);
    expect(await announce(lives, mail, { ...NAMED, description: "CANARY two" })).toEqual(["changed"]);
  });

  it("that can't be read any more leave the tool out of service, and nobody re-pins it by announcing", async () => {
    const lives = await Lives.begin(TEAM);
    const pin = {
      tool: "mail.named",
      role: "mail",
      digest: "0".repeat(64),
      definition: '{"name":"mail.named","schema":{"type":17}}',
      acceptedBy: "[config]",
    };
    lives.kept.commit([{ kind: "pinned", pin, by: { role: "operator", uid: 1 } }], () => undefined);
    await lives.restart(TEAM);
    expect(lives.log[0]).toMatchObject({ level: "warn", fields: { pins_unreadable: ["mail.named"] } });
    await open(lives, "a");
    const mail = lives.peer("mail");
    expect(await announce(lives, mail, NAMED)).toEqual(["changed"]);
    const used = await lives.ask(lives.peer("agent"), "mail.named", {}, "a");
    expect(used.end).toBe("failed no_provider");
  });
});

describe("an announcement that is sent again", () => {
  it("marks the connection that it comes on, though the call was answered before", async () => {
    const lives = await Lives.begin(TEAM);
    await open(lives, "a");
    const tools = { tools: [{ name: "mail.named" }] };
    const first = lives.peer("mail");
    await lives.ask(first, "callgate.tools.announce", tools, "boot", 7n);
    first.reset();
    await lives.settle();
    const second = lives.peer("mail");
    const served: Served[] = [];
    second.serve = (request) => void served.push(request);
    await lives.ask(second, "callgate.tools.announce", tools, "boot", 7n);
    await lives.ask(lives.peer("agent"), "mail.named", {}, "a");
    expect(served).toHaveLength(1);
  });
});
