// `callgate tail`: the daemon's log, one JSON object a line on standard input, as lines for people.

import { createInterface } from "node:readline";
import { visibleLine } from "../base/display.ts";
import type { Terminal } from "./terminal.ts";

/** Fields in this order first; the rest follows as it comes. */
const FIRST = ["role", "session", "call", "tool", "status", "reason", "code", "row", "grant", "duration_ms"];
const PRIORITY = /^<[0-7]>/;

export async function tail(terminal: Terminal, input: NodeJS.ReadableStream): Promise<number> {
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    terminal.out(`${readable(line)}\n`);
  }
  return 0;
}

/** One log line for a person; a line that is none stays, escaped. */
export function readable(line: string): string {
  let entry: unknown;
  try {
    entry = JSON.parse(line.replace(PRIORITY, ""));
  } catch {
    return visibleLine(line, 2000);
  }
  if (typeof entry !== "object" || entry === null || Array.isArray(entry)) return visibleLine(line, 2000);
  const { time, level, event, ...rest } = entry as Record<string, unknown>;
  const names = [
    ...FIRST.filter((name) => name in rest),
    ...Object.keys(rest).filter((name) => !FIRST.includes(name)),
  ];
  const shown = names.map((name) => `${visibleLine(name)}=${value(rest[name])}`);
  return [
    clock(time),
    visibleLine(String(level ?? ""))
      .toUpperCase()
      .padEnd(5),
    visibleLine(String(event ?? "")),
    ...shown,
  ].join(" ");
}

function clock(time: unknown): string {
  const text = typeof time === "string" ? time : "";
  return /T(\d\d:\d\d:\d\d\.\d{3})Z$/.exec(text)?.[1] ?? visibleLine(text, 40);
}

function value(of: unknown): string {
  return visibleLine(typeof of === "string" ? of : JSON.stringify(of), 400);
}
