// A store in memory that a test can make slow, full or broken: commits that wait, commits that are
// refused, and a commit that throws.

import type { Committed, Store } from "../../src/store/port.ts";
import type { CallKey, Change } from "../../src/store/records.ts";

const FULL = { sentence: "SECRET-store: the disk is full" };

type Mode = "at_once" | "held" | "full" | "broken";

interface Waiting {
  readonly changes: readonly Change[];
  readonly done: Committed;
}

export class HeldStore implements Store {
  mode: Mode = "at_once";
  readonly #inner: Store;
  readonly #waiting: Waiting[] = [];
  /** Everything that was committed, in order. */
  readonly written: Change[] = [];

  constructor(inner: Store) {
    this.#inner = inner;
  }

  /** Nothing overtakes what waits, whatever the mode is by then (the port's promise). */
  commit(changes: readonly Change[], done: Committed): void {
    if (this.mode === "broken") throw new Error("SECRET-store: this store is broken");
    if (this.mode === "held" || this.#waiting.length > 0) this.#waiting.push({ changes, done });
    else if (this.mode === "full") done(FULL);
    else this.#write({ changes, done });
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Writes the oldest commits that wait, `count` of them. */
  release(count = this.#waiting.length): void {
    for (let i = 0; i < count && this.#waiting.length > 0; i += 1) this.#first((first) => this.#write(first));
  }

  /** Refuses the oldest commits that wait. */
  refuse(count = this.#waiting.length): void {
    for (let i = 0; i < count && this.#waiting.length > 0; i += 1) this.#first(({ done }) => done(FULL));
  }

  /** It stays in the queue while it is written, so that what comes of it waits behind the others. */
  #first(task: (first: Waiting) => void): void {
    const first = this.#waiting[0];
    if (first === undefined) return;
    task(first);
    this.#waiting.shift();
  }

  #write({ changes, done }: Waiting): void {
    this.#inner.commit(changes, (fault) => {
      this.written.push(...changes);
      done(fault);
    });
  }

  findCall(key: CallKey) {
    return this.#inner.findCall(key);
  }

  watermark(role: string, session: string) {
    return this.#inner.watermark(role, session);
  }

  findDecision(key: CallKey) {
    return this.#inner.findDecision(key);
  }

  pins() {
    return this.#inner.pins();
  }
}
