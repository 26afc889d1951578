// The port through which the broker writes down what it must not forget, and reads it back.
// Invariant: what `commit` has called back without a fault holds; all of one commit holds or none.

import type { CallKey, CallRecord, Change, DecisionRecord, PinRecord } from "./records.ts";

/** Why nothing of a commit was written: shown as `unavailable`. */
export interface StoreFault {
  readonly sentence: string;
}

export type Committed = (fault: StoreFault | undefined) => void;

export interface Store {
  /**
   * Writes all changes in one transaction; transactions take effect in the order of the calls, and
   * `done` is called in that order too, once they are durable (in memory: before `commit` returns).
   */
  commit(changes: readonly Change[], done: Committed): void;

  /** A call that was dispatched or has ended and is still kept. */
  findCall(key: CallKey): CallRecord | undefined;

  /** The highest call id of that session that was pruned: ids up to it are never run. */
  watermark(role: string, session: string): bigint | undefined;

  /** The last decision on that call, where it is still kept. */
  findDecision(key: CallKey): DecisionRecord | undefined;

  pins(): Iterable<PinRecord>;
}
