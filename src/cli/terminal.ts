// What every command needs of its surroundings, and how messages look there. Commands write, ask and
// look at the clock only through this, so that a test can stand in for the terminal.

import { createInterface } from "node:readline";
import { isatty } from "node:tty";
import { visible, visibleLine } from "../base/display.ts";
import type { DenyReason } from "../base/faults.ts";
import { localTime } from "../base/time_text.ts";
import type { ToolResponse } from "../wire/message.ts";
import { coloured, type Look, type Paint, plain, takesColours } from "./paint.ts";

export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Standard output is a terminal: what peers wrote is escaped. Elsewhere content goes out as it is. */
  readonly isTerminal: boolean;
  /** Of a terminal, where that is known. */
  readonly columns?: number | undefined;
  /** Colours of standard output; without it: none. */
  readonly paint?: Paint;
  /** Colours of standard error; without it: none. */
  readonly paintErr?: Paint;
  /** Standard error is a terminal: a line there can be written over, so progress is shown. */
  readonly showsProgress?: boolean;
}

/** How standard output shows things. */
export function lookOf({ paint = plain, columns }: Pick<Terminal, "paint" | "columns">): Look {
  return { paint, columns };
}

/** A terminal, the person in front of it, and the time. */
export interface Dialogue extends Terminal {
  /** Standard input and output are a terminal: somebody is there to be asked. */
  readonly canAsk: boolean;
  /** The line that the person typed; undefined where input ended or ctrl-C was pressed, which answers nothing. */
  ask(question: string): Promise<string | undefined>;
  /** Calls `then` at each ctrl-C (or SIGTERM), in place of the process ending. Call what it returns to stop. */
  onInterrupt(then: () => void): () => void;
  nowMs(): number;
}

/** What each means, in words: exit_status.ts. */
export const EXIT = {
  ok: 0,
  /** No broker, or it was lost. */
  connection: 1,
  usage: 2,
  denied: 3,
  failed: 4,
  /** A human looked at it and refused. */
  refused: 5,
  /** A human was asked, and nobody answered in time. */
  expired: 6,
  /** What a shell says of a process that SIGINT has ended. */
  interrupted: 130,
} as const;

export function processTerminal(): Dialogue {
  // Whoever reads us may stop at any time (`| head`): that ends us quietly.
  process.stdout.on("error", () => process.exit(EXIT.ok));
  process.stderr.on("error", () => undefined);
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stdout.isTTY === true,
    paint: takesColours(process.env, process.stdout.isTTY === true) ? coloured : plain,
    paintErr: takesColours(process.env, process.stderr.isTTY === true) ? coloured : plain,
    showsProgress: process.stderr.isTTY === true && process.env["TERM"] !== "dumb",
    get columns() {
      return process.stdout.columns;
    },
    canAsk: isatty(0) && process.stdout.isTTY === true, // process.stdin, once touched, is no longer the shell's to read
    ask: askLine,
    onInterrupt,
    nowMs: Date.now,
  };
}

function askLine(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const lastLine = question.lastIndexOf("\n") + 1; // the editing of a line knows of one line
  process.stdout.write(question.slice(0, lastLine));
  return new Promise((resolve) => {
    lines.once("close", () => resolve(undefined));
    lines.once("SIGINT", () => lines.close());
    lines.question(question.slice(lastLine), (line) => {
      resolve(line);
      lines.close();
    });
  });
}

function onInterrupt(then: () => void): () => void {
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.on(signal, then);
  return () => {
    for (const signal of signals) process.off(signal, then);
  };
}

/** Exit status of a call that ended with this message. */
export function exitOf(message: ToolResponse): number {
  if (message.status === "result") return EXIT.ok;
  if (message.status !== "denied") return EXIT.failed;
  if (message.reason === "approval_refused") return EXIT.refused;
  return message.reason === "approval_expired" ? EXIT.expired : EXIT.denied;
}

/** What a terminal would obey or hide; it stands in JSON text only within strings, where an escape means the same. */
const UNSEEN = /(?!\n)(?:\p{C}|\p{Zl}|\p{Zp}|\p{Default_Ignorable_Code_Point})/gu;

/** JSON text that means the same and shows as what it is, on one line. */
export function jsonLine(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${json.trimEnd().replace(UNSEEN, (character) => character.split("").map(escaped).join(""))}\n`;
}

/** One message as one line of JSON; u64 as decimal strings. */
export function messageJson(message: ToolResponse): string {
  return jsonLine(
    JSON.stringify(message, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value)),
  );
}

/** One message for a person: content on standard output, everything about it on standard error. */
export function showMessage(terminal: Terminal, message: ToolResponse): void {
  const { paintErr = plain } = terminal;
  switch (message.status) {
    case "result": {
      const { content } = message;
      terminal.out(terminal.isTerminal ? visible(content) : content);
      if (terminal.isTerminal && !content.endsWith("\n")) terminal.out("\n");
      const trust = message.untrusted ? paintErr("untrusted", "untrusted") : "trusted";
      terminal.err(`[result: ${message.class}, ${trust}${message.truncated ? ", truncated" : ""}]\n`);
      return;
    }
    case "pending_approval":
      terminal.err(
        `[${paintErr("waiting", "waiting for a person's answer")} until ${timeText(message.expires)}; an operator answers with: callgate approvals approve ${visibleLine(message.approval)}]\n`,
      );
      return;
    case "failed":
      terminal.err(`${paintErr("bad", "failed")}: ${visibleLine(message.message, 2000)}\n`);
      return;
    case "denied":
      terminal.err(deniedLine(message.reason, paintErr));
  }
}

const DENIED_WORDS: Readonly<Partial<Record<DenyReason, readonly [outcome: string, words: string]>>> = {
  approval_refused: ["refused", "a person said no (approval_refused)"],
  approval_expired: [
    "expired",
    "a person was asked and nobody answered in time (approval_expired); a new call asks again",
  ],
};

function deniedLine(reason: DenyReason, paint: Paint): string {
  const [outcome, words] = DENIED_WORDS[reason] ?? ["denied", reason];
  return `${paint("bad", outcome)}: ${words}\n`;
}

const DATE_MS_MAX = 8_640_000_000_000_000n;

function timeText(ms: bigint): string {
  return ms <= DATE_MS_MAX ? localTime(Number(ms)) : ms.toString();
}
