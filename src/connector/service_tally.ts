// What is counted of a service, and told in its log now and then: whoever sends bad frames as fast as he can
// writes one line in ten seconds. Invariant: names come out of closed lists; nothing of a peer's is counted or told.

import type { Clock, Log, LogLevel } from "../base/ports.ts";

const LINE_EVERY_MS = 10_000;

export class Tally<Name extends string> {
  readonly #clock: Clock;
  readonly #tell: (counts: Readonly<Record<string, number>>) => void;
  readonly #counts = new Map<Name, number>();
  #untold = new Map<Name, number>();
  #waiting = false;

  /** Each line has how many of what there were since the line before. */
  constructor(clock: Clock, log: Log, level: LogLevel, event: string) {
    this.#clock = clock;
    this.#tell = (counts) => log(level, event, counts);
  }

  /** Since the start. */
  get counts(): ReadonlyMap<Name, number> {
    return this.#counts;
  }

  add(name: Name): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    this.#untold.set(name, (this.#untold.get(name) ?? 0) + 1);
    if (!this.#waiting) this.#tellNow();
  }

  /** What was not told yet: for the end. */
  flush(): void {
    if (this.#untold.size > 0) this.#tell(Object.fromEntries(this.#untold));
    this.#untold = new Map();
  }

  #tellNow(): void {
    if (this.#untold.size === 0) return;
    this.flush();
    this.#waiting = true;
    this.#clock.after(LINE_EVERY_MS, () => {
      this.#waiting = false;
      this.#tellNow();
    });
  }
}
