// A replay store that forgets with the process: for tests, and for who needs no more. One that is opened again
// is the same object. Invariant: as the port says, but for the disk.

import { keyName } from "./digest.ts";
import type { ReplayHead, ReplayRecord, ReplayStore } from "./replay.ts";

interface Kept {
  readonly key: Buffer;
  readonly record: ReplayRecord;
  readonly frame: Buffer | undefined;
}

export class MemoryReplay implements ReplayStore {
  readonly #kept = new Map<string, Kept>();
  #forgottenUpToMs = 0;

  get forgottenUpToMs(): number {
    return this.#forgottenUpToMs;
  }

  find(key: Buffer): ReplayRecord | undefined {
    return this.#kept.get(keyName(key))?.record;
  }

  frame(key: Buffer): Buffer | undefined {
    return this.#kept.get(keyName(key))?.frame;
  }

  async activate(key: Buffer, head: ReplayHead): Promise<boolean> {
    this.#kept.set(keyName(key), { key, record: { ...head, state: "active" }, frame: undefined });
    return true;
  }

  async complete(key: Buffer, head: ReplayHead, frame: Buffer): Promise<boolean> {
    this.#kept.set(keyName(key), { key, record: { ...head, state: "completed" }, frame });
    return true;
  }

  expiringBefore(unixMs: number, limit: number): readonly Buffer[] {
    return [...this.#kept.values()]
      .filter(({ record }) => record.expiresAtUnixMs < unixMs)
      .sort((a, b) => a.record.expiresAtUnixMs - b.record.expiresAtUnixMs)
      .slice(0, limit)
      .map(({ key }) => key);
  }

  async forget(keys: readonly Buffer[]): Promise<number> {
    let gone = 0;
    for (const key of keys) {
      const kept = this.#kept.get(keyName(key));
      if (kept === undefined) continue;
      this.#forgottenUpToMs = Math.max(this.#forgottenUpToMs, kept.record.expiresAtUnixMs);
      this.#kept.delete(keyName(key));
      gone += 1;
    }
    return gone;
  }

  async close(): Promise<void> {}
}
