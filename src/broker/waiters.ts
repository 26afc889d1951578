// Who waits for the next change of something: woken by it, by time, or when its owner is gone. Nothing is
// kept of a waiter that was woken.

import type { Clock } from "../base/ports.ts";

/** Of one group, so that nobody keeps others from waiting. */
const WAITERS_MAX = 256;

interface Waiter<T> {
  readonly owner: T;
  readonly wake: () => void;
}

export class Waiters<T> {
  readonly #waiting = new Set<Waiter<T>>();
  readonly #groupOf: (owner: T) => string;

  /** Groups come from a closed set. */
  constructor(groupOf: (owner: T) => string) {
    this.#groupOf = groupOf;
  }

  /** Resolves with the next change, or after `ms`; undefined: too many of its group wait already. */
  wait(clock: Clock, owner: T, ms: number): Promise<void> | undefined {
    const group = this.#groupOf(owner);
    const ofGroup = [...this.#waiting].filter((one) => this.#groupOf(one.owner) === group);
    if (ofGroup.length >= WAITERS_MAX) return undefined;
    return new Promise((resolve) => {
      const wake = () => {
        if (!this.#waiting.delete(waiter)) return;
        withdraw();
        resolve();
      };
      const waiter = { owner, wake };
      const withdraw = clock.after(ms, wake);
      this.#waiting.add(waiter);
    });
  }

  wakeAll(): void {
    for (const waiter of [...this.#waiting]) waiter.wake();
  }

  forget(owner: T): void {
    for (const waiter of [...this.#waiting]) if (waiter.owner === owner) waiter.wake();
  }
}
