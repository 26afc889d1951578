// Calls in the durable store: what each change leaves in a batch, which calls have an intent and no
// outcome, where those that have ended are, and which go to make room.
// Invariant: a call is known here as it is on disk, from the moment its batch was called back; one that
// has no outcome is kept until it has.

import { putIntent, putOutcome, putPart, readCall, readHead } from "./call_entries.ts";
import { CallPruning } from "./call_pruning.ts";
import { findCalls } from "./calls_at_start.ts";
import { type Engine, walk } from "./engine.ts";
import type { KeptCall } from "./kept_calls.ts";
import { type CallBounds, merged } from "./memory_calls.ts";
import type { EndedPlace, FoundCall } from "./port.ts";
import type { CallKey, CallRecord, Change } from "./records.ts";
import { INDEX_BYTES, type Open, type RoleCalls, RoleTable } from "./role_calls.ts";
import { partsOf, readSeq, seqKey, TABLE, wholeTable } from "./store_keys.ts";
import type { WriteBatch } from "./write_batch.ts";

const ANY = Number.POSITIVE_INFINITY;

export class StoredCalls {
  /** What goes to make room, with each batch. */
  readonly pruning: CallPruning;
  readonly #engine: Engine;
  readonly #roles: RoleTable;
  #nextSeq: number;

  static async load(engine: Engine, bounds: CallBounds): Promise<StoredCalls> {
    const roles = new RoleTable();
    const { nextSeq, excess } = await findCalls(engine, roles);
    return new StoredCalls(engine, roles, new CallPruning(engine, bounds, roles, excess), nextSeq);
  }

  private constructor(engine: Engine, roles: RoleTable, pruning: CallPruning, nextSeq: number) {
    this.#engine = engine;
    this.#roles = roles;
    this.pruning = pruning;
    this.#nextSeq = nextSeq;
  }

  find(key: CallKey): CallRecord | undefined {
    const role = this.#roles.find(key.role);
    const open = role?.find(key.session, key.call);
    if (open?.written) return open.record ?? this.#readOpen(open);
    const kept = role?.kept.find(key.session, key.call);
    return kept && this.#readKept(kept, this.#engine.get(seqKey(TABLE.outcomes, kept.outcome)));
  }

  watermark(role: string, session: string): bigint | undefined {
    return this.#roles.find(role)?.watermarks.of(session);
  }

  /** Newest first. */
  *withoutOutcome(): Generator<CallRecord> {
    for (const { read } of this.open()) {
      const record = read();
      if (record !== undefined) yield record;
    }
  }

