// Time that moves only when a test says so, and the queue of what a loop turn would run after its input. What
// is shown of a wall clock that somebody sets is the real clock's doing.

import type { Clock } from "../../src/base/ports.ts";
import { systemClock } from "../../src/host/clock.ts";

interface Timer {
  /** In steady time, as the runtime's timers are. */
  readonly at: number;
  readonly task: () => void;
}

export class FakeClock implements Clock {
  #wallMs: number;
  #steadyMs = 0;
  readonly #shown: Clock;
  readonly #timers = new Set<Timer>();
  #afterInput: (() => void)[] = [];
  /** Thrown by the next look at the time, or the next timer. */
  broken: Error | undefined;
  /** Thrown by the next timer alone. */
  brokenTimer: Error | undefined;

  /** `floorMs`: what was shown before, where the wall clock was set back since. */
  constructor(nowMs: number, floorMs = 0) {
    this.#wallMs = nowMs;
    this.#shown = systemClock(
      () => this.#wallMs,
      () => this.#steadyMs,
      floorMs,
    );
  }

  nowMs(): number {
    this.#breakIfAsked();
    return this.#shown.nowMs();
  }

  /** What the machine's own clock says. */
  get wallMs(): number {
    return this.#wallMs;
  }

  #breakIfAsked(): void {
    const { broken } = this;
    this.broken = undefined;
    if (broken !== undefined) throw broken;
  }

  after(ms: number, task: () => void): () => void {
    this.#breakIfAsked();
    const { brokenTimer } = this;
    this.brokenTimer = undefined;
    if (brokenTimer !== undefined) throw brokenTimer;
    const timer = { at: this.#steadyMs + ms, task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  afterInput(task: () => void): void {
    this.#afterInput.push(task);
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Runs what waits for the end of the input; whether there was anything. */
  runAfterInput(): boolean {
    const tasks = this.#afterInput.splice(0);
    for (const task of tasks) task();
    return tasks.length > 0;
  }

  /** Time passes, and no timer fires: as where the process stood still, or nobody sweeps. */
  jump(ms: number): void {
    this.#wallMs += ms;
    this.#steadyMs += ms;
  }

  /** Somebody sets the wall clock, forward or back. No time passes, and no timer hears of it. */
  set(byMs: number): void {
    this.#wallMs += byMs;
  }

  /** Moves on to the first timer that is due within `ms`, and runs it; undefined: none is. */
  step(untilMs: number): boolean {
    const until = this.#steadyMs + Math.max(0, untilMs - this.#shown.nowMs());
    const due = [...this.#timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
    if (due === undefined) {
      this.jump(until - this.#steadyMs);
      return false;
    }
    this.#timers.delete(due);
    this.jump(Math.max(0, due.at - this.#steadyMs));
    due.task();
    return true;
  }
}
