// What a server writes to its standard error, as lines of our own log: escaped, each of bounded length, and so many in
// a time. What is left out is counted and said.

import { visibleLine } from "../../../base/display.ts";

const LINE_CHARS_MAX = 500;
const LINES_MAX = 200;
const WINDOW_MS = 10_000;
/** Of a line that does not end. */
const PENDING_CHARS_MAX = 4096;

export interface ServerTextSettings {
  readonly say: (line: string) => void;
  readonly monotonicMs: () => number;
}

export class ServerText {
  readonly #settings: ServerTextSettings;
  readonly #decoder = new TextDecoder();
  #pending = "";
  #windowAtMs = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #leftOut = 0;

  constructor(settings: ServerTextSettings) {
    this.#settings = settings;
  }

  take(chunk: Uint8Array): void {
    const lines = (this.#pending + this.#decoder.decode(chunk, { stream: true })).split(/\r?\n/);
    this.#pending = lines.pop() ?? "";
    for (const line of lines) this.#tell(line);
    if (this.#pending.length <= PENDING_CHARS_MAX) return;
    this.#tell(this.#pending);
    this.#pending = "";
  }

  /** Nothing more comes. */
  end(): void {
    if (this.#pending !== "") this.#tell(this.#pending);
    this.#pending = "";
    this.#tellLeftOut();
  }

  #tell(line: string): void {
    if (line.trim() === "") return;
    const nowMs = this.#settings.monotonicMs();
    if (nowMs - this.#windowAtMs >= WINDOW_MS) {
      this.#tellLeftOut();
      this.#windowAtMs = nowMs;
      this.#lines = 0;
    }
    if (this.#lines >= LINES_MAX) {
      this.#leftOut += 1;
      return;
    }
    this.#lines += 1;
    this.#settings.say(`server: ${visibleLine(line, LINE_CHARS_MAX)}`);
  }

  #tellLeftOut(): void {
    if (this.#leftOut > 0) this.#settings.say(`(${this.#leftOut} more lines of the server's left out)`);
    this.#leftOut = 0;
  }
}
