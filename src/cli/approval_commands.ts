// The rows of `callgate approvals …`.

import { secondsOf } from "../base/time_text.ts";
import { type CommandRow, LIMIT_OPTION, type OptionRow, WANTS_LENGTH, wholeNumber } from "./command_row.ts";

const FULL: OptionRow = { flags: "--full", about: "long arguments too, whole" };

export const APPROVAL_ROWS: readonly CommandRow[] = [
  {
    words: "approvals list",
    about: "The questions that wait for a person.",
    tool: "callgate.approvals.list",
    args: (_, flags) => ({
      role: flags["role"],
      session: flags["of"],
      state: flags["all"] === true ? "all" : undefined,
      limit: flags["limit"],
    }),
    view: async () => (await import("./approval_views.ts")).questionTable,
    options: [
      { flags: "--role <role>", about: "only calls of that role" },
      { flags: "--of <session>", about: "only calls of that session" },
      { flags: "--all", about: "those that were answered or ran out too" },
      LIMIT_OPTION,
    ],
  },
  {
    words: "approvals show <approval>",
    about: "One question, as whoever answers it must see it. Its id may be cut short.",
    run: async () => (await import("./approvals.ts")).showApproval,
    options: [FULL],
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
  },
  {
    words: "approvals refuse <approval>",
    about: "Refuses a call; its caller hears that a person said no.",
    run: async () => (await import("./approvals.ts")).refuse,
    options: [
      { flags: "--reason <text>", about: "why, for the audit" },
      { flags: "--digest <digest>", about: "only if it is still what was shown with this digest" },
    ],
  },
  {
    words: "approvals watch",
    about: "Shows questions as they come and what becomes of them, until ctrl-C.",
    run: async () => (await import("./watch.ts")).watchApprovals,
  },
];
