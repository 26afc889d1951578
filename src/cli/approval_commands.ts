// The rows of `callgate approvals …`.

import { secondsOf } from "../base/time_text.ts";
import { type CommandRow, LIMIT_OPTION, type OptionRow, WANTS_LENGTH, wholeNumber } from "./command_row.ts";

const FULL: OptionRow = { flags: "--full", about: "long arguments too, whole" };

export const APPROVAL_ROWS: readonly CommandRow[] = [
  {
    words: "approvals list",
    about: "The questions that wait for a person, the first asked first.",
    run: async () => (await import("./paged_lists.ts")).listApprovals,
    options: [
      { flags: "--role <role>", about: "only calls of that role" },
      { flags: "--of <session>", about: "only calls of that session" },
      { flags: "--tool <tool>", about: "only calls of that tool" },
      { flags: "--all", about: "those that were answered or ran out too" },
      { flags: "--ended", about: "only those, the latest first", excludes: "all" },
      { ...LIMIT_OPTION, about: "at most so many (200 without it)" },
    ],
    examples: [
      "callgate approvals list --socket run/operator.sock",
      "callgate approvals list --role agent --tool write_file",
      "callgate approvals list --ended --limit 20",
    ],
  },
  {
    words: "approvals show <approval>",
    about: "One question, as whoever answers it must see it. Its id may be cut short.",
    run: async () => (await import("./approvals.ts")).showApproval,
    options: [FULL],
    examples: ["callgate approvals show 3f6c2a81  # as many characters as tell it apart"],
  },
  {
    words: "approvals approve <approval>",
    about: "Shows a question and, after a yes, lets that very call run.",
    run: async () => (await import("./approvals.ts")).approve,
    options: [
      FULL,
      { flags: "--digest <digest>", about: "approves what was shown with this digest, without asking" },
      { flags: "--yes", about: "approves what is shown now, without asking" },
      {
        flags: "--remember <what>",
        about: "answers the same question from now on: for these arguments, or for this tool in this session",
        choices: ["arguments", "tool"],
      },
      {
        flags: "--for <time>",
        about: "how long it is remembered: 15m, 1h, 7d",
        parse: secondsOf,
        wants: WANTS_LENGTH,
      },
      {
        flags: "--times <number>",
        about: "for how many calls",
        parse: wholeNumber,
        wants: "It must be a whole number from 1.",
      },
    ],
    examples: [
      "callgate approvals approve 3f6c2a81",
      "callgate approvals approve 3f6c2a81 --remember arguments --for 1h --times 10",
      "callgate approvals approve 3f6c2a81 --digest DIGEST  # in a script: what somebody has seen",
    ],
  },
  {
    words: "approvals refuse <approval>",
    about: "Refuses a call; its caller hears that a person said no.",
    run: async () => (await import("./approvals.ts")).refuse,
    options: [
      { flags: "--reason <text>", about: "why, for the audit" },
      { flags: "--digest <digest>", about: "only if it is still what was shown with this digest" },
    ],
    examples: ["callgate approvals refuse 3f6c2a81 --reason 'Not on a Friday.'"],
  },
  {
    words: "approvals watch",
    about: "Shows questions as they come and what becomes of them, until ctrl-C.",
    run: async () => (await import("./watch.ts")).watchApprovals,
    options: [
      {
        flags: "--exec <command>",
        about:
          "runs this line with /bin/sh for each question: it has CALLGATE_TOOL, CALLGATE_ROLE … and JSON as its input",
      },
      {
        flags: "--exec-on <events>",
        about: "when: as a question is asked (the rule), or at its end too",
        choices: ["asked", "all"],
      },
    ],
    examples: [
      "callgate approvals watch --socket run/operator.sock",
      `callgate approvals watch --exec 'notify-send Callgate "$CALLGATE_ROLE asks for $CALLGATE_TOOL"'`,
    ],
  },
];
