// Which stored calls go to make room, and what is written when they do: their entries out, their
// sessions' watermarks in. A bounded number goes with each batch.
// Invariant: a call that has no outcome never goes, but for those of earlier runs over their bound; and
// what has gone is at or below its session's watermark.

import type { Engine } from "./engine.ts";
import type { CallBounds } from "./memory_calls.ts";
import type { CallKey } from "./records.ts";
import type { Open, RoleCalls, RoleTable } from "./role_calls.ts";
import { partsOf, seqKey, TABLE, textKey } from "./store_keys.ts";
import type { WriteBatch } from "./write_batch.ts";

/** Calls that one batch prunes at most, so that it stays small. */
const PRUNED_A_BATCH = 512;

/** A call of an earlier run whose outcome nobody knows, over the bound. */
export interface Excess {
  readonly key: CallKey;
  readonly open: Open;
}

export class CallPruning {
  readonly #engine: Engine;
  readonly #bounds: CallBounds;
  readonly #roles: RoleTable;
  readonly #excess: Excess[];
  /** How many of each role's oldest, and of the excess, the batch under way takes out. */
  readonly #going = new Map<RoleCalls, number>();
  #excessGoing = 0;

  constructor(engine: Engine, bounds: CallBounds, roles: RoleTable, excess: readonly Excess[]) {
    this.#engine = engine;
    this.#bounds = bounds;
    this.#roles = roles;
    this.#excess = [...excess];
  }

  /**
   * Takes out what is too old or too much. The watermarks are raised at once: until the batch is on disk
   * the calls are still found, and found is asked first.
   */
  encode(batch: WriteBatch): void {
    let left = PRUNED_A_BATCH;
    const endedBeforeMs = this.#bounds.endedBeforeMs();
    for (const role of this.#roles.all()) left -= this.#encodeRole(role, left, endedBeforeMs, batch);
    for (const { key, open } of this.#excess.slice(0, left)) {
      this.#excessGoing += 1;
      this.#delete(open.intent, open.parts, batch);
      this.#roles.of(key.role).raise(key.session, key.call);
    }
    for (const role of this.#roles.all()) writeWatermarks(role, batch);
  }

  encoded(written: boolean): void {
    if (written) this.#take();
    this.#going.clear();
    this.#excessGoing = 0;
  }

  #take(): void {
    for (const [role, count] of this.#going) {
      for (let i = 0; i < count; i += 1) role.kept.takeOldest();
    }
    for (const { key } of this.#excess.splice(0, this.#excessGoing)) this.#roles.of(key.role).take(key);
    for (const role of this.#roles.all()) role.raised.clear();
  }

  #encodeRole(role: RoleCalls, countMax: number, endedBeforeMs: number, batch: WriteBatch): number {
    const { kept } = role;
    let over = kept.charged - this.#bounds.storedBytesMax(role.name);
    let count = 0;
    for (; count < countMax; count += 1) {
      const oldest = kept.oldest(count);
      if (oldest === undefined || (over <= 0 && oldest.endedAtMs >= endedBeforeMs)) break;
      over -= oldest.charged;
      batch.delete(seqKey(TABLE.outcomes, oldest.outcome));
      if (oldest.intent !== 0) this.#delete(oldest.intent, oldest.parts, batch);
      role.raise(oldest.session, oldest.call);
    }
    if (count > 0) this.#going.set(role, count);
    return count;
  }

  #delete(intent: number, parts: number, batch: WriteBatch): void {
    batch.delete(seqKey(TABLE.intents, intent));
    if (parts === 0) return;
    for (const key of this.#engine.keys({ ...partsOf(intent), limit: parts })) batch.delete(key);
  }
}

function writeWatermarks({ name, watermarks, raised }: RoleCalls, batch: WriteBatch): void {
  for (const session of raised) {
    const key = textKey(TABLE.watermarks, `${name} ${session}`);
    const call = session === "" ? watermarks.shared : watermarks.own(session);
    if (call === undefined) batch.delete(key);
    else batch.put(key, u64(call));
  }
}

function u64(value: bigint): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}
