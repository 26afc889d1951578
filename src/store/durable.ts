// The store that survives: calls, tables and audit over one engine, written through the journal, read
// from what the engine has. Calls of `record = "memory"` are kept in memory beside it.
// Invariant: what `commit` has called back without a fault is on disk, in one transaction with what the
// audit says of it.

import { fault, ok, type Result } from "../base/faults.ts";
import type { Clock, Log } from "../base/ports.ts";
import { type AuditEvent, type KeyedDigest, keyedDigest } from "./audit_event.ts";
import { auditEvents } from "./audit_events.ts";
import type { AuditBounds } from "./audit_segments.ts";
import { Denials } from "./denials.ts";
import type { Engine } from "./engine.ts";
import { Journal, type Ledger, type Reserve } from "./journal.ts";
import { type CallBounds, MemoryCalls, newestFirst } from "./memory_calls.ts";
import { migrate } from "./migrations.ts";
import type { AuditReader, Committed, FoundCall, Store, StoreCondition, Stored } from "./port.ts";
import type { CallKey, CallRecord, Change, DecisionRecord } from "./records.ts";
import { StoredAudit } from "./stored_audit.ts";
import { StoredCalls } from "./stored_calls.ts";
import { META, putTimeFloor, readEpochFloor, readTimeFloor } from "./stored_meta.ts";
import { encodeRecords, loadRecords } from "./stored_tables.ts";
import type { WriteBatch } from "./write_batch.ts";

export interface DurableOptions {
  readonly engine: Engine;
  readonly reserve: Reserve;
  /** Makes the clock that never shows a time before the one given: the store has seen that one. */
  readonly clock: (floorMs: number) => Clock;
  readonly log: Log;
  readonly random: (bytes: number) => Buffer;
  readonly replayForMs: number;
  /** Bytes of ended calls kept for a role. */
  readonly storedBytesMax: (role: string) => number;
  readonly auditBounds: () => AuditBounds;
}

/** What an opened store consists of. */
interface Parts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly calls: StoredCalls;
  readonly memory: MemoryCalls;
  readonly audit: StoredAudit;
  readonly keyed: KeyedDigest;
  readonly stored: Stored;
  readonly epochFloor: bigint | undefined;
}

export class DurableStore implements Store {
  readonly clock: Clock;
  readonly audit: AuditReader;
  readonly #parts: Parts;
  readonly #journal: Journal<Change, AuditEvent>;
  readonly #denials = new Denials();
  /** How many commits of a call in memory wait for the disk: what comes after them waits too. */
  readonly #waiting = new Map<CallRecord, number>();
  #stored: Stored | undefined;

  /** The fault is a sentence for the owner, and goes on from "the store: ". */
  static async open(options: DurableOptions): Promise<Result<DurableStore>> {
    const { engine, reserve, log } = options;
    const startedAtMs = performance.now();
    const migrated = await migrate(engine, options.random);
    if (!migrated.ok) return migrated;
    const key = engine.get(META.digestKey);
    if (key === undefined) return fault("it is damaged: its key for digests is gone. Restore a backup.");
    const parts = await load(options, keyedDigest(key));
    if (!parts.ok) return parts;
    const store = new DurableStore(parts.value, options, await reserve.hold());
    const { kept, withoutOutcome } = parts.value.calls.counts();
    log("info", "store.opened", {
      ms: Math.round(performance.now() - startedAtMs),
      calls: kept,
      unknown: withoutOutcome,
      bytes: engine.usedBytes(),
    });
    return ok(store);
  }

  private constructor(parts: Parts, { engine, reserve, log }: DurableOptions, held: boolean) {
    this.#parts = parts;
    this.#stored = parts.stored;
    this.clock = parts.clock;
    this.audit = parts.audit.reader;
    const ledger = this.#ledger();
    this.#journal = new Journal({ engine, ledger, reserve, clock: parts.clock, log }, held);
  }

