// What is running now: one claim a request, from the moment that it is let in until its outcome is on disk or given up.
// Invariant: a request has one claim at most, and a caller as many as are counted.

import type { TransportInvocation } from "./contract.ts";
import { keyName } from "./digest.ts";
import type { ReplayHead } from "./replay.ts";
import type { Admitted } from "./service_config.ts";

/** What a claim is made of: an invocation that passed every check before. */
export interface Claimable {
  readonly caller: Admitted;
  readonly invocation: TransportInvocation;
  readonly invocationSha256: Buffer;
  /** Of the replay record. */
  readonly key: Buffer;
}

export interface Claim extends Claimable {
  readonly head: ReplayHead;
  /** Fires when nobody waits for the turn any more: its limit is over, or the service ends. */
  readonly abort: AbortController;
}

export class Claims {
  readonly #running = new Map<string, Claim>();
  readonly #counts = new Map<string, number>();
  #idle: (() => void)[] = [];

  get size(): number {
    return this.#running.size;
  }

  find(key: Buffer): Claim | undefined {
    return this.#running.get(keyName(key));
  }

  /** How many that caller has. */
  countOf(caller: string): number {
    return this.#counts.get(caller) ?? 0;
  }

  /** @throws where the request has one already: that was to be looked at before */
  take(claimable: Claimable): Claim {
    const { caller, invocation, invocationSha256, key } = claimable;
    const name = keyName(key);
    if (this.#running.has(name)) throw new Error("a request is claimed once");
    const head: ReplayHead = {
      caller: caller.id,
      requestId: invocation.request.request_id,
      keySha256: caller.keySha256,
      invocationSha256,
      expiresAtUnixMs: invocation.expires_at_unix_ms,
    };
    const claim = { caller, invocation, invocationSha256, key, head, abort: new AbortController() };
    this.#running.set(name, claim);
    this.#counts.set(caller.id, this.countOf(caller.id) + 1);
    return claim;
  }

  release({ key, caller }: Claim): void {
    if (!this.#running.delete(keyName(key))) return;
    const left = this.countOf(caller.id) - 1;
    if (left > 0) this.#counts.set(caller.id, left);
    else this.#counts.delete(caller.id);
    if (this.size === 0) for (const idle of this.#idle.splice(0)) idle();
  }

  /** Resolves when nothing runs. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.size === 0) resolve();
      else this.#idle.push(resolve);
    });
  }

  /** Tells every backend that nobody waits any more. */
  abortAll(): void {
    for (const { abort } of [...this.#running.values()]) abort.abort();
  }
}
