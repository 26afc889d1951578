// An approval that is remembered stands in for the one ask that it came from: for what was shown, in that
// session, up to that taint, until a time and a number of times. Everything else is asked.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, askGrant, PAYMENT, put } from "./approvals_rig.ts";
import { allow } from "./configs.ts";
import { DENY, given, revoke, serving } from "./grants_rig.ts";
import { Lives } from "./lives.ts";
import { type Rig, withRig } from "./rig.ts";
import type { Reply, RigPeer } from "./rig_peer.ts";

const REMEMBER = { what: "arguments", seconds: 3600, calls: 3 } as const;
/** The agent may read, and is asked about writing; `floor` taints whoever reads it. */
const WORLD = `${ASKING}${allow("agent-taints", "agent", '["floor", "callgate.grants.*"]')}`;
const DONE = "result public done";

/** Asks for a payment, and has it approved and remembered so. */
async function remember(rig: Rig | Lives, agent: RigPeer, approver: Approver, more: object, tool = "pay") {
  await put(rig, agent, tool, tool === "pay" ? PAYMENT : { path: "/a", text: "x" });
  const reply = await approver.letThrough({ remember: { ...REMEMBER, ...more } });
  return String(reply.json["remembered"]);
}

/** Whether a human is asked; the question is refused for no time, so that the next one is asked too. */
async function isAsked(rig: Rig | Lives, approver: Approver, reply: Reply): Promise<boolean> {
  await rig.settle();
  if (reply.end === DONE) return false;
  expect(reply.seen).toEqual(["part: pending_approval"]);
  await approver.refuse(await approver.look());
  return true;
}

describe("an approval that is remembered for these arguments", () => {
  it("lets equal calls through, however they are spelt, so often as was said, and no others", () =>
    withRig(WORLD, async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await remember(rig, agent, approver, {});
      const equal = [
        '{"amount":5.0,"to":"bob"}',
        '{ "to": "\\u0062ob", "amount": 5 }',
        '{"to":"bob","amount":5e0}',
      ];
      for (const text of equal) expect(await isAsked(rig, approver, agent.ask("pay", text))).toBe(false);
      expect(await isAsked(rig, approver, agent.ask("pay", PAYMENT))).toBe(true); // the number is used up
      expect(ran).toHaveLength(4);
    }));

  it.each<[string, object | string]>([
    ["another value", { to: "bob", amount: 6 }],
    ["another destination", { to: "mallory", amount: 5 }],
    ["an argument more", { ...PAYMENT, note: "" }],
    ["an argument less", { to: "bob" }],
    ["a value of another kind", { to: "bob", amount: "5" }],
  ])("asks for %s", (_, args) =>
    withRig(WORLD.replaceAll('{ type = "number" }', "{}"), async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await remember(rig, agent, approver, {});
      expect(await isAsked(rig, approver, agent.ask("pay", args))).toBe(true);
      expect(await isAsked(rig, approver, agent.ask("pay", PAYMENT))).toBe(false);
    }),
  );

  it("serves neither another role nor another tool, and no other ask of the same call", () =>
    withRig(
      `${WORLD}${askGrant("agent-pays-bob", "agent", '["pay"]', "when = 'args.to == \"bob\" && args.amount > 4'")}`,
      async (rig) => {
        serving(rig);
        const [agent, other, approver] = [rig.peer("agent"), rig.peer("other"), new Approver(rig)];
        await put(rig, agent, "pay", { to: "bob", amount: 4 });
        const remembered = await approver.letThrough({ remember: REMEMBER });
        expect(remembered.json["remembered"]).toContain("remembered.");
        expect(await isAsked(rig, approver, agent.ask("pay", { to: "bob", amount: 4 }))).toBe(false);
        expect(await isAsked(rig, approver, other.ask("pay", { to: "bob", amount: 4 }))).toBe(true);
        await put(rig, agent, "pay"); // two grants ask for this one, so it can't be remembered
        const both = await approver.look();
        const notBoth = await approver.approve(both, { remember: REMEMBER });
        expect(notBoth.sentence).toContain("stands in for one only");
        await approver.refuse(both);
        expect(await isAsked(rig, approver, agent.ask("write", { path: "/a" }))).toBe(true);
      },
    ));
});

