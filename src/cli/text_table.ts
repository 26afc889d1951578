// Lines of text: tables with aligned columns, names with texts, and lines that fit a terminal. Cells and
// texts are escaped here, whoever wrote them; colours come after that.

import { visibleLine } from "../base/display.ts";
import { type Look, PLAIN, SGR, type Tone, toneOf } from "./paint.ts";
import { cutTo, mostColumns, mostOf, pieces, usualColumns } from "./text_width.ts";

const CELL_CHARS_MAX = 60;
/** The last column stands last because it may be long. */
const LAST_CHARS_MAX = 160;
const GAP = "  ";
/** What a column keeps that may be cut. */
const CUT_COLUMNS_MIN = 8;

/** A text, or one with what it is. */
export type Cell = string | { readonly text: string; readonly tone: Tone | undefined };

/** A state, status or verdict of the broker's own, in its colour. */
export function stated(text: string, word: string = text): Cell {
  return { text, tone: toneOf(word) };
}

export interface Column {
  readonly name: string;
  /** Is of no use if it is cut: an id, a number. */
  readonly whole?: true;
  /** Left out where all do not fit, those with the highest number first. Without one it stays. */
  readonly yields?: number;
}

/** Lines with their line feeds; no trailing spaces. Within the columns of a terminal, where those are known. */
export function textTable(
  headings: readonly (string | Column)[],
  rows: readonly (readonly Cell[])[],
  look: Look = PLAIN,
): string {
  const last = headings.length - 1;
  const all = headings.map((heading, i) => {
    const column = typeof heading === "string" ? { name: heading } : heading;
    const cells = rows.map((row) => escaped(row[i] ?? "", i === last ? LAST_CHARS_MAX : CELL_CHARS_MAX));
    return layOut(column, cells);
  });
  const { laid, left } = fitColumns(all, look.columns);
  const lines = [line(laid, undefined, look), ...rows.map((_, i) => line(laid, i, look))];
  const names = left.map(({ column }) => column.name).join(", ");
  const note = left.length === 0 ? "" : `${look.paint("quiet", `(no room for ${names}: --json has all)`)}\n`;
  return `${lines.join("")}${note}`;
}

interface Painted {
  readonly text: string;
  readonly tone: Tone | undefined;
}

interface Laid {
  readonly column: Column;
  readonly cells: readonly Painted[];
  /** What it would take, and what it can't do without. */
  readonly columns: number;
  readonly columnsMin: number;
}

function escaped(cell: Cell, charsMax: number): Painted {
  const { text, tone } = typeof cell === "string" ? { text: cell, tone: undefined } : cell;
  return { text: visibleLine(text, charsMax), tone };
}

function layOut(column: Column, cells: readonly Painted[]): Laid {
  const columns = cells.reduce((most, { text }) => Math.max(most, mostColumns(text)), column.name.length);
  const least = Math.min(columns, Math.max(CUT_COLUMNS_MIN, column.name.length));
  return { column, cells, columns, columnsMin: column.whole === true ? columns : least };
}

const total = (widths: readonly number[]) =>
  widths.reduce((sum, width) => sum + width, 0) + GAP.length * (widths.length - 1);

/** Cuts the widest first, and leaves out what yields; what then does not fit is left to `fitted`. */
function fitColumns(
  all: readonly Laid[],
  columns: number | undefined,
): { readonly laid: readonly Laid[]; readonly left: readonly Laid[] } {
  if (columns === undefined || total(all.map((one) => one.columns)) <= columns)
    return { laid: all.map(narrowed), left: [] };
  const left: Laid[] = [];
  let laid = [...all];
  while (total(laid.map(({ columnsMin }) => columnsMin)) > columns - laid.length) {
    const next = laid.reduce<Laid | undefined>(yieldsSooner, undefined);
    if (next === undefined) break;
    left.unshift(next);
    laid = laid.filter((one) => one !== next);
  }
  return { laid: shrunk(laid, columns), left };
}

function yieldsSooner(found: Laid | undefined, one: Laid): Laid | undefined {
  return (one.column.yields ?? 0) > (found?.column.yields ?? 0) ? one : found;
}

