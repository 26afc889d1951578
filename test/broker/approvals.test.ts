// Questions to humans from the asking to the answer: what is released, by whom, and what is not.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, askGrant, PAYMENT, put } from "./approvals_rig.ts";
import { allow } from "./configs.ts";
import { withRig } from "./rig.ts";

const TTL_MS = 900_000;

describe("a call that a human has to approve", () => {
  it("waits, runs once it is approved, with the very bytes that were asked, and is replayed without the wait", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const text = '{ "amount": 5.0, "to": "b\\u006fb" }';
      const reply = await put(rig, agent, "pay", text, { call: 1n });
      expect([reply.seen, files.requests]).toEqual([["part: pending_approval"], []]);
      const approved = await operator.letThrough();
      expect(approved.json).toMatchObject({ approved: true, role: "agent", call: "1", remembered: null });
      const request = files.take();
      expect(request.body.arguments).toBe(text);
      request.result("paid");
      await rig.settle();
      expect(reply.seen).toEqual(["part: pending_approval", "result public paid"]);
      const again = await put(rig, agent, "pay", text, { call: 1n });
      expect([again.seen, files.requests]).toEqual([["result public paid"], []]);
      expect(rig.events("approval.approved")).toMatchObject([{ fields: { by: "operator", uid: 1002 } }]);
    }));

  it("names the approval and its expiry to the caller, and everything to the approver", () =>
    withRig(ASKING, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      const reply = await put(rig, agent, "pay", { note: "x", to: "bob", amount: 5 }, { call: 7n });
      const shown = await operator.look();
      const told = reply.envelopes[0]?.msg;
      expect(told).toMatchObject({
        body: {
          status: "pending_approval",
          approval: shown.approval,
          expires: BigInt(rig.clock.nowMs() + TTL_MS),
        },
      });
      expect(shown).toMatchObject({
        role: "agent",
        uid: 1001,
        pid: 77,
        session: "s",
        call: "7",
        tool: "pay",
        effect: "spend",
        state: "pending",
        row: "ask",
        grants: ["agent-pays"],
        destinations: { to: "bob" },
        keys: ["to", "note", "amount"],
        arguments: '{"note":"x","to":"bob","amount":5}',
        taint: { class: "public", untrusted: false },
        asks: [{ grant: "agent-pays", reason: "money", when: null, remember: true }],
        doubt: null,
        store_changes: [],
        remember: { allowed: true, number_needed: true },
        now: { verdict: "holds" },
      });
    }));

  it("refused and expired are told apart, for the retry too, and nothing of them ran", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const refused = await put(rig, agent, "pay", { to: "a" }, { call: 1n });
      await operator.refuse(await operator.look());
      const expired = await put(rig, agent, "pay", { to: "b" }, { call: 2n });
      await rig.pass(TTL_MS);
      const again = [
        await put(rig, agent, "pay", { to: "a" }, { call: 1n }),
        await put(rig, agent, "pay", { to: "b" }, { call: 2n }),
      ];
      expect([refused.end, expired.end]).toEqual(["denied approval_refused", "denied approval_expired"]);
      expect(again.map(({ seen }) => seen)).toEqual([
        ["denied approval_refused"],
        ["denied approval_expired"],
      ]);
      expect(files.requests).toEqual([]);
    }));

  it("runs although its caller has gone, and the one that comes back joins it and gets the answer", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay", PAYMENT, { call: 1n });
      agent.reset();
      await rig.pass(45_000);
      const back = rig.peer("agent");
      const joined = await put(rig, back, "pay", PAYMENT, { call: 1n });
      expect(joined.seen).toEqual(["part: pending_approval"]);
      await operator.letThrough();
      files.take().result("paid");
      await rig.settle();
      expect(joined.end).toBe("result public paid");
    }));

  it("gives back what its caller held once that has gone, and holds only its arguments", () =>
    withRig(ASKING, async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      await put(rig, agent, "pay", { to: "x".repeat(10_000) }, { call: 1n });
      agent.reset();
      await rig.settle();
      const held = rig.broker.holdings().find(({ role }) => role === "agent");
      expect(held).toMatchObject({ calls_in_flight: 0, connections: 0 });
      expect(held?.queued_bytes_in).toBeGreaterThan(10_000);
      await rig.pass(TTL_MS);
      expect(rig.broker.holdings().find(({ role }) => role === "agent")?.queued_bytes_in).toBe(0);
    }));

  it("a caller that dies after a half-close is noticed at once, and one that lives hears the end", () =>
    withRig(ASKING, async (rig) => {
      const [dead, living, operator] = [rig.peer("agent"), rig.peer("agent"), new Approver(rig)];
      const files = rig.peer("files");
      await put(rig, dead, "pay", { to: "a" });
      const reply = await put(rig, living, "pay", { to: "b" });
      dead.vanish();
      living.halfClose();
      await rig.settle();
      const held = rig.broker.holdings().find(({ role }) => role === "agent");
      expect(held).toMatchObject({ connections: 1, calls_in_flight: 1 });
      const [, second] = await operator.list();
      await operator.approve(await operator.show(second!.approval));
      files.take().result("paid");
      await rig.settle();
      expect(reply.end).toBe("result public paid");
    }));

  it("with other bytes under its id is a conflict, and only the stored bytes run", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay", '{"to":"bob","amount":1}', { call: 1n });
      const others = ['{"to":"eve","amount":1}', '{"amount":1,"to":"bob"}', '{"to":"bob","amount":1.0}'];
      const before = await Promise.all(others.map((text) => put(rig, agent, "pay", text, { call: 1n })));
      await operator.letThrough();
      const after = await Promise.all(others.map((text) => put(rig, agent, "pay", text, { call: 1n })));
      expect([...before, ...after].map(({ end }) => end)).toEqual(Array(6).fill("failed conflict"));
      expect(files.requests.map(({ body }) => body.arguments)).toEqual(['{"to":"bob","amount":1}']);
      files.take().result("x");
      await rig.settle();
    }));

  it("of a tool that is kept in memory only is durable once somebody was asked", () =>
    withRig(ASKING.replace("[tools.look]", '[tools.look]\nrecord = "memory"'), async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "look", {}, { call: 1n });
      await operator.letThrough();
      files.take().result("seen");
      await rig.settle();
      const intents = rig.store.written.filter(
        (change) => change.kind === "intent" && change.record.tool === "look",
      );
      expect(intents).toMatchObject([{ record: { durable: true } }]);
    }));

  it("above the taint of an allow that says so is asked too, and not to be remembered", () =>
    withRig(
      `${ASKING}[[grants]]\nid = "clean"\nrole = "agent"\ntools = ["cut"]\neffect = "allow"\ntaint_max = "public"\ntaint_untrusted = false\nabove_taint = "ask"\n`,
      async (rig) => {
        const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
        agent.ask("free");
        await rig.settle();
        files.take().result("x", { untrusted: true });
        await rig.settle();
        const reply = await put(rig, agent, "cut", {}, { call: 3n });
        const shown = await operator.look();
        expect(shown).toMatchObject({ row: "allow_above_taint_ask", taint: { untrusted: true } });
        expect(shown["remember"]).toMatchObject({ allowed: false });
        const wish = { remember: { what: "arguments", seconds: 60, calls: 1 } };
        expect((await operator.approve(shown, wish)).end).toBe("failed bad_arguments");
        await operator.approve(shown);
        files.take().result("cut");
        await rig.settle();
        expect(reply.end).toBe("result public cut");
      },
    ));

  it("too long to be shown is not put to anybody", () =>
    withRig(ASKING, async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      const reply = await put(rig, agent, "pay", { note: '"'.repeat(200_000) });
      expect(reply.end).toBe("failed too_large");
    }));

  it("cancelled by its caller it is withdrawn, for good", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const shown = await operator.look();
      const cancelled = await put(rig, agent, "callgate.calls.cancel", { call: "1" });
      expect(cancelled.json["cancelled"]).toBe(true);
      const late = await operator.approve(shown);
      const again = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      expect([reply.end, late.end, again.end, files.requests]).toEqual([
        "failed cancelled",
        "failed conflict",
        "failed cancelled",
        [],
      ]);
      expect(late.sentence).toContain("withdrawn");
    }));

  it.each([{}, { session: "s" }])("frozen (%o) it ends, and nothing of it can be approved", (what) =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay");
      const shown = await operator.look();
      await put(rig, operator.peer, "callgate.freeze", { role: "agent", ...what });
      expect([(await operator.approve(shown)).end, files.requests]).toEqual(["failed conflict", []]);
    }),
  );
});

