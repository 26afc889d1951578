// The store that forgets when the process ends. Outcomes are kept per role up to an age and a number
// of bytes; what goes leaves its session's watermark behind, so a pruned call is never run again.

import type { Clock } from "../base/ports.ts";
import { CallArchive } from "./archive.ts";
import type { Committed, Store } from "./port.ts";
import type { AuditRecord, CallKey, CallRecord, Change, DecisionRecord, PinRecord } from "./records.ts";

/** Denials kept for `calls.why`, for each role: nobody pushes out another role's. */
const DECISIONS_KEPT = 1024;
/** Sessions of a role that each keep a watermark of their own; the oldest then share one. */
const WATERMARKS_KEPT = 65_536;

export interface MemoryBounds {
  readonly replayForMs: number;
  /** Bytes of ended calls kept for a role. */
  storedBytesMax(role: string): number;
}

/** One role's records: those that run, by session and call, and the archive of those that have ended. */
class RoleRecords {
  readonly running = new Map<string, Map<bigint, CallRecord>>();
  readonly archive: CallArchive;
  readonly watermarks = new Map<string, bigint>();
  /** Of the sessions that have none of their own any more: it may refuse a new id, and never runs an old one. */
  sharedWatermark: bigint | undefined;
  readonly decisions = new Map<string, DecisionRecord>();

  constructor(role: string) {
    this.archive = new CallArchive(role);
  }

  find(session: string, call: bigint): CallRecord | undefined {
    return this.running.get(session)?.get(call) ?? this.archive.find(session, call);
  }

  put(record: CallRecord): void {
    const { session, call } = record.key;
    const calls = this.running.get(session);
    if (calls === undefined) this.running.set(session, new Map([[call, record]]));
    else calls.set(call, record);
  }

  /** Takes a running call out without a trace. */
  drop(record: CallRecord): void {
    const { session, call } = record.key;
    const calls = this.running.get(session);
    if (calls?.get(call) !== record) return;
    calls.delete(call);
    if (calls.size === 0) this.running.delete(session);
  }

  end(record: CallRecord): void {
    this.drop(record);
    this.archive.append(record);
  }

  prune(bytesMax: number, endedBeforeMs: number): void {
    this.archive.prune(bytesMax, endedBeforeMs, (session, call) => this.#raiseWatermark(session, call));
  }

  #raiseWatermark(session: string, call: bigint): void {
    const watermark = this.watermarks.get(session);
    this.watermarks.delete(session);
    this.watermarks.set(session, watermark === undefined || call > watermark ? call : watermark);
    if (this.watermarks.size > WATERMARKS_KEPT) this.#shareOldest();
  }

  #shareOldest(): void {
    for (const [session, watermark] of this.watermarks) {
      this.watermarks.delete(session);
      if (watermark > (this.sharedWatermark ?? -1n)) this.sharedWatermark = watermark;
      return;
    }
  }
}

/** A session id holds no space, so the two parts can't run into each other. */
function decisionKey(key: CallKey): string {
  return `${key.session} ${key.call}`;
}

export class MemoryStore implements Store {
  readonly #clock: Clock;
  readonly #bounds: MemoryBounds;
  readonly #roles = new Map<string, RoleRecords>();
  readonly #pins = new Map<string, PinRecord>();

  constructor(clock: Clock, bounds: MemoryBounds) {
    this.#clock = clock;
    this.#bounds = bounds;
  }

  commit(changes: readonly Change[], done: Committed): void {
    for (const change of changes) this.#apply(change);
    done(undefined);
  }

  findCall(key: CallKey): CallRecord | undefined {
    return this.#roles.get(key.role)?.find(key.session, key.call);
  }

  watermark(role: string, session: string): bigint | undefined {
    const records = this.#roles.get(role);
    return records?.watermarks.get(session) ?? records?.sharedWatermark;
  }

  findDecision(key: CallKey): DecisionRecord | undefined {
    return this.#roles.get(key.role)?.decisions.get(decisionKey(key));
  }

  pins(): Iterable<PinRecord> {
    return this.#pins.values();
  }

  #apply(change: Change): void {
    switch (change.kind) {
      case "intent":
        this.#roleRecords(change.record.key.role).put(change.record);
        return;
      case "withdrawn":
        this.#roleRecords(change.record.key.role).drop(change.record);
        return;
      case "message":
        change.record.messages.push(change.message);
        return;
      case "outcome":
        this.#end(change.record, change.message, change.atMs);
        return;
      case "pinned":
        this.#pins.set(change.pin.tool, change.pin);
        return;
      case "audit":
        this.#audit(change.record);
        return;
      default:
      // Sessions, taints and frozen roles live in the session table; a durable store writes them down here.
    }
  }

  #end(record: CallRecord, message: Buffer, atMs: number): void {
    const { role } = record.key;
    const records = this.#roleRecords(role);
    record.messages.push(message);
    record.state = "ended";
    record.endedAtMs = atMs;
    records.end(record);
    records.prune(this.#bounds.storedBytesMax(role), this.#clock.nowMs() - this.#bounds.replayForMs);
  }

  #roleRecords(role: string): RoleRecords {
    let records = this.#roles.get(role);
    if (records === undefined) {
      records = new RoleRecords(role);
      this.#roles.set(role, records);
    }
    return records;
  }

  /** Only denials are kept: `calls.why` asks for them. */
  #audit(record: AuditRecord): void {
    if (record.kind !== "decision" || record.decision.verdict !== "deny") return;
    const { decisions } = this.#roleRecords(record.decision.key.role);
    const key = decisionKey(record.decision.key);
    decisions.delete(key);
    decisions.set(key, record.decision);
    if (decisions.size <= DECISIONS_KEPT) return;
    const oldest = decisions.keys().next();
    if (!oldest.done) decisions.delete(oldest.value);
  }
}
