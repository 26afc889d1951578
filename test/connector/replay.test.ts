// The store of turns: what it keeps, in memory and on disk; what it finds damaged; and what it does where the disk takes
// nothing.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { replayKey } from "../../src/connector/digest.ts";
import type { ReplayHead, ReplayStore } from "../../src/connector/replay.ts";
import { MemoryReplay } from "../../src/connector/replay_memory.ts";
import { decodeRecord, encodeRecord, holdsFrame } from "../../src/connector/replay_record.ts";
import { systemClock } from "../../src/host/clock.ts";
import { DurableReplay, openReplayStore } from "../../src/host/connector_replay.ts";
import { loadLibc } from "../../src/host/libc.ts";
import { FakeClock } from "../broker/fake_clock.ts";
import { describeWith } from "../needs.ts";
import { randomOf } from "../seeded.ts";
import { FakeDisk, FakeEngine, fakeReserve } from "../store/fake_engine.ts";

const libc = await loadLibc();
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const action of undo.splice(0).reverse()) await action();
});

const ABOUT_MS = 1_760_000_000_000;

function headOf(id: string, expiresAtUnixMs = ABOUT_MS): ReplayHead {
  return {
    caller: "caller-alpha",
    requestId: id,
    keySha256: Buffer.alloc(32, 1),
    invocationSha256: Buffer.alloc(32, 2),
    expiresAtUnixMs,
  };
}

const keyOf = (id: string) => replayKey("caller-alpha", id);

function directoryOf(): string {
  const directory = mkdtempSync(join(tmpdir(), "callgate-replay-"));
  undo.push(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, "state");
}

async function onDisk(directory = directoryOf(), heard: (event: string) => void = () => undefined) {
  const opened = await openReplayStore({
    directory,
    libc,
    clock: systemClock(),
    log: (_, event) => heard(event),
  });
  if (!opened.ok) throw new Error(opened.fault);
  const store = opened.value;
  let open = true;
  const close = async () => {
    if (open) await store.close();
    open = false;
  };
  undo.push(close);
  return { store, close, directory };
}

/** Over a disk in memory, which fails as a test says. */
class FakeWorld {
  readonly disk = new FakeDisk();
  clock = new FakeClock(ABOUT_MS);
  engine!: FakeEngine;
  store!: DurableReplay;
  readonly events: string[] = [];

  static async start(): Promise<FakeWorld> {
    const world = new FakeWorld();
    const fault = await world.open();
    if (fault !== undefined) throw new Error(fault);
    return world;
  }

  /** What is on the disk, in another process. */
  async open(): Promise<string | undefined> {
    this.engine = new FakeEngine(this.disk);
    const opened = await DurableReplay.open({
      engine: this.engine,
      reserve: fakeReserve(this.disk),
      clock: this.clock,
      log: (_, event) => this.events.push(event),
      released: () => undefined,
    });
    if (!opened.ok) return opened.fault;
    this.store = opened.value;
    return undefined;
  }

