// Where `callgate tail` puts what it has read, and with how much of what was before it begins: the same for the log
// and the audit.

import type { Flags } from "./command_row.ts";
import { plain } from "./paint.ts";
import type { Entry } from "./tail_entry.ts";
import { brokenLine, TailView } from "./tail_view.ts";
import { type Dialogue, jsonLine } from "./terminal.ts";
import { fitted } from "./text_table.ts";

const LAST_DEFAULT = 10;

/** undefined: as many as there are since `--since`, or else a few. */
export function lastOf(flags: Flags): number | undefined {
  const { last } = flags;
  if (typeof last === "number") return last;
  return flags["since"] === undefined ? LAST_DEFAULT : undefined;
}

/** Where entries go: lines for a person, or the lines themselves. */
export class TailOutput {
  readonly #terminal: Dialogue;
  readonly #json: boolean;
  readonly #view: TailView;

  constructor(terminal: Dialogue, json: boolean) {
    this.#terminal = terminal;
    this.#json = json;
    this.#view = new TailView(terminal.paint ?? plain, terminal.nowMs(), terminal.columns);
  }

  entry(entry: Entry): void {
    if (this.#json) this.#terminal.out(jsonLine(entry.json));
    else this.#terminal.out(fitted(this.#view.line(entry), this.#terminal.columns));
  }

  /** Never left out: it may be what a crash had to say. Among JSON it would break whoever reads that. */
  broken(line: string): void {
    if (this.#json) this.#terminal.err(brokenLine(line));
    else this.#terminal.out(fitted(brokenLine(line), this.#terminal.columns));
  }
}
