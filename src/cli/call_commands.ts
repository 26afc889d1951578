// The rows of `callgate calls …`.

import { FAIL_CODES } from "../base/faults.ts";
import { type CommandRow, LIMIT_OPTION, OF_OPTION, ROLE_OPTION } from "./command_row.ts";
import { CLASS_OPTION, TRUSTED_OPTION, UNTRUSTED_OPTION } from "./session_commands.ts";
import { MOMENT_WORDS } from "./time_option.ts";

export const CALL_ROWS: readonly CommandRow[] = [
  {
    words: "calls list",
    about: "Calls: those that wait or run, those of unknown outcome, those that ended; the newest first.",
    run: async () => (await import("./paged_lists.ts")).listCalls,
    options: [
      ROLE_OPTION,
      OF_OPTION,
      { flags: "--tool <tool>", about: "only of this tool" },
      {
        flags: "--state <state>",
        about: "only those",
        choices: ["running", "waiting", "unknown", "ended"],
      },
      {
        flags: "--status <status>",
        about: "only those that ended so",
        choices: ["result", "failed", "denied"],
      },
      { flags: "--code <code>", about: "only those that failed with this code", choices: FAIL_CODES },
      { flags: "--since <time>", about: `only those that ended from then on: ${MOMENT_WORDS}` },
      { flags: "--until <time>", about: "only those that ended before then" },
      { ...LIMIT_OPTION, about: "at most so many (100 without it)" },
      { flags: "--all", about: "all of them", excludes: "limit" },
    ],
    help: "Of a call that goes on, --since and --until look at when it was asked.",
    examples: [
      "callgate calls list --role agent --of chat-17",
      "callgate calls list --status denied --since 1h",
      "callgate calls list --all --json | jq -r .tool",
    ],
  },
  {
    words: "calls show <call>",
    about: "One call: its arguments, decision and messages.",
    run: async () => (await import("./show_call.ts")).showCall,
    options: [ROLE_OPTION, OF_OPTION, { flags: "--full", about: "long texts too, whole" }],
    examples: ["callgate calls show 1796040000000000 --role agent --of chat-17"],
  },
  {
    words: "calls why <call>",
    about: "What was decided about a call, and why; looked up in the record where it is old.",
    tool: "callgate.calls.why",
    args: ([call], flags) => ({ call, session: flags["of"] ?? flags.session, role: flags["role"] }),
    view: async () => (await import("./call_views.ts")).whyText,
    options: [ROLE_OPTION, OF_OPTION],
    examples: ["callgate calls why 1796040000000000 --role agent --of chat-17"],
  },
  {
    words: "calls cancel <call>",
    about: "Ends a call that runs or waits.",
    tool: "callgate.calls.cancel",
    args: ([call], flags) => ({ call, session: flags["of"] ?? flags.session, role: flags["role"] }),
    view: async () => (await import("./call_views.ts")).cancelledText,
    options: [ROLE_OPTION, OF_OPTION],
    examples: ["callgate calls cancel 1796040000000000 --role agent --of chat-17"],
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
    examples: [
      "callgate calls settle 1796040000000000 --role agent --of chat-17 --as failed --text 'It was not sent.'",
    ],
  },
];