  /** Runs what waits for the end of a turn until it is answered. */
  async done<T>(asked: Promise<T>): Promise<T> {
    let settled = false;
    void asked.finally(() => {
      settled = true;
    });
    while (!settled) {
      this.clock.runAfterInput();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return asked;
  }

  activate(id: string, expiresAtUnixMs?: number): Promise<boolean> {
    return this.done(this.store.activate(keyOf(id), headOf(id, expiresAtUnixMs)));
  }

  complete(id: string, frame: Buffer, expiresAtUnixMs?: number): Promise<boolean> {
    return this.done(this.store.complete(keyOf(id), headOf(id, expiresAtUnixMs), frame));
  }
}

describe("a record as bytes", () => {
  const heads = fc.record({
    caller: fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
    requestId: fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
    keySha256: fc.uint8Array({ minLength: 32, maxLength: 32 }).map(Buffer.from),
    invocationSha256: fc.uint8Array({ minLength: 32, maxLength: 32 }).map(Buffer.from),
    expiresAtUnixMs: fc.maxSafeNat(),
  });
  const frames = fc.option(fc.uint8Array({ minLength: 1, maxLength: 200 }).map(Buffer.from), {
    nil: undefined,
  });

  it("is the same when it is read, and knows its frame from every other", () => {
    fc.assert(
      fc.property(heads, frames, (head, frame) => {
        const key = replayKey(head.caller, head.requestId);
        const record = decodeRecord(key, encodeRecord(head, frame));
        expect(record).toMatchObject({ ...head, state: frame === undefined ? "active" : "completed" });
        if (frame === undefined || record === undefined) return;
        expect(holdsFrame(record, frame)).toBe(true);
        expect(holdsFrame(record, Buffer.concat([frame, Buffer.from([0])]))).toBe(false);
        expect(holdsFrame(record, undefined)).toBe(false);
      }),
    );
  });

  it("is none with any one bit changed, any length cut, or under another key", () => {
    const bytes = encodeRecord(headOf("request-1"), Buffer.from("frame"));
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(decodeRecord(keyOf("request-1"), flipped)).toBeUndefined();
    }
    for (let length = 0; length < bytes.length; length += 1)
      expect(decodeRecord(keyOf("request-1"), bytes.subarray(0, length))).toBeUndefined();
    expect(decodeRecord(keyOf("request-2"), bytes)).toBeUndefined();
  });
});

const STORES: readonly (readonly [string, () => Promise<ReplayStore>])[] = [
  ["in memory", async () => new MemoryReplay()],
  ["on disk", async () => (await onDisk()).store],
];

describe.each(STORES)("a store %s", (_, open) => {
  it("finds what is active, what is completed, its frame byte for byte, and nothing else", async () => {
    const store = await open();
    const frame = randomBytes(3000);
    expect(store.find(keyOf("a"))).toBeUndefined();
    expect(await store.activate(keyOf("a"), headOf("a"))).toBe(true);
    expect(store.find(keyOf("a"))).toMatchObject({ ...headOf("a"), state: "active" });
    expect(store.frame(keyOf("a"))).toBeUndefined();
    expect(await store.complete(keyOf("a"), headOf("a"), frame)).toBe(true);
    expect(store.find(keyOf("a"))).toMatchObject({ ...headOf("a"), state: "completed" });
    expect(store.frame(keyOf("a"))).toEqual(frame);
    expect(store.find(keyOf("b"))).toBeUndefined();
  });

  it("tells what expires before a time, soonest first, and forgets it for good", async () => {
    const store = await open();
    for (const [id, expires] of [
      ["c", 30],
      ["a", 10],
      ["b", 20],
    ] as const) {
      await store.activate(keyOf(id), headOf(id, expires));
      if (id !== "b") await store.complete(keyOf(id), headOf(id, expires), Buffer.from(id));
    }
    expect(store.expiringBefore(30, 9)).toEqual([keyOf("a"), keyOf("b")]);
    expect(store.expiringBefore(31, 9)).toEqual([keyOf("a"), keyOf("b"), keyOf("c")]);
    expect(store.expiringBefore(31, 1)).toEqual([keyOf("a")]);
    expect(store.expiringBefore(-5, 9)).toEqual([]);
    expect(store.forgottenUpToMs).toBe(0);
    expect(await store.forget([keyOf("a"), keyOf("b"), keyOf("never")])).toBe(2);
    expect(store.find(keyOf("a"))).toBeUndefined();
    expect(store.frame(keyOf("a"))).toBeUndefined();
    expect(store.find(keyOf("c"))).toMatchObject({ state: "completed" });
    expect(store.forgottenUpToMs).toBe(20);
    expect(await store.forget([])).toBe(0);
  });

  it("takes many at once", async () => {
    const store = await open();
    const ids = Array.from({ length: 300 }, (_, i) => `r${i}`);
    const one = async (id: string) =>
      (await store.activate(keyOf(id), headOf(id))) && store.complete(keyOf(id), headOf(id), Buffer.from(id));
    expect(await Promise.all(ids.map(one))).toEqual(ids.map(() => true));
    for (const id of ids) expect(store.frame(keyOf(id))).toEqual(Buffer.from(id));
  });
});

