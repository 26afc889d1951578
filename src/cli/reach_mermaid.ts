// The picture of a policy in Mermaid's language, as Markdown pages show it. Kept to the simplest of its grammar: quoted
// texts, numbered boxes, plain arrows. In a quoted text all but letters, digits and a few signs is written as a number.

import { visibleLine } from "../base/display.ts";
import { COLOURS } from "./reach_dot.ts";
import type { Box, BoxKind, Line, ReachGraph } from "./reach_graph.ts";

const CLASSES: Readonly<Record<BoxKind, string>> = {
  source: "fill:#fde8e8,stroke:#b42318,color:#000",
  clean_source: "fill:#f2f4f7,stroke:#667085,color:#000",
  role: "fill:#e0ecff,stroke:#1d4ed8,color:#000",
  store: "fill:#fef6e0,stroke:#7a5b00,color:#000",
  sink: "fill:#fff3d6,stroke:#7a2e0e,color:#000",
  write: "fill:#fafaf5,stroke:#667085,color:#000",
};

/** With its line feed. */
export function mermaidGraph({ boxes, lines }: ReachGraph): string {
  const numbers = new Map(boxes.map(({ id }, i) => [id, `n${i}`]));
  const kinds = [...new Set(boxes.map(({ kind }) => kind))];
  return `${[
    "flowchart LR",
    ...boxes.map((box, i) => `  n${i}${boxText(box)}:::${box.kind}`),
    ...lines.map((line) => lineText(line, numbers)),
    ...kinds.map((kind) => `  classDef ${kind} ${CLASSES[kind]}`),
    ...lines.map(
      ({ kind }, i) => `  linkStyle ${i} stroke:${COLOURS[kind]},stroke-width:${kind === "open" ? 3 : 1}px`,
    ),
  ].join("\n")}\n`;
}

function boxText({ kind, lines, note }: Box): string {
  const all = [...lines.map(mermaidText), ...(note === "" ? [] : [`(${mermaidText(note)})`])];
  const text = `"${all.join("<br/>")}"`;
  if (kind === "role") return `(${text})`;
  return kind === "store" ? `[(${text})]` : `[${text}]`;
}

function lineText({ from, to, conditional, label }: Line, numbers: ReadonlyMap<string, string>): string {
  const arrow = conditional ? "-.->" : "-->";
  const text = label === "" ? "" : `|"${mermaidText(label)}"|`;
  return `  ${numbers.get(from)} ${arrow}${text} ${numbers.get(to)}`;
}

const UNQUOTABLE = /[^A-Za-z0-9 ._,:*+-]/gu;

/** Within double quotes: what could end the text, be a tag or an entity is written as its number. */
export function mermaidText(text: string): string {
  return visibleLine(text, 128).replace(UNQUOTABLE, (character) => `#${character.codePointAt(0)};`);
}
