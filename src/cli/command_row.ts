// What a row of the command table is. A row says what a command takes and does; program.ts makes the command line
// of it, help_text.ts its help, completion.ts what a shell offers, man_page.ts its part of the manual.
// Rows are data: a row's code is loaded when its command runs.

import type { Reach } from "./call.ts";
import type { View } from "./operate.ts";
import type { Dialogue } from "./terminal.ts";

/** By the option's name in camel case: `--above-taint` is `aboveTaint`. A list: of an option that repeats. */
export type Flags = Reach &
  Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
/** What stands in the place of the row's `<…>` and `[…]`, in their order. */
export type Words = readonly (string | undefined)[];

export interface OptionRow {
  /** As commander has it: `--for <duration>`. What stands in `<…>` says to a shell what to offer: completion.ts. */
  readonly flags: string;
  readonly about: string;
  /** Text to value; undefined: it is wrong. */
  readonly parse?: (text: string) => number | undefined;
  /** What `parse` wants, as a sentence. */
  readonly wants?: string;
  readonly choices?: readonly string[];
  readonly fallback?: { readonly value: string | number; readonly shown: string };
  readonly required?: boolean;
  /** May be given again: its value is the list of all, empty without any. */
  readonly repeats?: true;
  /** The name, as in `Flags`, of an option that does not go with it. */
  readonly excludes?: string;
}

interface AnyRow {
  /** The words that it is called with: `approvals show <approval>`. */
  readonly words: string;
  readonly about: string;
  /** What each `<…>` and `[…]` of `words` is, by its name, where that does not say it. */
  readonly takes?: Readonly<Record<string, string>>;
  readonly options?: readonly OptionRow[];
  /**
   * `false`: it needs no broker, and takes neither --socket and --session nor --json. `"socket"`: it connects, but
   * makes no calls: --socket and --fd only.
   */
  readonly reaches?: false | "socket";
  /** Whole command lines, shown in its help; after two spaces and a `#`, what one is for. */
  readonly examples?: readonly string[];
  /** What an exit status means where it is not what it means elsewhere (exit_status.ts). */
  readonly exits?: Readonly<Record<number, string>>;
  /** More about it, in paragraphs, shown below its help. */
  readonly help?: string;
  /** For programs, not for people: neither help nor manual has it. */
  readonly hidden?: true;
}

/** One call of a built-in tool, and its answer. */
export interface AskingRow extends AnyRow {
  readonly tool: string;
  /** Members that are undefined are left out. */
  readonly args: (words: Words, flags: Flags) => Readonly<Record<string, unknown>>;
  /** Without one the answer is shown member by member. */
  readonly view?: () => Promise<View>;
}

/** Anything else. Resolves with the exit status. */
export interface ActingRow extends AnyRow {
  readonly run: () => Promise<(terminal: Dialogue, words: Words, flags: Flags) => Promise<number>>;
}

export type CommandRow = AskingRow | ActingRow;

export const ROLE_OPTION: OptionRow = { flags: "--role <role>", about: "whose: the role" };
export const OF_OPTION: OptionRow = { flags: "--of <session>", about: "which of the role's sessions" };
export const LIMIT_OPTION: OptionRow = {
  flags: "--limit <number>",
  about: "at most so many",
  parse: wholeNumber,
  wants: "It must be a whole number from 1.",
};

export function wholeNumber(text: string): number | undefined {
  return /^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : undefined;
}

/** The value of an option that takes a text. */
export function textOf(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === "string" ? value : undefined;
}

export const WANTS_LENGTH = "It must be a length of time: 90s, 15m, 1h, 7d, or a number of seconds.";

const WAY_OPTIONS: readonly OptionRow[] = [
  { flags: "--socket <path>", about: "the role's socket (or CALLGATE_SOCKET in the environment)" },
  {
    flags: "--fd <number>",
    about: "an inherited descriptor that is connected to the broker",
    excludes: "socket",
  },
];

const REACH_OPTIONS: readonly OptionRow[] = [
  ...WAY_OPTIONS,
  {
    flags: "--session <id>",
    about: "the session to speak in",
    fallback: { value: "cli", shown: "cli" },
  },
  { flags: "--json", about: "one JSON object a line, for programs" },
];

/** How a command comes to the broker, as options that it shares with others. */
export function reachOptions({ reaches }: Pick<CommandRow, "reaches">): readonly OptionRow[] {
  if (reaches === false) return [];
  return reaches === "socket" ? WAY_OPTIONS : REACH_OPTIONS;
}
