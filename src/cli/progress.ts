// How far long work is: one line on standard error of a terminal, written over as it goes on and taken away at the
// end. Elsewhere nothing is said. Short work ends before the line is shown.

import { span } from "../base/time_text.ts";
import type { Dialogue } from "./terminal.ts";
import { cutTo } from "./text_width.ts";

/** Work that is done sooner needs no line. */
const SILENT_MS = 300;
/** A line that changes more often can't be read. */
const BETWEEN_MS = 100;
const TICK_MS = 1000;
const COLUMNS = 80;
const ERASE = "\r\u001b[2K";

interface ProgressOptions {
  readonly isQuiet?: boolean;
  /** Calls `then` again and again, until what it returns is called. */
  readonly ticking?: (everyMs: number, then: () => void) => () => void;
}

export class Progress {
  readonly #terminal: Dialogue;
  readonly #beganMs: number;
  readonly #isShown: boolean;
  readonly #stop: () => void;
  #text: string;
  #shownMs: number | undefined;

  /** `text`: what is being done, in our own words. */
  constructor(
    terminal: Dialogue,
    text: string,
    { isQuiet = false, ticking = byTimer }: ProgressOptions = {},
  ) {
    this.#terminal = terminal;
    this.#isShown = terminal.showsProgress === true && !isQuiet;
    this.#text = text;
    this.#beganMs = terminal.nowMs();
    this.#stop = this.#isShown ? ticking(TICK_MS, () => this.#show()) : () => undefined;
  }

  /** What is being done now, or how much is done. */
  at(text: string): void {
    this.#text = text;
    const nowMs = this.#terminal.nowMs();
    if (nowMs - this.#beganMs < SILENT_MS) return;
    if (this.#shownMs === undefined || nowMs - this.#shownMs >= BETWEEN_MS) this.#show();
  }

  /** Nothing of it stays. */
  end(): void {
    this.#stop();
    if (this.#shownMs !== undefined) this.#terminal.err(ERASE);
    this.#shownMs = undefined;
  }

  #show(): void {
    if (!this.#isShown) return;
    const { columns = COLUMNS } = this.#terminal;
    this.#shownMs = this.#terminal.nowMs();
    const took = span(this.#shownMs - this.#beganMs);
    // A line that filled the last column would be two, of which only one is taken away.
    this.#terminal.err(`${ERASE}${cutTo(`${this.#text} … ${took}`, columns - 1)}`);
  }
}

function byTimer(everyMs: number, then: () => void): () => void {
  const timer = setInterval(then, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** Shows that it goes on for as long as the work takes. `isShownAnyway`: what comes of it shows how far it is. */
export async function withProgress<T>(
  terminal: Dialogue,
  text: string,
  work: (progress: Progress) => Promise<T>,
  isShownAnyway = false,
): Promise<T> {
  const progress = new Progress(terminal, text, { isQuiet: isShownAnyway });
  try {
    return await work(progress);
  } finally {
    progress.end();
  }
}
