// Answers to questions, as people and their programs really give them: two at once, too late, not at all.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, PAYMENT, put } from "./approvals_rig.ts";
import { allow } from "./configs.ts";
import { Lives } from "./lives.ts";
import { withRig } from "./rig.ts";

const TTL_MS = 900_000;

describe("two answers at once", () => {
  const KINDS = ["approve", "refuse"] as const;
  const PAIRS = KINDS.flatMap((first) => KINDS.map((second) => [first, second] as const));

  it.each(PAIRS)("(%s, then %s) are one: the first counts, the other hears who gave it", (first, second) =>
    withRig(ASKING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const [one, other] = [new Approver(rig), new Approver(rig, "mail")];
      const reply = await put(rig, agent, "pay");
      const { approval, digest } = await one.look();
      rig.store.mode = "held";
      const answers = [
        one.peer.ask(`callgate.approvals.${first}`, { approval, digest }),
        other.peer.ask(`callgate.approvals.${second}`, { approval, digest }),
      ];
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(answers[0]?.json).toMatchObject(first === "approve" ? { approved: true } : { refused: true });
      expect(answers[1]?.end).toBe("failed conflict");
      expect(answers[1]?.sentence).toContain("role operator (uid 1002)");
      const late = await other.do(second, { approval, digest });
      expect(late.sentence).toContain(`already ${first}d by role operator (uid 1002)`);
      expect(files.requests).toHaveLength(first === "approve" ? 1 : 0);
      if (first === "approve") files.take().result("paid");
      await rig.settle();
      expect(reply.end).toBe(first === "approve" ? "result public paid" : "denied approval_refused");
    }),
  );

  it("where the first can't be written, the second counts when it is given again", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const [one, other] = [new Approver(rig), new Approver(rig, "mail")];
      const reply = await put(rig, agent, "pay");
      const { approval, digest } = await one.look();
      rig.store.mode = "held";
      one.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      rig.store.refuse(1);
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect((await other.refuse({ approval, digest })).json["refused"]).toBe(true);
      expect([reply.end, files.requests]).toEqual(["denied approval_refused", []]);
    }));
});

describe("an answer that comes after the expiry, with nobody sweeping", () => {
  it.each([
    ["refuse", {}],
    ["approve", { remember: { what: "arguments", seconds: 60, calls: 1 } }],
    ["approve", { remember: { what: "tool", seconds: 60, calls: 9 } }],
  ])("(%s %o) decides, remembers and refuses nothing: the caller hears that it expired", (tool, more) =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay");
      const { approval, digest } = await operator.look();
      rig.clock.jump(TTL_MS + 1);
      const late = await operator.do(tool, { approval, digest, ...more });
      expect([late.end, reply.end]).toEqual(["failed conflict", "denied approval_expired"]);
      expect((await put(rig, agent, "pay")).seen).toEqual(["part: pending_approval"]);
      expect(files.requests).toEqual([]);
    }),
  );

  it("decides nothing either where the end of the question can't be written just then", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay");
      const shown = await operator.look();
      rig.clock.jump(TTL_MS);
      rig.store.mode = "full";
      const answers = [await operator.approve(shown), await operator.approve(shown)];
      rig.store.mode = "at_once";
      answers.push(await operator.approve(shown));
      expect(answers.filter(({ end }) => end.startsWith("result"))).toEqual([]);
      expect(files.requests).toEqual([]);
    }));

  it("releases nothing where the question expired while nothing ran", async () => {
    const lives = await Lives.begin(ASKING);
    lives.peer("files");
    await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    const shown = await new Approver(lives).look();
    lives.clock.jump(TTL_MS - 1000); // the next life begins a second later: at the very end
    await lives.restart(ASKING);
    const [files, operator] = [lives.peer("files"), new Approver(lives)];
    expect((await operator.approve(shown)).end).toBe("failed conflict");
    expect(files.requests).toEqual([]);
  });
});

