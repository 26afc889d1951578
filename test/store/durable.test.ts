// The durable store over crashes, refusals and restarts, against a model of what its callers were told;
// and what only it has: epochs, time, unknown calls, pruning in steps.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chainHash, EMPTY_HEAD } from "../../src/store/audit_chain.ts";
import { UNKNOWN_CALLS_MAX } from "../../src/store/calls_at_start.ts";
import type { Store } from "../../src/store/port.ts";
import type { CallRecord, Change } from "../../src/store/records.ts";
import { TABLE, wholeTable } from "../../src/store/store_keys.ts";
import { StoredCalls } from "../../src/store/stored_calls.ts";
import { META, putEpochFloor } from "../../src/store/stored_meta.ts";
import { FakeEngine } from "./fake_engine.ts";
import { FakeDiskWorld, intentOf, outcomeOf, REPLAY_FOR_MS, recordOf, shown } from "./store_worlds.ts";

const CALLS = 6;

interface Known {
  readonly record: CallRecord;
  state: "dispatched" | "ended";
  messages: string[];
  /** Something of it is under way: nobody commits more for it until that is told. */
  busy: boolean;
}

/** What a broker does to a store, one step at a time, and what it may rely on. */
class Player {
  readonly world: FakeDiskWorld;
  #known = new Map<number, Known>();
  #told = 0;

  constructor(world: FakeDiskWorld) {
    this.world = world;
    world.engine.held = true;
  }

  begin(call: number): void {
    if (this.#known.has(call)) return;
    const record = recordOf(BigInt(call), { session: `s${call % 2}` });
    const known: Known = { record, state: "dispatched", messages: [], busy: true };
    this.#known.set(call, known);
    this.#commit(known, intentOf(record), (held) => {
      if (!held) this.#known.delete(call);
    });
  }

  part(call: number): void {
    const known = this.#idle(call);
    if (known === undefined) return;
    const text = `part ${this.#told}`;
    const message: Change = { kind: "message", record: known.record, message: Buffer.from(text) };
    this.#commit(known, message, (held) => held && known.messages.push(text));
  }

  finish(call: number): void {
    const known = this.#idle(call);
    if (known === undefined) return;
    const change = outcomeOf(known.record, `final ${call}`, this.world.clock.nowMs());
    this.#commit(known, change, (held) => {
      if (!held) return;
      known.state = "ended";
      known.messages.push(`final ${call}`);
    });
  }

  withdraw(call: number): void {
    const known = this.#idle(call);
    if (known === undefined || known.messages.length > 0) return;
    this.#commit(known, { kind: "withdrawn", record: known.record }, (held) => {
      if (held) this.#known.delete(call);
    });
  }

  async crash(): Promise<void> {
    await this.world.crash();
    this.#begun();
  }

  async restart(): Promise<void> {
    this.world.engine.held = false;
    this.world.engine.release();
    await this.world.restart();
    this.#begun();
  }

  /** The store says what was told, and nothing of what was refused. */
  check(): void {
    const { store } = this.world;
    for (let call = 0; call < CALLS; call += 1) {
      const known = this.#known.get(call);
      const found = store.findCall(recordOf(BigInt(call), { session: `s${call % 2}` }).key);
      if (known?.busy) continue;
      const expected = known && { state: known.state, messages: known.messages };
      const is = shown(found);
      expect(is && { state: is.state, messages: is.messages }).toEqual(expected);
    }
    expectChain(store, this.#told);
  }

  #idle(call: number): Known | undefined {
    const known = this.#known.get(call);
    return known === undefined || known.busy || known.state === "ended" ? undefined : known;
  }

  #commit(known: Known, change: Change, then: (held: boolean) => void): void {
    known.busy = true;
    this.world.store.commit([change], (fault) => {
      known.busy = false;
      if (fault === undefined) this.#told += 1;
      then(fault === undefined);
    });
  }

  /** Another process: it has the records that it reads, and what was under way is gone. */
  #begun(): void {
    this.world.engine.held = true;
    const before = this.#known;
    this.#known = new Map();
    for (const [call, known] of before) {
      const record = this.world.store.findCall(known.record.key);
      if (record === undefined) {
        expect(known.busy).toBe(true);
        continue;
      }
      const messages = record.messages.map((message) => message.toString());
      this.#known.set(call, { record, state: record.state, messages, busy: false });
      if (!known.busy)
        expect({ state: record.state, messages }).toEqual({ state: known.state, messages: known.messages });
    }
  }
}

