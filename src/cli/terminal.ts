// What every command needs of its surroundings, and how messages look there. Commands write only
// through this, so that a test can stand in for the terminal.

import { visible, visibleLine } from "../base/display.ts";
import type { ToolResponse } from "../wire/message.ts";

export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Standard output is a terminal: what peers wrote is escaped. Elsewhere content goes out as it is. */
  readonly isTerminal: boolean;
}

export const EXIT = {
  ok: 0,
  /** No broker, or it was lost. */
  connection: 1,
  usage: 2,
  denied: 3,
  failed: 4,
  /** A human refused, or nobody answered in time. */
  notApproved: 5,
} as const;

export function processTerminal(): Terminal {
  // Whoever reads us may stop at any time (`| head`): that ends us quietly.
  process.stdout.on("error", () => process.exit(EXIT.ok));
  process.stderr.on("error", () => undefined);
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stdout.isTTY === true,
  };
}

/** Exit status of a call that ended with this message. */
export function exitOf(message: ToolResponse): number {
  if (message.status === "result") return EXIT.ok;
  if (message.status !== "denied") return EXIT.failed;
  const unanswered = message.reason === "approval_refused" || message.reason === "approval_expired";
  return unanswered ? EXIT.notApproved : EXIT.denied;
}

/** One message as one line of JSON; u64 as decimal strings. */
export function messageJson(message: ToolResponse): string {
  return `${JSON.stringify(message, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value))}\n`;
}

/** One message for a person: content on standard output, everything about it on standard error. */
export function showMessage(terminal: Terminal, message: ToolResponse): void {
  switch (message.status) {
    case "result": {
      const { content } = message;
      terminal.out(terminal.isTerminal ? visible(content) : content);
      if (terminal.isTerminal && !content.endsWith("\n")) terminal.out("\n");
      const trust = message.untrusted ? "untrusted" : "trusted";
      terminal.err(`[result: ${message.class}, ${trust}${message.truncated ? ", truncated" : ""}]\n`);
      return;
    }
    case "pending_approval":
      terminal.err(
        `[waiting for approval ${visibleLine(message.approval)} until ${timeText(message.expires)}]\n`,
      );
      return;
    case "failed":
      terminal.err(`failed: ${visibleLine(message.message, 2000)}\n`);
      return;
    case "denied":
      terminal.err(`denied: ${message.reason}\n`);
  }
}

const DATE_MS_MAX = 8_640_000_000_000_000n;

function timeText(ms: bigint): string {
  return ms <= DATE_MS_MAX ? new Date(Number(ms)).toISOString() : ms.toString();
}
