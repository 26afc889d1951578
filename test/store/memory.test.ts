import { describe, expect, it } from "vitest";
import { MemoryStore } from "../../src/store/memory.ts";
import type { CallRecord } from "../../src/store/records.ts";
import { FakeClock } from "../broker/fake_clock.ts";
import { intentOf, outcomeOf, recordOf } from "./store_worlds.ts";

const MINUTE_MS = 60_000;

function storeOf(storedBytesMax = 1_000_000) {
  const clock = new FakeClock(1_000_000);
  const store = new MemoryStore(clock, { replayForMs: MINUTE_MS, storedBytesMax: () => storedBytesMax });
  return { clock, store };
}

function end(store: MemoryStore, record: CallRecord, atMs: number): void {
  store.commit([intentOf(record)], () => undefined);
  store.commit([outcomeOf(record, "m", atMs)], () => undefined);
}

describe("the store in memory", () => {
  it("prunes one role's records only for that role's bytes", () => {
    const { clock, store } = storeOf(300);
    end(store, recordOf(1n, { session: "s", role: "quiet" }), clock.nowMs());
    for (let call = 1n; call <= 5000n; call += 1n)
      end(store, recordOf(call, { session: "s" }), clock.nowMs());
    expect(store.findCall({ role: "quiet", session: "s", call: 1n })).toBeDefined();
    expect(store.findCall({ role: "agent", session: "s", call: 4990n })).toBeUndefined();
    expect(store.findCall({ role: "agent", session: "s", call: 5000n })).toBeDefined();
    expect(store.watermark("agent", "s")).toBe(4998n);
  });
});
