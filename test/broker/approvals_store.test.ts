// Questions where the store is slow, full or broken at each commit, and over restarts: nothing runs twice or
// unrecorded, nothing that was asked is lost, and what was answered stays answered.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, askGrant, PAYMENT, put } from "./approvals_rig.ts";
import { allow } from "./configs.ts";
import { Lives } from "./lives.ts";
import { withRig } from "./rig.ts";

const TTL_MS = 900_000;

describe("a store that can't write", () => {
  it("no question that is not written is told or shown; asked again it is", () =>
    withRig(ASKING, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      rig.store.mode = "held";
      const reply = agent.ask("pay", PAYMENT, { call: 1n });
      const listed = operator.peer.ask("callgate.approvals.list");
      await rig.settle();
      expect(reply.seen).toEqual([]);
      rig.store.refuse();
      await rig.settle();
      rig.store.mode = "at_once";
      expect([reply.end, listed.json["approvals"]]).toEqual(["failed unavailable", []]);
      expect(reply.sentence).toContain("Nothing ran.");
      expect((await put(rig, agent, "pay", PAYMENT, { call: 1n })).seen).toEqual(["part: pending_approval"]);
    }));

  it.each(["approve", "refuse"] as const)(
    "an answer (%s) that can't be written leaves the question open",
    (tool) =>
      withRig(ASKING, async (rig) => {
        const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
        const reply = await put(rig, agent, "pay", PAYMENT, { call: 1n });
        const { approval, digest } = await operator.look();
        rig.store.mode = "held";
        const answer = operator.peer.ask(`callgate.approvals.${tool}`, { approval, digest });
        await rig.settle();
        rig.store.release(1);
        await rig.settle();
        rig.store.refuse(1);
        await rig.releaseAll();
        rig.store.mode = "at_once";
        expect([answer.end, reply.seen, files.requests]).toEqual([
          "failed outcome_unknown",
          ["part: pending_approval"],
          [],
        ]);
        await operator.letThrough();
        files.take().result("paid");
        await rig.settle();
        expect(reply.end).toBe("result public paid");
      }),
  );

  it("an answer that can't be written leaves it open for a store that throws, too", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const { approval, digest } = await operator.look();
      rig.store.mode = "held";
      operator.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      rig.store.mode = "broken";
      rig.store.release(1);
      await rig.settle();
      rig.store.mode = "at_once";
      expect(files.requests).toEqual([]);
      const again = new Approver(rig);
      await again.letThrough();
      expect(files.requests).toHaveLength(1);
      files.take().result("x");
      await rig.settle();
    }));

  it("a call that is cancelled while its approval is being written does not run", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const { approval, digest } = await operator.look();
      rig.store.mode = "held";
      operator.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      const cancelled = agent.ask("callgate.calls.cancel", { call: "1" });
      await rig.settle();
      rig.store.release(1); // the approver's intent: its answer is now on the way
      await rig.releaseAll();
      expect([cancelled.json["cancelled"], reply.end, files.requests]).toEqual([
        true,
        "failed cancelled",
        [],
      ]);
    }));

  it("a deny that comes while the approval is being written stops the call", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const { approval, digest } = await operator.look();
      rig.store.mode = "held";
      operator.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      await rig.reloadWith(
        `${ASKING}[[grants]]\nid = "no"\nrole = "agent"\ntools = ["pay"]\neffect = "deny"\n`,
      );
      await rig.releaseAll();
      expect([reply.end, files.requests]).toEqual(["denied denied_by_grant", []]);
    }));

  it("one that asks once more while the approval is being written stops it too", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const { approval, digest } = await operator.look();
      rig.store.mode = "held";
      operator.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      await rig.reloadWith(`${ASKING}${askGrant("more", "agent", '["pay"]')}`);
      await rig.releaseAll();
      expect([reply.end, files.requests]).toEqual(["failed unavailable", []]);
    }));

  it("an expiry that can't be written is one all the same, and is written later", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const shown = await operator.look();
      rig.store.mode = "full";
      await rig.pass(TTL_MS);
      expect(reply.end).toBe("failed unavailable");
      rig.store.mode = "at_once";
      expect([(await operator.approve(shown)).end, files.requests]).toEqual(["failed conflict", []]);
      await rig.pass(10_000);
      const states = rig.store.written.flatMap((change) =>
        change.kind === "approval" ? [change.approval.state] : [],
      );
      expect(states).toEqual(["pending", "expired"]);
    }));

  it.each(["failing", "stalled"] as const)(
    "while it is %s no new call is taken, and looking still works",
    (condition) =>
      withRig(ASKING, async (rig) => {
        const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
        await put(rig, agent, "pay");
        Object.defineProperty(rig.store, "condition", { value: condition, configurable: true });
        const before = rig.store.written.length;
        const replies = [await put(rig, agent, "free"), await put(rig, agent, "write", { path: "a" })];
        expect(replies.map(({ end }) => end)).toEqual(["failed unavailable", "failed unavailable"]);
        expect(rig.store.written.slice(before).filter(({ kind }) => kind !== "audit")).toEqual([]);
        expect(files.requests).toEqual([]);
        expect(await operator.list()).toHaveLength(1);
        Object.defineProperty(rig.store, "condition", { value: "ok", configurable: true });
      }),
  );
});

