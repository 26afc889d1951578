// An engine in memory, on a disk that has an end: batches that wait, batches that are refused, and what
// a process that dies leaves behind. And the space that is kept back on that disk.

import type { Engine, EngineFault, Entry, KeyRange } from "../../src/store/engine.ts";
import type { Reserve } from "../../src/store/journal.ts";
import { WriteBatch } from "../../src/store/write_batch.ts";

export const RESERVE_BYTES = 65_536;

/** What survives a process. */
export class FakeDisk {
  readonly entries = new Map<string, Entry>();
  bytesMax = Number.POSITIVE_INFINITY;
  reserved = 0;

  get usedBytes(): number {
    let bytes = this.reserved;
    for (const { key, value } of this.entries.values()) bytes += key.length + value.length;
    return bytes;
  }

  /** From now on it takes nothing more, but what is given up on it. */
  fill(): void {
    this.bytesMax = this.usedBytes;
  }
}

interface Waiting {
  readonly batch: WriteBatch;
  readonly done: (fault: EngineFault | undefined) => void;
}

export class FakeEngine implements Engine {
  readonly disk: FakeDisk;
  /** Batches wait for `release` or `refuse`. */
  held = false;
  /** How many batches were written. */
  batches = 0;
  #waiting: Waiting | undefined;
  #gone = false;

  constructor(disk = new FakeDisk()) {
    this.disk = disk;
  }

  get(key: Uint8Array): Buffer | undefined {
    const entry = this.disk.entries.get(nameOf(key));
    return entry && Buffer.from(entry.value);
  }

  range({ from, to, reverse = false, limit }: KeyRange): readonly Entry[] {
    const [low, high] = [nameOf(from), nameOf(to)];
    const names = [...this.disk.entries.keys()].filter((name) => name >= low && name < high).sort();
    if (reverse) names.reverse();
    return names.slice(0, limit).map((name) => this.disk.entries.get(name)!);
  }

  keys(range: KeyRange): readonly Buffer[] {
    return this.range(range).map(({ key }) => key);
  }

  batch(): WriteBatch {
    return new WriteBatch(new ArrayBuffer(64)); // small, so that it has to grow
  }

  write(batch: WriteBatch, done: Waiting["done"]): void {
    if (this.#waiting !== undefined) throw new Error("two batches at once");
    this.#waiting = { batch, done };
    if (!this.held) this.release();
  }

  get isWriting(): boolean {
    return this.#waiting !== undefined;
  }

  /** Writes the batch that waits, where there is room. */
  release(): void {
    const waiting = this.#take();
    if (waiting === undefined || this.#gone) return;
    const fits = this.#apply(waiting.batch);
    this.batches += 1;
    waiting.done(fits ? undefined : { code: "ENOSPC" });
  }

  refuse(code = "EIO"): void {
    this.#take()?.done({ code });
  }

  /** The process that this was dies: what waits is never written, and nobody is told. */
  die(): void {
    this.#gone = true;
    this.#waiting = undefined;
  }

  usedBytes(): number {
    return this.disk.usedBytes;
  }

  async close(): Promise<void> {
    this.#gone = true;
  }

  #take(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #apply(batch: WriteBatch): boolean {
    const before = new Map(this.disk.entries);
    batch.each(
      (key, value) =>
        this.disk.entries.set(nameOf(key), { key: Buffer.from(key), value: Buffer.from(value) }),
      (key) => this.disk.entries.delete(nameOf(key)),
    );
    if (this.disk.usedBytes <= this.disk.bytesMax) return true;
    this.disk.entries.clear();
    for (const [name, entry] of before) this.disk.entries.set(name, entry);
    return false;
  }
}

/** On the same disk. */
export function fakeReserve(disk: FakeDisk): Reserve {
  const room = () => disk.bytesMax - disk.usedBytes;
  const hold = async () => {
    if (disk.reserved === 0 && room() >= RESERVE_BYTES) disk.reserved = RESERVE_BYTES;
    return disk.reserved > 0;
  };
  return {
    hold,
    regain: async () => (await hold()) && room() >= RESERVE_BYTES,
    release: async () => {
      const held = disk.reserved > 0;
      disk.reserved = 0;
      return held;
    },
  };
}

/** Sorts as the bytes do. */
function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString("hex");
}
