// How tools look: many as a table. Their schemas are for programs, which have --json.

import { counted } from "../base/json_text.ts";
import { type Look, PLAIN } from "./paint.ts";
import { type Cell, type Column, stated, textTable } from "./text_table.ts";

/** A line of `callgate.tools.list`. */
interface ToolLine {
  readonly name: string;
  readonly description?: string | null;
  /** Absent where the tool is only announced: what it does is then nobody's word but its provider's. */
  readonly effect?: string;
  readonly in_service: boolean;
  /** For operators, of tools that providers announce: whether somebody has looked at what was announced. */
  readonly definition?: "waiting" | "unseen" | "accepted" | null;
}

const COLUMNS: readonly Column[] = [
  { name: "TOOL" },
  { name: "EFFECT" },
  { name: "IN SERVICE" },
  { name: "DEFINITION", yields: 2 },
  { name: "DESCRIPTION", yields: 1 },
];

export function toolTable(value: unknown, _nowMs: number = 0, look: Look = PLAIN): string {
  const { tools } = value as { readonly tools: readonly ToolLine[] };
  if (tools.length === 0) return "no such tools\n";
  const rows = tools.map((one): readonly Cell[] => [
    one.name,
    one.effect ?? "-",
    one.in_service ? "yes" : "no",
    definitionCell(one),
    one.description ?? "-",
  ]);
  const waiting = tools.filter(({ definition }) => definition === "waiting").length;
  const hint =
    waiting === 0
      ? ""
      : `${counted(waiting, "definition")} to look at: callgate tools diff TOOL (or PREFIX.*)\n`;
  return `${textTable(COLUMNS, rows, look)}${hint}`;
}

function definitionCell({ definition }: ToolLine): Cell {
  return definition === null || definition === undefined ? "-" : stated(definition);
}

/** `value` is the content of `callgate.tools.accept`. */
export function acceptedText(): string {
  return "accepted: that very definition is in service\n";
}
