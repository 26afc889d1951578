// Group commit: what is committed while a batch is being written gathers into the next one. When a
// batch is done, who is told what, and what happens while the disk takes nothing. What a change
// leaves in a batch is the ledger's, and so is what it notes of a change for the batch's end (for calls: what
// the audit says of it).
// Invariant: a batch holds or fails as a whole, batches take effect in order, and `done` is called in
// the order of the commits among all that wait.

import type { Clock, Log } from "../base/ports.ts";
import type { Engine, EngineFault } from "./engine.ts";
import type { Committed, StoreCondition, StoreFault } from "./port.ts";
import type { WriteBatch } from "./write_batch.ts";

/** From so many bytes on, what comes gathers in a batch of its own: a flush takes its time by the megabyte. */
const BATCH_BYTES = 1_048_576;
/** A batch that takes longer than that has stalled. */
export const STALLED_AFTER_MS = 5000;
/** Between two attempts to take the kept-back space again. */
const PROBE_EVERY_MS = 1000;

const REFUSED: StoreFault = { sentence: "the store can't write to its disk" };

/** What the journal writes without knowing what it is: changes of type C, of which notes of type N are taken. */
export interface Ledger<C, N> {
  /** Puts what these changes leave behind into the batch, as they are now. Returns what is noted of them. */
  encode(changes: readonly C[], batch: WriteBatch): readonly N[];
  /** Adds what every batch ends with: `notes` of all that it holds, in order. The batch before is settled. */
  seal(batch: WriteBatch, notes: readonly N[]): void;
  /** What the last sealed batch ended with is on disk, or nothing of it is. */
  sealed(written: boolean): void;
  /** These changes hold from now on. */
  apply(changes: readonly C[]): void;
  /** These changes were encoded and never will hold. */
  drop(changes: readonly C[]): void;
}

/** Space that is kept back on the store's disk for what operators need to write when it is full. */
export interface Reserve {
  /** Takes the space where it is not held; whether it is held then. */
  hold(): Promise<boolean>;
  /** The same, and tells that there is as much room beside it. */
  regain(): Promise<boolean>;
  /** Gives the space away; whether there was any. */
  release(): Promise<boolean>;
}

export interface JournalOptions<C, N> {
  readonly engine: Engine;
  readonly ledger: Ledger<C, N>;
  readonly reserve: Reserve;
  readonly clock: Clock;
  readonly log: Log;
}

interface Commit<C> {
  readonly changes: readonly C[];
  readonly done: Committed;
}

/** Commits that share a batch. */
interface Gathered<C, N> {
  readonly batch: WriteBatch;
  readonly commits: Commit<C>[];
  /** Of the commits that wait; goes with the batch. */
  readonly notes: N[];
  /** Of commits that were called back at once: owed, whatever becomes of the batch. */
  readonly owed: N[];
  /** One of them may use the space that is kept back. */
  reserved: boolean;
}

export class Journal<C, N> {
  readonly #options: JournalOptions<C, N>;
  readonly #queue: Gathered<C, N>[] = [];
  #writing: Gathered<C, N> | undefined;
  #writingSinceMs = 0;
  #stopStallTimer: (() => void) | undefined;
  #stalled = false;
  #failing: { readonly sinceMs: number; readonly code: string } | undefined;
  #stopProbe: (() => void) | undefined;
  /** What was called back at once, in a batch that was then refused: goes with the next. */
  #owed: N[] = [];
  #asked = false;
  #closing: (() => void) | undefined;
  #closed = false;

  /** `held`: the space is kept back; otherwise there is none, and that is where it begins. */
  constructor(options: JournalOptions<C, N>, held: boolean) {
    this.#options = options;
    if (!held) this.#fail("ENOSPC");
  }