  /** As the port's `open`. */
  *open(): Generator<FoundCall> {
    const all = [...this.#roles.all()].flatMap((role) => openCalls(role));
    const written = all.filter(({ open }) => open.written).sort((a, b) => b.open.intent - a.open.intent);
    for (const { key, open } of written) {
      const read = () => open.record ?? this.#readOpen(open);
      yield { key, endedAtMs: 0, number: 0, bytes: open.charged, read };
    }
  }

  /** As the port's `ended`; a place without a number whose call is not here is ahead of all of its millisecond. */
  found(role: string | undefined, behind: EndedPlace | undefined): Iterable<FoundCall> {
    const below = behind && this.numberOf(behind);
    const endedMaxMs = below === undefined && behind !== undefined ? behind.endedAtMs : ANY;
    const roles = role === undefined ? [...this.#roles.all()] : [this.#roles.find(role)];
    const streams = roles.map((one) => (one === undefined ? [] : this.#found(one, below ?? ANY, endedMaxMs)));
    return merged(streams, (a, b) => a.number > b.number);
  }

  /** The number in the place, or that of the call that it names. */
  numberOf({ number, key }: EndedPlace): number | undefined {
    if (number !== 0) return number;
    return key && this.#roles.find(key.role)?.kept.find(key.session, key.call)?.outcome;
  }

  *#found({ name, kept }: RoleCalls, below: number, endedMaxMs: number): Generator<FoundCall> {
    for (const one of kept.newestFirst(below, endedMaxMs)) {
      const { session, call, outcome: number, charged: bytes, endedAtMs } = one;
      const read = () => this.#readKept(one, this.#engine.get(seqKey(TABLE.outcomes, number)));
      yield { key: { role: name, session, call }, endedAtMs, number, bytes, read };
    }
  }

  /** Newest first; what is pruned meanwhile is left out. */
  *ended(): Generator<CallRecord> {
    for (const { key, value } of walk(this.#engine, { ...wholeTable(TABLE.outcomes), reverse: true })) {
      const head = readHead(value);
      const kept = head && this.#roles.find(head.role)?.kept.find(head.session, head.call);
      if (kept?.outcome !== readSeq(key)) continue;
      const record = this.#readKept(kept, value);
      if (record !== undefined) yield record;
    }
  }

  counts(): { readonly kept: number; readonly withoutOutcome: number } {
    let kept = 0;
    let withoutOutcome = 0;
    for (const role of this.#roles.all()) {
      kept += role.kept.size;
      for (const calls of role.open.values()) withoutOutcome += calls.size;
    }
    return { kept, withoutOutcome };
  }

  encode(change: Change, batch: WriteBatch): void {
    switch (change.kind) {
      case "intent":
        return this.#encodeIntent(change.record, batch);
      case "message":
        return this.#encodePart(change.record, change.message, batch);
      case "outcome":
        return this.#encodeOutcome(change, batch);
      case "withdrawn":
        return this.#encodeWithdrawn(change.record, batch);
      default:
    }
  }

  /** The change holds: told in the order of the commits. */
  apply(change: Change): void {
    switch (change.kind) {
      case "intent": {
        const open = this.#openOf(change.record);
        if (open !== undefined) open.written = true;
        return;
      }
      case "message":
        change.record.messages.push(change.message);
        return;
      case "outcome":
        return this.#end(change);
      case "withdrawn":
        if (this.#openOf(change.record)?.record === change.record)
          this.#roles.of(change.record.key.role).take(change.record.key);
        return;
      default:
    }
  }

  /** The change will never hold. */
  drop(change: Change): void {
    if (change.kind !== "intent" && change.kind !== "outcome") return;
    const { record } = change;
    const open = this.#openOf(record);
    if (open === undefined) return;
    if (change.kind === "outcome") open.outcome = 0;
    if (!open.written && open.record === record) this.#roles.of(record.key.role).take(record.key);
  }

  #encodeIntent(record: CallRecord, batch: WriteBatch): void {
    const seq = this.#takeSeq();
    const charged = putIntent(batch, seq, record) + INDEX_BYTES;
    this.#roles.of(record.key.role).put(record.key, {
      record,
      intent: seq,
      parts: 0,
      charged,
      outcome: 0,
      written: false,
    });
  }

  #encodePart(record: CallRecord, message: Buffer, batch: WriteBatch): void {
    const open = this.#openOf(record);
    if (open === undefined) return;
    open.parts += 1;
    open.charged += putPart(batch, open.intent, this.#takeSeq(), record.labels, message);
  }

  #encodeOutcome(change: Extract<Change, { kind: "outcome" }>, batch: WriteBatch): void {
    const { record, status, code, atMs, message } = change;
    let open = this.#openOf(record);
    if (open === undefined) {
      open = { record, intent: 0, parts: 0, charged: INDEX_BYTES, outcome: 0, written: false };
      this.#roles.of(record.key.role).put(record.key, open);
    }
    const { intent, parts, charged } = open;
    open.outcome = this.#takeSeq();
    open.charged += putOutcome(batch, open.outcome, record, {
      status,
      code,
      atMs,
      message,
      intent,
      parts,
      charged,
    });
  }

  #encodeWithdrawn(record: CallRecord, batch: WriteBatch): void {
    const open = this.#openOf(record);
    if (open?.record === record) batch.delete(seqKey(TABLE.intents, open.intent));
  }

  #end({ record, message, status, code, atMs }: Extract<Change, { kind: "outcome" }>): void {
    const role = this.#roles.of(record.key.role);
    const open = role.find(record.key.session, record.key.call);
    record.messages.push(message);
    record.state = "ended";
    record.status = status;
    record.code = code;
    record.endedAtMs = atMs;
    if (open === undefined || open.outcome === 0) return;
    role.take(record.key);
    const { session, call } = record.key;
    const { outcome, intent, parts, charged } = open;
    role.kept.add({ session, call, outcome, intent, parts, charged, endedAtMs: atMs });
  }

  #takeSeq(): number {
    const seq = this.#nextSeq;
    this.#nextSeq += 1;
    return seq;
  }

  #openOf({ key }: CallRecord): Open | undefined {
    return this.#roles.find(key.role)?.find(key.session, key.call);
  }

  #readOpen({ intent, parts }: Open): CallRecord | undefined {
    const own = this.#engine.get(seqKey(TABLE.intents, intent));
    return own && readCall(own, undefined, this.#readParts(intent, parts));
  }

  #readKept({ intent, parts }: KeptCall, outcome: Buffer | undefined): CallRecord | undefined {
    if (outcome === undefined) return undefined;
    if (intent === 0) return readCall(outcome, outcome, []);
    const own = this.#engine.get(seqKey(TABLE.intents, intent));
    return own && readCall(own, outcome, this.#readParts(intent, parts));
  }

  #readParts(intent: number, parts: number): readonly Buffer[] {
    if (parts === 0) return [];
    return this.#engine.range({ ...partsOf(intent), limit: parts }).map(({ value }) => value);
  }
}

function openCalls(role: RoleCalls): readonly { readonly key: CallKey; readonly open: Open }[] {
  return [...role.open].flatMap(([session, calls]) =>
    [...calls].map(([call, open]) => ({ key: { role: role.name, session, call }, open })),
  );
}
