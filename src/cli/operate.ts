// Commands that are one call of a built-in tool: what to call, and how its answer reads.

import { visibleLine } from "../base/display.ts";
import { type Reach, withCaller } from "./call.ts";
import { EXIT, exitOf, showMessage, type Terminal } from "./terminal.ts";

/** Whoever accepts a definition must have seen all of it. */
const SCALAR_CHARS_MAX = 100_000;

/** Calls a built-in and prints its content: as it is with --json, else as `render` has it. */
export async function operate(
  terminal: Terminal,
  reach: Reach,
  tool: string,
  args: Readonly<Record<string, unknown>>,
  render: (value: unknown) => string = fields,
): Promise<number> {
  return withCaller(terminal, reach, async (caller) => {
    const given = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined));
    const answer = await caller.call(tool, given, { session: reach.session }).final;
    if (answer.status !== "result") {
      showMessage(terminal, answer);
      return exitOf(answer);
    }
    const value: unknown = JSON.parse(answer.content);
    terminal.out(reach.json === true ? `${answer.content}\n` : render(value));
    return isReloadRefused(value) ? EXIT.failed : EXIT.ok;
  });
}

/** A script that reloads must notice, though the call itself has come to a result. */
function isReloadRefused(value: unknown): boolean {
  return typeof value === "object" && value !== null && "reloaded" in value && value.reloaded === false;
}

/** A value as lines of `name: value`, nested by indentation. Everything in it is shown escaped. */
export function fields(value: unknown, indent = ""): string {
  if (Array.isArray(value))
    return (
      value.map((item) => `${indent}- ${fields(item, `${indent}  `).trimStart()}`).join("") ||
      `${indent}(none)\n`
    );
  if (typeof value !== "object" || value === null) return `${indent}${scalar(value)}\n`;
  return Object.entries(value)
    .map(([name, member]) => `${indent}${visibleLine(name)}:${memberText(member, indent)}`)
    .join("");
}

function memberText(member: unknown, indent: string): string {
  if (typeof member !== "object" || member === null) return ` ${scalar(member)}\n`;
  if (Array.isArray(member) && member.every((item) => typeof item !== "object" || item === null)) {
    return ` ${member.length === 0 ? "(none)" : member.map(scalar).join(", ")}\n`;
  }
  return `\n${fields(member, `${indent}  `)}`;
}

function scalar(value: unknown): string {
  if (value === null) return "-";
  return visibleLine(typeof value === "string" ? value : JSON.stringify(value), SCALAR_CHARS_MAX);
}
