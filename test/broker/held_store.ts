// A store in memory that a test can make slow, full or broken: commits that wait, commits that are
// refused, and a commit that throws.

import type { Committed, Store, StoreCondition } from "../../src/store/port.ts";
import type { CallKey, Change } from "../../src/store/records.ts";

const FULL = { sentence: "SECRET-store: the disk is full" };

type Mode = "at_once" | "held" | "full" | "broken";

interface Waiting {
  readonly changes: readonly Change[];
  readonly done: Committed;
  readonly reserved: boolean;
}

export class HeldStore implements Store {
  mode: Mode = "at_once";
  readonly #inner: Store;
  readonly #waiting: Waiting[] = [];
  /** Everything that was committed, in order. */
  readonly written: Change[] = [];
  /** Calls in memory that a restart has forgotten. */
  readonly #forgotten = new Set<string>();
  #condition: StoreCondition | undefined;

  constructor(inner: Store) {
    this.#inner = inner;
  }

  /** Nothing overtakes what waits, whatever the mode is by then (the port's promise). */
  commit(changes: readonly Change[], done: Committed, reserved = false): void {
    if (this.mode === "broken") throw new Error("SECRET-store: this store is broken");
    if (this.mode === "held" || this.#waiting.length > 0) this.#waiting.push({ changes, done, reserved });
    else if (this.mode === "full") done(FULL);
    else this.#write({ changes, done, reserved });
  }

  /** The process is gone: what was not written never will be, and calls in memory are forgotten. */
  restart(): void {
    this.#waiting.length = 0;
    this.mode = "at_once";
    for (const record of this.#inner.calls()) if (!record.durable) this.#forgotten.add(nameOf(record.key));
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

  #write({ changes, done, reserved }: Waiting): void {
    for (const change of changes)
      if (change.kind === "intent") this.#forgotten.delete(nameOf(change.record.key));
    const written: Committed = (fault) => {
      this.written.push(...changes);
      done(fault);
    };
    this.#inner.commit(changes, written, reserved);
  }

  findCall(key: CallKey) {
    const record = this.#inner.findCall(key);
    return this.#forgotten.has(nameOf(key)) ? undefined : record;
  }

  watermark(role: string, session: string) {
    return this.#inner.watermark(role, session);
  }

  findDecision(key: CallKey) {
    return this.#inner.findDecision(key);
  }

  /** As a full or a slow disk would have it; undefined: the inner one's. */
  set condition(condition: StoreCondition | undefined) {
    this.#condition = condition;
  }

  get condition(): StoreCondition {
    return this.#condition ?? this.#inner.condition;
  }

  get audit() {
    return this.#inner.audit;
  }

  *calls() {
    for (const record of this.#inner.calls()) if (!this.#forgotten.has(nameOf(record.key))) yield record;
  }

  *open() {
    for (const found of this.#inner.open()) if (!this.#forgotten.has(nameOf(found.key))) yield found;
  }

  *ended(wanted: Parameters<Store["ended"]>[0]) {
    for (const found of this.#inner.ended(wanted)) if (!this.#forgotten.has(nameOf(found.key))) yield found;
  }

  load() {
    return this.#inner.load();
  }
}

function nameOf({ role, session, call }: CallKey): string {
  return `${role} ${session} ${call}`;
}
