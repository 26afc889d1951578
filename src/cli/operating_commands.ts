// The rows of the commands that operate a broker. Each group of them that has a file of its own is
// joined here.

import { APPROVAL_ROWS } from "./approval_commands.ts";
import { CALL_ROWS } from "./call_commands.ts";
import type { CommandRow } from "./command_row.ts";
import { CONSOLE_ROWS } from "./console_commands.ts";
import { GRANT_ROWS } from "./grant_commands.ts";
import { INIT_ROWS } from "./init_commands.ts";
import { METRICS_ROWS } from "./metrics_commands.ts";
import { SESSION_ROWS } from "./session_commands.ts";
import { TAIL_ROWS } from "./tail_commands.ts";

const DAEMON_ROWS: readonly CommandRow[] = [
  {
    words: "status",
    about: "How the broker is: what is wrong, what waits for somebody, and the load.",
    tool: "callgate.status",
    args: () => ({}),
    view: async () => (await import("./status_view.ts")).statusText,
  },
  {
    words: "reload",
    about: "Reads the config again; a bad one changes nothing.",
    tool: "callgate.reload",
    args: () => ({}),
    view: async () => (await import("./status_view.ts")).reloadedText,
  },
  {
    words: "freeze <role>",
    about: "Stops a role, or one session of it, at once.",
    tool: "callgate.freeze",
    args: ([role], flags) => ({ role, session: flags["of"], frozen: flags["thaw"] !== true }),
    view: async () => (await import("./status_view.ts")).frozenText,
    options: [
      { flags: "--of <session>", about: "only this session of the role" },
      { flags: "--thaw", about: "let it go on" },
    ],
  },
];

const TOOL_ROWS: readonly CommandRow[] = [
  {
    words: "tools list",
    about: "The tools that this role could be granted.",
    tool: "callgate.tools.list",
    args: (_, flags) => ({ prefix: flags["prefix"] }),
    options: [{ flags: "--prefix <text>", about: "only names that begin so" }],
  },
  {
    words: "tools diff <tool>",
    about: "An announced definition beside the pinned one.",
    tool: "callgate.tools.diff",
    args: ([tool]) => ({ tool }),
  },
  {
    words: "tools accept <tool> <digest>",
    about: "Puts that very definition into service.",
    tool: "callgate.tools.accept",
    args: ([tool, digest]) => ({ tool, digest }),
  },
];

/** What `callgate GROUP --help` says of each first word. */
export const GROUPS: Readonly<Record<string, string>> = {
  approvals: "Questions to people about calls.",
  sessions: "Sessions and their taint.",
  grants: "Grants and decisions.",
  calls: "Single calls.",
  audit: "The record of everything that was decided and done.",
  tools: "Tools and announced definitions.",
};

export const OPERATING_ROWS: readonly CommandRow[] = [
  ...DAEMON_ROWS,
  ...APPROVAL_ROWS,
  ...CALL_ROWS,
  ...SESSION_ROWS,
  ...GRANT_ROWS,
  ...TOOL_ROWS,
  ...CONSOLE_ROWS,
  ...METRICS_ROWS,
  ...TAIL_ROWS,
  ...INIT_ROWS,
];