/** Every record hangs on the one before, and there are at least as many as changes that were told. */
function expectChain(store: Store, atLeast: number): void {
  let { seq, hash } = EMPTY_HEAD;
  for (const line of store.audit.lines(1n, 10_000)) {
    seq += 1n;
    hash = chainHash(hash, line.text);
    expect([line.seq, line.hash]).toEqual([seq, hash]);
  }
  expect(store.audit.head()).toEqual({ seq, hash });
  expect(Number(seq)).toBeGreaterThanOrEqual(atLeast);
}

const call = fc.nat({ max: CALLS - 1 });
const steps = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("begin" as const), call }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("part" as const), call }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("finish" as const), call }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("withdraw" as const), call }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("turn" as const) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("release" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("refuse" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("crash" as const, "restart" as const) }) },
);

describe("the durable store", () => {
  it("holds what it has called back, and nothing that it refused, over any crashes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 60 }), async (all) => {
        const player = new Player(await FakeDiskWorld.start());
        const { world } = player;
        for (const step of all) {
          if ("call" in step) player[step.do](step.call);
          else if (step.do === "turn") world.clock.runAfterInput();
          else if (step.do === "release") world.engine.release();
          else if (step.do === "refuse") world.engine.refuse();
          else await player[step.do]();
          player.check();
        }
        await player.crash();
        player.check();
      }),
      { numRuns: 200 },
    );
  });

  it("refuses every id up to the epoch that a restored one begins with, in every session", async () => {
    const world = await FakeDiskWorld.start();
    await world.run(recordOf(5n));
    const batch = world.engine.batch();
    putEpochFloor(world.engine, batch, 100n);
    world.engine.write(batch, () => undefined);
    await world.restart();
    expect([world.store.watermark("agent", "s"), world.store.watermark("new", "new")]).toEqual([100n, 100n]);
    expect(world.store.findCall(recordOf(5n).key)?.state).toBe("ended");
    const lower = world.engine.batch();
    putEpochFloor(world.engine, lower, 7n);
    world.engine.write(lower, () => undefined);
    await world.restart();
    expect(world.store.watermark("agent", "s")).toBe(100n);
  });

  it("remembers the time, so that a clock set back between two runs opens nothing", async () => {
    const world = await FakeDiskWorld.start();
    world.pass(3_600_000);
    await world.run(recordOf(1n));
    const lastMs = world.clock.nowMs();
    const later = await FakeDiskWorld.start(); // its clock stands where the first one began
    later.engine = world.engine;
    await later.crash();
    expect(later.store.clock.nowMs()).toBe(lastMs);
  });

  it("keeps its key for digests, so that what was written before can be recognised", async () => {
    const world = await FakeDiskWorld.start();
    const hmac = (line: number) => {
      const { text } = world.store.audit.lines(1n, 9)[line]!;
      return (JSON.parse(text) as { args_hmac: string }).args_hmac;
    };
    await world.run(recordOf(1n, { arguments: "{}" }));
    await world.restart();
    await world.run(recordOf(2n, { arguments: "{}" }));
    expect(hmac(2)).toBe(hmac(0));
  });

  it("says so where it is damaged, instead of beginning anew", async () => {
    const world = await FakeDiskWorld.start();
    await world.run(recordOf(1n));
    for (const [key, sentence] of [
      [META.digestKey, /key for digests is gone/],
      [META.schema, /no schema version/],
    ] as const) {
      const name = key.toString("hex");
      const entry = world.engine.disk.entries.get(name)!;
      world.engine.disk.entries.delete(name);
      expect(await world.tryOpen()).toEqual({ ok: false, fault: expect.stringMatching(sentence) });
      world.engine.disk.entries.set(name, entry);
    }
    world.engine.disk.entries.set("10aa", { key: Buffer.from("10aa", "hex"), value: Buffer.from([1, 0x7b]) });
    expect(await world.tryOpen()).toEqual({
      ok: false,
      fault: expect.stringMatching(/"session" can't be read/),
    });
  });

  it("bounds the calls of a role whose outcome nobody knows: the oldest go, and are never run again", async () => {
    const world = await FakeDiskWorld.start();
    const extra = 3;
    const changes = Array.from({ length: UNKNOWN_CALLS_MAX + extra }, (_, i) =>
      intentOf(recordOf(BigInt(i + 1))),
    );
    await world.write(...changes);
    await world.restart();
    await world.run(recordOf(1n, { session: "other" }));
    await world.restart();
    expect(world.store.findCall(recordOf(3n).key)).toBeUndefined();
    expect(world.store.watermark("agent", "s")).toBe(3n);
    expect(world.store.findCall(recordOf(4n).key)?.state).toBe("dispatched");
  });

  it("prunes in steps, though everything is too old at once, and takes every entry with it", async () => {
    const world = await FakeDiskWorld.start();
    for (let i = 1n; i <= 1200n; i += 1n) await world.run(recordOf(i), i % 100n === 0n ? ["a", "b"] : []);
    world.pass(REPLAY_FOR_MS + 1);
    const sizes: number[] = [];
    for (let i = 1n; i <= 4n; i += 1n) {
      await world.write(intentOf(recordOf(i, { session: "new" })));
      sizes.push([...world.store.calls()].filter(({ state }) => state === "ended").length);
    }
    expect(sizes[0]).toBeGreaterThan(500);
    expect(sizes.at(-1)).toBe(0);
    const left = [TABLE.intents, TABLE.outcomes, TABLE.parts].map(
      (table) => world.engine.keys({ ...wholeTable(table), limit: 10_000 }).length,
    );
    expect(left).toEqual([4, 0, 0]);
    await world.restart();
    expect(world.store.watermark("agent", "s")).toBe(1200n);
  });

  it("still finds what it could not prune, and prunes it when it can", async () => {
    const world = await FakeDiskWorld.start();
    for (let i = 1n; i <= 20n; i += 1n) await world.run(recordOf(i));
    world.pass(REPLAY_FOR_MS + 1);
    world.engine.held = true;
    const refused = world.commit([intentOf(recordOf(1n, { session: "new" }))]);
    world.engine.refuse();
    expect(await refused).toBeDefined();
    expect(world.store.findCall(recordOf(20n).key)?.state).toBe("ended");
    world.engine.held = false;
    await world.write(intentOf(recordOf(2n, { session: "new" })));
    expect(world.store.findCall(recordOf(20n).key)).toBeUndefined();
    expect(world.engine.keys({ ...wholeTable(TABLE.outcomes), limit: 99 })).toEqual([]);
    await world.restart();
    expect(world.store.watermark("agent", "s")).toBe(20n);
  });

  it("holds nothing in memory of calls that could not be written", async () => {
    const engine = new FakeEngine();
    const bounds = { endedBeforeMs: () => 0, storedBytesMax: () => 1_000_000 };
    const calls = await StoredCalls.load(engine, bounds);
    const record = recordOf(1n);
    for (const change of [intentOf(record), outcomeOf(record, "no intent", 1)]) {
      calls.encode(change, engine.batch());
      calls.drop(change);
      expect(calls.counts()).toEqual({ kept: 0, withoutOutcome: 0 });
    }
  });

  it("forgets the user's words on disk when their session ends", async () => {
    const world = await FakeDiskWorld.start();
    const by = { role: "frontend", uid: 1 };
    const session = {
      role: "agent",
      id: "s",
      request: "CANARY",
      requestLabels: undefined,
      openedBy: "frontend",
      expiresAtMs: undefined,
    };
    await world.write({ kind: "session_opened", session, by });
    await world.write({ kind: "session_closed", role: "agent", id: "s", by });
    const tables = [...world.engine.disk.entries.values()].filter(({ key }) => key[0]! >= TABLE.records);
    expect(tables.some(({ value }) => value.includes("CANARY"))).toBe(false);
  });
});
