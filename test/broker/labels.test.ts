import { describe, expect, it } from "vitest";
import type { Labels } from "../../src/base/labels.ts";
import { allow, BASIC, GRANTS, ROLES, TOOLS } from "./configs.ts";
import { type Rig, withRig } from "./rig.ts";
import type { Labelled, RigPeer } from "./rig_peer.ts";

async function run(
  rig: Rig,
  agent: RigPeer,
  files: RigPeer,
  tool: string,
  args: object,
  labels: Labelled = {},
  session = "s",
) {
  const reply = agent.ask(tool, args, { session });
  await rig.settle();
  files.take().result("x", labels);
  await rig.settle();
  return reply.end;
}

async function taintOf(rig: Rig, peer: RigPeer, args: object = {}, session = "s") {
  const reply = peer.ask("callgate.sessions.show", args, { session });
  await rig.settle();
  return reply.json["taint"] as Labels;
}

const SECRET: Labelled = { class: "confidential", untrusted: true };

describe("labels of results", () => {
  it.each<[string, string, Labelled, string]>([
    ["a floor lifts what is below it", "floor", {}, "result internal untrusted x"],
    [
      "a floor does not lower what is above it",
      "floor",
      { class: "confidential" },
      "result confidential untrusted x",
    ],
    ["without a floor they are the provider's", "free", { class: "internal" }, "result internal x"],
  ])("%s", (_, tool, labels, expected) =>
    withRig(BASIC, async (rig) => {
      expect(await run(rig, rig.peer("agent"), rig.peer("files"), tool, {}, labels)).toBe(expected);
    }),
  );

  it("a floor that a reload raised holds for the calls that are running", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = agent.ask("free");
      await rig.settle();
      await rig.reloadWith(BASIC.replace("[tools.free]", '[tools.free]\nclass = "confidential"'));
      files.take().result("x");
      await rig.settle();
      expect(reply.end).toBe("result confidential x");
    }));
});

describe("a taint is written before what raised it is delivered", () => {
  it("neither a part nor the end is out while it is not", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = agent.ask("free");
      await rig.settle();
      rig.store.mode = "held";
      const request = files.take();
      request.part("1", SECRET);
      request.result("2");
      await rig.settle();
      expect(reply.seen).toEqual([]);
      rig.store.release(1);
      await rig.settle();
      expect(reply.seen).toEqual(["part: result confidential untrusted 1"]);
      await rig.releaseAll();
      expect(reply.finals).toBe(1);
      const kinds = rig.store.written.map(({ kind }) => kind);
      expect(kinds.indexOf("taint")).toBeLessThan(kinds.indexOf("message"));
    }));

  it("a rise whose write failed is written with the next delivery, though memory knew it", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const [first, second] = [agent.ask("free"), agent.ask("free")];
      await rig.settle();
      rig.store.mode = "full";
      files.take().result("1", SECRET);
      await rig.settle();
      rig.store.mode = "at_once";
      files.take().result("2", SECRET);
      await rig.settle();
      expect([first.end, second.end]).toEqual(["failed outcome_unknown", "result confidential untrusted 2"]);
      expect(rig.store.written.filter(({ kind }) => kind === "taint")).toMatchObject([{ labels: SECRET }]);
    }));

  it("what a built-in shows waits for it too", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      await run(rig, agent, files, "free", {}, SECRET);
      rig.store.mode = "held";
      const shown = operator.ask("callgate.sessions.show", { role: "agent", session: "s" });
      await rig.settle();
      expect(shown.seen).toEqual([]);
      rig.store.refuse();
      await rig.settle();
      expect(shown.end).toBe("failed unavailable");
    }));
});

describe("a clean slate", () => {
  it("is not had by a fresh session, a new connection or a second process", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await run(rig, agent, files, "free", {}, SECRET);
      const others = [agent, rig.peer("agent"), rig.peer("agent", { pid: 4711 })];
      for (const peer of others) expect(await taintOf(rig, peer, {}, "fresh")).toEqual(SECRET);
    }));

  it("is had only in a session that a trusted role opened, where the scope is the session", () =>
    withRig(OPENED, async (rig) => {
      const [frontend, agent, files] = [rig.peer("frontend"), rig.peer("agent"), rig.peer("files")];
      await openSessions(rig, frontend, "a", "b");
      await run(rig, agent, files, "free", {}, SECRET, "a");
      expect(await taintOf(rig, agent, {}, "a")).toEqual(SECRET);
      expect(await taintOf(rig, agent, {}, "b")).toEqual({ class: "public", untrusted: false });
    }));
});

const OPENED = `${ROLES.replace('users = ["agent"]', 'users = ["agent"]\nsessions = "opened"\ntaint_scope = "session"')}
[roles.frontend]
users = ["callgate-frontend"]
${TOOLS}${GRANTS}
${allow("frontend-opens", "frontend", '["callgate.sessions.*"]')}`;

