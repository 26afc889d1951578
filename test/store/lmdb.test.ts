// The engine on disk, alone: what is read after what was written, and what happens where nothing can be.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { Engine, EngineFault, KeyRange } from "../../src/store/engine.ts";
import { LmdbEngine } from "../../src/store/lmdb.ts";
import { STATE_FILE } from "../../src/store/lmdb_environment.ts";
import type { WriteBatch } from "../../src/store/write_batch.ts";
import { FakeEngine } from "./fake_engine.ts";

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const action of undo.splice(0).reverse()) await action();
});

function directoryOf(): string {
  const directory = mkdtempSync(join(tmpdir(), "callgate-lmdb-"));
  undo.push(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function open(directory = directoryOf()): Promise<LmdbEngine> {
  const engine = await LmdbEngine.open({ directory, crashed: () => undefined });
  if (!engine.ok) throw new Error(engine.fault);
  return engine.value;
}

function write(engine: Engine, fill: (batch: WriteBatch) => void): Promise<EngineFault | undefined> {
  const batch = engine.batch();
  fill(batch);
  return new Promise((resolve) => engine.write(batch, resolve));
}

const key = (...bytes: number[]) => Buffer.from(bytes);
const anyKey = fc.uint8Array({ minLength: 1, maxLength: 6 }).map((bytes) => Buffer.from(bytes));
const changes = fc.array(
  fc.record({ key: anyKey, value: fc.option(fc.uint8Array({ maxLength: 50 }), { nil: undefined }) }),
  { maxLength: 20 },
);
const ranges = fc.record({
  from: anyKey,
  to: anyKey,
  reverse: fc.boolean(),
  limit: fc.integer({ min: 1, max: 9 }),
});

describe("the engine on disk", () => {
  it("answers as a map with ordered keys would, in both directions, after every batch", async () => {
    const engine = await open();
    undo.push(() => engine.close());
    const model = new FakeEngine();
    await fc.assert(
      fc.asyncProperty(changes, fc.array(ranges, { maxLength: 5 }), async (all, looks) => {
        for (const each of [engine, model])
          await write(each, (batch) => {
            for (const { key: name, value } of all)
              if (value === undefined) batch.delete(name);
              else batch.put(name, value);
          });
        for (const { key: name } of all) expect(engine.get(name)).toEqual(model.get(name));
        for (const look of looks) {
          const range: KeyRange =
            Buffer.compare(look.from, look.to) <= 0 ? look : { ...look, from: look.to, to: look.from };
          expect(engine.range(range)).toEqual(model.range(range));
          expect(engine.keys(range)).toEqual(model.keys(range));
        }
      }),
      { numRuns: 60 },
    );
  });

  it("keeps what was written, however large, for whoever opens it next", async () => {
    const directory = directoryOf();
    const first = await open(directory);
    const large = Buffer.alloc(5_000_000, 7);
    expect(await write(first, (batch) => batch.put(key(1), large))).toBeUndefined();
    expect(await write(first, (batch) => batch.putAscii(key(2), "small"))).toBeUndefined();
    await first.close();
    const second = await open(directory);
    undo.push(() => second.close());
    expect([second.get(key(1))?.equals(large), second.get(key(2))?.toString()]).toEqual([true, "small"]);
    expect(second.usedBytes()).toBeGreaterThan(5_000_000);
  });

  it("gives copies: what was read once does not change with what is written later", async () => {
    const engine = await open();
    undo.push(() => engine.close());
    await write(engine, (batch) => batch.putAscii(key(1), "before"));
    const got = engine.get(key(1));
    const [ranged] = engine.range({ from: key(0), to: key(9), limit: 1 });
    await write(engine, (batch) => batch.putAscii(key(1), "afterw"));
    engine.get(key(1));
    expect([got?.toString(), ranged?.value.toString()]).toEqual(["before", "before"]);
  });

  it("is read and written by its owner alone", async () => {
    const directory = directoryOf();
    const engine = await open(directory);
    undo.push(() => engine.close());
    expect(statSync(join(directory, STATE_FILE)).mode & 0o777).toBe(0o600);
  });

  it("tells of a batch that the disk does not take, keeps nothing of it, and takes the same batch when there is room", async () => {
    const directory = directoryOf();
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", directory], { stdio: "pipe" });
    } catch {
      throw new Error("this test mounts a small disk, so it needs root");
    }
    undo.push(() => execFileSync("umount", ["-l", directory]));
    const engine = await open(directory);
    undo.push(() => engine.close());
    const batch = engine.batch();
    batch.putAscii(key(1), "with it");
    batch.put(key(2), Buffer.alloc(4_000_000, 1));
    const fault = await new Promise<EngineFault | undefined>((resolve) => engine.write(batch, resolve));
    expect(fault?.code).toMatch(/^E[A-Z]+$/);
    expect([engine.get(key(1)), engine.get(key(2))]).toEqual([undefined, undefined]);
    execFileSync("mount", ["-o", "remount,size=20m", directory]);
    expect(await new Promise((resolve) => engine.write(batch, resolve))).toBeUndefined();
    expect([engine.get(key(1))?.toString(), engine.get(key(2))?.length]).toEqual(["with it", 4_000_000]);
  });

  it("says in a sentence that it can't be opened", async () => {
    const opened = await LmdbEngine.open({ directory: "/proc/self", crashed: () => undefined });
    expect(opened).toEqual({ ok: false, fault: expect.stringMatching(/^it can't be opened \(E[A-Z]+\)\.$/) });
  });
});
