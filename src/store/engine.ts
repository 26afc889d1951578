// The port to what keeps bytes: an ordered map from keys to values that a batch changes as a whole.
// What the bytes mean is nobody's here; lmdb.ts is the engine that writes to disk.
// Invariant: a batch that was called back without a fault is durable; of one with a fault nothing is there.

import type { WriteBatch } from "./write_batch.ts";

/** Why a batch was refused: a symbolic name (`ENOSPC`, `MDB_MAP_FULL`), fit for a log. */
export interface EngineFault {
  readonly code: string;
}

export interface Entry {
  readonly key: Buffer;
  readonly value: Buffer;
}

/** Keys from `from` on and below `to`, in the order of their bytes; `reverse`: the highest first. */
export interface KeyRange {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
  readonly reverse?: boolean;
  /** At most so many. */
  readonly limit: number;
}

export interface Engine {
  /** A copy; what was written last and called back. */
  get(key: Uint8Array): Buffer | undefined;
  /** Copies, all at once: nobody holds a snapshot open between two looks. */
  range(range: KeyRange): readonly Entry[];
  keys(range: KeyRange): readonly Buffer[];
  /** An empty batch to fill and hand to `write`, which takes it over. */
  batch(): WriteBatch;
  /**
   * All of the batch or nothing. One at a time: the next only once `done` was called. With a fault the
   * batch is as it was and may be written again.
   */
  write(batch: WriteBatch, done: (fault: EngineFault | undefined) => void): void;
  /** Bytes that it takes on disk. */
  usedBytes(): number;
  /** Resolves when everything is released; a batch that is being written is finished first. */
  close(): Promise<void>;
}

/** Entries at a time, when a whole table is walked. */
const CHUNK_ENTRIES = 256;

/** Every entry of a range in its order, in chunks: a long walk beside writes holds none of them up. */
export function* walk(engine: Engine, range: Omit<KeyRange, "limit">): Generator<Entry> {
  let { from, to } = range;
  for (;;) {
    const entries = engine.range({ ...range, from, to, limit: CHUNK_ENTRIES });
    yield* entries;
    const last = entries.at(-1);
    if (last === undefined || entries.length < CHUNK_ENTRIES) return;
    if (range.reverse === true) to = last.key;
    else from = Buffer.concat([last.key, Buffer.from([0])]);
  }
}