describe("a store on disk", () => {
  it("has everything after it was closed and opened, and what it has forgotten stays so", async () => {
    const { store, close, directory } = await onDisk();
    for (const id of ["a", "b", "c"]) await store.activate(keyOf(id), headOf(id));
    await store.complete(keyOf("b"), headOf("b"), Buffer.from("frame of b"));
    await store.forget([keyOf("c")]);
    await close();
    const { store: later } = await onDisk(directory);
    expect(later.find(keyOf("a"))).toMatchObject({ state: "active" });
    expect(later.frame(keyOf("b"))).toEqual(Buffer.from("frame of b"));
    expect(later.find(keyOf("c"))).toBeUndefined();
    expect(later.forgottenUpToMs).toBe(ABOUT_MS);
  });

  it("is held by one: a second one is told so, and by whom", async () => {
    const { directory } = await onDisk();
    const second = await openReplayStore({ directory, libc, clock: systemClock(), log: () => undefined });
    expect(second).toMatchObject({
      ok: false,
      fault: expect.stringMatching(/in use by another daemon.*pid/),
    });
  });

  it.each<[string, (file: string) => void, RegExp]>([
    ["empty", (file) => truncateSync(file, 0), /damaged, or no state/],
    ["of zeros", (file) => writeFileSync(file, Buffer.alloc(65_536)), /damaged, or no state/],
    [
      "something else",
      (file) => writeFileSync(file, Buffer.alloc(65_536, "no database ")),
      /damaged, or no state/,
    ],
    ["cut", (file) => truncateSync(file, 16_384), /damaged/],
  ])("whose file is %s is refused, with what to do", async (_, damage, says) => {
    const { store, close, directory } = await onDisk();
    for (let i = 0; i < 60; i += 1) {
      await store.activate(keyOf(`r${i}`), headOf(`r${i}`));
      await store.complete(keyOf(`r${i}`), headOf(`r${i}`), randomBytes(2000));
    }
    await close();
    damage(join(directory, "state.mdb"));
    const opened = await openReplayStore({ directory, libc, clock: systemClock(), log: () => undefined });
    expect(opened).toMatchObject({ ok: false, fault: expect.stringMatching(says) });
    expect(opened).toMatchObject({ ok: false, fault: expect.stringContaining("expiry_horizon") });
  });

  it("whose last write was torn has all that was written before it, and nothing of that one", async () => {
    const { store, close, directory } = await onDisk();
    const file = join(directory, "state.mdb");
    await store.activate(keyOf("first"), headOf("first"));
    await store.complete(keyOf("first"), headOf("first"), randomBytes(9000));
    const before = readFileSync(file);
    await store.complete(keyOf("first"), headOf("first"), Buffer.alloc(9000, 9));
    await store.activate(keyOf("second"), headOf("second"));
    const after = readFileSync(file);
    await close();
    const random = randomOf(5);
    const pageBytes = 4096;
    for (let round = 0; round < 6; round += 1) {
      const torn = Buffer.alloc(after.length);
      before.copy(torn);
      // Both first pages say where the tree is, and are written last.
      for (let at = 2 * pageBytes; at < after.length; at += pageBytes)
        if (random(2) === 0 && isFree(before, at, pageBytes, after)) after.copy(torn, at, at, at + pageBytes);
      writeFileSync(file, torn);
      const { store: later, close: closeLater } = await onDisk(directory);
      expect(later.find(keyOf("first"))).toMatchObject({ state: "completed" });
      expect(later.find(keyOf("second"))).toBeUndefined();
      await closeLater();
    }
  });
});

/** Whether a later write may have gone to this page: it was not there before. */
function isFree(before: Buffer, at: number, pageBytes: number, after: Buffer): boolean {
  return (
    at >= before.length ||
    before.subarray(at, at + pageBytes).every((byte) => byte === 0) ||
    after.length < at
  );
}