describe("a restart", () => {
  it("keeps the question; approved afterwards it runs once, and the retry gets the answer", async () => {
    const lives = await Lives.begin(ASKING);
    await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    lives.peer("files");
    await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    const before = await new Approver(lives).look();
    await lives.restart(ASKING);
    const [files, operator] = [lives.peer("files"), new Approver(lives)];
    const after = await operator.look();
    expect({ ...after, now: 0, remember: 0 }).toEqual({ ...before, now: 0, remember: 0 });
    const back = await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    expect(back.seen).toEqual(["part: pending_approval"]);
    await operator.approve(before);
    expect(files.requests).toHaveLength(1);
    files.take().result("paid");
    await lives.settle();
    expect(back.end).toBe("result public paid");
    await lives.restart(ASKING);
    lives.peer("files");
    const again = await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    expect(again.seen).toEqual(["result public paid"]);
  });

  it("longer than its time: it has expired, and stays so", async () => {
    const lives = await Lives.begin(ASKING);
    lives.peer("files");
    await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    const shown = await new Approver(lives).look();
    lives.clock.jump(TTL_MS);
    await lives.restart(ASKING);
    const [files, operator] = [lives.peer("files"), new Approver(lives)];
    const late = await operator.approve(shown);
    const again = await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    expect([late.end, again.seen, files.requests]).toEqual([
      "failed conflict",
      ["denied approval_expired"],
      [],
    ]);
  });

  it("between the approval and the dispatch runs nothing twice: nobody knows, and nobody asks again by itself", async () => {
    const lives = await Lives.begin(ASKING);
    const files = lives.peer("files");
    await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    await new Approver(lives).letThrough();
    expect(files.requests).toHaveLength(1); // it may have run
    await lives.restart(ASKING);
    const [later, operator] = [lives.peer("files"), new Approver(lives)];
    const again = await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    expect([again.end, later.requests, await operator.list()]).toEqual(["failed outcome_unknown", [], []]);
  });

  it("while the released call runs leaves the outcome of those that follow it unknown too, and asks for none of them", async () => {
    const lives = await Lives.begin(ASKING);
    const files = lives.peer("files");
    const agent = lives.peer("agent");
    await put(lives, agent, "pay", '{"to":"bob","amount":5}', { call: 1n });
    await put(lives, agent, "pay", '{"amount":5,"to":"bob"}', { call: 2n });
    await new Approver(lives).letThrough();
    expect(files.requests).toHaveLength(1);
    await lives.restart(ASKING);
    const later = lives.peer("files");
    const again = await put(lives, lives.peer("agent"), "pay", '{"amount":5,"to":"bob"}', { call: 2n });
    expect([again.seen, later.requests]).toEqual([["failed outcome_unknown"], []]);
  });

  it("does not write an expiry that was owed over what the same call has come to since", async () => {
    const lives = await Lives.begin(ASKING);
    const files = lives.peer("files");
    const agent = lives.peer("agent");
    await put(lives, agent, "pay", PAYMENT, { call: 1n });
    lives.store.mode = "full";
    await lives.pass(TTL_MS);
    lives.store.mode = "at_once";
    await put(lives, agent, "pay", PAYMENT, { call: 1n });
    await new Approver(lives).letThrough();
    files.take().result("paid");
    await lives.settle();
    await lives.restart(ASKING);
    lives.peer("files");
    const again = await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    expect(again.seen).toEqual(["result public paid"]);
    expect(await new Approver(lives).list()).toEqual([]);
  });

  it("before the approval is written leaves the question open", async () => {
    const lives = await Lives.begin(ASKING);
    lives.peer("files");
    await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    const operator = new Approver(lives);
    const { approval, digest } = await operator.look();
    lives.store.mode = "held";
    operator.peer.ask("callgate.approvals.approve", { approval, digest });
    await lives.settle();
    lives.store.release(1);
    await lives.settle();
    await lives.restart(ASKING);
    const files = lives.peer("files");
    await new Approver(lives).letThrough();
    expect(files.requests).toHaveLength(1);
  });

  it("forgets no refusal and no pause", async () => {
    const lives = await Lives.begin(ASKING);
    lives.peer("files");
    const [agent, operator] = [lives.peer("agent"), new Approver(lives)];
    for (let i = 0; i < 5; i += 1) {
      await put(lives, agent, "pay", { amount: i });
      await operator.refuse(await operator.look());
    }
    await lives.restart(ASKING);
    lives.peer("files");
    const back = lives.peer("agent");
    const refused = await put(lives, back, "pay", { amount: 1.0 }, { session: "t" });
    const paused = await put(lives, back, "pay", { amount: 50 });
    expect([refused.end, paused.end]).toEqual(["denied approval_refused", "denied approval_refused"]);
  });

  it("with a config that has no such role or tool voids the question, and a later one does not revive it", async () => {
    const lives = await Lives.begin(ASKING);
    lives.peer("files");
    await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    const without = ASKING.replaceAll("[tools.pay]", "[tools.paid]").replaceAll('"pay"', '"paid"');
    await lives.restart(without);
    expect(await new Approver(lives).list()).toEqual([]);
    await lives.restart(ASKING);
    const operator = new Approver(lives);
    expect(await operator.list()).toEqual([]);
    expect(await operator.list({ state: "all" })).toMatchObject([{ state: "void" }]);
  });
});