/** The mark of each cell that is cut may take a column more than it is counted for. */
function shrunk(laid: readonly Laid[], columns: number): readonly Laid[] {
  const widths = laid.map((one) => one.columns);
  const isCut = (i: number) => (widths[i] ?? 0) < (laid[i]?.columns ?? 0);
  const over = () => total(widths) + widths.filter((_, i) => isCut(i)).length - columns;
  while (over() > 0) {
    const slack = laid.map((one, i) => ((widths[i] ?? 0) > one.columnsMin ? (widths[i] ?? 0) : 0));
    const widest = slack.indexOf(Math.max(...slack));
    if ((slack[widest] ?? 0) === 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return laid.map((one, i) => cut(one, widths[i] ?? one.columns));
}

function cut(one: Laid, columns: number): Laid {
  if (columns >= one.columns) return narrowed(one);
  return {
    ...one,
    columns,
    cells: one.cells.map(({ text, tone }) => ({ text: cutTo(text, columns), tone })),
  };
}

/** As wide as its cells are as a rule. */
function narrowed(one: Laid): Laid {
  const columns = one.cells.reduce(
    (most, { text }) => Math.max(most, usualColumns(text)),
    one.column.name.length,
  );
  return { ...one, columns };
}

/** Of the headings without a number. */
function line(laid: readonly Laid[], row: number | undefined, { paint }: Look): string {
  const cells = laid.map(({ column, cells: below, columns }) => {
    const { text, tone } =
      row === undefined ? { text: column.name, tone: "heading" as const } : (below[row] ?? NOTHING);
    return { text, tone, space: " ".repeat(Math.max(0, columns - usualColumns(text))) };
  });
  while (cells.at(-1)?.text.trimEnd() === "") cells.pop();
  const shown = cells.map(({ text, tone, space }, i) => {
    const end = i === cells.length - 1;
    return `${paint(tone, end ? text.trimEnd() : text)}${end ? "" : space}`;
  });
  return `${shown.join(GAP)}\n`;
}

const NOTHING: Painted = { text: "", tone: undefined };

const TEXT_CHARS_MAX = 2000;

/** Lines of `name  text`, the texts below each other; those without a text are left out. */
export function labelledLines(
  rows: readonly (readonly [name: string, text: Cell | undefined])[],
  { paint }: Look = PLAIN,
): string {
  const told = rows.filter((row): row is readonly [string, Cell] => row[1] !== undefined);
  const width = Math.max(0, ...told.map(([name]) => name.length));
  return told
    .map(([name, cell]) => {
      const { text, tone } = escaped(cell, TEXT_CHARS_MAX);
      const space = text.trimEnd() === "" ? "" : `${" ".repeat(width - name.length)}${GAP}`;
      return `${paint("quiet", name)}${space}${paint(tone, text.trimEnd())}\n`;
    })
    .join("");
}

/** Begins what goes on from the line above. No text of a peer's can stand at the beginning of a line. */
const GOES_ON = "  ┆ ";
const COLUMNS_MIN = 20;

/**
 * Lines cut to a terminal's width, each further piece marked. Left to the terminal, a text that is padded to its
 * width would begin a new line there, which could pass for one of ours. Colours take no width, and go on behind the mark.
 */
export function fitted(text: string, columns: number | undefined): string {
  if (columns === undefined || columns < COLUMNS_MIN) return text;
  return text
    .split("\n")
    .map((line) => (mostColumns(line) <= columns ? line : fittedLine(line, columns)))
    .join("\n");
}

const RESET = "\u001b[0m";

function fittedLine(line: string, columns: number): string {
  const rows: string[] = [];
  let row: string[] = [];
  let width = 0;
  for (const piece of pieces(line)) {
    const wide = widthOf(piece);
    if (width + wide > columns) {
      const rest = row.splice(breakAt(row, columns));
      const colour = openColour(row);
      rows.push(`${row.join("")}${colour === "" ? "" : RESET}`);
      row = [GOES_ON, colour, ...rest];
      width = mostColumns(row.join(""));
    }
    row.push(piece);
    width += wide;
  }
  return [...rows, row.join("")].join("\n");
}

function isColour(piece: string): boolean {
  return piece.length > 1 && SGR.test(piece);
}

function widthOf(piece: string): number {
  return isColour(piece) ? 0 : mostOf(piece);
}

/** Behind the last space of its second half, or at its end: long words are cut. */
function breakAt(row: readonly string[], columns: number): number {
  const space = row.lastIndexOf(" ");
  const before = mostColumns(row.slice(0, space + 1).join(""));
  return before > columns / 2 ? space + 1 : row.length;
}

/** The colour that a row ends in. */
function openColour(row: readonly string[]): string {
  const last = row.findLast((piece) => piece.startsWith("\u001b") && SGR.test(piece)) ?? RESET;
  return last === RESET ? "" : last;
}
