// What is known of the stored calls of each role without reading them: which have no outcome, where the
// ended ones are, and how far the pruned ones go.
// Invariant: a call is in one of the three.

import { KeptCalls } from "./kept_calls.ts";
import type { CallKey, CallRecord } from "./records.ts";
import { Watermarks } from "./watermarks.ts";

/** Charged beside a call's bytes: its place in the index and the engine's own. */
export const INDEX_BYTES = 128;

/** A call that has no outcome yet. */
export interface Open {
  /** undefined: from an earlier run, and read when it is asked for. */
  readonly record: CallRecord | undefined;
  /** Number of its intent's entry; 0 while an outcome without one is being written. */
  readonly intent: number;
  parts: number;
  charged: number;
  /** Number of the outcome's entry, and what it is charged, while that is being written. */
  outcome: number;
  /** Its intent is on disk. */
  written: boolean;
}

export class RoleCalls {
  readonly name: string;
  readonly open = new Map<string, Map<bigint, Open>>();
  readonly kept = new KeptCalls();
  readonly watermarks = new Watermarks();
  /** Sessions whose watermark is not on disk as it is here. */
  readonly raised = new Set<string>();

  constructor(name: string) {
    this.name = name;
  }

  find(session: string, call: bigint): Open | undefined {
    return this.open.get(session)?.get(call);
  }

  put({ session, call }: CallKey, open: Open): void {
    const calls = this.open.get(session);
    if (calls === undefined) this.open.set(session, new Map([[call, open]]));
    else calls.set(call, open);
  }

  take({ session, call }: CallKey): void {
    const calls = this.open.get(session);
    calls?.delete(call);
    if (calls?.size === 0) this.open.delete(session);
  }

  raise(session: string, call: bigint): void {
    this.raised.add(session);
    this.watermarks.raise(session, call, (gone) => this.raised.add(gone).add(""));
  }
}

export class RoleTable {
  readonly #roles = new Map<string, RoleCalls>();

  of(name: string): RoleCalls {
    let role = this.#roles.get(name);
    if (role === undefined) {
      role = new RoleCalls(name);
      this.#roles.set(name, role);
    }
    return role;
  }

  find(name: string): RoleCalls | undefined {
    return this.#roles.get(name);
  }

  all(): Iterable<RoleCalls> {
    return this.#roles.values();
  }
}
