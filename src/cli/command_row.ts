// What a row of the command table is. A row says what a command takes and does; program.ts makes the
// command line of it. Rows are data: a row's code is loaded when its command runs.

import type { Reach } from "./call.ts";
import type { View } from "./operate.ts";
import type { Dialogue } from "./terminal.ts";

export type Flags = Reach & Readonly<Record<string, string | number | boolean | undefined>>;
/** What stands in the place of the row's `<…>` and `[…]`, in their order. */
export type Words = readonly (string | undefined)[];

export interface OptionRow {
  /** As commander has it: `--for <duration>`. */
  readonly flags: string;
  readonly about: string;
  /** Text to value; undefined: it is wrong. */
  readonly parse?: (text: string) => number | undefined;
  /** What `parse` wants, as a sentence. */
  readonly wants?: string;
  readonly choices?: readonly string[];
  readonly fallback?: { readonly value: string | number; readonly shown: string };
  readonly required?: boolean;
}

interface AnyRow {
  /** The words that it is called with: `approvals show <approval>`. */
  readonly words: string;
  readonly about: string;
  readonly options?: readonly OptionRow[];
  /** `false`: it needs no broker, and takes neither --socket and --session nor --json. */
  readonly reaches?: false;
  /** Shown below its help. */
  readonly help?: string;
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

export const WANTS_LENGTH = "It must be a length of time: 90s, 15m, 1h, 7d, or a number of seconds.";
