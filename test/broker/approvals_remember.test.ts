// What a remembered approval covers, and what it does not; and watching.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, askGrant, PAYMENT, put, type Shown } from "./approvals_rig.ts";
import { allow } from "./configs.ts";
import { type Rig, withRig } from "./rig.ts";
import type { RigPeer } from "./rig_peer.ts";

async function approveOnce(
  rig: Rig,
  agent: RigPeer,
  files: RigPeer,
  wish: object,
  tool = "write",
): Promise<Shown> {
  const operator = new Approver(rig);
  await put(rig, agent, tool, { path: "a" });
  const shown = await operator.look();
  const approved = await operator.approve(shown, { remember: wish });
  expect(approved.json["remembered"]).toMatch(/^remembered\.[0-9a-f]+$/);
  files.take().result("ok");
  await rig.settle();
  return shown;
}

/** What becomes of one more call: it runs, or is asked. */
async function next(
  rig: Rig,
  peer: RigPeer,
  files: RigPeer,
  tool: string,
  args: object,
  session = "s",
): Promise<string> {
  const reply = await put(rig, peer, tool, args, { session });
  if (files.requests.length === 0) return reply.seen[0] ?? "nothing";
  files.take().result("ok");
  await rig.settle();
  return "ran";
}

const ASKED = "part: pending_approval";

describe("an approval that is remembered", () => {
  it("for exactly these arguments covers every spelling of them, in every session, and nothing else", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const shown = await approveOnce(rig, agent, files, { what: "arguments", seconds: 3600 });
      expect((shown["remember"] as { arguments: { covers: string } }).arguments.covers).toBe(
        "write with exactly these arguments, for role agent in every session, while its taint is at most public, nothing untrusted",
      );
      expect(await next(rig, agent, files, "write", { path: "a" })).toBe("ran");
      expect(await next(rig, agent, files, "write", { path: "a" }, "t")).toBe("ran");
      expect(await next(rig, agent, files, "write", { path: "b" })).toBe(ASKED);
      expect(await next(rig, agent, files, "write", { path: "a", text: "x" })).toBe(ASKED);
    }));

  it("for the tool covers any arguments in its session only, and no other tool", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await approveOnce(rig, agent, files, { what: "tool", seconds: 3600 });
      expect(await next(rig, agent, files, "write", { path: "b" })).toBe("ran");
      expect(await next(rig, agent, files, "write", { path: "b" }, "t")).toBe(ASKED);
      expect(await next(rig, agent, files, "pay", PAYMENT)).toBe(ASKED);
    }));

  it("never serves another role", () =>
    withRig(`${ASKING}${askGrant("other-writes", "other", '["write"]')}`, async (rig) => {
      const [agent, other, files] = [rig.peer("agent"), rig.peer("other"), rig.peer("files")];
      await approveOnce(rig, agent, files, { what: "arguments", seconds: 3600 });
      expect(await next(rig, other, files, "write", { path: "a" })).toBe(ASKED);
    }));

  it("ends with its time and with its number", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await approveOnce(rig, agent, files, { what: "arguments", seconds: 3600, calls: 2 });
      const first = [];
      for (let i = 0; i < 3; i += 1) first.push(await next(rig, agent, files, "write", { path: "a" }));
      expect(first).toEqual(["ran", "ran", ASKED]);
    }));

  it("ends with its time, and never outlives the ask that it came from", () =>
    withRig(`${ASKING}`.replace('reason = "money"', "expires = 2026-01-01T00:30:00Z"), async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const shown = await approveOnce(rig, agent, files, { what: "arguments", seconds: 3600 });
      expect(shown["remember"]).toMatchObject({ expires_max_ms: Date.UTC(2026, 0, 1, 0, 30) });
      const grants = rig.store.written.filter((change) => change.kind === "grant_added");
      expect(grants).toMatchObject([
        { grant: { expiresAtMs: Date.UTC(2026, 0, 1, 0, 30), remembers: "agent-pays" } },
      ]);
      await rig.pass(1_800_000);
      expect(await next(rig, agent, files, "write", { path: "a" })).toBe("denied grant_expired");
    }));

  it("holds only up to the taint that was shown", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await approveOnce(rig, agent, files, { what: "arguments", seconds: 3600 });
      await put(rig, agent, "free", {});
      files.take().result("x", { class: "internal" });
      await rig.settle();
      expect(await next(rig, agent, files, "write", { path: "a" })).toBe(ASKED);
    }));

  it.each([
    [
      "its grant forbids it",
      ASKING.replace('reason = "money"', "remember = false"),
      "write",
      { path: "a" },
      {},
    ],
    ["several grants ask", `${ASKING}${askGrant("more", "agent", '["write"]')}`, "write", { path: "a" }, {}],
    ["it spends and no number is said", ASKING, "pay", PAYMENT, {}],
    ["it is for no time", ASKING, "write", { path: "a" }, { seconds: 0 }],
    ["it is for too long", ASKING, "write", { path: "a" }, { seconds: 2_592_001 }],
    ["it is for no call", ASKING, "write", { path: "a" }, { calls: 0 }],
  ])("is not where %s; nothing is decided then", (_, toml, tool, args, more) =>
    withRig(toml, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, tool, args);
      const shown = await operator.look();
      const answer = await operator.approve(shown, { remember: { what: "arguments", seconds: 60, ...more } });
      expect([answer.end, files.requests, (await operator.list()).length]).toEqual([
        "failed bad_arguments",
        [],
        1,
      ]);
    }),
  );

  it("is not remembered where the approval itself can't be written", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "write", { path: "a" }, { call: 1n });
      const { approval, digest } = await operator.look();
      rig.store.mode = "held";
      const remember = { what: "arguments", seconds: 60 };
      operator.peer.ask("callgate.approvals.approve", { approval, digest, remember });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      rig.store.refuse(1);
      await rig.releaseAll();
      rig.store.mode = "at_once";
      await put(rig, agent, "callgate.calls.cancel", { call: "1" });
      expect(await next(rig, agent, files, "write", { path: "a" })).toBe(ASKED);
    }));
});

