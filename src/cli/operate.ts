// Commands that are calls of built-in tools: the asking, how an answer is read, and how one reads that
// has no view of its own.

import { visibleLine } from "../base/display.ts";
import { isJsonObject, type Json, parseJson } from "../base/json.ts";
import type { Caller } from "../client/caller.ts";
import { type Reach, withCaller } from "./call.ts";
import type { Look } from "./paint.ts";
import { EXIT, exitOf, jsonLine, lookOf, showMessage, type Terminal } from "./terminal.ts";
import { fitted } from "./text_table.ts";

/** Whoever accepts a definition must have seen all of it. */
const SCALAR_CHARS_MAX = 100_000;

/** An answer as text for a person, with its line feeds; what peers wrote in it is escaped. */
export type View = (value: unknown, nowMs: number, look: Look) => string;

/** How an answer is told. */
export interface Telling {
  /** Without one it is shown member by member. */
  readonly view?: View | undefined;
  readonly nowMs?: () => number;
  /** A sentence of the broker's about arguments, in the words of whoever gave them. */
  readonly worded?: Worded;
}

type Worded = (sentence: string) => string;

/** Calls a built-in and prints its content: as it is with --json, else as `view` has it. */
export async function operate(
  terminal: Terminal,
  reach: Reach,
  tool: string,
  args: Readonly<Record<string, unknown>>,
  { view = (value) => fields(value), nowMs = Date.now, worded }: Telling = {},
): Promise<number> {
  return withCaller(terminal, reach, async (caller) => {
    const answer = await askBroker(caller, reach, tool, args, worded);
    if ("fault" in answer) return answer.fault(terminal);
    show(terminal, reach, answer, view, nowMs());
    return isReloadRefused(answer.value) ? EXIT.failed : EXIT.ok;
  });
}

/** What a built-in answered: its content, or how to say that there is none (which gives the exit status). */
export type BrokerAnswer =
  | { readonly text: string; readonly value: unknown }
  | { readonly fault: (terminal: Terminal) => number };

export async function askBroker(
  caller: Caller,
  { session }: Reach,
  tool: string,
  args: Readonly<Record<string, unknown>>,
  worded: Worded = (sentence) => sentence,
): Promise<BrokerAnswer> {
  const given = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined));
  const answer = await caller.call(tool, given, { session }).final;
  if (answer.status === "result") return { text: answer.content, value: contentValue(answer.content) };
  return {
    fault: (terminal) => {
      showMessage(
        terminal,
        answer.status === "failed" ? { ...answer, message: worded(answer.message) } : answer,
      );
      if (answer.status === "denied" && answer.reason === "no_grant") terminal.err(notGranted(tool));
      return exitOf(answer);
    },
  };
}

/** Most often it is the wrong socket: a person has several roles, and CALLGATE_SOCKET names one of them. */
function notGranted(tool: string): string {
  return `  This socket's role has no grant for ${tool}. An operator's has (--socket).\n`;
}

export function show(
  terminal: Terminal,
  reach: Reach,
  { text, value }: { readonly text: string; readonly value: unknown },
  view: View,
  nowMs: number = Date.now(),
): void {
  if (reach.json === true) return terminal.out(jsonLine(text));
  terminal.out(fitted(view(value, nowMs, lookOf(terminal)), terminal.columns));
}

const ANY = Number.POSITIVE_INFINITY;

/** As JSON.parse, but integers that a double does not hold are bigint. */
export function contentValue(content: string): unknown {
  const parsed = parseJson(content, { depth: ANY, nodes: ANY, integerDigits: ANY });
  return parsed.ok ? plain(parsed.value) : JSON.parse(content);
}

function plain(value: Json): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if (isJsonObject(value)) return Object.fromEntries([...value].map(([name, one]) => [name, plain(one)]));
  return value.map(plain);
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
  if (typeof value === "bigint") return value.toString();
  return visibleLine(typeof value === "string" ? value : JSON.stringify(value), SCALAR_CHARS_MAX);
}