describe("what is damaged in a store", () => {
  async function filled(): Promise<FakeWorld> {
    const world = await FakeWorld.start();
    for (const id of ["a", "b", "c"]) await world.activate(id);
    await world.complete("b", randomBytes(40));
    await world.complete("c", randomBytes(40));
    await world.activate("gone", 5);
    await world.done(world.store.forget([keyOf("gone")]));
    return world;
  }

  it("is found at the start, whatever byte it is", async () => {
    const world = await filled();
    for (const [name, { key, value }] of [...world.disk.entries]) {
      for (let at = 0; at < value.length; at += 1) {
        const damaged = Buffer.from(value);
        damaged[at] = (damaged[at] ?? 0) ^ 0x10;
        world.disk.entries.set(name, { key, value: damaged });
        expect(await world.open()).toMatch(/damaged|newer/);
        world.disk.entries.set(name, { key, value });
      }
    }
    expect(await world.open()).toBeUndefined();
  });

  it("is found where an entry is missing, or one too many is there", async () => {
    const world = await filled();
    for (const [name, entry] of [...world.disk.entries]) {
      world.disk.entries.delete(name);
      expect(await world.open()).toMatch(/damaged/);
      world.disk.entries.set(name, entry);
      const other = Buffer.from(entry.key);
      other[other.length - 1] = (other.at(-1) ?? 0) ^ 1;
      world.disk.entries.set(other.toString("hex"), { key: other, value: entry.value });
      expect(await world.open()).toMatch(/damaged/);
      world.disk.entries.delete(other.toString("hex"));
    }
    expect(await world.open()).toBeUndefined();
  });

  it("is found where a whole record is missing with all that belongs to it, or is an older one", async () => {
    const world = await FakeWorld.start();
    await world.activate("a");
    await world.activate("b");
    const older = new Map(world.disk.entries);
    await world.complete("b", Buffer.from("frame"));
    for (const [name] of [...world.disk.entries])
      if (name.endsWith(keyOf("a").toString("hex"))) world.disk.entries.delete(name);
    expect(await world.open()).toMatch(/damaged \(records are missing\)/);
    const record = [...older].find(
      ([name]) => name.startsWith("41") && name.endsWith(keyOf("b").toString("hex")),
    );
    const again = await FakeWorld.start();
    await again.activate("b");
    await again.complete("b", Buffer.from("frame"));
    again.disk.entries.set(...record!);
    for (const name of [...again.disk.entries.keys()])
      if (name.startsWith("42")) again.disk.entries.delete(name);
    expect(await again.open()).toMatch(/damaged \(records are missing\)/);
  });

  it("is found where a record lies under another expiry than its own, alone or beside itself", async () => {
    const world = await filled();
    const entries = [...world.disk.entries].filter(([name]) => name.startsWith("41"));
    for (const [name, entry] of entries) {
      const key = Buffer.from(entry.key);
      key[8] = (key[8] ?? 0) ^ 1;
      world.disk.entries.set(key.toString("hex"), { key, value: entry.value });
      expect(await world.open()).toMatch(/damaged \(a record's place\)/);
      world.disk.entries.delete(name);
      expect(await world.open()).toMatch(/damaged \(a record's place\)/);
      world.disk.entries.delete(key.toString("hex"));
      world.disk.entries.set(name, entry);
    }
    expect(await world.open()).toBeUndefined();
  });

  it("while it runs answers nothing", async () => {
    const world = await filled();
    for (const { value } of world.disk.entries.values())
      if (value.length > 1) value[20] = (value[20] ?? 0) ^ 1;
    expect(world.store.find(keyOf("a"))).toBe("damaged");
    expect(world.store.frame(keyOf("b"))).toBeUndefined();
    expect(await world.activate("a")).toBe(false);
  });

  it("by a store of another kind is no store of a connector's", async () => {
    const world = await FakeWorld.start();
    world.disk.entries.set("01", { key: Buffer.from([1]), value: Buffer.from([1]) });
    expect(await world.open()).toMatch(/no store of a connector's/);
  });
});

describe("a write that fails", () => {
  it("of a claim leaves nothing, and a later one that succeeds is whole", async () => {
    const world = await FakeWorld.start();
    world.engine.held = true;
    const asked = world.store.activate(keyOf("a"), headOf("a"));
    world.clock.runAfterInput();
    world.engine.refuse("EIO");
    expect(await asked).toBe(false);
    expect(world.store.find(keyOf("a"))).toBeUndefined();
    world.engine.held = false;
    expect(await world.activate("a")).toBe(false); // it takes nothing while it fails
    await recovered(world);
    expect(await world.activate("a")).toBe(true);
    expect(await world.open()).toBeUndefined();
  });

  it("of an outcome leaves the claim, and those that shared its write with it", async () => {
    const world = await FakeWorld.start();
    await world.activate("a");
    await world.activate("b");
    world.engine.held = true;
    const asked = [
      world.store.complete(keyOf("a"), headOf("a"), Buffer.from("frame")),
      world.store.complete(keyOf("b"), headOf("b"), Buffer.from("frame")),
    ];
    world.clock.runAfterInput();
    world.disk.reserved = 0; // nothing was kept back
    world.engine.refuse("EIO");
    expect(await Promise.all(asked)).toEqual([false, false]);
    for (const id of ["a", "b"]) expect(world.store.find(keyOf(id))).toMatchObject({ state: "active" });
    world.engine.die();
    expect(await world.open()).toBeUndefined();
  });

  it("for want of room lets no new turn in, and those that run end in the space that is kept back", async () => {
    const world = await FakeWorld.start();
    await world.activate("a");
    world.disk.fill();
    expect(await world.activate("b")).toBe(false);
    expect(await world.complete("a", Buffer.alloc(500, 1))).toBe(true);
    expect(world.store.frame(keyOf("a"))).toEqual(Buffer.alloc(500, 1));
    expect(await world.activate("b")).toBe(false);
    world.disk.bytesMax = Number.POSITIVE_INFINITY;
    await recovered(world);
    expect(await world.activate("b")).toBe(true);
    expect(await world.open()).toBeUndefined();
  });

  it("is never made twice for one record at once", async () => {
    const world = await FakeWorld.start();
    const both = [
      world.store.activate(keyOf("a"), headOf("a")),
      world.store.activate(keyOf("a"), headOf("a")),
    ];
    expect(await world.done(Promise.all(both))).toEqual([true, false]);
    expect(await world.open()).toBeUndefined();
  });
});

/** The journal looks for itself, now and then, whether it can write again. */
async function recovered(world: FakeWorld): Promise<void> {
  while (world.events.at(-1) !== "store.recovered") {
    world.clock.step(world.clock.wallMs + 1000);
    world.clock.runAfterInput();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describeWith(["mount", "umount"], "a real disk that is full", () => {
  it("lets no turn in, lets one that runs end, and takes turns again when there is room", async () => {
    const directory = directoryOf();
    mkdirSync(directory, { mode: 0o700 });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", directory]);
    undo.push(() => execFileSync("umount", ["-l", directory]));
    let recovered: () => void = () => undefined;
    const isBack = new Promise<void>((resolve) => {
      recovered = resolve;
    });
    const { store, close } = await onDisk(directory, (event) => {
      if (event === "store.recovered") recovered();
    });
    await store.activate(keyOf("runs"), headOf("runs"));
    const filler = join(directory, "filler");
    const { bavail, bsize } = statfsSync(directory);
    expect(() => writeFileSync(filler, Buffer.alloc(bavail * bsize + 1_048_576))).toThrow("ENOSPC");
    // A few may still find room in pages that are free in the file itself.
    let letIn = 0;
    while (await store.activate(keyOf(`r${letIn}`), headOf(`r${letIn}`))) letIn += 1;
    expect(await store.complete(keyOf("runs"), headOf("runs"), randomBytes(1_000_000))).toBe(true);
    expect(await store.activate(keyOf("new"), headOf("new"))).toBe(false);
    rmSync(filler);
    await isBack;
    expect(await store.activate(keyOf("new"), headOf("new"))).toBe(true);
    await close();
    const { store: later } = await onDisk(directory);
    expect(later.frame(keyOf("runs"))).toHaveLength(1_000_000);
    for (let i = 0; i < letIn; i += 1) expect(later.find(keyOf(`r${i}`))).toMatchObject({ state: "active" });
  });
});
