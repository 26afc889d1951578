// A running call's progress as pieces of its result, thinned: the longer a call runs, the less often a server is listened to.
// Invariant: however often and long a server tells of its progress, its notices are few and short.

import { type ProgressNotice, progressPiece } from "../progress.ts";

/** As they come, without a pause between them. */
const AT_ONCE = 8;
/** Afterwards: a notice in so many parts of the time that the call has run. */
const PARTS = 32;
const MS_MIN = 10;
const CHARS_MAX = 32_768;

export class ProgressPieces implements AsyncIterable<string> {
  /** Resolves with whether there is a piece, as soon as there is one or will be none. */
  readonly begun: Promise<boolean>;
  #begin!: (is: boolean) => void;
  readonly #monotonicMs: () => number;
  readonly #sinceMs: number;
  #lastMs = 0;
  #count = 0;
  #chars = 0;
  #waiting: string[] = [];
  #isOver = false;
  #wake: () => void = () => {};

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
    this.#sinceMs = monotonicMs();
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  take(notice: ProgressNotice): void {
    if (this.#isOver || !this.#isDue()) return;
    const piece = progressPiece(notice, this.#count === 0);
    if (this.#chars + piece.length > CHARS_MAX) return;
    this.#chars += piece.length;
    this.#count += 1;
    this.#lastMs = this.#monotonicMs();
    this.#waiting.push(piece);
    this.#begin(true);
    this.#wake();
  }

  /** The call has ended. */
  end(): void {
    this.#isOver = true;
    this.#begin(false);
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, void> {
    for (;;) {
      const piece = this.#waiting.shift();
      if (piece !== undefined) yield piece;
      else if (this.#isOver) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #isDue(): boolean {
    if (this.#count < AT_ONCE) return true;
    const nowMs = this.#monotonicMs();
    return nowMs - this.#lastMs >= Math.max(MS_MIN, (nowMs - this.#sinceMs) / PARTS);
  }
}
