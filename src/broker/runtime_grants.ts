// The grants that live in the store: added by an operator or another trusted role, or remembered from an
// approval; and how often any grant with `max_calls` was used. In force beside the policy's.
// Invariants: what opens (an allow or ask that comes, a deny or ask that goes) takes effect once it is
// written, what closes at once. Only an allow leaves by itself: an ask that has ended still denies.

import type { Labels } from "../base/labels.ts";
import type { Log, Randomness } from "../base/ports.ts";
import type { Decision } from "../policy/decision.ts";
import type { Grant } from "../policy/policy.ts";
import { type Actor, type Change, type GrantUses, HOST, type StoredGrant } from "../store/records.ts";
import { type CallUses, UseCounts } from "./use_counts.ts";

/** Runtime grants that serve one role, and all of them. */
export const GRANTS_OF_ROLE_MAX = 1024;
export const GRANTS_MAX = 8192;

export interface GrantOrigin {
  readonly by: Actor;
  /** Of its words: what their writer had been given when it wrote them. */
  readonly labels: Labels;
  readonly addedAtMs: number;
  /** The approval that it remembers. */
  readonly approval: string | undefined;
}

/** Something to be written, and what it then means. */
export interface Pending {
  readonly changes: readonly Change[];
  /** Told whether it was written. Only the first time counts. */
  readonly settled: (written: boolean) => void;
}

/** The uses that a call has made. Not written, they are given back by themselves. */
export interface Used extends Pending {
  /** `Subject.isSpent` for this very call: its own uses make nothing used up for it. */
  readonly isSpent: (grant: Grant, nowMs: number) => boolean;
  /** Nothing ran after all: gives the uses back at once; the changes are written with what says so. Once. */
  readonly giveBack: () => readonly Change[];
}

/**
 * `adding`: not written yet, so not in force. `leaving`: its removal is being written. `revoked`: out of force,
 * though that could not be written.
 */
export type HeldState = "adding" | "in_force" | "leaving" | "revoked";

export interface HeldGrant {
  readonly grant: Grant;
  readonly origin: GrantOrigin;
  readonly state: HeldState;
}

export type GoneReason = Extract<Change, { kind: "grant_gone" }>["why"];

/** What the table asks of the broker around it. */
export interface GrantSurroundings {
  readonly log: Log;
  /** The grants in force have changed: decisions are taken by them from here on. */
  readonly changed: () => void;
  /** Whether a grant of the config has this id. */
  readonly isConfigured: (id: string) => boolean;
}

interface Held extends HeldGrant {
  state: HeldState;
}

export class RuntimeGrants {
  readonly #counts = new UseCounts();
  readonly #held = new Map<string, Held>();
  #around: GrantSurroundings | undefined;

  /** Called once at start, before anything is added: with what was in the store. */
  restore(
    around: GrantSurroundings,
    grants: Iterable<Pick<HeldGrant, "grant" | "origin">>,
    uses: Iterable<GrantUses>,
  ): void {
    this.#around = around;
    this.#counts.restore(uses);
    for (const { grant, origin } of grants) this.#held.set(grant.id, { grant, origin, state: "in_force" });
    around.changed();
  }

