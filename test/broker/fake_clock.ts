// Time that moves only when a test says so, and the queue of what a loop turn would run after its input.

import type { Clock } from "../../src/base/ports.ts";

interface Timer {
  readonly atMs: number;
  readonly task: () => void;
}

export class FakeClock implements Clock {
  #nowMs: number;
  readonly #timers = new Set<Timer>();
  #afterInput: (() => void)[] = [];
  /** Thrown by the next look at the time, or the next timer. */
  broken: Error | undefined;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    this.#breakIfAsked();
    return this.#nowMs;
  }

  #breakIfAsked(): void {
    const { broken } = this;
    this.broken = undefined;
    if (broken !== undefined) throw broken;
  }

  after(ms: number, task: () => void): () => void {
    this.#breakIfAsked();
    const timer = { atMs: this.#nowMs + ms, task };
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

  /** Moves on to the first timer that is due within `ms`, and runs it; undefined: none is. */
  step(untilMs: number): boolean {
    const due = [...this.#timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
    if (due === undefined) {
      this.#nowMs = Math.max(this.#nowMs, untilMs);
      return false;
    }
    this.#timers.delete(due);
    this.#nowMs = Math.max(this.#nowMs, due.atMs);
    due.task();
    return true;
  }
}
