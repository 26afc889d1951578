// What a role may take: every connection, call and byte is charged to a role, and every charge names
// the limit that it would break. One Quota a role, for as long as the daemon lives.

import type { RoleLimits } from "../base/limits.ts";

export type LimitName = keyof RoleLimits;

/** Charges that refill by the second; a full second's worth may come at once. */
class Rate {
  #left = 0;
  #atMs = Number.NEGATIVE_INFINITY;

  take(perSecond: number, nowMs: number): boolean {
    const refill = ((nowMs - this.#atMs) / 1000) * perSecond;
    this.#left = Math.min(perSecond, Number.isNaN(refill) ? perSecond : this.#left + refill);
    this.#atMs = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}

/** Things that are held and given back. */
export type Held = "connections" | "calls_in_flight" | "queued_bytes_in" | "queued_bytes_out";

export class Quota {
  #limits: RoleLimits;
  readonly #held: Record<Held, number> = {
    connections: 0,
    calls_in_flight: 0,
    queued_bytes_in: 0,
    queued_bytes_out: 0,
  };
  readonly #connects = new Rate();
  readonly #calls = new Rate();

  constructor(limits: RoleLimits) {
    this.#limits = limits;
  }

  /** After a reload; what is held stays held. */
  set limits(limits: RoleLimits) {
    this.#limits = limits;
  }

  get limits(): RoleLimits {
    return this.#limits;
  }

  held(what: Held): number {
    return this.#held[what];
  }

  /** Holds `amount` more if that stays within the limit. */
  hold(what: Held, amount: number): boolean {
    if (this.#held[what] + amount > this.#limits[what]) return false;
    this.#held[what] += amount;
    return true;
  }

  /** Holds whatever the limit says; returns whether it is still kept. */
  charge(what: Held, amount: number): boolean {
    this.#held[what] += amount;
    return this.#held[what] <= this.#limits[what];
  }

  release(what: Held, amount: number): void {
    this.#held[what] -= amount;
  }

  connect(nowMs: number): LimitName | undefined {
    if (!this.#connects.take(this.#limits.connects_per_second, nowMs)) return "connects_per_second";
    return this.hold("connections", 1) ? undefined : "connections";
  }

  call(nowMs: number): LimitName | undefined {
    return this.#calls.take(this.#limits.calls_per_second, nowMs) ? undefined : "calls_per_second";
  }
}
