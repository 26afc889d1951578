// An agent that colludes with a provider, against the time that everybody shares: what it can make the broker
// go through again and again.

import { describe, expect, it } from "vitest";
import { parseJsonObject } from "../../src/base/json.ts";
import { ARGUMENTS_LIMITS } from "../../src/base/limits.ts";
import { Doubts } from "../../src/broker/doubts.ts";
import { callRecord } from "../../src/broker/new_call.ts";
import { equalText } from "../../src/policy/equal.ts";
import type { CallKey } from "../../src/store/records.ts";
import { Approver, ASKING, put } from "./approvals_rig.ts";
import { BASIC } from "./configs.ts";
import { serving } from "./grants_rig.ts";
import { withRig } from "./rig.ts";

const DOUBTS_MAX = 16_384;

function lost(n: number) {
  const key = { role: "agent", session: "s", call: BigInt(n) };
  const asked = { tool: "t", arguments: "{}", uid: 1, durable: true, equal: `equal-${n}`, askedAtMs: n };
  return callRecord(key, asked);
}

/** A role with as many calls in doubt as can be told apart; what is asked of the store is counted. */
function fullDoubts() {
  const asked = { calls: 0 };
  const settled = new Set<bigint>();
  const findCall = ({ call }: CallKey) => {
    asked.calls += 1;
    return settled.has(call) ? undefined : lost(Number(call));
  };
  const doubts = new Doubts({ findCall });
  for (let n = 0; n < DOUBTS_MAX; n += 1) doubts.add(lost(n));
  asked.calls = 0;
  return { doubts, asked, settled };
}

describe("a role with more calls in doubt than can be told apart", () => {
  it("makes the broker go through them once, and not for each one that a provider loses", () => {
    const { doubts, asked } = fullDoubts();
    for (let n = 0; n < 1000; n += 1) doubts.add(lost(DOUBTS_MAX + n));
    expect(asked.calls).toBeLessThan(2 * DOUBTS_MAX);
    expect(doubts.find("agent", "equal-of-none")).toEqual(lost(DOUBTS_MAX + 999).key);
  });

  it("is in doubt with all of its calls also when the one that stood for them is settled", () => {
    const { doubts, settled } = fullDoubts();
    const [one, two] = [lost(DOUBTS_MAX), lost(DOUBTS_MAX + 1)];
    doubts.add(one);
    doubts.add(two);
    settled.add(two.key.call);
    doubts.settled(two);
    expect(doubts.find("agent", `equal-${DOUBTS_MAX}`)).toBeDefined();
  });

  it("has room again once they are known", () => {
    const { doubts, settled } = fullDoubts();
    for (let n = 0n; n < DOUBTS_MAX; n += 1n) settled.add(n);
    doubts.add(lost(DOUBTS_MAX));
    expect(doubts.find("agent", `equal-${DOUBTS_MAX}`)).toEqual(lost(DOUBTS_MAX).key);
    expect(doubts.find("agent", "equal-of-none")).toBeUndefined();
  });
});

describe("an agent that asks for lists as fast as it can", () => {
  it("gets one in a turn, so that nobody else waits for all of them", () =>
    withRig(BASIC, async (rig) => {
      const read = { lists: 0 };
      const { ended } = rig.store;
      rig.store.ended = (wanted) => {
        read.lists += 1;
        return ended.call(rig.store, wanted);
      };
      const agent = rig.peer("agent");
      const lists = Array.from({ length: 50 }, () => agent.ask("callgate.calls.list"));
      for (let i = 0; i < 8; i += 1) await new Promise((turned) => setImmediate(turned));
      expect(read.lists).toBe(1);
      const status = rig.peer("operator").ask("callgate.status");
      for (let i = 0; status.finals === 0; i += 1) {
        expect(i).toBeLessThan(16);
        rig.clock.runAfterInput();
        await new Promise((turned) => setImmediate(turned));
      }
      expect(read.lists).toBeLessThan(20);
      await rig.settle();
      expect(lists.map(({ json }) => json["calls"])).toEqual(Array(50).fill([]));
    }));

  it("that has gone by then is asked for by nobody", () =>
    withRig(BASIC, async (rig) => {
      const read = { lists: 0 };
      const { ended } = rig.store;
      rig.store.ended = (wanted) => {
        read.lists += 1;
        return ended.call(rig.store, wanted);
      };
      const agent = rig.peer("agent");
      for (let i = 0; i < 50; i += 1) agent.ask("callgate.calls.list");
      for (let i = 0; i < 8; i += 1) await new Promise((turned) => setImmediate(turned));
      agent.reset();
      await rig.settle();
      expect(read.lists).toBe(1);
    }));
});

describe("an approver who looks at a question", () => {
  it("does not have megabytes of others' arguments parsed to learn which item they changed", () =>
    withRig(SAME_STORE, async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await put(rig, agent, "write", { path: "a" });
      await put(rig, agent, "store", { path: "other" });
      await put(rig, agent, "store", { path: "other", data: "x".repeat(300_000) });
      const { store_changes: seen } = await approver.look();
      expect(seen).toMatchObject([{ tool: "store" }]); // what was not looked through may be any item
      await approver.refuse(await approver.look());
    }));
});

const SAME_STORE = ASKING.replace('"free", "callgate.calls', '"free", "store", "callgate.calls').replace(
  "[tools.pay]",
  `[tools.store]
role = "files"
effect = "write"
store_key = "path"
untrusted = false
[tools.pay]`,
);

describe("numbers of three hundred digits in five characters", () => {
  it("take no more room where calls are compared than where they were sent", () => {
    const sent = `{"a":[${Array(60_000).fill("1e308").join(",")}]}`;
    expect(text(sent).length).toBeLessThan(2 * sent.length);
  });

  it.each([
    ["1e22", "10000000000000000000000"],
    ["1.0", "1"],
    ["-0.0", "0"],
    ["9007199254740992.0", "9007199254740992"],
    ["1152921504606846976.0", "1152921504606846976"],
    ["-1e100", `-${BigInt(1e100)}`],
  ])("are equal however they are spelt: %s and %s", (one, other) => {
    expect(text(`{"a":${one}}`)).toBe(text(`{"a":${other}}`));
  });

  it.each([
    ["1152921504606846976.0", "1152921504606847000"],
    ["1e22", "10000000000000000000001"],
    ["9007199254740992", "9007199254740993"],
    ["1e308", "9".repeat(308)],
    ["1e22", '"~1e+22"'],
  ])("are not equal to others: %s and %s", (one, other) => {
    expect(text(`{"a":${one}}`)).not.toBe(text(`{"a":${other}}`));
  });
});

function text(args: string): string {
  const parsed = parseJsonObject(args, ARGUMENTS_LIMITS);
  if (!parsed.ok) throw new Error(`the test's arguments are refused: ${parsed.fault.message}`);
  return equalText("t", parsed.value);
}
