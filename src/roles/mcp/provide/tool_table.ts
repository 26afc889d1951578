// The server's tools as they are served: read out of what it lists, under the broker's names. An entry is one definition:
// a changed one is another entry, so that a call which was decided on what a tool was is not given to what it has become.

import { visibleLine } from "../../../base/display.ts";
import { type AnnouncedTool, announcedTool, type McpTool } from "../definition.ts";
import { jsonText } from "./server_json.ts";

export interface ToolEntry {
  readonly tool: McpTool;
  readonly announced: AnnouncedTool;
  /** The definition as JSON. */
  readonly text: string;
  /** The broker has heard of this definition: what it asks for now, it asks of this. */
  isKnown: boolean;
}

export interface ToolReading {
  readonly entries: ReadonlyMap<string, ToolEntry>;
  /** Why tools are left out, a line each, escaped. */
  readonly leftOut: readonly string[];
}

/** As the broker has it (src/broker/definitions.ts). */
const DEFINITION_CHARS_MAX = 65_536;
const NAME_CHARS_MAX = 256;
const LEFT_OUT_MAX = 50;

/** `unchecked`: broker's names of tools that are announced without a schema. Entries that did not change stay the same. */
export function readTools(
  listed: readonly unknown[],
  prefix: string,
  unchecked: ReadonlySet<string>,
  before: ReadonlyMap<string, ToolEntry>,
): ToolReading {
  const entries = new Map<string, ToolEntry>();
  const leftOut: string[] = [];
  const refuse = (name: unknown, why: string) => {
    const shown = typeof name === "string" ? visibleLine(name, 80) : "(no name)";
    if (leftOut.length < LEFT_OUT_MAX) leftOut.push(`the tool ${shown} is left out: ${why}`);
  };
  for (const one of listed) {
    const tool = readTool(one);
    if (typeof tool === "string") {
      refuse((one as { readonly name?: unknown } | null)?.name, tool);
      continue;
    }
    const entry = entryOf(tool, prefix, unchecked);
    if (entry === undefined)
      refuse(tool.name, `its definition is longer than ${DEFINITION_CHARS_MAX}, or nested too deep`);
    else if (entries.has(entry.announced.name)) refuse(tool.name, "another has the same name");
    else entries.set(entry.announced.name, kept(before, entry));
  }
  return { entries, leftOut };
}

function kept(before: ReadonlyMap<string, ToolEntry>, entry: ToolEntry): ToolEntry {
  const same = before.get(entry.announced.name);
  return same?.text === entry.text ? same : entry;
}

/** Undefined: it is too long also without its pictures, or too deep. */
function entryOf(tool: McpTool, prefix: string, unchecked: ReadonlySet<string>): ToolEntry | undefined {
  const { icons: _, ...plain } = tool;
  for (const one of [tool, plain]) {
    const checked = announcedTool(one, prefix);
    const announced = unchecked.has(checked.name) ? announcedTool(one, prefix, false) : checked;
    const text = jsonText(announced);
    if (text !== undefined && text.length <= DEFINITION_CHARS_MAX)
      return { tool: one, announced, text, isKnown: false };
  }
  return undefined;
}

/** A sentence where it is none that can be served. */
function readTool(listed: unknown): McpTool | string {
  if (!isMembers(listed)) return "it is no object";
  const { name, title, description, inputSchema, outputSchema, annotations, icons, _meta } = listed;
  if (typeof name !== "string" || name === "" || name.length > NAME_CHARS_MAX)
    return `a name has 1 to ${NAME_CHARS_MAX} characters`;
  if (!isMembers(inputSchema)) return "it has no schema of its arguments";
  return {
    name,
    inputSchema,
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {}),
    ...(isMembers(outputSchema) ? { outputSchema } : {}),
    ...(isMembers(annotations) ? { annotations } : {}),
    ...(Array.isArray(icons) ? { icons } : {}),
    ...(isMembers(_meta) ? { _meta } : {}),
  };
}

function isMembers(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
