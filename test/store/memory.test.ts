import { describe, expect, it } from "vitest";
import { CLEAN } from "../../src/base/labels.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import type { CallRecord } from "../../src/store/records.ts";
import { FakeClock } from "../broker/fake_clock.ts";

const MINUTE_MS = 60_000;

function storeOf(storedBytesMax = 1_000_000) {
  const clock = new FakeClock(1_000_000);
  const store = new MemoryStore(clock, { replayForMs: MINUTE_MS, storedBytesMax: () => storedBytesMax });
  return { clock, store };
}

function recordOf(session: string, call: bigint, role = "agent"): CallRecord {
  return {
    key: { role, session, call },
    tool: "t",
    arguments: "{}",
    uid: 1,
    state: "dispatched",
    messages: [],
    labels: CLEAN,
    endedAtMs: 0,
  };
}

function intend(store: MemoryStore, record: CallRecord): void {
  const { key, tool } = record;
  const decided = {
    verdict: "allow",
    row: "allow",
    grant: "g",
    denied: undefined,
    reason: undefined,
  } as const;
  const decision = { key, tool, atMs: 0, taint: CLEAN, ...decided };
  store.commit([{ kind: "intent", record, decision, provider: "files" }], () => undefined);
}

function end(store: MemoryStore, record: CallRecord, atMs: number): void {
  intend(store, record);
  const ended = { message: Buffer.from("m"), status: "result", code: undefined } as const;
  store.commit([{ kind: "outcome", record, atMs, ...ended }], () => undefined);
}

describe("the store in memory", () => {
  it("keeps a call from its intent on, and forgets one that was withdrawn", () => {
    const { store } = storeOf();
    const record = recordOf("s", 1n);
    intend(store, record);
    expect(store.findCall(record.key)).toBe(record);
    store.commit([{ kind: "withdrawn", record }], () => undefined);
    expect([store.findCall(record.key), store.watermark("agent", "s")]).toEqual([undefined, undefined]);
  });

  it("leaves the highest pruned id of a session behind, whatever the order they ended in", () => {
    const { clock, store } = storeOf();
    for (const call of [9n, 3n]) end(store, recordOf("s", call), clock.nowMs());
    clock.step(clock.nowMs() + MINUTE_MS + 1);
    end(store, recordOf("other", 1n), clock.nowMs());
    expect([store.watermark("agent", "s"), store.watermark("agent", "other")]).toEqual([9n, undefined]);
    expect(store.findCall({ role: "agent", session: "s", call: 3n })).toBeUndefined();
  });

  it("prunes one role's records only for that role's bytes", () => {
    const { clock, store } = storeOf(250);
    end(store, recordOf("s", 1n, "quiet"), clock.nowMs());
    for (let call = 1n; call <= 5000n; call += 1n) end(store, recordOf("s", call), clock.nowMs());
    expect(store.findCall({ role: "quiet", session: "s", call: 1n })).toBeDefined();
    expect(store.findCall({ role: "agent", session: "s", call: 4990n })).toBeUndefined();
    expect(store.findCall({ role: "agent", session: "s", call: 5000n })).toBeDefined();
    expect(store.watermark("agent", "s")).toBe(4998n);
  });

  it("never forgets that an id was used, though endless sessions are named: the oldest share a watermark", () => {
    const { clock, store } = storeOf(600);
    for (let i = 0; i < 65_540; i += 1) end(store, recordOf(`s${i}`, BigInt(i)), clock.nowMs());
    for (const i of [0, 1, 2, 60_000]) {
      expect(store.watermark("agent", `s${i}`)).toBeGreaterThanOrEqual(BigInt(i));
    }
  });
});