  commit(changes: readonly Change[], done: Committed, reserved = false): void {
    const waits = this.condition !== "ok" || changes.some((change) => this.#waitsFor(change));
    if (waits) this.#countWaiting(changes, 1);
    this.#journal.commit(changes, done, waits, reserved);
  }

  get condition(): StoreCondition {
    return this.#journal.condition;
  }

  findCall(key: CallKey): CallRecord | undefined {
    return this.#parts.memory.find(key) ?? this.#parts.calls.find(key);
  }

  *calls(): Iterable<CallRecord> {
    const { calls, memory } = this.#parts;
    yield* memory.withoutOutcome();
    yield* calls.withoutOutcome();
    yield* newestFirst([memory.ended(), calls.ended()]);
  }

  *open(): Iterable<FoundCall> {
    yield* this.#parts.memory.open();
    yield* this.#parts.calls.open();
  }

  ended({ role, behind }: Parameters<Store["ended"]>[0]): Iterable<FoundCall> {
    const { calls, memory } = this.#parts;
    // One that is on disk is behind whatever is in memory of its millisecond.
    const place = behind && { ...behind, number: calls.numberOf(behind) ?? 0 };
    return newestFirst([memory.found(role, place), calls.found(role, place)]);
  }

  watermark(role: string, session: string): bigint | undefined {
    const { calls, memory, epochFloor } = this.#parts;
    return highest(highest(calls.watermark(role, session), memory.watermark(role, session)), epochFloor);
  }

  findDecision(key: CallKey): DecisionRecord | undefined {
    return this.#denials.find(key);
  }

  load(): Stored {
    const stored = this.#stored;
    if (stored === undefined) throw new Error("what was stored is read once");
    this.#stored = undefined;
    return stored;
  }

  /** Bytes on disk. */
  usedBytes(): number {
    return this.#parts.engine.usedBytes();
  }

  /** Resolves when everything that was committed is on disk, or was refused, and the engine is closed. */
  async close(): Promise<void> {
    // Only for the time that every batch tells: what has run out by now stays so, whatever the next clock says.
    this.#journal.commit([], () => undefined, true, false);
    await this.#journal.close();
    await this.#parts.engine.close();
  }

  /**
   * A call in memory is not waited for: unless something of the same call does wait, since its parts go
   * out in order.
   */
  #waitsFor(change: Change): boolean {
    const record = callOf(change);
    return record === undefined || record.durable || this.#waiting.has(record);
  }

  #countWaiting(changes: readonly Change[], by: 1 | -1): void {
    for (const change of changes) {
      const record = callOf(change);
      if (record === undefined || record.durable) continue;
      const count = (this.#waiting.get(record) ?? 0) + by;
      if (count > 0) this.#waiting.set(record, count);
      else this.#waiting.delete(record);
    }
  }

  #ledger(): Ledger<Change, AuditEvent> {
    const { calls, audit, clock } = this.#parts;
    return {
      encode: (changes, batch) => this.#encode(changes, batch),
      seal: (batch, events) => {
        const nowMs = clock.nowMs();
        putTimeFloor(batch, nowMs);
        audit.encode(events, nowMs, batch);
        calls.pruning.encode(batch);
      },
      sealed: (written) => {
        audit.encoded(written);
        calls.pruning.encoded(written);
      },
      apply: (changes) => {
        this.#countWaiting(changes, -1);
        for (const change of changes) this.#apply(change);
      },
      drop: (changes) => {
        this.#countWaiting(changes, -1);
        for (const change of changes) if (isDurable(change)) calls.drop(change);
      },
    };
  }

  #encode(changes: readonly Change[], batch: WriteBatch): readonly AuditEvent[] {
    const { engine, calls, keyed } = this.#parts;
    const events: AuditEvent[] = [];
    for (const change of changes) {
      if (callOf(change) === undefined) encodeRecords(engine, change, batch);
      else if (isDurable(change)) calls.encode(change, batch);
      events.push(...auditEvents(change, keyed));
    }
    return events;
  }

  #apply(change: Change): void {
    const { calls, memory } = this.#parts;
    if (change.kind === "audit") this.#denials.note(change.record);
    else if (isDurable(change)) calls.apply(change);
    else memory.apply(change);
  }
}

async function load(options: DurableOptions, keyed: KeyedDigest): Promise<Result<Parts>> {
  const { engine, replayForMs, storedBytesMax, auditBounds } = options;
  const clock = options.clock(readTimeFloor(engine));
  const bounds: CallBounds = { endedBeforeMs: () => clock.nowMs() - replayForMs, storedBytesMax };
  const calls = await StoredCalls.load(engine, bounds);
  const audit = StoredAudit.load(engine, auditBounds);
  if (!audit.ok) return audit;
  const stored = await loadRecords(engine);
  if (!stored.ok) return stored;
  return ok({
    engine,
    clock,
    calls,
    memory: new MemoryCalls(bounds),
    audit: audit.value,
    keyed,
    stored: stored.value,
    epochFloor: readEpochFloor(engine),
  });
}

function callOf(change: Change): CallRecord | undefined {
  switch (change.kind) {
    case "intent":
    case "message":
    case "outcome":
    case "withdrawn":
      return change.record;
    default:
      return undefined;
  }
}

function isDurable(change: Change): boolean {
  return callOf(change)?.durable ?? false;
}

function highest(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a > b ? a : b;
}
