// The rows of the commands that operate a broker. Each group of them that has a file of its own is
// joined here.

import { APPROVAL_ROWS } from "./approval_commands.ts";
import { type CommandRow, LIMIT_OPTION, OF_OPTION, ROLE_OPTION } from "./command_row.ts";
import { GRANT_ROWS } from "./grant_commands.ts";
import { CLASS_OPTION, SESSION_ROWS, TRUSTED_OPTION, UNTRUSTED_OPTION } from "./session_commands.ts";

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

const CALL_ROWS: readonly CommandRow[] = [
  {
    words: "calls list",
    about: "Calls that are kept, newest first.",
    tool: "callgate.calls.list",
    args: (_, flags) => ({
      role: flags["role"],
      session: flags["of"],
      state: flags["state"],
      limit: flags["limit"],
    }),
    view: async () => (await import("./call_views.ts")).callTable,
    options: [
      ROLE_OPTION,
      OF_OPTION,
      {
        flags: "--state <state>",
        about: "only those",
        choices: ["running", "waiting", "unknown", "ended"],
      },
      LIMIT_OPTION,
    ],
  },
  {
    words: "calls show <call>",
    about: "One call: its arguments, decision and messages.",
    run: async () => (await import("./show_call.ts")).showCall,
    options: [ROLE_OPTION, OF_OPTION, { flags: "--full", about: "long texts too, whole" }],
  },
  {
    words: "calls why <call>",
    about: "Why a call was denied.",
    tool: "callgate.calls.why",
    args: ([call], flags) => ({ call, session: flags["of"] ?? flags.session, role: flags["role"] }),
    view: async () => (await import("./call_views.ts")).whyText,
    options: [ROLE_OPTION, OF_OPTION],
  },
  {
    words: "calls cancel <call>",
    about: "Ends a call that runs or waits.",
    tool: "callgate.calls.cancel",
    args: ([call], flags) => ({ call, session: flags["of"] ?? flags.session, role: flags["role"] }),
    view: async () => (await import("./call_views.ts")).cancelledText,
    options: [ROLE_OPTION, OF_OPTION],
  },
  {
    words: "calls settle <call>",
    about: "Writes down how a call ended whose outcome nobody knows. Runs nothing.",
    tool: "callgate.calls.settle",
    args: ([call], flags) => ({
      call,
      session: flags["of"] ?? flags.session,
      role: flags["role"],
      as: flags["as"],
      text: flags["text"],
      class: flags["class"],
      untrusted: flags["untrusted"] ?? (flags["trusted"] === true ? false : undefined),
    }),
    view: async () => (await import("./call_views.ts")).settledText,
    options: [
      { ...ROLE_OPTION, required: true },
      OF_OPTION,
      { flags: "--as <status>", about: "how it ended", choices: ["failed", "result"], required: true },
      { flags: "--text <text>", about: "what its caller is to hear", required: true },
      CLASS_OPTION,
      TRUSTED_OPTION,
      UNTRUSTED_OPTION,
    ],
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
];