  get condition(): StoreCondition {
    if (this.#failing !== undefined) return "failing";
    if (this.#writing === undefined) return "ok";
    const forMs = this.#options.clock.nowMs() - this.#writingSinceMs;
    return forMs > STALLED_AFTER_MS ? "stalled" : "ok";
  }

  /** `waits` false: `done` is called at once, and the changes are written all the same. Only while the condition is `ok`. */
  commit(changes: readonly C[], done: Committed, waits: boolean, reserved: boolean): void {
    if (this.#closed) return done(REFUSED);
    const { ledger } = this.#options;
    const gathered = this.#gather(reserved);
    const notes = ledger.encode(changes, gathered.batch);
    if (!waits) {
      gathered.owed.push(...notes);
      ledger.apply(changes);
    } else {
      gathered.notes.push(...notes);
      gathered.commits.push({ changes, done });
      if (reserved) gathered.reserved = true;
    }
    this.#ask();
    if (!waits) done(undefined);
  }

  /** Writes what waits, and refuses what comes after. Resolves when nothing is under way. */
  close(): Promise<void> {
    this.#stopProbe?.();
    this.#stopProbe = undefined;
    return new Promise((resolve) => {
      this.#closing = resolve;
      this.#writeNext();
    });
  }

  /**
   * While all is well everything shares a batch. On a full disk an operator's commits stand alone, or
   * what an agent writes would take the space that is kept back for them.
   */
  #gather(reserved: boolean): Gathered<C, N> {
    const last = this.#queue.at(-1);
    const mixes = this.#failing === undefined || last?.reserved === reserved;
    if (last !== undefined && last.batch.length < BATCH_BYTES && mixes) return last;
    const batch = this.#options.engine.batch();
    const gathered = { batch, commits: [], notes: [], owed: [], reserved: false };
    this.#queue.push(gathered);
    return gathered;
  }

  /** What comes in one turn of the event loop shares a batch also where nothing is being written. */
  #ask(): void {
    if (this.#asked || this.#writing !== undefined) return;
    this.#asked = true;
    this.#options.clock.afterInput(() => {
      this.#asked = false;
      this.#writeNext();
    });
  }

  #writeNext(): void {
    if (this.#writing !== undefined) return;
    const next = this.#queue.shift();
    if (next === undefined) return this.#end();
    this.#writing = next;
    this.#writingSinceMs = this.#options.clock.nowMs();
    this.#stopStallTimer = this.#options.clock.after(STALLED_AFTER_MS + 1, () => this.#stall());
    this.#options.ledger.seal(next.batch, [...this.#owed, ...next.owed, ...next.notes]);
    this.#write(next);
  }

  #end(): void {
    if (this.#closing === undefined) return;
    this.#closed = true;
    this.#closing();
  }

  #write(next: Gathered<C, N>): void {
    const { engine, reserve } = this.#options;
    engine.write(next.batch, (fault) => {
      if (fault === undefined || !next.reserved) return this.#written(next, fault);
      // Written once more where that gave space away: an operator must not have to ask twice to stop somebody.
      void reserve.release().then((released) => {
        if (!released) return this.#written(next, fault);
        this.#fail(fault.code);
        engine.write(next.batch, (again) => this.#written(next, again));
      });
    });
  }

  #written(gathered: Gathered<C, N>, fault: EngineFault | undefined): void {
    this.#stopStallTimer?.();
    this.#stopStallTimer = undefined;
    this.#writing = undefined;
    const { ledger } = this.#options;
    ledger.sealed(fault === undefined);
    if (fault === undefined) this.#owed = [];
    else this.#owed.push(...gathered.owed);
    for (const { changes } of gathered.commits) {
      if (fault === undefined) ledger.apply(changes);
      else ledger.drop(changes);
    }
    if (fault !== undefined) this.#fail(fault.code);
    else if (this.#stalled) this.#unstall();
    if (this.#queue.length > 0) this.#writeNext(); // the thread writes on while the callbacks run
    for (const { done } of gathered.commits) this.#call(done, fault);
    this.#writeNext();
  }

  /** A callback that throws is a broken assumption; the others are still called. */
  #call(done: Committed, fault: EngineFault | undefined): void {
    try {
      done(fault === undefined ? undefined : REFUSED);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  #stall(): void {
    this.#stalled = true;
    this.#options.log("error", "store.stalled", { after_ms: STALLED_AFTER_MS });
  }

  #unstall(): void {
    this.#stalled = false;
    if (this.#failing !== undefined) return;
    const afterMs = this.#options.clock.nowMs() - this.#writingSinceMs;
    this.#options.log("info", "store.recovered", { after_ms: afterMs });
  }

  #fail(code: string): void {
    this.#stalled = false;
    if (this.#failing === undefined) {
      this.#failing = { sinceMs: this.#options.clock.nowMs(), code };
      this.#options.log("error", "store.failing", { code });
    }
    this.#probeLater();
  }

  #probeLater(): void {
    if (this.#stopProbe !== undefined || this.#closing !== undefined) return;
    this.#stopProbe = this.#options.clock.after(PROBE_EVERY_MS, () => void this.#probe());
  }

  /** There is room again where the kept-back space can be taken and a batch is written. */
  async #probe(): Promise<void> {
    const regained = await this.#options.reserve.regain();
    this.#stopProbe = undefined;
    if (this.#closing !== undefined) return;
    if (!regained) return this.#probeLater();
    this.commit([], (fault) => (fault === undefined ? this.#recover() : undefined), true, false);
  }

  #recover(): void {
    const failing = this.#failing;
    if (failing === undefined) return;
    this.#failing = undefined;
    const afterMs = this.#options.clock.nowMs() - failing.sinceMs;
    this.#options.log("info", "store.recovered", { after_ms: afterMs });
  }
}
