// The time for measuring: looked at once in a turn of the loop. There can be a hundred commits in one, and a look at the
// clock costs more than all counting. Nothing is decided by it.

import type { Clock } from "../base/ports.ts";

export class TurnTime {
  readonly #clock: Clock;
  #turnMs: number | undefined;
  readonly #endTurn = () => {
    this.#turnMs = undefined;
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Of the first look in this turn. */
  nowMs(): number {
    if (this.#turnMs === undefined) {
      this.#turnMs = this.#clock.nowMs();
      this.#clock.afterInput(this.#endTurn);
    }
    return this.#turnMs;
  }
}
