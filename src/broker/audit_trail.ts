// The broker's side of the audit beside its calls: denials, failures, its own reads and refused peers, counted where they repeat,
// and the chain's head in the log, so that a cut end can be found by whoever keeps the log elsewhere.
// Invariant: no timer runs while nothing happens.

import type { FailCode } from "../base/faults.ts";
import type { Clock, Log } from "../base/ports.ts";
import type { AuditHead, Store } from "../store/port.ts";
import type { AuditRecord, CallKey, Change, DecisionRecord } from "../store/records.ts";
import { AuditBudget, WINDOW_MS } from "./audit_budget.ts";

export interface AuditTrailEffects {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Store;
  readonly checkpointEveryMs: number;
}

/** Who was turned away; whatever of it the kernel did not say is undefined. */
interface Credentials {
  readonly uid: number;
  readonly pid: number;
}

export class AuditTrail {
  readonly #effects: AuditTrailEffects;
  readonly #budget = new AuditBudget();
  #stopCheckpoints: (() => void) | undefined;
  #stopCounts: (() => void) | undefined;
  /** Number of the record that the log has heard of last. */
  #logged: bigint | undefined;

  constructor(effects: AuditTrailEffects) {
    this.#effects = effects;
  }

  /** Once, when everything was recovered: the log begins with where the chain stands. */
  start(): void {
    this.checkpoint();
  }

  /** Something happens: the chain may move, so the log will hear of it. Cheap. */
  touch(): void {
    if (this.#stopCheckpoints !== undefined) return;
    const { clock, checkpointEveryMs } = this.#effects;
    this.#stopCheckpoints = clock.after(checkpointEveryMs, () => {
      this.#stopCheckpoints = undefined;
      if (this.#effects.store.audit.head().seq !== this.#logged) this.checkpoint();
    });
  }

  /** Says in the log where the chain stands. */
  checkpoint(): AuditHead {
    const head = this.#effects.store.audit.head();
    this.#logged = head.seq;
    this.#effects.log("info", "audit.checkpoint", { seq: head.seq.toString(), hash: head.hash });
    return head;
  }

  /** What to write of a denial; nothing where it was counted. `known`: there is a tool of that name. */
  denied(decision: DecisionRecord, known: boolean): readonly Change[] {
    const record = this.#budget.decided(decision, known, this.#effects.clock.nowMs());
    this.#armCounts();
    return record === undefined ? [] : [{ kind: "audit", record }];
  }

  /** Writes down, or counts, that a read of the broker's own tools was let through. Nobody waits for it. */
  allowedRead(decision: DecisionRecord): void {
    const record = this.#budget.decided(decision, true, this.#effects.clock.nowMs());
    this.#armCounts();
    if (record !== undefined) this.#write([record]);
  }

  /** Writes down, or counts, that a request failed before anything of it was dispatched. Nobody waits for it. */
  failed(key: CallKey, tool: string, code: FailCode): void {
    const record = this.#budget.failed({ key, tool, code }, this.#effects.clock.nowMs());
    this.#armCounts();
    if (record !== undefined) this.#write([record]);
  }

  /** The decision on a denial that was counted. */
  findDenied(key: CallKey): DecisionRecord | undefined {
    return this.#budget.find(key);
  }

  /** Writes down that a peer was turned away, or counts it. `why`: of a closed list. */
  peerRefused(role: string, peer: Credentials | undefined, why: string): void {
    const refused = { role, uid: peer?.uid, pid: peer?.pid, why };
    const record = this.#budget.peerRefused(refused, this.#effects.clock.nowMs());
    this.#armCounts();
    if (record !== undefined) this.#write([record]);
  }

  /** The last words: all counts, and once they are written where the chain stands. */
  drain(): void {
    this.#stopCheckpoints?.();
    this.#stopCounts?.();
    this.#stopCheckpoints = undefined;
    this.#stopCounts = undefined;
    this.#write(this.#budget.due(undefined), () => {
      if (this.#effects.store.audit.head().seq !== this.#logged) this.checkpoint();
    });
  }

  #armCounts(): void {
    this.touch();
    if (this.#stopCounts !== undefined || this.#budget.open === 0) return;
    this.#stopCounts = this.#effects.clock.after(WINDOW_MS, () => {
      this.#stopCounts = undefined;
      this.#write(this.#budget.due(this.#effects.clock.nowMs()));
      this.#armCounts();
    });
  }

  /** What can't be written is lost: a denial and a refusal hold all the same. */
  #write(records: readonly AuditRecord[], then: () => void = () => undefined): void {
    if (records.length === 0) return then();
    const changes = records.map((record): Change => ({ kind: "audit", record }));
    this.#effects.store.commit(changes, then);
  }
}
