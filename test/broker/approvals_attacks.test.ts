// The agent as attacker, against the questions to humans and what is remembered of their answers.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, PAYMENT, put } from "./approvals_rig.ts";
import { serving } from "./grants_rig.ts";
import { withRig } from "./rig.ts";

const REMEMBER = { what: "arguments", seconds: 3600, calls: 9 } as const;

describe("an approval of these exact arguments", () => {
  it.each([
    ["9007199254740992", "9007199254740993.0"],
    ["9007199254740992.0", "9007199254740993.0"],
    ["12345678901234567168", "12345678901234567169e0"],
    ["1e22", "1.0000000000000000000001e22"],
  ])("of the number %s does not let %s through, which a double can't tell from it", (approved, other) =>
    withRig(ASKING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await put(rig, agent, "pay", `{"to":"bob","amount":${approved}}`);
      const remembered = await approver.letThrough({ remember: REMEMBER });
      expect(remembered.end).toContain("result");
      const reply = await put(rig, agent, "pay", `{"to":"bob","amount":${other}}`);
      expect(reply.seen).toEqual(["part: pending_approval"]);
      expect(ran).toHaveLength(1);
      await approver.refuse(await approver.look());
    }),
  );
});

describe("a refused call", () => {
  it("is not asked again under another id, session, spelling or connection", () =>
    withRig(ASKING, async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await put(rig, agent, "pay");
      await approver.refuse(await approver.look());
      const again = rig.peer("agent");
      const replies = [
        await put(rig, agent, "pay", PAYMENT, { call: 77n }),
        await put(rig, again, "pay", '{ "amount" : 5.0, "to" : "b\\u006fb" }', { session: "fresh" }),
      ];
      expect(replies.map(({ end }) => end)).toEqual(["denied approval_refused", "denied approval_refused"]);
      expect(await approver.list()).toEqual([]);
    }));
});

describe("an approval whose ask is used up meanwhile", () => {
  it("of two open questions releases one, and voids the other instead of running it", () =>
    withRig(ASKING.replace('reason = "money"', 'reason = "money"\nmax_calls = 1'), async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      const replies = [
        await put(rig, agent, "pay"),
        await put(rig, agent, "pay", { to: "carol", amount: 1 }),
      ];
      const shown = await Promise.all((await approver.list()).map(({ approval }) => approver.show(approval)));
      rig.store.mode = "held";
      const answers = shown.map(({ approval, digest }) =>
        approver.peer.ask("callgate.approvals.approve", { approval, digest }),
      );
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(answers.map(({ end }) => end.split(" ").slice(0, 2).join(" ")).sort()).toEqual([
        "failed conflict",
        "result public",
      ]);
      expect(replies.map(({ end }) => end).sort()).toEqual(["denied grant_expired", "result public done"]);
      expect(ran).toHaveLength(1);
    }));

  it("an approval that can't be written gives its use back, and the question stays open", () =>
    withRig(ASKING.replace('reason = "money"', 'reason = "money"\nmax_calls = 1'), async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      const reply = await put(rig, agent, "pay");
      const { approval, digest } = await approver.look();
      rig.store.mode = "held";
      approver.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      rig.store.refuse(1);
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(reply.seen).toEqual(["part: pending_approval"]);
      expect((await approver.letThrough()).end).toContain("result");
      expect(reply.end).toBe("result public done");
      expect(ran).toHaveLength(1);
    }));
});

describe("an approval that is being written", () => {
  it.each(["role", "session"])("releases nothing once an operator has frozen the %s", (what) =>
    withRig(ASKING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver, second] = [rig.peer("agent"), new Approver(rig), rig.peer("mail")];
      await put(rig, agent, "pay");
      const { approval, digest } = await approver.look();
      rig.store.mode = "held";
      approver.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      second.ask("callgate.freeze", { role: "agent", ...(what === "session" ? { session: "s" } : {}) });
      await rig.settle();
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(ran).toEqual([]);
    }),
  );

  it("releases nothing that a deny forbids by then", () =>
    withRig(ASKING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver, second] = [rig.peer("agent"), new Approver(rig), rig.peer("mail")];
      const reply = await put(rig, agent, "pay");
      const { approval, digest } = await approver.look();
      rig.store.mode = "held";
      const deny = { role: "agent", tools: ["pay"], effect: "deny", reason: "stop" };
      second.ask("callgate.grants.add", deny); // its intent is written first, and its deny just before the release
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      approver.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(reply.end).toBe("denied denied_by_grant");
      expect(ran).toEqual([]);
    }));
});
