// The audit chain of a store in memory: planned as on disk, kept in an array of blocks.

import { EMPTY_HEAD } from "./audit_chain.ts";
import type { KeyedDigest } from "./audit_event.ts";
import { auditEvents } from "./audit_events.ts";
import { type AuditBlocks, auditReader, type StoredBlock } from "./audit_reader.ts";
import { type AuditBounds, emptyAuditState, planAudit } from "./audit_segments.ts";
import type { AuditReader } from "./port.ts";
import type { Change } from "./records.ts";

export class MemoryAudit implements AuditBlocks {
  readonly reader: AuditReader;
  readonly #keyed: KeyedDigest;
  readonly #bounds: AuditBounds;
  #state = emptyAuditState(EMPTY_HEAD);
  #blocks: StoredBlock[] = [];

  constructor(keyed: KeyedDigest, bounds: AuditBounds) {
    this.#keyed = keyed;
    this.#bounds = bounds;
    this.reader = auditReader(this);
  }

  append(changes: readonly Change[], nowMs: number): void {
    const events = changes.flatMap((change) => auditEvents(change, this.#keyed));
    const { firstSeq, block, state, remove } = planAudit(this.#state, events, nowMs, this.#bounds);
    if (remove !== undefined)
      this.#blocks = this.#blocks.filter(
        ({ firstSeq: seq }) => seq > remove.lastSeq || seq < remove.firstSeq,
      );
    if (block !== "") this.#blocks.push({ firstSeq, block });
    this.#state = state;
  }

  state() {
    return this.#state;
  }

  blockUpTo(seq: bigint): StoredBlock | undefined {
    return this.#blocks[this.#countUpTo(seq) - 1];
  }

  blockAbove(seq: bigint): StoredBlock | undefined {
    return this.#blocks[this.#countUpTo(seq)];
  }

  /** How many blocks have a key up to `seq`. */
  #countUpTo(seq: bigint): number {
    let [low, high] = [0, this.#blocks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#blocks[middle]?.firstSeq ?? 0n) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