  /** In force, in the order they came. */
  all(): readonly Grant[] {
    return [...this.#held.values()].filter(isInForce).map(({ grant }) => grant);
  }

  /** In force, coming and going. */
  held(): readonly HeldGrant[] {
    return [...this.#held.values()];
  }

  find(id: string): HeldGrant | undefined {
    return this.#held.get(id);
  }

  /** Changes with every use that is counted or given back. */
  get usesVersion(): number {
    return this.#counts.version;
  }

  /** Of a grant with `maxCalls`, of the config too: in the current period; undefined: none. */
  uses(grant: Grant, nowMs: number): GrantUses | undefined {
    return this.#counts.of(grant, nowMs);
  }

  isSpent(grant: Grant, nowMs: number): boolean {
    return this.#counts.isSpent(grant, nowMs);
  }

  /**
   * Counts one use of every grant that lets the call through: at once, so that no other call takes the same
   * one. Of the grant that decides, the asks (answered by whoever releases the call, or remembered) and the
   * remembered approvals.
   */
  use(decision: Exclude<Decision, { kind: "deny" }>, nowMs: number): Used {
    const asks = decision.kind === "ask" ? decision.asks : [];
    const through = [decision.grant, ...asks, ...decision.remembered, ...decision.satisfied];
    const uses: CallUses = this.#counts.count(through, nowMs);
    let settled = false;
    let given = false;
    const giveBack = (): readonly Change[] => {
      if (given) return [];
      given = true;
      return this.#counts.giveBack(uses);
    };
    return {
      changes: uses.changes,
      isSpent: (grant, atMs) =>
        given ? this.isSpent(grant, atMs) : this.#counts.isSpentFor(uses, grant, atMs),
      giveBack,
      settled: (written) => {
        if (!settled && !written) giveBack();
        settled = true;
      },
    };
  }

  /** Why a grant can't be taken in now: a sentence for people. undefined: it can. */
  refusal(grant: Pick<Grant, "id" | "role">, nowMs: number): string | undefined {
    const { id, role } = grant;
    if (this.#held.has(id) || this.#surroundings.isConfigured(id))
      return `There is a grant \`${id}\` already; ids are unique`;
    const held = this.held().filter((one) => this.#endedBy(one, nowMs) === undefined);
    if (held.filter((one) => one.grant.role === role).length >= GRANTS_OF_ROLE_MAX)
      return `Role \`${role}\` has ${GRANTS_OF_ROLE_MAX} runtime grants, and no more fit; revoke some first`;
    if (held.length >= GRANTS_MAX)
      return `There are ${GRANTS_MAX} runtime grants, and no more fit; revoke some first`;
    return undefined;
  }

  /** Takes in a grant that nothing refuses (`refusal`); it is in force once that is written. */
  add(grant: Grant, origin: GrantOrigin): Pending {
    if (this.refusal(grant, origin.addedAtMs) !== undefined)
      throw new Error("a grant is added that the table has refused");
    const ended = this.#takeEnded(origin.addedAtMs);
    const held: Held = { grant, origin, state: "adding" };
    this.#held.set(grant.id, held);
    return {
      changes: [...ended.changes, { kind: "grant_added", grant: storedGrant(grant, origin) }],
      settled: once((written) => {
        ended.settled(written);
        if (!written) {
          this.#held.delete(grant.id);
          return;
        }
        held.state = "in_force";
        this.#surroundings.changed();
        this.#surroundings.log("info", "grant.added", added(held));
      }),
    };
  }

  /**
   * Takes out the grant with this id, which must be in force, or revoked and not written. An allow holds no
   * longer from here on, written or not; anything else until it is written.
   */
  remove(id: string, by: Actor): Pending {
    const held = this.#held.get(id);
    if (held === undefined || (held.state !== "in_force" && held.state !== "revoked"))
      throw new Error("a grant is removed that is not there to be removed");
    const unwritten: HeldState = held.grant.effect === "allow" ? "revoked" : "in_force";
    const leaving = this.#leave(held, "revoked", by, unwritten);
    if (held.grant.effect === "allow") this.#surroundings.changed();
    return leaving;
  }

  /** Another definition of that tool came into service: what was approved of the one before is remembered no longer. */
  forgetRemembered(tool: string, by: Actor): Pending {
    const ids = this.all()
      .filter(({ remembers, tools }) => remembers !== undefined && tools.includes(tool))
      .map(({ id }) => id);
    const leaving = ids.map((id) => this.remove(id, by));
    return {
      changes: leaving.flatMap(({ changes }) => changes),
      settled: (written) => {
        for (const one of leaving) one.settled(written);
      },
    };
  }

  /** Takes out the allows that have ended: they hold no more, and are written off when somebody looks. */
  removeEnded(nowMs: number): Pending {
    return this.#takeEnded(nowMs);
  }

  #takeEnded(nowMs: number): Pending {
    const leaving = [...this.#held.values()].flatMap((held) => {
      const why = this.#endedBy(held, nowMs);
      return why === undefined ? [] : [this.#leave(held, why, HOST, "in_force")];
    });
    return {
      changes: leaving.flatMap(({ changes }) => changes),
      settled: (written) => {
        for (const one of leaving) one.settled(written);
      },
    };
  }

  #endedBy({ grant, state }: HeldGrant, nowMs: number): GoneReason | undefined {
    if (grant.effect !== "allow" || state !== "in_force") return undefined;
    if (grant.expiresAtMs !== undefined && nowMs >= grant.expiresAtMs) return "expired";
    const forGood = grant.maxCalls !== undefined && grant.maxCalls.perMs === undefined;
    return forGood && this.isSpent(grant, nowMs) ? "used_up" : undefined;
  }

  #leave(held: Held, why: GoneReason, by: Actor, unwritten: HeldState): Pending {
    const { grant } = held;
    held.state = "leaving";
    return {
      changes: [
        { kind: "grant_gone", id: grant.id, why, by },
        { kind: "grant_used", grant: grant.id, uses: undefined },
      ],
      settled: once((written) => {
        if (!written) {
          held.state = unwritten;
          return;
        }
        this.#held.delete(grant.id);
        this.#counts.forget(grant.id);
        this.#surroundings.changed();
        this.#surroundings.log("info", "grant.gone", { role: grant.role, grant: grant.id, why, by: by.role });
      }),
    };
  }

  get #surroundings(): GrantSurroundings {
    if (this.#around === undefined) throw new Error("runtime grants are used before they were restored");
    return this.#around;
  }
}

const GRANT_ID_BYTES = 8;

/** An id for a grant that nobody gave one. No grant of a config begins so (host/config_grants.ts), so ids are unique over both. */
export function newGrantId(kind: "runtime" | "remembered", random: Randomness): string {
  return `${kind}.${random(GRANT_ID_BYTES)}`;
}

function isInForce({ state, grant }: HeldGrant): boolean {
  return state === "in_force" || (state === "leaving" && grant.effect !== "allow");
}

function once(settled: (written: boolean) => void): (written: boolean) => void {
  let told = false;
  return (written) => {
    if (told) return;
    told = true;
    settled(written);
  };
}

function added({ grant, origin }: HeldGrant) {
  return {
    role: grant.role,
    grant: grant.id,
    effect: grant.effect,
    by: origin.by.role,
    expires_at_ms: grant.expiresAtMs,
    remembered: origin.approval !== undefined,
  };
}

function storedGrant(grant: Grant, origin: GrantOrigin): StoredGrant {
  const { id, role, tools, sessions, effect, when, taintMax, aboveTaint } = grant;
  const { expiresAtMs, maxCalls, remembers, equal, reason } = grant;
  return {
    ...{ id, role, tools, sessions, effect, when: when?.source, taintMax, aboveTaint },
    ...{ expiresAtMs, maxCalls, remembers, equal, reason, ...origin },
  };
}