describe("a drain", () => {
  it("is not held up by questions or by those who wait for them, and the question outlives it", async () => {
    const lives = await Lives.begin(ASKING);
    lives.peer("files");
    const agent = lives.peer("agent");
    const reply = await put(lives, agent, "pay", PAYMENT, { call: 1n });
    const watching = new Approver(lives);
    watching.peer.ask("callgate.approvals.watch", {});
    await lives.settle();
    expect(await lives.broker.drain(60_000)).toEqual({ unfinished: 0 });
    expect(reply.seen).toEqual(["part: pending_approval"]);
    await lives.restart(ASKING);
    expect(await new Approver(lives).list()).toHaveLength(1);
  });
});

describe("a broker that itself asks a human", () => {
  it.each([
    [3_600_000, 3_600_000 + 9_999],
    [172_800_000, 86_400_000 + 9_999],
  ])("stops the tool's timeout for the question's %i ms, within a day", (asksMs, waitsMs) =>
    withRig(
      ASKING.replace("[roles.files]\n", "[roles.files]\nbroker = true\n").concat(
        allow("agent-frees", "agent", '["floor"]'),
      ),
      async (rig) => {
        const [agent, files] = [rig.peer("agent"), rig.peer("files")];
        const reply = await put(rig, agent, "read", { path: "a" });
        const request = files.take();
        const expires = BigInt(rig.clock.nowMs() + asksMs);
        request.answer({ status: "pending_approval", approval: "theirs", expires }, false);
        await rig.pass(waitsMs);
        expect(reply.end).toBe("nothing yet");
        await rig.pass(1);
        expect(reply.end).toBe("failed timeout");
      },
    ),
  );

  it("the timeout runs again from its next message on", () =>
    withRig(ASKING.replace("[roles.files]\n", "[roles.files]\nbroker = true\n"), async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = await put(rig, agent, "read", { path: "a" });
      const request = files.take();
      const expires = BigInt(rig.clock.nowMs() + 3_600_000);
      request.answer({ status: "pending_approval", approval: "theirs", expires }, false);
      await rig.pass(60_000);
      request.part("x");
      await rig.pass(9_999);
      expect(reply.seen).toEqual(["part: pending_approval", "part: result public x"]);
      await rig.pass(1);
      expect(reply.end).toBe("failed timeout");
    }));
});
