// The port through which the broker writes down what it must not forget, and reads it back.
// Invariant: what `commit` has called back without a fault holds; all of one commit holds or none.

import type { Labels } from "../base/labels.ts";
import type {
  ApprovalRecord,
  CallKey,
  CallRecord,
  Change,
  DecisionRecord,
  GrantUses,
  PinRecord,
  StoredGrant,
  StoredSession,
  TaintScope,
} from "./records.ts";

/** Why nothing of a commit was written: shown as `unavailable`. */
export interface StoreFault {
  readonly sentence: string;
}

export type Committed = (fault: StoreFault | undefined) => void;

/** `failing`: the last write was refused. `stalled`: a write has been under way for too long. New calls are `unavailable` then. */
export type StoreCondition = "ok" | "failing" | "stalled";

export interface Store {
  /**
   * Writes all changes in one transaction; transactions take effect in the order of the calls, and
   * `done` is called in that order too, once they are durable (in memory: before `commit` returns).
   * Changes of calls with `durable` false are not waited for while the store is `ok`. `reserved`: an operator's, which may use the space that is kept back.
   */
  commit(changes: readonly Change[], done: Committed, reserved?: boolean): void;

  readonly condition: StoreCondition;

  /** A call that was dispatched or has ended and is still kept. */
  findCall(key: CallKey): CallRecord | undefined;

  /** Calls that are kept, newest first: those without an outcome, then those that have ended. */
  calls(): Iterable<CallRecord>;

  /** Those without an outcome, newest first; none of them is read for it. */
  open(): Iterable<FoundCall>;

  /** Those that have ended, the latest first; none of them is read for it. `role`: only that role's. `behind`: only what comes after that place. */
  ended(wanted: {
    readonly role: string | undefined;
    readonly behind: EndedPlace | undefined;
  }): Iterable<FoundCall>;

  /** The highest call id of that session that was pruned: ids up to it are never run. */
  watermark(role: string, session: string): bigint | undefined;

  /** The last decision on that call, where it is still kept. */
  findDecision(key: CallKey): DecisionRecord | undefined;

  /** What was written before this process began; read once, before the first commit. */
  load(): Stored;

  readonly audit: AuditReader;
}

/** A call as it is found without reading it. Good until the store changes: within one turn. */
export interface FoundCall {
  readonly key: CallKey;
  /** 0: it has no outcome. */
  readonly endedAtMs: number;
  /** Number of its outcome among all that were written, which says nothing to who may not see others'; 0: it is kept in memory, or has none. */
  readonly number: number;
  /** What reading it costs, about. */
  readonly bytes: number;
  read(): CallRecord | undefined;
}

/**
 * A place in the order of ended calls: the latest first; of one millisecond those in memory, by role, then the
 * others. The call that it names may be gone by now; the place holds all the same.
 */
export interface EndedPlace {
  readonly endedAtMs: number;
  /** As in FoundCall; 0: in memory, or not told. */
  readonly number: number;
  /** Looked up for its place within its millisecond; undefined: it is not. */
  readonly key: CallKey | undefined;
}

export interface StoredTaint {
  readonly scope: TaintScope;
  readonly labels: Labels;
  /** The call that raised it last; undefined after an endorsement. */
  readonly by: CallKey | undefined;
}

export interface StoredFreeze {
  readonly role: string;
  readonly session: string | undefined;
}

export interface Stored {
  readonly sessions: Iterable<StoredSession>;
  readonly taints: Iterable<StoredTaint>;
  readonly frozen: Iterable<StoredFreeze>;
  readonly pins: Iterable<PinRecord>;
  readonly approvals: Iterable<ApprovalRecord>;
  readonly grants: Iterable<StoredGrant>;
  readonly uses: Iterable<GrantUses>;
}

/** Where the chain of audit records ends. `seq` 0: it is empty, and `hash` is 64 zeros. */
export interface AuditHead {
  readonly seq: bigint;
  /** Lower-case hex SHA-256 over the hash before it and the record's text. */
  readonly hash: string;
}

export interface AuditLine {
  readonly seq: bigint;
  readonly hash: string;
  /** One JSON object without line feed. */
  readonly text: string;
}

/** A stretch of the chain that retention removed: what stood before it and its last hash hold the chain together. */
export interface AuditSeal {
  readonly firstSeq: bigint;
  readonly lastSeq: bigint;
  /** Hash before the first, and of the last. */
  readonly before: string;
  readonly hash: string;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly removed: boolean;
}

/** The chain as it is stored; nothing here has been verified. Reading never changes it. */
export interface AuditReader {
  head(): AuditHead;
  /** Records in order from `seq` on (or from the first kept after it), at most `linesMax`. */
  lines(seq: bigint, linesMax: number): readonly AuditLine[];
  /** Records below `seq`, the newest first, at most `linesMax`; none: nothing older is kept. */
  linesBefore(seq: bigint, linesMax: number): readonly AuditLine[];
  seals(): readonly AuditSeal[];
}