describe("a watch", () => {
  const WATCH = "callgate.approvals.watch";

  it("answers at once where the version is another, else with the next change", () =>
    withRig(ASKING, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      const first = await operator.do("list", {});
      const version = first.json["version"];
      const watch = operator.peer.ask(WATCH, { version });
      const other = operator.peer.ask(WATCH, { version: Number(version) - 1 });
      await rig.settle();
      expect([watch.end, other.json["approvals"]]).toEqual(["nothing yet", []]);
      await put(rig, agent, "pay");
      expect(watch.json["approvals"]).toHaveLength(1);
      expect(watch.json["version"]).not.toBe(version);
    }));

  it("answers after its time, and leaves nothing behind where its peer has gone", () =>
    withRig(ASKING, async (rig) => {
      const [operator, gone] = [new Approver(rig), new Approver(rig)];
      const watch = operator.peer.ask(WATCH, { timeout_seconds: 5 });
      gone.peer.ask(WATCH, {});
      await rig.settle();
      const timers = rig.clock.timers;
      gone.peer.reset();
      await rig.settle();
      expect(rig.clock.timers).toBeLessThan(timers);
      await rig.pass(5000);
      expect(watch.json["approvals"]).toEqual([]);
    }));

  it("too many of them are refused", () =>
    withRig(ASKING, async (rig) => {
      const operator = new Approver(rig);
      const watches = Array.from({ length: 257 }, () => operator.peer.ask(WATCH, {}));
      await rig.settle();
      expect(watches.at(-1)?.end).toBe("failed capacity");
      expect(watches.slice(0, -1).every(({ end }) => end === "nothing yet")).toBe(true);
    }));
});

describe("what an approver is shown", () => {
  it("carries the labels of whoever asked: a secret in a pending call can't be read from the list unlabelled", () =>
    withRig(`${ASKING}${allow("mail-acts", "mail", '["floor"]')}`, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "free", {});
      files.take().result("the secret", { class: "confidential", untrusted: true });
      await rig.settle();
      await put(rig, agent, "pay", { to: "the secret" });
      const listed = await operator.do("list", {});
      expect(listed.end).toMatch(/^result confidential untrusted/);
      const shown = await operator.do("show", {
        approval: (listed.json["approvals"] as Shown[])[0]!.approval,
      });
      expect(shown.end).toMatch(/^result confidential untrusted/);
    }));

  it("counts what others have changed in the same store since it was asked", () =>
    withRig(`${ASKING}${allow("other-writes", "other", '["write", "search"]')}`, async (rig) => {
      const [agent, other, files, operator] = [
        rig.peer("agent"),
        rig.peer("other"),
        rig.peer("files"),
        new Approver(rig),
      ];
      const write = async (path: string, call: bigint) => {
        await put(rig, other, "write", { path }, { call });
        files.take().result("ok");
        await rig.pass(1000);
      };
      await write("a", 1n);
      await put(rig, agent, "write", { path: "a" }, { call: 9n });
      await rig.pass(1000);
      await write("a", 2n);
      await write("b", 3n);
      await put(rig, other, "search", { text: "a" }, { call: 4n });
      files.take().result("found");
      await rig.settle();
      const shown = await operator.look();
      expect(shown["store_changes"]).toMatchObject([
        { role: "other", session: "s", call: "2", tool: "write" },
      ]);
    }));

  it("a destination of a megabyte hides no other question in the list", () =>
    withRig(ASKING, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      await put(rig, agent, "pay", { to: "x".repeat(300_000) });
      await put(rig, agent, "pay", { to: "bob" });
      const [long, short] = await operator.list();
      expect((long!["destinations"] as { to: string }).to).toHaveLength(201);
      expect(short!["destinations"]).toEqual({ to: "bob" });
      expect((await operator.show(long!.approval))["destinations"]).toEqual({ to: "x".repeat(300_000) });
    }));

  it("says of one that was answered who answered it, and when", () =>
    withRig(ASKING, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const shown = await operator.look();
      await operator.refuse(shown, { reason: "CANARY-not today" });
      expect(await operator.show(shown.approval)).toMatchObject({
        state: "refused",
        decided_by: { role: "operator", uid: 1002 },
        decided_at_ms: rig.clock.nowMs(),
        arguments: JSON.stringify(PAYMENT),
        destinations: { to: "bob" },
      });
      const why = await put(rig, agent, "callgate.calls.why", { call: "1" });
      expect(why.json).toMatchObject({ denied: "approval_refused", row: "refused" });
      expect(why.content).not.toContain("CANARY-not today");
    }));
});