describe("who approves", () => {
  it("never the call's own role or user, whatever the grants say", () =>
    withRig(
      `${ASKING}${allow("other-approves", "other", '["callgate.approvals.*"]')}`.replace(
        '[roles.other]\nusers = ["agent"]',
        '[roles.other]\nusers = ["agent"]\noperator = true',
      ),
      async (rig) => {
        const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
        const [own, sameUser] = [new Approver(rig, "agent"), new Approver(rig, "other")];
        await put(rig, agent, "pay");
        const shown = await operator.look();
        for (const wrong of [own, sameUser]) {
          expect((await wrong.approve(shown)).end).toBe("failed bad_arguments");
          expect((await wrong.refuse(shown)).end).toBe("failed bad_arguments");
        }
        expect([(await operator.list()).length, files.requests]).toEqual([1, []]);
      },
    ));

  it("never the user who asked, also where a reload has made another role of that user", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await put(rig, agent, "pay");
      await rig.reloadWith(
        ASKING.replaceAll('users = ["agent"]', 'users = ["callgate-frontend"]').replace(
          'users = ["operator"]',
          'users = ["agent"]',
        ),
      );
      await rig.pass(2000); // nobody is connected as the agent's old user any more
      const turned = new Approver({
        peer: () => rig.peer("operator", { uid: 1001 }),
        settle: () => rig.settle(),
      });
      const answer = await turned.letThrough();
      expect([answer.end, files.requests]).toEqual(["failed bad_arguments", []]);
    }));

  it("on a machine of one person the same user may, and still never the same role", () =>
    withRig(
      `allow_same_user = true\n${ASKING}${allow("other-approves", "other", '["callgate.approvals.*"]')}`.replace(
        '[roles.other]\nusers = ["agent"]',
        '[roles.other]\nusers = ["agent"]\noperator = true',
      ),
      async (rig) => {
        const [agent, files] = [rig.peer("agent"), rig.peer("files")];
        const [own, sameUser] = [new Approver(rig, "agent"), new Approver(rig, "other")];
        await put(rig, agent, "pay");
        const shown = await own.look();
        expect((await own.approve(shown)).end).toBe("failed bad_arguments");
        expect((await sameUser.approve(shown)).json["approved"]).toBe(true);
        files.take().result("x");
        await rig.settle();
      },
    ));

  it("only whom a grant's condition on the asked call's role, tool and session lets", () =>
    withRig(
      ASKING.replace(
        allow("mail-operates", "mail", '["callgate.*"]'),
        `${allow("mail-looks", "mail", '["callgate.approvals.list", "callgate.approvals.show"]')}
${allow("mail-approves", "mail", '["callgate.approvals.approve"]', 'when = "target.role == \\"agent\\" && target.tool == \\"write\\" && target.session == \\"s\\""')}`,
      ),
      async (rig) => {
        const [agent, files, second] = [rig.peer("agent"), rig.peer("files"), new Approver(rig, "mail")];
        await put(rig, agent, "pay");
        const paying = await second.look();
        expect((await second.approve(paying)).end).toBe("denied no_grant");
        await put(rig, agent, "write", { path: "a" });
        const writing = (await second.list()).find(({ tool }) => tool === "write");
        const shown = await second.show(writing!.approval);
        expect((await second.approve(shown)).json["approved"]).toBe(true);
        expect(files.take().body.tool).toBe("write");
      },
    ));

  it("a role that is no operator sees its own questions only, and the same answer for foreign and unknown ones", () =>
    withRig(`${ASKING}${allow("other-looks", "other", '["callgate.approvals.*"]')}`, async (rig) => {
      const [agent, other, own] = [rig.peer("agent"), new Approver(rig, "other"), new Approver(rig, "agent")];
      rig.peer("files");
      await put(rig, agent, "pay");
      const shown = await own.look();
      expect(await other.list()).toEqual([]);
      const [foreign, unknown] = [
        await other.do("show", { approval: shown.approval }),
        await other.do("show", { approval: "nothing" }),
      ];
      expect(foreign.sentence).toBe(unknown.sentence);
      expect(foreign.end).toBe("failed bad_arguments");
    }));

  it("of two at once one wins and the other hears who; the provider runs once", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const [first, second] = [new Approver(rig), new Approver(rig, "mail")];
      await put(rig, agent, "pay");
      const shown = await first.look();
      rig.store.mode = "held";
      const answers = [
        first.peer.ask("callgate.approvals.approve", { approval: shown.approval, digest: shown.digest }),
        second.peer.ask("callgate.approvals.refuse", { approval: shown.approval }),
      ];
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(answers.map(({ end }) => end.split(" ").slice(0, 2).join(" "))).toEqual([
        "result public",
        "failed conflict",
      ]);
      expect(answers[1]?.sentence).toContain("role operator (uid 1002)");
      const late = await second.approve(shown);
      expect(late.sentence).toContain("already approved by role operator (uid 1002)");
      expect(files.requests).toHaveLength(1);
      files.take().result("x");
      await rig.settle();
    }));
});

