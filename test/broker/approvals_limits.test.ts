// How often, how much and how many times the same a human is asked.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, askGrant, PAYMENT, put } from "./approvals_rig.ts";
import { withRig } from "./rig.ts";

const HOUR_MS = 3_600_000;
const TTL_MS = 900_000;

function limited(limits: string): string {
  return ASKING.replace(
    '[roles.agent]\nusers = ["agent"]',
    `[roles.agent]\nusers = ["agent"]\n[roles.agent.limits]\n${limits}`,
  );
}

describe("equal calls", () => {
  it("under other ids and spellings make one question, and each is answered and recorded under its own id", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const texts = [
        '{"to":"bob","amount":1}',
        '{"amount":1.0,"to":"bob"}',
        '{ "to" : "b\\u006fb", "amount" : 1 }',
      ];
      const replies = [];
      for (const [i, text] of texts.entries())
        replies.push(await put(rig, agent, "pay", text, { call: BigInt(i + 1) }));
      const ids = replies.map(({ envelopes }) =>
        JSON.stringify(envelopes[0]?.msg, (_, v) => (typeof v === "bigint" ? 0 : v)),
      );
      expect(new Set(ids).size).toBe(1);
      await operator.letThrough();
      expect(files.requests.map(({ body }) => body.arguments)).toEqual([texts[0]]);
      const request = files.take();
      request.part("pa");
      request.result("id");
      await rig.settle();
      const whole = ["part: result public pa", "result public id"];
      expect(replies.map(({ seen }) => seen)).toEqual(Array(3).fill(["part: pending_approval", ...whole]));
      for (const [i, text] of texts.entries()) {
        const again = await put(rig, agent, "pay", text, { call: BigInt(i + 1) });
        expect(again.seen).toEqual(whole);
        expect((await put(rig, agent, "pay", { to: "eve" }, { call: BigInt(i + 1) })).end).toBe(
          "failed conflict",
        );
      }
      expect(files.requests).toEqual([]);
    }));

  it("of another session or another role are questions of their own", () =>
    withRig(ASKING, async (rig) => {
      const [agent, other, operator] = [rig.peer("agent"), rig.peer("other"), new Approver(rig)];
      rig.peer("files");
      await put(rig, agent, "pay", PAYMENT, { session: "a" });
      await put(rig, agent, "pay", PAYMENT, { session: "b" });
      await put(rig, other, "pay", PAYMENT, { session: "a" });
      expect(await operator.list()).toHaveLength(3);
    }));

  it("of another user of the same role are questions of their own", () =>
    withRig(
      ASKING.replace(
        '[roles.agent]\nusers = ["agent"]',
        '[roles.agent]\nusers = ["agent", "callgate-frontend"]',
      ),
      async (rig) => {
        const [agent, another] = [rig.peer("agent"), rig.peer("agent", { uid: 1005 })];
        const operator = new Approver(rig);
        rig.peer("files");
        await put(rig, agent, "pay");
        await put(rig, another, "pay");
        expect((await operator.list()).map(({ uid }) => uid)).toEqual([1001, 1005]);
      },
    ));

  it("refused once are refused without asking, over sessions, spellings and ids, until the time is over", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay", '{"to":"bob","amount":1}', { call: 1n });
      const refused = await operator.refuse(await operator.look());
      expect(refused.json["until_ms"]).toBe(rig.clock.nowMs() + HOUR_MS);
      const again = await put(rig, agent, "pay", '{"amount": 1.0, "to":"bob"}', { session: "t", call: 2n });
      expect(again.seen).toEqual(["denied approval_refused"]);
      const why = await put(rig, agent, "callgate.calls.why", { session: "t", call: "2" });
      expect(why.json).toMatchObject({ denied: "approval_refused", row: "refused_before" });
      expect(why.json["reason"]).toContain("an equal call was refused");
      expect(await operator.list()).toEqual([]);
      await rig.pass(HOUR_MS);
      expect((await put(rig, agent, "pay", { to: "bob", amount: 1 })).seen).toEqual([
        "part: pending_approval",
      ]);
      expect(files.requests).toEqual([]);
    }));

  it("of one role that were refused don't refuse another role's", () =>
    withRig(ASKING, async (rig) => {
      const [agent, other, operator] = [rig.peer("agent"), rig.peer("other"), new Approver(rig)];
      rig.peer("files");
      await put(rig, agent, "pay");
      await operator.refuse(await operator.look());
      expect((await put(rig, other, "pay")).seen).toEqual(["part: pending_approval"]);
    }));

  it("follow a question only up to the role's limit of joins", () =>
    withRig(limited("joins = 2"), async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      const ends = [];
      for (let i = 1n; i <= 5n; i += 1n) {
        const peer = rig.peer("agent");
        const reply = await put(rig, peer, "pay", PAYMENT, { call: i });
        ends.push(reply.end);
        peer.reset(); // nobody waits for it any more, and it is kept all the same
        await rig.settle();
      }
      expect(ends).toEqual([
        "nothing yet",
        "nothing yet",
        "nothing yet",
        "failed capacity",
        "failed capacity",
      ]);
      expect((await put(rig, agent, "pay", { to: "eve" })).end).toBe("nothing yet");
    }));
});

