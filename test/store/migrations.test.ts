import { describe, expect, it } from "vitest";
import { migrate, SCHEMA, type Schema } from "../../src/store/migrations.ts";
import { META, readSchema } from "../../src/store/stored_meta.ts";
import { FakeEngine } from "./fake_engine.ts";

const KEY = Buffer.from([16, 1]);
const random = (bytes: number) => Buffer.alloc(bytes, 9);

/** Schemas that never were: the second doubles a value, the third marks it. */
const THIRD: Schema = {
  version: 3,
  steps: new Map([
    [1, (engine, batch) => batch.put(KEY, Buffer.concat([engine.get(KEY)!, engine.get(KEY)!]))],
    [2, (engine, batch) => batch.put(KEY, Buffer.concat([engine.get(KEY)!, Buffer.from("!")]))],
  ]),
};

async function firstSchema(): Promise<FakeEngine> {
  const engine = new FakeEngine();
  await migrate(engine, random, { version: 1, steps: new Map() });
  const batch = engine.batch();
  batch.put(KEY, Buffer.from("ab"));
  engine.write(batch, () => undefined);
  return engine;
}

describe("the store's schema", () => {
  it("is written with a new store, and its key for digests is made once", async () => {
    const engine = new FakeEngine();
    expect(await migrate(engine, random)).toEqual({ ok: true, value: undefined });
    expect([readSchema(engine), engine.get(META.digestKey)]).toEqual([SCHEMA.version, Buffer.alloc(32, 9)]);
    await migrate(engine, () => Buffer.alloc(32, 1));
    expect(engine.get(META.digestKey)).toEqual(Buffer.alloc(32, 9));
  });

  it("is brought up step by step, each with the version that it leads to", async () => {
    const engine = await firstSchema();
    expect((await migrate(engine, random, THIRD)).ok).toBe(true);
    expect([readSchema(engine), engine.get(KEY)?.toString()]).toEqual([3, "abab!"]);
    await migrate(engine, random, THIRD);
    expect(engine.get(KEY)?.toString()).toBe("abab!");
  });

  it("of a newer program is refused, with what to do, and left as it is", async () => {
    const engine = await firstSchema();
    await migrate(engine, random, THIRD);
    expect(await migrate(engine, random)).toEqual({
      ok: false,
      fault: expect.stringMatching(/newer callgate.*schema 3; this one knows 1.*restore a backup/),
    });
    expect(readSchema(engine)).toBe(3);
  });

  it("stays where it is when a step can't be written", async () => {
    const engine = await firstSchema();
    engine.disk.fill();
    expect((await migrate(engine, random, THIRD)).ok).toBe(false);
    expect([readSchema(engine), engine.get(KEY)?.toString()]).toEqual([1, "ab"]);
  });

  it("that is too old for any step is refused", async () => {
    const engine = await firstSchema();
    expect(await migrate(engine, random, { ...THIRD, steps: new Map() })).toEqual({
      ok: false,
      fault: expect.stringMatching(/schema 1 is too old/),
    });
  });
});
