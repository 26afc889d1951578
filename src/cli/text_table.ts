// Lines of text: tables with aligned columns, names with texts, and lines that fit a terminal. Cells and
// texts are escaped here, whoever wrote them.

import { visibleLine } from "../base/display.ts";

const CELL_CHARS_MAX = 60;
/** The last column stands last because it may be long. */
const LAST_CHARS_MAX = 160;

/** Lines with their line feeds; no trailing spaces. */
export function textTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const last = headings.length - 1;
  const lines = [
    headings,
    ...rows.map((row) =>
      row.map((cell, i) => visibleLine(cell, i === last ? LAST_CHARS_MAX : CELL_CHARS_MAX)),
    ),
  ];
  const widths = headings.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)));
  const aligned = (line: readonly string[]) => line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ");
  return lines.map((line) => `${aligned(line).trimEnd()}\n`).join("");
}

const TEXT_CHARS_MAX = 2000;

/** Lines of `name  text`, the texts below each other; those without a text are left out. */
export function labelledLines(rows: readonly (readonly [name: string, text: string | undefined])[]): string {
  const told = rows.filter((row): row is readonly [string, string] => row[1] !== undefined);
  const width = Math.max(0, ...told.map(([name]) => name.length));
  return told
    .map(([name, text]) => `${`${name.padEnd(width)}  ${visibleLine(text, TEXT_CHARS_MAX)}`.trimEnd()}\n`)
    .join("");
}

/** Begins what goes on from the line above. No text of a peer's can stand at the beginning of a line. */
const GOES_ON = "  ┆ ";
const COLUMNS_MIN = 20;

/**
 * Lines cut to a terminal's width, each further piece marked. Left to the terminal, a text that is padded to its
 * width would begin a new line there, which could pass for one of ours.
 */
export function fitted(text: string, columns: number | undefined): string {
  if (columns === undefined || columns < COLUMNS_MIN) return text;
  return text
    .split("\n")
    .map((line) => fittedLine(line, columns))
    .join("\n");
}

function fittedLine(line: string, columns: number): string {
  let fits = "";
  let width = 0;
  for (const character of line) {
    const wide = columnsOf(character);
    if (width + wide > columns) {
      fits += `\n${GOES_ON}`;
      width = GOES_ON.length;
    }
    fits += character;
    width += wide;
  }
  return fits;
}

/** At least as many as a terminal takes for it. */
function columnsOf(character: string): number {
  return (character.codePointAt(0) ?? 0) < 0x1100 ? 1 : 2;
}