describe("an approval that is remembered for this tool", () => {
  it("holds in its session alone", () =>
    withRig(WORLD, async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await remember(rig, agent, approver, { what: "tool" });
      expect(await isAsked(rig, approver, agent.ask("pay", { to: "carol", amount: 1 }))).toBe(false);
      expect(await isAsked(rig, approver, agent.ask("write", { path: "/a" }))).toBe(true);
      const elsewhere = agent.ask("pay", { to: "dave", amount: 1 }, { session: "s2" });
      expect(await isAsked(rig, approver, elsewhere)).toBe(true);
    }));

  it("holds up to the taint that was shown, and not above it", () =>
    withRig(WORLD, async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await remember(rig, agent, approver, { what: "tool" });
      await put(rig, agent, "floor", {}); // internal from here on
      const reply = agent.ask("pay", PAYMENT);
      await rig.settle();
      expect(reply.seen).toEqual(["part: pending_approval"]);
      await approver.letThrough({ remember: { ...REMEMBER, what: "tool" } });
      const after = agent.ask("pay", { to: "erin", amount: 2 });
      await rig.settle();
      expect(after.end).toBe("result internal untrusted done");
    }));

  it("ends at its time to the millisecond", () =>
    withRig(WORLD, async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await remember(rig, agent, approver, { what: "tool", seconds: 60 });
      await rig.pass(59_999);
      expect(await isAsked(rig, approver, agent.ask("pay", PAYMENT))).toBe(false);
      await rig.pass(1);
      expect(await isAsked(rig, approver, agent.ask("pay", PAYMENT))).toBe(true);
    }));

  it("lets exactly so many through at once, and asks for the others", () =>
    withRig(WORLD, async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await remember(rig, agent, approver, { what: "tool" });
      rig.store.mode = "held";
      const replies = Array.from({ length: 8 }, (_, i) => agent.ask("pay", { to: "bob", amount: i }));
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(replies.filter(({ end }) => end === DONE)).toHaveLength(3);
      expect(await approver.list()).toHaveLength(5);
      expect(ran).toHaveLength(1 + 3);
      for (const question of await approver.list()) await approver.refuse(question);
    }));
});

describe("a remembered approval", () => {
  it("yields to a deny, to a condition that can't judge the call, and to being revoked, on the very next call", () =>
    withRig(WORLD.replace('reason = "money"', `reason = "money"\nwhen = 'args.amount > 0'`), async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      const id = await remember(rig, agent, approver, { what: "tool", calls: 9 });
      expect(await isAsked(rig, approver, agent.ask("pay", { to: "x" }))).toBe(true); // no amount to judge
      const deny = await given(rig, approver.peer, { ...DENY, tools: ["pay"] });
      expect((await put(rig, agent, "pay")).end).toBe("denied denied_by_grant");
      await revoke(rig, approver.peer, deny);
      expect((await put(rig, agent, "pay")).end).toBe(DONE);
      const back = await revoke(rig, agent, id); // it serves the agent, which may give it back
      expect(back.end).toContain("result");
      expect(await isAsked(rig, approver, agent.ask("pay", PAYMENT))).toBe(true);
      expect(ran).toHaveLength(2);
    }));

  it("is nothing by itself: without its ask the call is denied", () =>
    withRig(WORLD, async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await remember(rig, agent, approver, { what: "tool" });
      await rig.reloadWith(WORLD.replace('["pay", "write", "look"]', '["write", "look"]'));
      expect((await put(rig, agent, "pay")).end).toBe("denied no_grant");
      await rig.reloadWith(WORLD);
      expect((await put(rig, agent, "pay")).end).toBe(DONE);
    }));

  it("lets through no more calls than its ask does", () =>
    withRig(WORLD.replace('reason = "money"', 'reason = "money"\nmax_calls = 2'), async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await remember(rig, agent, approver, { what: "tool", calls: 9 });
      expect((await put(rig, agent, "pay")).end).toBe(DONE);
      expect((await put(rig, agent, "pay")).end).toBe("denied grant_expired");
    }));

  it("is there after a restart with what is left of it", async () => {
    const lives = await Lives.begin(WORLD);
    serving(lives);
    await remember(lives, lives.peer("agent"), new Approver(lives), { what: "tool" });
    const peer = lives.peer("agent");
    await put(lives, peer, "pay", { to: "a", amount: 1 });
    await lives.restart(WORLD);
    const { ran } = serving(lives);
    const [agent, approver] = [lives.peer("agent"), new Approver(lives)];
    const listed = await put(lives, agent, "callgate.grants.list", {});
    const shown = (listed.json["grants"] as { remembers: string | null }[]).find(
      (one) => one.remembers !== null,
    );
    expect(shown).toMatchObject({
      ...{ remembers: "agent-pays", runtime: true, by: { role: "operator", uid: 1002 } },
      max_calls: { calls: 3, used: 1 },
    });
    for (const amount of [2, 3]) {
      expect(await isAsked(lives, approver, agent.ask("pay", { to: "a", amount }))).toBe(false);
    }
    expect(await isAsked(lives, approver, agent.ask("pay", { to: "a", amount: 4 }))).toBe(true);
    expect(ran).toHaveLength(2);
  });

  it("is explained: which ask it stands in for, and which calls it is not for", () =>
    withRig(WORLD, async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      const id = await remember(rig, agent, approver, {});
      const explain = async (args: object) => {
        const asked = { tool: "pay", arguments: JSON.stringify(args) };
        const { json } = await put(rig, agent, "callgate.grants.explain", asked);
        const steps = json["grants"] as { grant: string }[];
        return {
          json,
          ask: steps.find(({ grant }) => grant === "agent-pays"),
          own: steps.find((one) => one.grant === id),
        };
      };
      const covered = await explain({ amount: 5, to: "bob" });
      expect(covered.json).toMatchObject({ verdict: "allow", remembered: [id] });
      expect(covered.ask).toMatchObject({ satisfied_by: id });
      const beside = await explain({ amount: 5, to: "bobby" });
      expect(beside.json).toMatchObject({ verdict: "ask", grant: "agent-pays", remembered: [] });
      expect(beside.own).toMatchObject({ failed: "equal", matches: false });
    }));
});
