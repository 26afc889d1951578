// Calls whose outcome nobody knows: dispatched when the broker died or could not write, timed out, or lost
// with their provider. A call that equals one of its role's is put to a human, who is shown the first.
// Invariant: the index only points at records; whether one is still in doubt is asked of the store, so a
// settled or pruned call raises no question. Past its bound a role's calls are all in doubt.

import type { FailCode } from "../base/faults.ts";
import type { Store } from "../store/port.ts";
import type { CallKey, CallRecord } from "../store/records.ts";

const DOUBTS_MAX = 16_384;
/** Endings after which nobody knows whether it ran. */
export const UNKNOWN_CODES: ReadonlySet<FailCode | undefined> = new Set([
  "timeout",
  "provider_lost",
  "outcome_unknown",
]);

class RoleDoubts {
  /** By equal digest, the latest. */
  readonly byEqual = new Map<string, CallKey>();
  /** Set once there were more than can be told apart; any of them stands for all. */
  overflow: CallKey | undefined;
}

export class Doubts {
  readonly #store: Pick<Store, "findCall">;
  readonly #roles = new Map<string, RoleDoubts>();

  constructor(store: Pick<Store, "findCall">) {
    this.#store = store;
  }

  /** From the records that an earlier process left: none of them runs any more. */
  restore(records: Iterable<CallRecord>): void {
    for (const record of records) if (isInDoubt(record)) this.add(record, "older");
  }

  /** A call that was handed to its provider, or may have been, and whose outcome is not known. Reads are none. */
  add({ key, equal }: CallRecord, order: "latest" | "older" = "latest"): void {
    if (equal === undefined) return;
    let doubts = this.#roles.get(key.role);
    if (doubts === undefined) {
      doubts = new RoleDoubts();
      this.#roles.set(key.role, doubts);
    }
    if (order === "older" && doubts.byEqual.has(equal)) return;
    if (doubts.byEqual.has(equal) || this.#hasRoom(doubts)) doubts.byEqual.set(equal, key);
    else if (order === "latest") doubts.overflow = key;
    else doubts.overflow ??= key;
  }

  /** While one stands for all nothing is gone through for the next: a provider can lose a thousand calls at once. */
  #hasRoom({ byEqual, overflow }: RoleDoubts): boolean {
    if (byEqual.size < DOUBTS_MAX) return true;
    if (overflow !== undefined && this.#stands(overflow)) return false;
    for (const [one, ofOne] of byEqual) if (!this.#stands(ofOne)) byEqual.delete(one);
    return byEqual.size < DOUBTS_MAX;
  }

  /** The call that makes an equal one doubtful. */
  find(role: string, equal: string): CallKey | undefined {
    const doubts = this.#roles.get(role);
    if (doubts === undefined) return undefined;
    const key = doubts.byEqual.get(equal);
    if (key !== undefined) {
      if (this.#stands(key)) return key;
      doubts.byEqual.delete(equal);
    }
    if (doubts.overflow !== undefined && !this.#stands(doubts.overflow)) doubts.overflow = undefined;
    return doubts.overflow;
  }

  /** An operator has said how it ended. */
  settled({ key, equal }: CallRecord): void {
    const doubts = this.#roles.get(key.role);
    if (doubts === undefined || equal === undefined) return;
    const known = doubts.byEqual.get(equal);
    if (known !== undefined && isSame(known, key)) doubts.byEqual.delete(equal);
    if (doubts.overflow === undefined || !isSame(doubts.overflow, key)) return;
    // It stood for others too, whose names are not kept: another one that is in doubt stands for them now.
    doubts.overflow = [...doubts.byEqual.values()].findLast((one) => this.#stands(one));
  }

  #stands(key: CallKey): boolean {
    const record = this.#store.findCall(key);
    return record !== undefined && isInDoubt(record);
  }
}

/** Of a record that no process works on any more. */
function isInDoubt(record: CallRecord): boolean {
  return record.equal !== undefined && (record.state !== "ended" || UNKNOWN_CODES.has(record.code));
}

function isSame(a: CallKey, b: CallKey): boolean {
  return a.role === b.role && a.session === b.session && a.call === b.call;
}