async function openSessions(rig: Rig, frontend: RigPeer, ...sessions: string[]): Promise<void> {
  for (const session of sessions) {
    const reply = frontend.ask("callgate.sessions.open", { role: "agent", session, expires_in_seconds: 100 });
    await rig.settle();
    expect(reply.end).toContain("result public");
  }
}

describe("stores", () => {
  const a = { path: "/srv/a" };
  it.each<[string, object, object | undefined, string]>([
    ["what was put into an item comes out of it", a, a, "result confidential untrusted x"],
    ["another item is as clean as it was", a, { path: "/srv/b" }, "result public x"],
    ["another spelling is the same item", a, { path: "/srv//./a" }, "result confidential untrusted x"],
    ["capitals are the same item", a, { path: "/SRV/A" }, "result confidential untrusted x"],
    ["a relative spelling is the same item", a, { path: "srv/a" }, "result confidential untrusted x"],
    [
      "a spelling that can't be judged may be any item",
      a,
      { path: "/srv/b/../a" },
      "result confidential untrusted x",
    ],
    ["an escaped spelling may be any item", a, { path: "/srv/%61" }, "result confidential untrusted x"],
    ["no item named may be any item", a, {}, "result confidential untrusted x"],
    [
      "what was put nowhere in particular is everywhere",
      {},
      { path: "/srv/b" },
      "result confidential untrusted x",
    ],
    ["a tool that reads all of it", a, undefined, "result confidential untrusted x"],
  ])("%s", (_, put, got, expected) =>
    withRig(OPENED, async (rig) => {
      const [frontend, agent, files] = [rig.peer("frontend"), rig.peer("agent"), rig.peer("files")];
      await openSessions(rig, frontend, "dirty", "clean");
      await run(rig, agent, files, "free", {}, SECRET, "dirty");
      await run(rig, agent, files, "write", put, {}, "dirty");
      const end =
        got === undefined
          ? await run(rig, agent, files, "search", {}, {}, "clean")
          : await run(rig, agent, files, "read", got, {}, "clean");
      expect(end).toBe(expected);
    }),
  );

  it("a read puts nothing in, and store = false keeps nothing", () =>
    withRig(OPENED, async (rig) => {
      const [frontend, agent, files] = [rig.peer("frontend"), rig.peer("agent"), rig.peer("files")];
      await openSessions(rig, frontend, "dirty", "clean");
      await run(rig, agent, files, "free", {}, SECRET, "dirty");
      await run(rig, agent, files, "read", a, {}, "dirty");
      await run(rig, agent, files, "whole", {}, {}, "dirty");
      expect(await run(rig, agent, files, "search", {}, {}, "clean")).toBe("result public x");
    }));

  it("the provider is tainted as a caller before it is asked", () =>
    withRig(`${BASIC}${allow("files-too", "files", '["free", "callgate.sessions.show"]')}`, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await run(rig, agent, files, "free", {}, SECRET);
      expect(await taintOf(rig, files)).toEqual({ class: "public", untrusted: false });
      rig.store.mode = "held";
      agent.ask("free");
      await rig.settle();
      expect(files.requests).toEqual([]);
      await rig.releaseAll();
      expect(files.requests).toHaveLength(1);
      rig.store.mode = "at_once";
      expect(await taintOf(rig, files)).toEqual(SECRET);
    }));
});

describe("taint and policy", () => {
  const guarded = `${ROLES}${TOOLS}[[grants]]
id = "reads"
role = "agent"
tools = ["free", "callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "writes"
role = "agent"
tools = ["write"]
effect = "allow"
taint_max = "internal"
taint_untrusted = false
`;
  it("a session that read too much is denied what its grant allows only to a clean one", () =>
    withRig(guarded, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      expect(await run(rig, agent, files, "write", {})).toBe("result public x");
      await run(rig, agent, files, "free", {}, SECRET);
      const denied = agent.ask("write");
      await rig.settle();
      expect(denied.end).toBe("denied taint_too_high");
    }));

  it("a change of scope, there and back, never lowers it", () =>
    withRig(OPENED, async (rig) => {
      const [frontend, agent, files] = [rig.peer("frontend"), rig.peer("agent"), rig.peer("files")];
      await openSessions(rig, frontend, "a", "b");
      await run(rig, agent, files, "free", {}, SECRET, "a");
      await rig.reloadWith(OPENED.replace('taint_scope = "session"', 'taint_scope = "role"'));
      expect(await taintOf(rig, agent, {}, "b")).toEqual(SECRET);
      await rig.reloadWith(OPENED);
      for (const session of ["a", "b"]) expect(await taintOf(rig, agent, {}, session)).toEqual(SECRET);
    }));

  it("a name that the caller chose before a reload is no session that was opened for it", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await run(rig, agent, files, "free", {}, {}, "mine");
      await rig.reloadWith(OPENED);
      const reply = agent.ask("free", {}, { session: "mine" });
      await rig.settle();
      expect(reply.end).toBe("denied no_grant");
    }));
});
