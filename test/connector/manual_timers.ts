// Timers that run when the test says so, for what is given `after` instead of a clock.

export interface ManualTimer {
  readonly ms: number;
  fire(): void;
}

export class ManualTimers {
  readonly #started: ManualTimer[] = [];
  readonly #waiting: ((timer: ManualTimer) => void)[] = [];
  readonly #running = new Set<ManualTimer>();

  /** How many run that were neither fired nor called off. */
  get running(): number {
    return this.#running.size;
  }

  readonly after = (ms: number, run: () => void): (() => void) => {
    const timer: ManualTimer = {
      ms,
      fire: () => {
        if (this.#running.delete(timer)) run();
      },
    };
    this.#running.add(timer);
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#started.push(timer);
    else waiting(timer);
    return () => this.#running.delete(timer);
  };

  /** The next one that was started, in order; waits for it. */
  next(): Promise<ManualTimer> {
    const timer = this.#started.shift();
    if (timer !== undefined) return Promise.resolve(timer);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
