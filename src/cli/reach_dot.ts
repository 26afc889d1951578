// The picture of a policy in Graphviz's language: callgate check --graph dot | dot -Tsvg.
// Every name is quoted and escaped, so that none can end its string or be a tag.

import { visibleLine } from "../base/display.ts";
import type { Box, BoxKind, Line, LineKind, ReachGraph } from "./reach_graph.ts";

const FONT = 'fontname="Helvetica,Arial,sans-serif"';

const BOXES: Readonly<Record<BoxKind, string>> = {
  source: 'shape=box style="filled" fillcolor="#fde8e8" color="#b42318"',
  clean_source: 'shape=box style="filled" fillcolor="#f2f4f7" color="#667085"',
  role: 'shape=box style="filled,rounded" fillcolor="#e0ecff" color="#1d4ed8" penwidth=1.5 margin="0.25,0.12"',
  store: 'shape=cylinder style="filled" fillcolor="#fef6e0" color="#7a5b00"',
  sink: 'shape=box style="filled,bold" fillcolor="#fff3d6" color="#7a2e0e"',
  write: 'shape=box style="filled" fillcolor="#fafaf5" color="#667085"',
};

export const COLOURS: Readonly<Record<LineKind, string>> = {
  open: "#c81e1e",
  free: "#475467",
  asked: "#b45309",
  clean: "#2f855a",
};

/** With its line feed. */
export function dotGraph({ boxes, lines }: ReachGraph): string {
  const numbers = new Map(boxes.map(({ id }, i) => [id, `n${i}`]));
  const column = (...kinds: readonly BoxKind[]) =>
    boxes.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => numbers.get(id) ?? "");
  return `${[
    "digraph policy {",
    `  graph [rankdir=LR ranksep=1.6 nodesep=0.35 splines=true ${FONT} fontsize=11 pad=0.2 labelloc=b label=<${LEGEND}>];`,
    `  node [${FONT} fontsize=12];`,
    `  edge [${FONT} fontsize=10 arrowsize=0.7];`,
    ...boxes.map((box, i) => `  n${i} [label="${labelOf(box)}" ${BOXES[box.kind]}];`),
    sameRank("min", column("source", "clean_source")),
    sameRank("same", column("role", "store")),
    sameRank("max", column("sink", "write")),
    ...lines.map((line) => lineText(line, numbers)),
    "}",
  ]
    .filter((text) => text !== "")
    .join("\n")}\n`;
}

function sameRank(rank: "min" | "same" | "max", names: readonly string[]): string {
  return names.length === 0 ? "" : `  { rank=${rank}; ${names.map((name) => `${name};`).join(" ")} }`;
}

function labelOf({ lines, note }: Box): string {
  return [...lines, ...(note === "" ? [] : [`(${note})`])].map(dotText).join("\\n");
}

function lineText(line: Line, numbers: ReadonlyMap<string, string>): string {
  const { from, to, kind, conditional, label } = line;
  const style = conditional ? "dashed" : "solid";
  const width = kind === "open" ? 2.2 : 1.1;
  const shown = conditional ? `${dotText(label)}\\n(if)` : dotText(label);
  const looks = `color="${COLOURS[kind]}" fontcolor="${COLOURS[kind]}" style=${style} penwidth=${width}`;
  return `  ${numbers.get(from)} -> ${numbers.get(to)} [${isBetween(line) ? "xlabel" : "label"}=" ${shown} " ${looks}];`;
}

/** In the middle column lines run upwards or downwards through their labels: those are put beside them. */
function isBetween({ from, to }: Line): boolean {
  return [from, to].every((id) => /^(?:role|store):/.test(id));
}

/** Within double quotes. A backslash would begin an escape of Graphviz's own. */
export function dotText(text: string): string {
  return visibleLine(text, 128).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
}

function sample(kind: LineKind, words: string): string {
  return `<font color="${COLOURS[kind]}">&#9473;&#9473; ${words}</font>`;
}

const LEGEND = [
  sample("open", "untrusted content to an effect, no person asked"),
  sample("asked", "a person is asked"),
  sample("clean", "only before untrusted content is read"),
  sample("free", "no person asked"),
  "dashed: only calls that a condition lets through",
].join(" &#160; ");
