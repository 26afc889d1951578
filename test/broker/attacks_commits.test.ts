// Every commit in the life of a question that two equal calls wait for, refused in turn: nothing runs twice or
// unapproved, nobody hears two ends, and the question is open and can be answered, or closed.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, PAYMENT, put } from "./approvals_rig.ts";
import { serving } from "./grants_rig.ts";
import { type Rig, withRig } from "./rig.ts";

const LIMITED = ASKING.replace('reason = "money"', 'reason = "money"\nmax_calls = 1');

/** Writes what is held one by one, but for the commit of that number. */
async function writeAllBut(rig: Rig, refused: { left: number }): Promise<void> {
  await rig.settle();
  while (rig.store.waiting > 0) {
    if (refused.left === 0) rig.store.refuse(1);
    else rig.store.release(1);
    refused.left -= 1;
    await rig.settle();
  }
}

const ENDS = ["approve", "refuse", "cancel", "expire", "close"] as const;

async function end(rig: Rig, how: (typeof ENDS)[number], approver: Approver): Promise<void> {
  const [first] = await approver.list();
  if (first === undefined) return;
  const { approval, digest } = await approver.show(first.approval);
  const { peer } = approver;
  rig.store.mode = "held";
  if (how === "approve" || how === "refuse") peer.ask(`callgate.approvals.${how}`, { approval, digest });
  if (how === "cancel") peer.ask("callgate.calls.cancel", { role: "agent", session: "s", call: "1" });
  if (how === "close") peer.ask("callgate.sessions.close", { role: "agent", session: "s" });
  if (how === "expire") await rig.pass(900_000);
}

describe.each(ENDS)("of a question that ends by %s", (how) => {
  it.each(Array.from({ length: 9 }, (_, i) => i))("commit %i can be refused", (refusedAt) =>
    withRig(LIMITED, async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      const refused = { left: refusedAt };
      rig.store.mode = "held";
      const replies = [1n, 2n].map((call) => agent.ask("pay", PAYMENT, { call }));
      await writeAllBut(rig, refused);
      rig.store.mode = "at_once";
      await end(rig, how, approver);
      await writeAllBut(rig, refused);
      rig.store.mode = "at_once";
      await rig.pass(6000); // what is owed is written
      const first = ran.length;
      expect(first).toBeLessThanOrEqual(how === "approve" ? 1 : 0);
      for (const reply of replies) expect(reply.finals).toBeLessThanOrEqual(1);
      const before = replies.map(({ end }) => end);
      const open = await approver.list();
      expect(open.length).toBeLessThanOrEqual(1);
      if (open.length === 1) {
        expect(first).toBe(0);
        expect((await approver.letThrough()).end).toContain("approved");
        expect(ran).toHaveLength(1);
      }
      for (const [i, reply] of replies.entries()) {
        if (!before[i]?.startsWith("result") && !before[i]?.startsWith("denied")) continue;
        const again = await put(rig, agent, "pay", PAYMENT, { call: BigInt(i + 1) });
        if (how !== "close") expect(again.end).toBe(reply.end);
      }
      expect(ran.length).toBeLessThanOrEqual(1);
      for (const question of await approver.list()) await approver.refuse(question);
    }),
  );
});
