// Commits over a disk that is slow, full or gone, told by what the store's callers hear.

import { describe, expect, it } from "vitest";
import { STALLED_AFTER_MS } from "../../src/store/journal.ts";
import { HOST } from "../../src/store/records.ts";
import { RESERVE_BYTES } from "./fake_engine.ts";
import { FakeDiskWorld, intentOf, outcomeOf, recordOf, START_MS, shown } from "./store_worlds.ts";

const NOTE = { kind: "audit", record: { kind: "change", what: "reload", by: HOST, subject: "v" } } as const;

/** What each commit was told, in the order of the tellings. */
async function heldWorld() {
  const world = await FakeDiskWorld.start();
  const told: string[] = [];
  world.engine.held = true;
  const commit = (name: string, ...changes: Parameters<typeof world.store.commit>[0]) =>
    world.store.commit(changes, (fault) => told.push(fault === undefined ? name : `${name} refused`));
  return { world, told, commit };
}

/** Lets promises settle: the space that is kept back is given and taken through them. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("commits that wait for the disk", () => {
  it("are not called back before, share a batch with what came meanwhile, and are told in order", async () => {
    const { world, told, commit } = await heldWorld();
    commit("a", intentOf(recordOf(1n)));
    world.clock.runAfterInput();
    for (const [name, call] of [
      ["b", 2n],
      ["c", 3n],
      ["d", 4n],
    ] as const)
      commit(name, intentOf(recordOf(call)));
    expect(told).toEqual([]);
    world.engine.release();
    expect(told).toEqual(["a"]);
    world.engine.release();
    expect(told).toEqual(["a", "b", "c", "d"]);
    expect(world.engine.batches).toBe(3); // the first one made the store
  });

  it("fail together with their batch, and leave nothing behind: no call, no record, no hash", async () => {
    const { world, told, commit } = await heldWorld();
    const head = world.store.audit.head();
    commit("a", intentOf(recordOf(1n)));
    commit("b", intentOf(recordOf(2n)));
    world.clock.runAfterInput();
    world.engine.refuse();
    expect(told).toEqual(["a refused", "b refused"]);
    expect(world.store.findCall(recordOf(1n).key)).toBeUndefined();
    expect(world.store.audit.head()).toEqual(head);
    expect(world.store.condition).toBe("failing");
    await world.crash();
    expect([...world.store.calls()]).toEqual([]);
  });

  it("what a later one leaves is there although an earlier one was refused", async () => {
    const { world, told, commit } = await heldWorld();
    const record = recordOf(1n);
    commit("intent", intentOf(record));
    world.clock.runAfterInput();
    world.engine.release();
    commit("part", { kind: "message", record, message: Buffer.from("lost") });
    world.clock.runAfterInput();
    commit("outcome", outcomeOf(record, "final", 5));
    world.engine.refuse();
    world.engine.release();
    expect(told).toEqual(["intent", "part refused", "outcome"]);
    await world.crash();
    expect(shown(world.store.findCall(record.key))?.messages).toEqual(["final"]);
  });

  it("an outcome whose call was never written is no call, also after a restart", async () => {
    const { world, told, commit } = await heldWorld();
    const record = recordOf(1n);
    commit("intent", intentOf(record));
    world.clock.runAfterInput();
    commit("outcome", outcomeOf(record, "final", 5));
    world.engine.refuse();
    world.engine.release();
    expect(told[0]).toBe("intent refused");
    await world.crash();
    expect(shown(world.store.findCall(record.key))?.messages ?? ["final"]).toEqual(["final"]);
    expect([...world.store.calls()].every(({ state }) => state === "ended")).toBe(true);
  });

  it("a callback that throws keeps no other from being called", async () => {
    const { world, told, commit } = await heldWorld();
    const others = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    const once = new Promise((resolve) => process.once("uncaughtException", resolve));
    world.store.commit([intentOf(recordOf(1n))], () => {
      throw new Error("broken");
    });
    commit("b", intentOf(recordOf(2n)));
    world.clock.runAfterInput();
    world.engine.release();
    await once;
    for (const listener of others) process.on("uncaughtException", listener);
    expect(told).toEqual(["b"]);
  });

  it("that come after the end are refused", async () => {
    const { world, told, commit } = await heldWorld();
    world.engine.held = false;
    await world.store.close();
    commit("late", intentOf(recordOf(1n)));
    world.clock.runAfterInput();
    expect(told).toEqual(["late refused"]);
  });

  it("are written before the store is closed", async () => {
    const { world, told, commit } = await heldWorld();
    commit("a", intentOf(recordOf(1n)));
    commit("note", NOTE);
    world.engine.held = false;
    await world.store.close();
    expect(told).toEqual(["a", "note"]);
    await world.open();
    expect(world.store.audit.lines(1n, 9).length).toBe(2);
  });
});

describe("what need not wait", () => {
  it("is called back at once while the disk takes what it is given, and is written all the same", async () => {
    const { world, told, commit } = await heldWorld();
    const quick = recordOf(1n, { durable: false });
    commit("intent", intentOf(quick));
    commit("outcome", outcomeOf(quick, "final", START_MS));
    commit("note", NOTE);
    expect(told).toEqual(["intent", "outcome"]); // what only the audit is told is waited for
    expect(shown(world.store.findCall(quick.key))?.messages).toEqual(["final"]);
    world.clock.runAfterInput();
    world.engine.release();
    expect(world.store.audit.lines(1n, 9).map(({ text }) => JSON.parse(text).kind)).toEqual([
      "dispatch",
      "outcome",
      "change",
    ]);
    await world.crash();
    expect(world.store.findCall(quick.key)).toBeUndefined();
  });

  it("keeps its order: a part behind one that raises a taint waits with it", async () => {
    const { world, told, commit } = await heldWorld();
    const quick = recordOf(1n, { durable: false });
    const labels = { class: "restricted", untrusted: true } as const;
    const message = Buffer.from("m");
    commit("intent", intentOf(quick));
    commit(
      "one",
      { kind: "taint", scope: { of: "role", role: "agent" }, labels, by: quick.key },
      { kind: "message", record: quick, message },
    );
    commit("two", { kind: "message", record: quick, message });
    commit("other", intentOf(recordOf(2n, { durable: false })));
    expect(told).toEqual(["intent", "other"]);
    world.clock.runAfterInput();
    world.engine.release();
    expect(told).toEqual(["intent", "other", "one", "two"]);
    commit("three", { kind: "message", record: quick, message });
    expect(told.at(-1)).toBe("three");
  });

  it("loses no audit record to a batch that is refused: the next one has it", async () => {
    const { world, told, commit } = await heldWorld();
    commit("quick", intentOf(recordOf(1n, { durable: false })));
    commit("call", intentOf(recordOf(2n)));
    world.clock.runAfterInput();
    world.engine.refuse();
    expect(told).toEqual(["quick", "call refused"]);
    commit("another", intentOf(recordOf(3n)));
    world.clock.runAfterInput();
    world.engine.release();
    const calls = world.store.audit.lines(1n, 9).map(({ text }) => JSON.parse(text).call);
    expect(calls).toEqual(["1", "3"]);
  });

  it("waits like everything else while the disk takes nothing", async () => {
    const { world, told, commit } = await heldWorld();
    commit("call", intentOf(recordOf(1n)));
    world.clock.runAfterInput();
    world.engine.refuse();
    commit("note", NOTE);
    expect(told).toEqual(["call refused"]);
    world.clock.runAfterInput();
    world.engine.refuse();
    expect(told).toEqual(["call refused", "note refused"]);
  });
});

describe("a full disk", () => {
  /** No byte more goes on it; what ran before is there. */
  async function fullWorld() {
    const world = await FakeDiskWorld.start();
    await world.run(recordOf(1n));
    world.engine.disk.fill();
    return world;
  }

  it("is told once, refuses agents, and is no reason not to read", async () => {
    const world = await fullWorld();
    expect(await world.commit([intentOf(recordOf(2n))])).toBeDefined();
    expect(await world.commit([intentOf(recordOf(3n))])).toBeDefined();
    expect(world.store.condition).toBe("failing");
    expect(world.events("store.failing")).toBe(1);
    expect(world.store.findCall(recordOf(1n).key)?.state).toBe("ended");
    expect(world.store.audit.lines(1n, 9).length).toBe(2);
  });

  it("takes an operator's commits into the space that is kept back, at the first attempt", async () => {
    const world = await fullWorld();
    const freeze = { kind: "frozen", role: "agent", session: undefined, frozen: true, by: HOST } as const;
    expect(await world.commit([freeze], true)).toBeUndefined();
    expect(world.store.condition).toBe("failing");
    await world.crash();
    expect([...world.store.load().frozen]).toEqual([{ role: "agent", session: undefined }]);
  });

  it("never lets an agent's records into the space that is kept back for operators", async () => {
    const world = await fullWorld();
    await world.commit([intentOf(recordOf(2n))]);
    const large = recordOf(3n, { arguments: "x".repeat(RESERVE_BYTES / 2) });
    const agent = new Promise((resolve) => world.store.commit([intentOf(large)], resolve));
    const operator = world.commit([NOTE], true);
    expect([(await agent) !== undefined, await operator]).toEqual([true, undefined]);
  });

  it("is over when there is room again, without a restart and with the space kept back anew", async () => {
    const world = await fullWorld();
    await world.commit([intentOf(recordOf(2n))]);
    await world.commit([NOTE], true);
    for (let i = 0; i < 5; i += 1) {
      world.pass(1000);
      await turn();
    }
    expect(world.store.condition).toBe("failing");
    world.engine.disk.bytesMax += RESERVE_BYTES * 3;
    world.pass(1000);
    await turn();
    world.clock.runAfterInput();
    expect(world.store.condition).toBe("ok");
    expect(world.engine.disk.reserved).toBe(RESERVE_BYTES);
    expect(world.events("store.recovered")).toBe(1);
    await world.run(recordOf(2n));
    expect(world.clock.timers).toBe(0);
  });

  it("does not count as over where only a little fits, which would end calls with outcomes that nobody knows", async () => {
    const world = await fullWorld();
    await world.commit([intentOf(recordOf(2n))]);
    world.engine.disk.bytesMax += RESERVE_BYTES / 2;
    world.pass(3000);
    await turn();
    world.clock.runAfterInput();
    expect(world.store.condition).toBe("failing");
  });

  it("is known from the start", async () => {
    const world = await fullWorld();
    world.engine.disk.reserved = 0;
    world.engine.disk.fill();
    await world.crash();
    expect(world.store.condition).toBe("failing");
  });
});

describe("a disk that does not answer", () => {
  it("is told after a while, by the clock, and what comes meanwhile waits", async () => {
    const { world, told, commit } = await heldWorld();
    commit("a", intentOf(recordOf(1n)));
    world.clock.runAfterInput();
    world.pass(STALLED_AFTER_MS);
    expect([world.store.condition, world.events("store.stalled")]).toEqual(["ok", 0]);
    world.pass(2);
    expect([world.store.condition, world.events("store.stalled")]).toEqual(["stalled", 1]);
    commit("note", NOTE);
    expect(told).toEqual([]);
    world.engine.release();
    expect([world.store.condition, told, world.events("store.recovered")]).toEqual(["ok", ["a"], 1]);
    world.engine.release();
    expect(told).toEqual(["a", "note"]);
    expect(world.clock.timers).toBe(0);
  });
});