describe("an answer", () => {
  it.each([0, 1, 1000])("%i ms after the expiry, with no sweeper running, releases nothing", (lateMs) =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay");
      const shown = await operator.look();
      rig.clock.jump(TTL_MS + lateMs);
      const late = await operator.approve(shown);
      expect([late.end, reply.end, files.requests]).toEqual([
        "failed conflict",
        "denied approval_expired",
        [],
      ]);
      expect(late.sentence).toContain("expired");
    }),
  );

  it("one millisecond before it still does", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay");
      const shown = await operator.look();
      rig.clock.jump(TTL_MS - 1);
      await operator.approve(shown);
      files.take().result("paid");
      await rig.settle();
      expect(reply.end).toBe("result public paid");
    }));

  it("names what was seen: after anything of it has changed the question stays open, and is to be looked at again", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const shown = await operator.look();
      agent.ask("free", {}, { call: 2n });
      await rig.settle();
      files.take().result("x", { class: "internal", untrusted: true }); // the session's taint rises
      await rig.settle();
      const stale = await operator.approve(shown);
      expect([stale.end, files.requests]).toEqual(["failed conflict", []]);
      expect(stale.sentence).toContain("look again");
      await rig.reloadWith(`${ASKING}${askGrant("one-more", "agent", '["pay"]')}`);
      const again = await operator.look();
      expect(again).toMatchObject({
        taint: { class: "internal", untrusted: true },
        asked_taint: { class: "public" },
      });
      expect(again["asks"]).toHaveLength(2);
      expect((await operator.approve({ ...again, digest: "" })).end).toBe("failed conflict");
      await operator.approve(again);
      files.take().result("paid");
      await rig.settle();
      expect(reply.end).toBe("result internal untrusted paid");
    }));

  it.each([
    [
      "a deny appeared",
      `${ASKING}[[grants]]\nid = "no"\nrole = "agent"\ntools = ["pay"]\neffect = "deny"\n`,
      "denied_by_grant",
    ],
    ["the grant is gone", ASKING.replace('["pay", "write", "look"]', '["write", "look"]'), "no_grant"],
    ["the role is gone", ASKING, "no_grant"],
  ])("approves nothing where by now %s: the question is void", (what, toml, reason) =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const shown = await operator.look();
      const without = what === "the role is gone" ? withoutAgent(toml) : toml;
      await rig.reloadWith(without);
      expect(await operator.list()).toHaveLength(1); // a reload alone voids nothing
      const answer = await operator.approve(shown);
      expect([answer.end, files.requests]).toEqual(["failed conflict", []]);
      expect(answer.sentence).toContain("void");
      if (what !== "the role is gone") expect(reply.end).toBe(`denied ${reason}`);
      const [closed] = await operator.list({ state: "all" });
      expect(closed).toMatchObject({ state: "void" });
    }),
  );

  it("with no provider there to run it stays open", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay");
      files.reset();
      await rig.settle();
      expect((await operator.letThrough()).end).toBe("failed no_provider");
      const back = rig.peer("files");
      await rig.settle();
      await operator.letThrough();
      back.take().result("paid");
      await rig.settle();
      expect(reply.end).toBe("result public paid");
    }));

  it("a reload that asks nobody any more releases nothing by itself", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "pay");
      await rig.reloadWith(ASKING.replaceAll('effect = "ask"', 'effect = "allow"'));
      expect([reply.seen, files.requests]).toEqual([["part: pending_approval"], []]);
      await operator.letThrough();
      files.take().result("paid");
      await rig.settle();
      expect(reply.end).toBe("result public paid");
    }));
});

/** Nothing of the role is left in the config. */
function withoutAgent(toml: string): string {
  const blocks = toml.split(/\n(?=\[)/);
  return blocks.filter((block) => !/^\[roles\.agent\]|role = "agent"/.test(block)).join("\n");
}
