// Calls that equal one whose outcome nobody knows: a human sees the first before the second runs.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, ASKING_ROLES, ASKING_TOOLS, OPERATORS, PAYMENT, put } from "./approvals_rig.ts";
import { allow } from "./configs.ts";
import { Lives } from "./lives.ts";
import { withRig } from "./rig.ts";

/** Everything is allowed outright: only doubts ask. */
const ALLOWING = `${ASKING_ROLES}${ASKING_TOOLS}${OPERATORS}
${allow("agent-does", "agent", '["pay", "read", "callgate.calls.*"]')}
${allow("other-does", "other", '["pay"]')}
`;

describe("a call that equals one whose outcome nobody knows", () => {
  it.each(["timeout", "provider_lost"] as const)("(%s) is put to a human, who is shown the first", (how) =>
    withRig(ALLOWING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const first = await put(rig, agent, "pay", '{"to":"bob","amount":5}', { call: 1n });
      files.take();
      if (how === "timeout") await rig.pass(3_600_000);
      else files.reset();
      await rig.settle();
      expect(first.end).toBe(`failed ${how}`);
      const again = rig.peer("files");
      await rig.settle();
      const serving = how === "timeout" ? files : again;
      const second = await put(rig, agent, "pay", '{"amount":5.0,"to":"bob"}', { session: "t", call: 2n });
      expect([second.seen, serving.requests]).toEqual([["part: pending_approval"], []]);
      const shown = await operator.look();
      expect(shown).toMatchObject({
        row: "doubt",
        grants: ["agent-does"],
        doubt: { role: "agent", session: "s", call: "1", code: how },
        remember: { allowed: false },
      });
      const wish = { remember: { what: "arguments", seconds: 60, calls: 1 } };
      expect((await operator.approve(shown, wish)).end).toBe("failed bad_arguments");
      await operator.approve(shown);
      serving.take().result("paid");
      await rig.settle();
      expect(second.end).toBe("result public paid");
      const third = await put(rig, agent, "pay", '{"amount":5,"to":"bob"}', { call: 3n });
      expect(third.seen).toEqual(["part: pending_approval"]); // the first is as unknown as before
    }),
  );

  it("other arguments, another role and reads are not doubted", () =>
    withRig(ALLOWING, async (rig) => {
      const [agent, other, files] = [rig.peer("agent"), rig.peer("other"), rig.peer("files")];
      await put(rig, agent, "pay", PAYMENT);
      await put(rig, agent, "read", { path: "a" });
      await rig.pass(3_600_000);
      files.requests.splice(0);
      await put(rig, agent, "pay", { ...PAYMENT, amount: 6 });
      await put(rig, agent, "read", { path: "a" });
      await put(rig, other, "pay", PAYMENT);
      expect(files.requests.map(({ body }) => body.tool)).toEqual(["pay", "read", "pay"]);
      for (const request of files.requests.splice(0)) request.result("x");
      await rig.settle();
    }));

  it("one whose provider has failed or that was denied has a known end, and is not doubted", () =>
    withRig(ALLOWING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await put(rig, agent, "pay", PAYMENT);
      files.take().fail("no money");
      await rig.settle();
      await put(rig, agent, "pay", PAYMENT);
      expect(files.requests).toHaveLength(1);
      files.take().result("x");
      await rig.settle();
    }));

  it("dispatched when the broker died it is doubted after the restart, until an operator settles it", async () => {
    const lives = await Lives.begin(ALLOWING);
    const before = lives.peer("files");
    await put(lives, lives.peer("agent"), "pay", PAYMENT, { call: 1n });
    expect(before.requests).toHaveLength(1);
    await lives.restart(ALLOWING);
    const [files, agent, operator] = [lives.peer("files"), lives.peer("agent"), new Approver(lives)];
    const second = await put(lives, agent, "pay", PAYMENT, { call: 2n });
    expect(second.seen).toEqual(["part: pending_approval"]);
    expect(await operator.look()).toMatchObject({
      doubt: { call: "1", code: "outcome_unknown", ended_at_ms: null },
    });
    await put(lives, agent, "callgate.calls.cancel", { call: "2" });
    const settle = { role: "agent", session: "s", call: "1", as: "failed", text: "it never arrived" };
    const settled = await put(lives, operator.peer, "callgate.calls.settle", settle);
    expect(settled.json).toMatchObject({ settled: true });
    await put(lives, agent, "pay", PAYMENT, { call: 3n });
    expect(files.requests).toHaveLength(1);
    files.take().result("x");
    await lives.settle();
  });

  it("whose outcome could not be written is doubted too", () =>
    withRig(ALLOWING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const first = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      rig.store.mode = "full";
      files.take().result("paid");
      await rig.settle();
      rig.store.mode = "at_once";
      expect(first.end).toBe("failed outcome_unknown");
      expect((await put(rig, agent, "pay", PAYMENT, { call: 2n })).seen).toEqual(["part: pending_approval"]);
      expect(files.requests).toEqual([]);
    }));

  it("is asked although an approval was remembered for it", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay", PAYMENT, { call: 1n });
      await operator.letThrough({ remember: { what: "arguments", seconds: 86_400, calls: 9 } });
      files.take();
      await rig.pass(3_600_000);
      const second = await put(rig, agent, "pay", PAYMENT, { call: 2n });
      expect([second.seen, files.requests]).toEqual([["part: pending_approval"], []]);
      expect((await operator.look())["row"]).toBe("doubt");
    }));
});
