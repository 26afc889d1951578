// The store's schema: which version this program writes, how an older one becomes it, and the first
// batch of a new store. One step is one transaction, with the version that it leads to.
// Invariant: a store of a newer program is refused as it is; a step that fails has changed nothing.

import { fault, ok, type Result } from "../base/faults.ts";
import type { Engine, EngineFault } from "./engine.ts";
import { DIGEST_KEY_BYTES, META, putSchema, readSchema } from "./stored_meta.ts";
import type { WriteBatch } from "./write_batch.ts";

/** Puts what leads from one version to the next into the batch; what it reads is the store before. */
export type Migration = (engine: Engine, batch: WriteBatch) => void;

export interface Schema {
  readonly version: number;
  /** By the version that each begins from; one for every version below. */
  readonly steps: ReadonlyMap<number, Migration>;
}

export const SCHEMA: Schema = { version: 1, steps: new Map() };

/** Makes the store this program's; the fault is a sentence for the owner. `random`: of so many bytes. */
export async function migrate(
  engine: Engine,
  random: (bytes: number) => Buffer,
  schema: Schema = SCHEMA,
): Promise<Result<void>> {
  const found = readSchema(engine);
  if (found === undefined) return create(engine, random, schema);
  if (found > schema.version) return newer(found, schema);
  for (let version = found; version < schema.version; version += 1) {
    const step = schema.steps.get(version);
    if (step === undefined) return fault(`its schema ${version} is too old for this program.`);
    const batch = engine.batch();
    step(engine, batch);
    putSchema(batch, version + 1);
    const written = await write(engine, batch);
    if (written !== undefined)
      return fault(`it can't be brought to schema ${version + 1} (${written.code}); it is as it was.`);
  }
  return ok(undefined);
}

function newer(found: number, { version }: Schema): Result<never> {
  return fault(
    `a newer callgate has written it (schema ${found}; this one knows ${version}): run that one, or restore a backup.`,
  );
}

async function create(
  engine: Engine,
  random: (bytes: number) => Buffer,
  { version }: Schema,
): Promise<Result<void>> {
  const anything = engine.keys({ from: Buffer.from([0]), to: Buffer.from([0xff]), limit: 1 });
  if (anything.length > 0) return fault("it is damaged: it has no schema version. Restore a backup.");
  const batch = engine.batch();
  putSchema(batch, version);
  batch.put(META.digestKey, random(DIGEST_KEY_BYTES));
  const written = await write(engine, batch);
  return written === undefined ? ok(undefined) : fault(`it can't be written (${written.code}).`);
}

/** Resolves when it is on disk, or with why it is not. */
export function write(engine: Engine, batch: WriteBatch): Promise<EngineFault | undefined> {
  return new Promise((resolve) => engine.write(batch, resolve));
}