describe("a session that is refused again and again", () => {
  it("asks nothing for an hour, and its caller hears why; a new name is no way around", () =>
    withRig(ASKING, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      for (let i = 0; i < 5; i += 1) {
        await put(rig, agent, "pay", { amount: i });
        await operator.refuse(await operator.look());
      }
      const paused = await put(rig, agent, "pay", { amount: 9 }, { call: 77n });
      expect(paused.seen).toEqual(["denied approval_refused"]);
      const why = await put(rig, agent, "callgate.calls.why", { call: "77" });
      expect(why.json).toMatchObject({ row: "questions_paused" });
      const renamed = await put(rig, agent, "pay", { amount: 9 }, { session: "t" });
      expect(renamed.seen).toEqual(["denied approval_refused"]);
      await rig.pass(HOUR_MS);
      expect((await put(rig, agent, "pay", { amount: 9 })).end).toBe("nothing yet");
    }));

  it("five refusals that are spread over more than an hour pause nothing", () =>
    withRig(ASKING, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      for (let i = 0; i < 6; i += 1) {
        await put(rig, agent, "pay", { amount: i });
        await operator.refuse(await operator.look());
        await rig.pass(HOUR_MS / 3);
      }
      expect((await put(rig, agent, "pay", { amount: 9 })).end).toBe("nothing yet");
    }));
});

describe("limits", () => {
  it("pending_approvals bounds what waits, one session has half, and a place is free again with the answer", () =>
    withRig(limited("pending_approvals = 4"), async (rig) => {
      const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      const replies = [];
      for (const session of ["a", "a", "a", "b", "b", "b", "c"])
        replies.push(await put(rig, agent, "pay", { amount: replies.length }, { session }));
      const full = "failed capacity";
      expect(replies.map(({ end }) => end)).toEqual([
        "nothing yet",
        "nothing yet",
        full,
        "nothing yet",
        "nothing yet",
        full,
        full,
      ]);
      expect(replies[2]?.sentence).toContain("pending_approvals");
      const [first] = await operator.list();
      await operator.refuse(first!);
      expect((await put(rig, agent, "pay", { amount: 50 }, { session: "a" })).end).toBe("nothing yet");
    }));

  it("questions_per_hour counts withdrawn ones too, and lets go of them after an hour", () =>
    withRig(limited("questions_per_hour = 4"), async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      const ask = async (call: bigint, session = "s") => {
        const reply = await put(rig, agent, "pay", { amount: Number(call) }, { call, session });
        await put(rig, agent, "callgate.calls.cancel", { session, call: String(call) });
        return reply.end;
      };
      expect([await ask(1n), await ask(2n), await ask(3n)]).toEqual([
        "failed cancelled",
        "failed cancelled",
        "failed capacity",
      ]);
      expect([await ask(4n, "t"), await ask(5n, "t"), await ask(6n, "u")]).toEqual([
        "failed cancelled",
        "failed cancelled",
        "failed capacity",
      ]);
      await rig.pass(HOUR_MS);
      expect(await ask(7n)).toBe("failed cancelled");
    }));

  it("the arguments that wait are charged to the role, and one session takes at most half of its bytes", () =>
    withRig(limited("queued_bytes_in = 100_000\ncalls_per_second = 1000"), async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      const note = "x".repeat(20_000);
      const ends = [];
      for (const [i, session] of ["a", "a", "a", "b", "b"].entries()) {
        const peer = rig.peer("agent");
        const reply = await put(rig, peer, "pay", { amount: i, note }, { session });
        ends.push(reply.end);
        peer.reset();
        await rig.settle();
      }
      expect(ends).toEqual([
        "nothing yet",
        "nothing yet",
        "failed capacity",
        "nothing yet",
        "failed capacity",
      ]);
      await rig.pass(TTL_MS);
      expect((await put(rig, agent, "pay", { note }, { session: "a" })).end).toBe("nothing yet");
    }));

  it("the shortest of several grants' times counts", () =>
    withRig(`${ASKING}${askGrant("brief", "agent", '["pay"]', 'approval_ttl = "5m"')}`, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      const reply = await put(rig, agent, "pay");
      expect((await operator.look())["grants"]).toEqual(["agent-pays", "brief"]);
      await rig.pass(300_000);
      expect(reply.end).toBe("denied approval_expired");
    }));
});