describe("an approver who goes away", () => {
  it.each(["looking", "watching", "in the middle of a frame", "after half of the answer was written"])(
    "(%s) has said nothing: the question is open for the next",
    (how) =>
      withRig(ASKING, async (rig) => {
        const [agent, files, second] = [rig.peer("agent"), rig.peer("files"), new Approver(rig, "mail")];
        const reply = await put(rig, agent, "pay");
        const leaving = new Approver(rig);
        const { approval, digest } = await leaving.look();
        if (how === "watching") leaving.peer.ask("callgate.approvals.watch", {});
        if (how === "in the middle of a frame") leaving.peer.write(Buffer.from([0, 0, 0, 90, 0x7b]));
        if (how.startsWith("after half")) {
          rig.store.mode = "held";
          leaving.peer.ask("callgate.approvals.refuse", { approval, digest });
          await rig.settle();
          rig.store.refuse();
          rig.store.mode = "at_once";
        }
        await rig.settle();
        leaving.peer.reset();
        await rig.settle();
        expect([reply.seen, files.requests]).toEqual([["part: pending_approval"], []]);
        await second.letThrough();
        files.take().result("paid");
        await rig.settle();
        expect(reply.end).toBe("result public paid");
      }),
  );

  it("whose answer was written before it left has said it, though it never heard so", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay");
      const { approval, digest } = await operator.look();
      rig.store.mode = "held";
      operator.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      operator.peer.reset();
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(files.requests).toHaveLength(1);
      files.take().result("paid");
      await rig.settle();
      expect(reply.end).toBe("result public paid");
    }));
});

describe("what a caller hears", () => {
  it("is another word for each way in which nothing came of its call", () =>
    withRig(
      `${ASKING}${allow("agent-cuts", "agent", '["cut"]')}[[grants]]\nid = "no"\nrole = "agent"\ntools = ["floor"]\neffect = "deny"\n`,
      async (rig) => {
        const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
        rig.peer("files");
        const refused = await put(rig, agent, "pay", { amount: 1 }, { call: 1n });
        await operator.refuse(await operator.look());
        const withdrawn = await put(rig, agent, "pay", { amount: 2 }, { call: 2n });
        await put(rig, agent, "callgate.calls.cancel", { call: "2" });
        const expired = await put(rig, agent, "pay", { amount: 3 }, { call: 3n });
        const timedOut = await put(rig, agent, "cut", {}, { call: 4n });
        const denied = await put(rig, agent, "floor", {}, { call: 5n });
        await rig.pass(3_600_000);
        const first = [refused, withdrawn, expired, timedOut, denied].map(({ end }) => end);
        expect(first).toEqual([
          "denied approval_refused",
          "failed cancelled",
          "denied approval_expired",
          "failed timeout",
          "denied denied_by_grant",
        ]);
        const again = [
          await put(rig, agent, "pay", { amount: 1 }, { call: 1n }),
          await put(rig, agent, "pay", { amount: 2 }, { call: 2n }),
          await put(rig, agent, "pay", { amount: 3 }, { call: 3n }),
          await put(rig, agent, "cut", {}, { call: 4n }),
          await put(rig, agent, "floor", {}, { call: 5n }),
        ];
        expect(again.map(({ end }) => end)).toEqual(first);
      },
    ));
});

describe("other bytes under the id of a call that waits", () => {
  it("are a conflict after a restart too, and only the stored bytes run", async () => {
    const lives = await Lives.begin(ASKING);
    lives.peer("files");
    const stored = '{"to":"bob","amount":1}';
    await put(lives, lives.peer("agent"), "pay", stored, { call: 1n });
    await lives.restart(ASKING);
    const [files, agent] = [lives.peer("files"), lives.peer("agent")];
    const others = ['{"to":"eve","amount":1}', '{"amount":1,"to":"bob"}', '{"to":"bob","amount":1.0}'];
    const ends = [];
    for (const text of others) ends.push((await put(lives, agent, "pay", text, { call: 1n })).end);
    ends.push((await put(lives, agent, "write", stored, { call: 1n })).end);
    expect(ends).toEqual(Array(4).fill("failed conflict"));
    await new Approver(lives).letThrough();
    expect(files.requests.map(({ body }) => body.arguments)).toEqual([stored]);
  });
});
