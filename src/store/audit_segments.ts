// Where the audit chain's blocks go and how long they stay: what one transaction writes and removes. The
// chain is cut into segments; a full or old one is sealed, and whole sealed segments are removed, oldest
// first, past their time or over the bytes allowed. Plans only: the engine writes, in one transaction.
// Invariants: sealing and removing are records of the chain; the open segment is never removed; what was
// removed leaves its first and last hash, so that the rest still hangs together.

import { sealBlock } from "./audit_chain.ts";
import { type AuditEvent, auditEvent } from "./audit_event.ts";
import type { AuditHead, AuditSeal } from "./port.ts";
import { HOST } from "./records.ts";

const DAY_MS = 86_400_000;
/** Bytes of one segment: a share of all that is kept, so that what retention removes is never much at once. */
const SEGMENTS_MIN = 64;
const SEGMENT_BYTES_MIN = 65_536;
const SEGMENT_BYTES_MAX = 16_777_216;

export interface AuditBounds {
  readonly keepForMs: number;
  /** Of all blocks together; one segment more may be there for a moment. */
  readonly bytesMax: number;
}

/** Records since the last seal. */
export interface OpenSegment {
  readonly firstSeq: bigint;
  /** Hash before its first record. */
  readonly before: string;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly bytes: number;
}

/** `bytes` of its blocks; of a removed one: of what was removed. */
export type SizedSeal = AuditSeal & { readonly bytes: number };

/** All that there is to know of the chain beside its blocks. */
export interface AuditState {
  readonly head: AuditHead;
  readonly open: OpenSegment;
  /** Oldest first; at most the first one is removed. */
  readonly seals: readonly SizedSeal[];
}

export interface AuditStep {
  /** The block's key. */
  readonly firstSeq: bigint;
  /** ASCII. Empty: nothing is to be written. */
  readonly block: string;
  /** The state once this is written. `state.seals` is the same array where no seal has changed. */
  readonly state: AuditState;
  /** Blocks with keys from the first to the last of these go, in the same transaction. */
  readonly remove: { readonly firstSeq: bigint; readonly lastSeq: bigint } | undefined;
}

export function emptyAuditState(head: AuditHead): AuditState {
  return { head, open: nothingAfter(head), seals: [] };
}

/**
 * What one transaction writes of these events. It changes nothing: where the transaction fails, `state` is
 * still the one that was given.
 */
export function planAudit(
  state: AuditState,
  events: readonly AuditEvent[],
  nowMs: number,
  bounds: AuditBounds,
): AuditStep {
  const firstSeq = state.head.seq + 1n;
  if (events.length === 0) return { firstSeq, block: "", state, remove: undefined };
  const own: AuditEvent[] = [];
  const sealed = sealOpen(state, nowMs, bounds, own);
  const pruned = removeOldest(sealed, nowMs, bounds, own);
  const { block, head } = sealBlock(state.head, own.length === 0 ? events : [...own, ...events], nowMs);
  const { open } = pruned.state;
  const grown: OpenSegment = {
    ...open,
    firstAtMs: open.bytes === 0 ? nowMs : open.firstAtMs,
    lastAtMs: nowMs,
    bytes: open.bytes + block.length,
  };
  return { firstSeq, block, state: { head, open: grown, seals: pruned.state.seals }, remove: pruned.remove };
}

function nothingAfter({ seq, hash }: AuditHead): OpenSegment {
  return { firstSeq: seq + 1n, before: hash, firstAtMs: 0, lastAtMs: 0, bytes: 0 };
}

export function segmentBytesMax({ bytesMax }: AuditBounds): number {
  const share = Math.floor(bytesMax / SEGMENTS_MIN);
  return Math.min(SEGMENT_BYTES_MAX, Math.max(SEGMENT_BYTES_MIN, share));
}

/** The seal of the open segment, where it is full or a day old. */
function sealOpen(state: AuditState, nowMs: number, bounds: AuditBounds, own: AuditEvent[]): AuditState {
  const { head, open, seals } = state;
  const due = open.bytes >= segmentBytesMax(bounds) || nowMs - open.firstAtMs >= DAY_MS;
  if (open.bytes === 0 || !due) return state;
  const { seq: lastSeq, hash } = head;
  const seal: SizedSeal = { ...open, lastSeq, hash, removed: false };
  own.push(
    auditEvent("sealed", {
      first_seq: seal.firstSeq.toString(),
      last_seq: lastSeq.toString(),
      before: seal.before,
      hash,
      bytes: seal.bytes,
      first_at_ms: seal.firstAtMs,
      last_at_ms: seal.lastAtMs,
    }),
  );
  return { head, open: nothingAfter(head), seals: [...seals, seal] };
}

/** The oldest segment goes where it is past its time or all are too large: one in a transaction. */
function removeOldest(
  state: AuditState,
  nowMs: number,
  bounds: AuditBounds,
  own: AuditEvent[],
): { readonly state: AuditState; readonly remove: AuditStep["remove"] } {
  const gone = state.seals[0]?.removed ? state.seals[0] : undefined;
  const kept = gone === undefined ? state.seals : state.seals.slice(1);
  const [oldest, ...rest] = kept;
  if (oldest === undefined) return { state, remove: undefined };
  const old = nowMs - oldest.lastAtMs > bounds.keepForMs;
  if (!old && keptBytes(kept, state.open) <= bounds.bytesMax) return { state, remove: undefined };
  const removed = gone === undefined ? { ...oldest, removed: true } : joined(gone, oldest);
  own.push(removal(removed, oldest, old ? "keep_for" : "bytes_max"));
  return {
    state: { ...state, seals: [removed, ...rest] },
    remove: { firstSeq: oldest.firstSeq, lastSeq: oldest.lastSeq },
  };
}

function keptBytes(kept: readonly SizedSeal[], open: OpenSegment): number {
  return kept.reduce((sum, { bytes }) => sum + bytes, open.bytes);
}

/** One stretch of two that follow each other. */
function joined(first: SizedSeal, second: SizedSeal): SizedSeal {
  const { firstSeq, before, firstAtMs } = first;
  return { ...second, firstSeq, before, firstAtMs, bytes: first.bytes + second.bytes, removed: true };
}

/** Names all that is gone by now, so that the last such record accounts for the whole beginning. */
function removal(all: SizedSeal, now: SizedSeal, why: "keep_for" | "bytes_max"): AuditEvent {
  return auditEvent("removed", {
    first_seq: all.firstSeq.toString(),
    last_seq: all.lastSeq.toString(),
    before: all.before,
    hash: all.hash,
    from_seq: now.firstSeq.toString(),
    bytes: now.bytes,
    first_at_ms: now.firstAtMs,
    last_at_ms: now.lastAtMs,
    why,
    by: { role: HOST.role },
  });
}
