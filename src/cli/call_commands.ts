// The rows of `callgate calls …`.

import { type CommandRow, LIMIT_OPTION, OF_OPTION, ROLE_OPTION } from "./command_row.ts";
import { CLASS_OPTION, TRUSTED_OPTION, UNTRUSTED_OPTION } from "./session_commands.ts";

export const CALL_ROWS: readonly CommandRow[] = [
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
