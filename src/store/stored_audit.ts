// The audit chain in the durable store: its blocks in a table of their own, where it ends and what was
// sealed beside the store's other notes. What goes when is planned in audit_segments.ts.
// Invariant: the state in memory is the one on disk; a batch that was refused has changed neither.

import { ok, type Result } from "../base/faults.ts";
import type { AuditEvent } from "./audit_event.ts";
import { type AuditBlocks, auditReader, type StoredBlock } from "./audit_reader.ts";
import { type AuditBounds, type AuditState, planAudit } from "./audit_segments.ts";
import { decodeAuditState, encodeSeals, encodeTail } from "./audit_state.ts";
import type { Engine, Entry } from "./engine.ts";
import type { AuditReader } from "./port.ts";
import { TABLE, u64Key, wholeTable } from "./store_keys.ts";
import { META } from "./stored_meta.ts";
import type { WriteBatch } from "./write_batch.ts";

/** Blocks whose keys are looked up at once when a segment goes; a segment has as many as had batches. */
const REMOVED_KEYS = 65_536;

export class StoredAudit implements AuditBlocks {
  readonly reader: AuditReader;
  readonly #engine: Engine;
  readonly #bounds: () => AuditBounds;
  #state: AuditState;
  #planned: AuditState | undefined;

  static load(engine: Engine, bounds: () => AuditBounds): Result<StoredAudit> {
    const tail = engine.get(META.auditTail)?.toString("latin1");
    const seals = engine.get(META.auditSeals)?.toString("latin1");
    const state = decodeAuditState(tail, seals);
    return state.ok ? ok(new StoredAudit(engine, bounds, state.value)) : state;
  }

  private constructor(engine: Engine, bounds: () => AuditBounds, state: AuditState) {
    this.#engine = engine;
    this.#bounds = bounds;
    this.#state = state;
    this.reader = auditReader(this);
  }

  /** Puts these events into the batch, with what retention removes. */
  encode(events: readonly AuditEvent[], nowMs: number, batch: WriteBatch): void {
    const { firstSeq, block, state, remove } = planAudit(this.#state, events, nowMs, this.#bounds());
    this.#planned = state;
    if (block === "") return;
    batch.putAscii(u64Key(TABLE.auditBlocks, firstSeq), block);
    batch.putAscii(META.auditTail, encodeTail(state));
    if (state.seals !== this.#state.seals) batch.putAscii(META.auditSeals, encodeSeals(state));
    if (remove !== undefined) this.#remove(remove, batch);
  }

  encoded(written: boolean): void {
    if (written && this.#planned !== undefined) this.#state = this.#planned;
    this.#planned = undefined;
  }

  state(): AuditState {
    return this.#state;
  }

  blockUpTo(seq: bigint): StoredBlock | undefined {
    const { from } = wholeTable(TABLE.auditBlocks);
    const to = u64Key(TABLE.auditBlocks, seq + 1n);
    return blockOf(this.#engine.range({ from, to, reverse: true, limit: 1 })[0]);
  }

  blockAbove(seq: bigint): StoredBlock | undefined {
    const { to } = wholeTable(TABLE.auditBlocks);
    return blockOf(this.#engine.range({ from: u64Key(TABLE.auditBlocks, seq + 1n), to, limit: 1 })[0]);
  }

  #remove({ firstSeq, lastSeq }: { firstSeq: bigint; lastSeq: bigint }, batch: WriteBatch): void {
    const from = u64Key(TABLE.auditBlocks, firstSeq);
    const to = u64Key(TABLE.auditBlocks, lastSeq + 1n);
    for (const key of this.#engine.keys({ from, to, limit: REMOVED_KEYS })) batch.delete(key);
  }
}

function blockOf(entry: Entry | undefined): StoredBlock | undefined {
  return entry && { firstSeq: entry.key.readBigUInt64BE(1), block: entry.value.toString("latin1") };
}
