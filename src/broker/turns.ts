// Work that a peer can ask for at will and that goes through much: of each group one piece begins in a turn of
// the loop, so that whoever else waits is served in between. What waits is held against its asker's limits.

import type { Clock } from "../base/ports.ts";

export class Turns {
  readonly #clock: Clock;
  /** By group, while one of it has begun in this turn: what comes after. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs the task now, or behind those of its group that came before. It must not throw. */
  take(group: string, task: () => void): void {
    const waiting = this.#waiting.get(group);
    if (waiting !== undefined) {
      waiting.push(task);
      return;
    }
    const queue: (() => void)[] = [];
    this.#waiting.set(group, queue);
    this.#goOn(group, queue);
    task();
  }

  #goOn(group: string, queue: (() => void)[]): void {
    this.#clock.afterInput(() => {
      const next = queue.shift();
      if (next === undefined) {
        this.#waiting.delete(group);
        return;
      }
      this.#goOn(group, queue);
      next();
    });
  }
}
