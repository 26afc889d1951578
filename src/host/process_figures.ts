// What the process takes of its machine, read where somebody asks: memory, processor time, and how long the event loop
// was held up. Invariant: while nobody asks nothing is measured, so a daemon at rest uses no processor time.

import type { ProcessFigures } from "../base/ports.ts";

/** Between two looks at the loop; shorter delays than that are not told apart from none. */
const LOOK_EVERY_MS = 20;
/** Whoever asks less often than that hears of no delay. */
const WATCH_FOR_MS = 60_000;

const US_IN_S = 1_000_000;

/**
 * Watches the loop's delay from one reading to the next, and stops when none comes for a minute. (Node's own
 * `monitorEventLoopDelay` forgets what holds the loop up in the moment after its reset.)
 */
export class ProcessWatch {
  readonly #watchForMs: number;
  readonly #steadyMs: () => number;
  #maxMs = 0;
  #lookedAtMs = 0;
  #readAtMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(watchForMs = WATCH_FOR_MS, steadyMs = () => performance.now()) {
    this.#watchForMs = watchForMs;
    this.#steadyMs = steadyMs;
  }

  read(): ProcessFigures {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    return {
      residentBytes: rss,
      heapBytes: heapUsed,
      cpuSeconds: (user + system) / US_IN_S,
      loopDelayMaxMs: this.#loopDelayMaxMs(),
    };
  }

  /** Whether the loop is being watched. */
  get watches(): boolean {
    return this.#timer !== undefined;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #loopDelayMaxMs(): number {
    if (this.#timer === undefined) this.#begin();
    else this.#look();
    const maxMs = this.#maxMs;
    this.#maxMs = 0;
    this.#readAtMs = this.#lookedAtMs;
    return Math.round(maxMs * 10) / 10;
  }

  #begin(): void {
    this.#lookedAtMs = this.#steadyMs();
    this.#timer = setInterval(() => {
      this.#look();
      if (this.#lookedAtMs - this.#readAtMs > this.#watchForMs) this.stop();
    }, LOOK_EVERY_MS).unref();
  }

  #look(): void {
    const nowMs = this.#steadyMs();
    this.#maxMs = Math.max(this.#maxMs, nowMs - this.#lookedAtMs - LOOK_EVERY_MS);
    this.#lookedAtMs = nowMs;
  }
}
