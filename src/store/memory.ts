// The store that forgets when the process ends, and what a test may hand from one broker to the next:
// calls, tables and a bounded audit chain, all of them in memory.
// Invariant: what `commit` was given holds before it returns.

import type { Clock } from "../base/ports.ts";
import { keyedDigest } from "./audit_event.ts";
import { MemoryAudit } from "./audit_memory.ts";
import { Denials } from "./denials.ts";
import { MemoryCalls } from "./memory_calls.ts";
import type { AuditReader, Committed, FoundCall, Store, Stored } from "./port.ts";
import type { CallKey, CallRecord, Change, DecisionRecord } from "./records.ts";
import { loaded, recordWrites, type TableName, type Tables } from "./state_tables.ts";

export interface MemoryBounds {
  readonly replayForMs: number;
  /** Bytes of ended calls kept for a role. */
  storedBytesMax(role: string): number;
}

const AUDIT_BOUNDS = { keepForMs: 86_400_000, bytesMax: 16_777_216 } as const;

export class MemoryStore implements Store {
  readonly condition = "ok";
  readonly #clock: Clock;
  readonly #calls: MemoryCalls;
  readonly #denials = new Denials();
  readonly #tables: { readonly [T in TableName]: Map<string, Tables[T]> } = {
    session: new Map(),
    closed: new Map(),
    taint: new Map(),
    frozen: new Map(),
    pin: new Map(),
    approval: new Map(),
    grant: new Map(),
    uses: new Map(),
  };
  readonly #audit: MemoryAudit;

  constructor(clock: Clock, bounds: MemoryBounds) {
    this.#clock = clock;
    this.#calls = new MemoryCalls({
      endedBeforeMs: () => clock.nowMs() - bounds.replayForMs,
      storedBytesMax: (role) => bounds.storedBytesMax(role),
    });
    // Nothing of it leaves the process, so the key keeps nothing from anybody.
    this.#audit = new MemoryAudit(keyedDigest(Buffer.alloc(32)), AUDIT_BOUNDS);
  }

  commit(changes: readonly Change[], done: Committed): void {
    this.#audit.append(changes, this.#clock.nowMs());
    for (const change of changes) this.#apply(change);
    done(undefined);
  }

  findCall(key: CallKey): CallRecord | undefined {
    return this.#calls.find(key);
  }

  *calls(): Iterable<CallRecord> {
    yield* this.#calls.withoutOutcome();
    yield* this.#calls.ended();
  }

  open(): Iterable<FoundCall> {
    return this.#calls.open();
  }

  ended({ role, behind }: Parameters<Store["ended"]>[0]): Iterable<FoundCall> {
    return this.#calls.found(role, behind);
  }

  watermark(role: string, session: string): bigint | undefined {
    return this.#calls.watermark(role, session);
  }

  findDecision(key: CallKey): DecisionRecord | undefined {
    return this.#denials.find(key);
  }

  get audit(): AuditReader {
    return this.#audit.reader;
  }

  load(): Stored {
    const { session, closed, taint, frozen, pin, approval, grant, uses } = this.#tables;
    return loaded({
      session: [...session.values()],
      closed: [...closed.values()],
      taint: [...taint.values()],
      frozen: [...frozen.values()],
      pin: [...pin.values()],
      approval: [...approval.values()],
      grant: [...grant.values()],
      uses: [...uses.values()],
    });
  }

  #apply(change: Change): void {
    if (change.kind === "audit") return this.#denials.note(change.record);
    this.#calls.apply(change);
    for (const { table, name, value } of recordWrites(change)) {
      const records: Map<string, unknown> = this.#tables[table];
      if (value === undefined) records.delete(name);
      else records.set(name, value);
    }
  }
}
