// The store that forgets when the process ends. Outcomes are kept per role up to an age and a number
// of bytes; what goes leaves its session's watermark behind, so a pruned call is never run again.

import type { Clock } from "../base/ports.ts";
import type { Committed, Store } from "./port.ts";
import type { AuditRecord, CallKey, CallRecord, Change, DecisionRecord, PinRecord } from "./records.ts";

/** Denials kept for `calls.why`, for each role: nobody pushes out another role's. */
const DECISIONS_KEPT = 1024;
/** Beside a record's own bytes: objects and map entries, as measured roughly. */
const RECORD_OVERHEAD_BYTES = 512;

export interface MemoryBounds {
  readonly replayForMs: number;
  /** Bytes of ended calls kept for a role. */
  storedBytesMax(role: string): number;
}

/** One role's records: by session and call, and in the order they ended. */
class RoleRecords {
  readonly sessions = new Map<string, Map<bigint, CallRecord>>();
  readonly watermarks = new Map<string, bigint>();
  readonly decisions = new Map<string, DecisionRecord>();
  readonly ended: CallRecord[] = [];
  /** Index into `ended` of the oldest that is kept. */
  oldest = 0;
  bytes = 0;

  put(record: CallRecord): void {
    const { session, call } = record.key;
    const calls = this.sessions.get(session);
    if (calls === undefined) this.sessions.set(session, new Map([[call, record]]));
    else calls.set(call, record);
  }

  end(record: CallRecord): void {
    this.ended.push(record);
    this.bytes += recordBytes(record);
  }

  prune(bytesMax: number, endedBeforeMs: number): void {
    while (this.oldest < this.ended.length) {
      const record = this.ended[this.oldest]!;
      if (this.bytes <= bytesMax && record.endedAtMs >= endedBeforeMs) break;
      this.oldest += 1;
      this.#forget(record);
    }
    if (this.oldest > 1024 && this.oldest * 2 > this.ended.length) {
      this.ended.splice(0, this.oldest);
      this.oldest = 0;
    }
  }

  #forget(record: CallRecord): void {
    const { session, call } = record.key;
    this.bytes -= recordBytes(record);
    const calls = this.sessions.get(session);
    calls?.delete(call);
    if (calls?.size === 0) this.sessions.delete(session);
    const watermark = this.watermarks.get(session);
    if (watermark === undefined || call > watermark) this.watermarks.set(session, call);
  }
}

function recordBytes(record: CallRecord): number {
  let bytes = RECORD_OVERHEAD_BYTES + record.arguments.length;
  for (const message of record.messages) bytes += message.length;
  return bytes;
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
    return this.#roles.get(key.role)?.sessions.get(key.session)?.get(key.call);
  }

  watermark(role: string, session: string): bigint | undefined {
    return this.#roles.get(role)?.watermarks.get(session);
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
      records = new RoleRecords();
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
