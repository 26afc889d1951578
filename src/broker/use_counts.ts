// How often grants with `max_calls` were used, whether they stand in the config or in the store. A use is
// counted the moment it is decided on, so that of calls at the same time no two take the last one; it is
// written with the call's intent.
// Invariant: what is on disk is never less than what was used. A period begins with its first use.

import type { Grant } from "../policy/policy.ts";
import type { Change, GrantUses } from "../store/records.ts";

type Limit = NonNullable<Grant["maxCalls"]>;

/** One use of one grant. */
interface Use {
  readonly grant: Grant;
  /** Of the period that it was counted in. */
  readonly sinceMs: number;
}

/** The uses that one call has made, all at once. */
export interface CallUses {
  readonly uses: readonly Use[];
  /** What has to be written of them. */
  readonly changes: readonly Change[];
}

export class UseCounts {
  readonly #counts = new Map<string, GrantUses>();
  #version = 0;

  /** Changes with every use, so that a decision can tell whether it still rests on the same counts. */
  get version(): number {
    return this.#version;
  }

  /** As they were written. Counts of grants that nobody has now are kept: their grant may come back. */
  restore(uses: Iterable<GrantUses>): void {
    for (const count of uses) this.#counts.set(count.grant, count);
  }

  /** In the current period; undefined: none. */
  of(grant: Grant, nowMs: number): GrantUses | undefined {
    const count = this.#counts.get(grant.id);
    if (count === undefined || grant.maxCalls === undefined) return undefined;
    return isOver(count, grant.maxCalls, nowMs) ? undefined : count;
  }

  isSpent(grant: Grant, nowMs: number): boolean {
    if (grant.maxCalls === undefined) return false;
    return !((this.of(grant, nowMs)?.used ?? 0) < grant.maxCalls.calls);
  }

  /** The same for a call whose own uses are counted already. */
  isSpentFor({ uses }: CallUses, grant: Grant, nowMs: number): boolean {
    const count = this.of(grant, nowMs);
    if (grant.maxCalls === undefined || count === undefined) return this.isSpent(grant, nowMs);
    const own = uses.some((use) => use.grant.id === grant.id && use.sinceMs === count.sinceMs) ? 1 : 0;
    return !(count.used - own < grant.maxCalls.calls);
  }

  /** Counts one use of each. */
  count(grants: Iterable<Grant>, nowMs: number): CallUses {
    const limited = [...new Set(grants)].filter((grant) => grant.maxCalls !== undefined);
    const uses = limited.map((grant) => this.#countOne(grant, nowMs));
    return { uses, changes: this.#changes(uses) };
  }

  /** Nothing ran: the uses are given back. Those of a period that is over, or of a grant that has gone, are not. */
  giveBack({ uses }: CallUses): readonly Change[] {
    const given = uses.filter(({ grant, sinceMs }) => this.#giveBackOne(grant.id, sinceMs));
    return this.#changes(given);
  }

  /** Of a grant that has gone. */
  forget(grant: string): void {
    this.#counts.delete(grant);
  }

  #countOne(grant: Grant, nowMs: number): Use {
    const count = this.of(grant, nowMs) ?? { grant: grant.id, sinceMs: nowMs, used: 0 };
    this.#counts.set(grant.id, { ...count, used: count.used + 1 });
    this.#version += 1;
    return { grant, sinceMs: count.sinceMs };
  }

  #giveBackOne(id: string, sinceMs: number): boolean {
    const count = this.#counts.get(id);
    if (count === undefined || count.sinceMs !== sinceMs) return false;
    if (count.used > 1) this.#counts.set(id, { ...count, used: count.used - 1 });
    else this.#counts.delete(id);
    this.#version += 1;
    return true;
  }

  #changes(uses: readonly Use[]): readonly Change[] {
    return uses.map(({ grant: { id } }) => ({ kind: "grant_used", grant: id, uses: this.#counts.get(id) }));
  }
}

/** Written so that what is no number never ends. */
function isOver({ sinceMs }: GrantUses, { perMs }: Limit, nowMs: number): boolean {
  return perMs !== undefined && nowMs >= sinceMs + perMs;
}
