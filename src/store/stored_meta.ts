// What the store keeps about itself: its schema's version, the key of its digests, the highest time it
// has seen, and up to which call id a restored one refuses.
// Invariant: the key is made once, with the store; the time and the epoch only rise.

import type { Engine } from "./engine.ts";
import { TABLE, textKey } from "./store_keys.ts";
import type { WriteBatch } from "./write_batch.ts";

/** Names under which a store on disk has them. */
export const META = {
  schema: textKey(TABLE.meta, "schema version"),
  digestKey: textKey(TABLE.meta, "digest key"),
  timeFloor: textKey(TABLE.meta, "time floor"),
  epochFloor: textKey(TABLE.meta, "epoch floor"),
  auditTail: textKey(TABLE.meta, "audit tail"),
  auditSeals: textKey(TABLE.meta, "audit seals"),
} as const;

export const DIGEST_KEY_BYTES = 32;

export function readSchema(engine: Engine): number | undefined {
  const value = engine.get(META.schema);
  return value?.length === 4 ? value.readUInt32LE() : undefined;
}

export function putSchema(batch: WriteBatch, version: number): void {
  const value = Buffer.alloc(4);
  value.writeUInt32LE(version);
  batch.put(META.schema, value);
}

/** Milliseconds since the epoch; 0 where nothing was written yet. */
export function readTimeFloor(engine: Engine): number {
  const value = engine.get(META.timeFloor);
  return value?.length === 8 ? value.readDoubleLE() : 0;
}

export function putTimeFloor(batch: WriteBatch, nowMs: number): void {
  const at = batch.begin(META.timeFloor, 8);
  batch.view.setFloat64(at, nowMs, true);
  batch.finish(at + 8);
}

/** Ids up to it are of an earlier epoch: never run, in any session. */
export function readEpochFloor(engine: Engine): bigint | undefined {
  const value = engine.get(META.epochFloor);
  return value?.length === 8 ? value.readBigUInt64LE() : undefined;
}

/** Never below the one that is there. */
export function putEpochFloor(engine: Engine, batch: WriteBatch, call: bigint): void {
  const before = readEpochFloor(engine);
  const value = Buffer.alloc(8);
  value.writeBigUInt64LE(before !== undefined && before > call ? before : call);
  batch.put(META.epochFloor, value);
}
