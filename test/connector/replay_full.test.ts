// A store of as many turns as it may keep.

import { expect, it } from "vitest";
import { replayKey } from "../../src/connector/digest.ts";
import { DurableReplay } from "../../src/host/connector_replay.ts";
import { FakeClock } from "../broker/fake_clock.ts";
import { FakeDisk, FakeEngine, fakeReserve } from "../store/fake_engine.ts";

const AT_MS = 1_760_000_000_000;
const keyOf = (id: string) => replayKey("caller-alpha", id);
const headOf = (id: string) => ({
  caller: "caller-alpha",
  requestId: id,
  keySha256: Buffer.alloc(32, 1),
  invocationSha256: Buffer.alloc(32, 2),
  expiresAtUnixMs: AT_MS,
});

it("can't be filled by a caller until no process can hold or open it: it takes no new turn, ends those that run, and forgets", async () => {
  const clock = new FakeClock(AT_MS);
  const disk = new FakeDisk();
  const events: string[] = [];
  const opened = await DurableReplay.open({
    engine: new FakeEngine(disk),
    reserve: fakeReserve(disk),
    clock,
    log: (_, event) => events.push(event),
    released: () => undefined,
    recordsMax: 3,
  });
  if (!opened.ok) throw new Error(opened.fault);
  const store = opened.value;
  /** Runs what waits for the end of a turn until all are answered. */
  const done = async <T>(...asked: Promise<T>[]): Promise<T[]> => {
    let settled = false;
    const all = Promise.all(asked);
    void all.finally(() => {
      settled = true;
    });
    while (!settled) {
      clock.runAfterInput();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return all;
  };
  const activate = (id: string) => store.activate(keyOf(id), headOf(id));
  expect(await done(...["a", "b", "c", "d", "e"].map(activate))).toEqual([true, true, true, false, false]);
  expect(await done(activate("f"))).toEqual([false]);
  expect(events.filter((event) => event === "connector.store_full")).toHaveLength(1);
  expect(await done(store.complete(keyOf("a"), headOf("a"), Buffer.from("frame")))).toEqual([true]);
  expect(store.frame(keyOf("a"))?.toString()).toBe("frame");
  expect(await done(store.forget([keyOf("a")]))).toEqual([1]);
  expect(await done(activate("f"))).toEqual([true]);
});
