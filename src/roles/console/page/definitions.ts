// Where two definitions of a tool differ, line by line: so that a change of one word in a long description is
// seen, and nothing that was added can hide behind what stayed. Pure.

export interface DiffLine {
  readonly kind: "same" | "gone" | "new";
  readonly text: string;
}

/** Lines compared with each other; beyond, all old ones are told as gone and all new ones as new. */
const LINES_MAX = 1500;

/** The shortest way from the old lines to the new ones. */
export function diffOf(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const start = commonStart(before, after);
  const end = commonStart(before.slice(start).toReversed(), after.slice(start).toReversed());
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  const middle = old.length > LINES_MAX || now.length > LINES_MAX ? replaced(old, now) : compared(old, now);
  return [...same(before.slice(0, start)), ...middle, ...same(before.slice(before.length - end))];
}

function commonStart(a: readonly string[], b: readonly string[]): number {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
  return at;
}

function same(lines: readonly string[]): DiffLine[] {
  return lines.map((text) => ({ kind: "same", text }));
}

function replaced(old: readonly string[], now: readonly string[]): DiffLine[] {
  return [
    ...old.map((text): DiffLine => ({ kind: "gone", text })),
    ...now.map((text): DiffLine => ({ kind: "new", text })),
  ];
}

/** By the longest common sequence of lines. */
function compared(old: readonly string[], now: readonly string[]): DiffLine[] {
  const lengths = commonLengths(old, now);
  const width = now.length + 1;
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    const [a = "", b = ""] = [old[i], now[j]];
    if (a === b) {
      lines.push({ kind: "same", text: a });
      i += 1;
      j += 1;
    } else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0)) {
      lines.push({ kind: "gone", text: a });
      i += 1;
    } else {
      lines.push({ kind: "new", text: b });
      j += 1;
    }
  }
  return [...lines, ...replaced(old.slice(i), now.slice(j))];
}

/** At `i * (now.length + 1) + j`: how many lines the rests from i and from j have in common, in order. */
function commonLengths(old: readonly string[], now: readonly string[]): Uint16Array {
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      lengths[at] =
        old[i] === now[j]
          ? (lengths[at + width + 1] ?? 0) + 1
          : Math.max(lengths[at + width] ?? 0, lengths[at + 1] ?? 0);
    }
  }
  return lengths;
}
