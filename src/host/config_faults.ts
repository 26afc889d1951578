// What is wrong with a config, and where: positions, faults, warnings, and the wording they share.
// Values of the file appear in messages only through `quote`, so that nothing in a config can move
// a terminal's cursor or pass for another letter.

/** Both count from 1; a column counts UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface ConfigFault extends Position {
  /** What is wrong, and what would be right. */
  readonly message: string;
}

/** Something that is allowed and that its owner should know of. `code` is stable. */
export interface ConfigWarning extends ConfigFault {
  readonly code: string;
}

export type Report = (at: Position, message: string) => void;

/** A value of the file and where it stands. */
export interface Located<T> {
  readonly value: T;
  readonly at: Position;
}

export const FILE_START: Position = { line: 1, column: 1 };

/** In the order of the file; equal ones once. */
export function inFileOrder<T extends ConfigFault>(found: readonly T[]): readonly T[] {
  const sorted = found.toSorted(
    (a, b) => a.line - b.line || a.column - b.column || (a.message < b.message ? -1 : 1),
  );
  return sorted.filter((one, index) => {
    const before = sorted[index - 1];
    return before?.line !== one.line || before.column !== one.column || before.message !== one.message;
  });
}

const QUOTED_CHARS_MAX = 80;

/** Text of the file for a message: in quotes, shortened, everything but printable ASCII escaped. */
export function quote(text: string): string {
  const shown = text.length > QUOTED_CHARS_MAX ? `${text.slice(0, QUOTED_CHARS_MAX)}...` : text;
  return printable(JSON.stringify(shown));
}

/** On one line, of printable ASCII alone: for what a compiler says, which may hold pieces of the file. */
export function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const LISTED_MAX = 40;

export function listed(words: Iterable<string>): string {
  const all = [...words];
  const shown = all.slice(0, LISTED_MAX).join(", ");
  return all.length > LISTED_MAX ? `${shown}, ...` : shown;
}

/** The end of a message about a word that is not among `known`: the nearest one, or all of them. */
export function suggestion(word: string, known: Iterable<string>, plural: string): string {
  const all = [...known];
  const near = nearest(word, all);
  if (near !== undefined) return `did you mean ${quote(near)}?`;
  return all.length === 0 ? `there are no ${plural} yet` : `known ${plural}: ${listed(all)}`;
}

/** The known word that somebody likely meant. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word, candidate, bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

const COMPARED_CHARS_MAX = 64;

/** Levenshtein; at least `enough` where the lengths alone say so or the words are too long to matter. */
function editDistance(a: string, b: string, enough: number): number {
  if (Math.abs(a.length - b.length) >= enough || a.length > COMPARED_CHARS_MAX) return enough;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
