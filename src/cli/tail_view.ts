// How `callgate tail` shows an entry: one line, its parts in columns that grow with what comes, so that lines
// stand below each other without knowing what is still to come. Everything of a line's is escaped here.

import { visibleLine } from "../base/display.ts";
import { span } from "../base/time_text.ts";
import { type Paint, type Tone, toneOf } from "./paint.ts";
import type { Entry, Level } from "./tail_entry.ts";
import { mostColumns } from "./text_width.ts";

const VALUE_CHARS_MAX = 400;
const BROKEN_CHARS_MAX = 2000;
const GAP = "  ";
/** Columns grow to this; what is longer stands out, instead of pushing all that follows aside. */
const COLUMN_MAX = 30;

/** `12:00:00.000` and a space. */
const CLOCK_COLUMNS = 13;

type Told = readonly [text: string, tone: Tone | undefined];

export class TailView {
  readonly #paint: Paint;
  readonly #columns: number;
  #widths: readonly number[] = [];
  #day: string;

  /**
   * A line of another day than the one before it, or than now, is announced by its date. `columns`: of the terminal.
   */
  constructor(paint: Paint, nowMs: number, columns: number = Number.POSITIVE_INFINITY) {
    this.#paint = paint;
    this.#columns = columns;
    this.#day = dayOf(nowMs);
  }

  /** With its line feed, and a line with the date where that is another. */
  line(entry: Entry): string {
    const { atMs, level, event } = entry;
    const head = level === undefined ? "" : `${levelText(level, this.#paint)} `;
    const cells = this.#laidOut(CLOCK_COLUMNS + mostColumns(head), [
      [visibleLine(event, 60), LEVEL_TONES[level ?? "info"]],
      [visibleLine(whoOf(entry), 100), undefined],
      [visibleLine(entry.tool ?? "", 100), undefined],
      [visibleLine(entry.outcome ?? "", 100), toneOf(entry.outcome ?? "")],
      [visibleLine(entry.rule ?? "", 200), undefined],
      [entry.durationMs === undefined ? "" : tookText(entry.durationMs), undefined],
    ]);
    const rest = entry.rest.map(
      ([name, text]) => `${visibleLine(name, 60)}=${visibleLine(text, VALUE_CHARS_MAX)}`,
    );
    const told = rest.length === 0 ? [] : [this.#paint("quiet", rest.join(" "))];
    return `${this.#date(atMs)}${clockText(atMs)} ${head}${[cells, ...told].join(GAP).trimEnd()}\n`;
  }

  #date(atMs: number | undefined): string {
    const day = atMs === undefined ? this.#day : dayOf(atMs);
    if (day === this.#day) return "";
    this.#day = day;
    return `${this.#paint("heading", `-- ${day} --`)}\n`;
  }

  /** Side by side without columns, where columns would break the line in their midst. `before`: what is taken of it. */
  #laidOut(before: number, cells: readonly Told[]): string {
    const aligned = this.#aligned(cells);
    if (before + mostColumns(aligned) <= this.#columns) return aligned;
    return cells
      .filter(([text]) => text !== "")
      .map(([text, tone]) => this.#paint(tone, text))
      .join(GAP);
  }

  /** Up to the last that is not empty; that one has no need to be filled up. An event alone widens nothing. */
  #aligned(cells: readonly Told[]): string {
    const last = cells.findLastIndex(([text]) => text !== "");
    this.#widths = cells.map(([text], i) => {
      const before = this.#widths[i] ?? 0;
      return i === 0 && last === 0 ? before : Math.max(before, Math.min(mostColumns(text), COLUMN_MAX));
    });
    return cells
      .slice(0, last + 1)
      .map(([text, tone], i) => {
        const width = this.#widths[i] ?? 0;
        const gap = i === last ? 0 : Math.max(0, width - mostColumns(text));
        return width === 0 && text === "" ? undefined : `${this.#paint(tone, text)}${" ".repeat(gap)}`;
      })
      .filter((cell) => cell !== undefined) // a column without anything in it so far
      .join(GAP);
  }
}

/** What is no line of the kind that is followed: it stays, as it is. */
export function brokenLine(line: string): string {
  return `${visibleLine(line, BROKEN_CHARS_MAX)}\n`;
}

const LEVEL_TONES: Readonly<Record<Level, Tone | undefined>> = {
  debug: "quiet",
  info: undefined,
  warn: "waiting",
  error: "bad",
};

function levelText(level: Level, paint: Paint): string {
  return paint(LEVEL_TONES[level], level.toUpperCase().padEnd(5));
}

function whoOf({ role, session }: Entry): string {
  if (role === undefined) return session ?? "";
  return session === undefined ? role : `${role}/${session}`;
}

/** Shorter than ten seconds as it was measured. */
function tookText(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms * 10) / 10} ms` : span(ms);
}

/** Local: whoever looks on has a clock on the wall. */
function clockText(ms: number | undefined): string {
  const date = new Date(ms ?? Number.NaN);
  if (Number.isNaN(date.getTime())) return "??:??:??.???";
  const two = (number: number) => String(number).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  return `${time}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

function dayOf(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return "?";
  const two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
