// The look at a file before the library maps it: what the library wrote holds together, whatever was written; what was
// damaged in it is told, and ends no process.

import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { LmdbEngine } from "../../src/store/lmdb.ts";
import { STATE_FILE } from "../../src/store/lmdb_environment.ts";
import { unfitFile } from "../../src/store/lmdb_file.ts";
import { LmdbSnapshot } from "../../src/store/lmdb_snapshot.ts";
import { brokenStructure } from "../../src/store/lmdb_structure.ts";
import { write } from "../../src/store/migrations.ts";
import { randomOf } from "../seeded.ts";

const undo: (() => unknown)[] = [];
afterEach(() => {
  for (const action of undo.splice(0).reverse()) action();
});

const PAGE_BYTES = 4096;
const ALL = { from: Buffer.alloc(1), to: Buffer.alloc(64, 0xff), limit: 100_000 };

/** A store after so many batches of puts and deletes at random, values small and large among them. */
async function writtenFile(batches: number, seed: number): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "callgate-structure-"));
  undo.push(() => rmSync(directory, { recursive: true, force: true }));
  const engine = await LmdbEngine.open({ directory, crashed: () => undefined });
  if (!engine.ok) throw new Error(engine.fault);
  const random = randomOf(seed);
  for (let i = 0; i < batches; i += 1) {
    const batch = engine.value.batch();
    for (let j = random(60); j >= 0; j -= 1) {
      const key = Buffer.alloc(33, random(250));
      key.writeUInt32BE(random(3000), 1);
      if (random(3) === 0) batch.delete(key);
      else batch.put(key, Buffer.alloc(random(8) === 0 ? random(40_000) : random(400), 7));
    }
    await write(engine.value, batch);
  }
  await engine.value.close();
  return join(directory, STATE_FILE);
}

describe("a file that the library wrote", () => {
  it.each([0, 1, 2, 60, 300])("holds together after %i batches", async (batches) => {
    const path = await writtenFile(batches, batches + 1);
    expect(brokenStructure(path)).toBeUndefined();
  });
});

describe("a file that was damaged", () => {
  it("is told as such, or is as good as it was: nothing is thrown, whatever bit it is", async () => {
    const path = await writtenFile(40, 9);
    const whole = readFileSync(path);
    const random = randomOf(3);
    const told = new Map<string, number>();
    for (let round = 0; round < 200; round += 1) {
      const damaged = Buffer.from(whole);
      const page = random(whole.length / PAGE_BYTES);
      const at = page * PAGE_BYTES + random(100);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << random(8));
      writeFileSync(path, damaged);
      const name = unfitFile(path) ?? brokenStructure(path) ?? "whole";
      told.set(name, (told.get(name) ?? 0) + 1);
    }
    for (const name of ["NODE", "PAGE_NUMBER", "PAGE_BOUNDS", "PAGE_KIND"])
      expect(told.get(name) ?? 0).toBeGreaterThan(0);
  });

  it("is told where its root is another page, a page is reached twice, or a count is another", async () => {
    const path = await writtenFile(40, 9);
    const whole = readFileSync(path);
    const later = whole.readBigUInt64LE(152) > whole.readBigUInt64LE(PAGE_BYTES + 152) ? 0 : PAGE_BYTES;
    const told = (damage: (bytes: Buffer) => unknown) => {
      const damaged = Buffer.from(whole);
      damage(damaged);
      writeFileSync(path, damaged);
      return brokenStructure(path);
    };
    const mainTree = later + 96;
    const root = Number(whole.readBigUInt64LE(mainTree + 40));
    expect(told((bytes) => bytes.writeBigUInt64LE(1n, mainTree + 40))).toBe("PAGE_NUMBER");
    expect(told((bytes) => bytes.writeBigUInt64LE(2n ** 60n, mainTree + 40))).toBe("PAGE_NUMBER");
    expect(told((bytes) => bytes.writeUInt16LE(33, mainTree + 6))).toBe("DEPTH");
    expect(told((bytes) => bytes.writeUInt16LE(1, mainTree + 6))).toBe("PAGE_KIND");
    expect(told((bytes) => bytes.writeBigUInt64LE(5n, mainTree + 32))).toBe("ENTRIES");
    // The first two entries of the root lead to one page.
    const nodeOf = (bytes: Buffer, i: number) => {
      const at = root * PAGE_BYTES + 24;
      return at + bytes.readUInt16LE(at + 2 * i);
    };
    expect(told((bytes) => bytes.copy(bytes, nodeOf(bytes, 1), nodeOf(bytes, 0), nodeOf(bytes, 0) + 6))).toBe(
      "PAGE_TWICE",
    );
    expect(told((bytes) => bytes.writeUInt16LE(0xfff0, nodeOf(bytes, 0) + 6))).toBe("NODE");
  });

  it("keeps nobody from saying so who reads it, wherever it was cut: none is ended by a page that is missing", async () => {
    const path = await writtenFile(300, 9);
    const bytes = statSync(path).size;
    const random = randomOf(7);
    const told = { CUT_SHORT: 0, TOO_SHORT: 0, read: 0 };
    for (let round = 0; round < 60; round += 1) {
      const cut = `${path}.${round}`;
      copyFileSync(path, cut);
      truncateSync(cut, round < 20 ? bytes - (round + 1) * PAGE_BYTES : random(bytes));
      const opened = LmdbSnapshot.open(cut);
      if (opened.ok) {
        for (const { value } of opened.value.range(ALL)) expect(value.length).toBeGreaterThanOrEqual(0);
        await opened.value.close();
      }
      told[opened.ok ? "read" : (opened.fault as keyof typeof told)] += 1;
    }
    expect(told.CUT_SHORT).toBeGreaterThan(30);
  });

  it("is told where it was cut", async () => {
    const path = await writtenFile(40, 9);
    truncateSync(path, 5 * PAGE_BYTES);
    expect(brokenStructure(path)).toBe("CUT_SHORT");
  });
});
