// The rows of `callgate tail`.

import { type CommandRow, OF_OPTION, wholeNumber } from "./command_row.ts";

const TAIL_HELP = `
Without a file and without --audit it reads the log from standard input. A file is followed as it grows, and over its
rotation; first come the last 10 lines that fit. Both begin earlier with --since or --last.

--audit follows the record instead, over an operator's socket: every decision, dispatch, outcome, answer of a person and
raised taint, which the log has only in part. That this command itself looks on is not shown.

Times are local. A line that is not the log's own is shown as it is, escaped. --json gives the lines that fit as they are,
for programs.

--decision in the log: ask is approval.asked; deny is call.denied, and call.ended of what was asked about and not let
through; allow is any other call.ended, whoever let it through.`;

export const TAIL_ROWS: readonly CommandRow[] = [
  {
    words: "tail [file]",
    about:
      "Follows the log, or the audit, readably: who, which tool, what was decided by which rule, how long.",
    takes: { file: "the daemon's log; without it, standard input" },
    run: async () => {
      const { tail } = await import("./tail.ts");
      return (terminal, words, flags) => tail(terminal, words, flags);
    },
    options: [
      { flags: "--audit", about: "the audit, in place of the log" },
      { flags: "--since <time>", about: "from then on: 2026-11-30T08:00:00Z, or 15m ago" },
      {
        flags: "--last <number>",
        about: "begins with so many lines of a file or the audit (10 without --since)",
        parse: (text) => (text === "0" ? 0 : wholeNumber(text)),
        wants: "It must be a whole number from 0.",
      },
      { flags: "--role <role>", about: "only of this role" },
      { ...OF_OPTION, about: "only of this session" },
      { flags: "--tool <tool>", about: "only of this tool" },
      { flags: "--call <id>", about: "only of this call" },
      { flags: "--decision <decision>", about: "only such decisions", choices: ["allow", "ask", "deny"] },
      {
        flags: "--event <name>",
        about: "only this event of the log or kind of record; 'call.*' for all that begin so",
      },
      {
        flags: "--level <level>",
        about: "only this level of the log and those above",
        choices: ["debug", "info", "warn", "error"],
      },
    ],
    examples: [
      "callgate serve --config callgate.toml | callgate tail",
      "journalctl -o cat -fu callgate | callgate tail --level warn",
      "callgate tail /var/log/callgate.log --decision deny",
      "callgate tail --audit --since 1h --role agent --socket /run/callgate/operator.sock",
    ],
    help: TAIL_HELP,
  },
];
