// The rows of the commands that operate a broker. Each group of them that has a file of its own is
// joined here.

import { APPROVAL_ROWS } from "./approval_commands.ts";
import { CALL_ROWS } from "./call_commands.ts";
import type { CommandRow } from "./command_row.ts";
import type { Section } from "./command_tree.ts";
import { MODEL_ROWS } from "./connector_commands.ts";
import { CONSOLE_ROWS } from "./console_commands.ts";
import { GRANT_ROWS } from "./grant_commands.ts";
import { MCP_SERVE_ROWS } from "./mcp_serve_commands.ts";
import { METRICS_ROWS } from "./metrics_commands.ts";
import { RUN_ROWS } from "./run_commands.ts";
import { SESSION_ROWS } from "./session_commands.ts";
import { TAIL_ROWS } from "./tail_commands.ts";
import { TOOL_ROWS } from "./tool_commands.ts";
import { WIRE_ROWS } from "./wire_commands.ts";

const DAEMON_ROWS: readonly CommandRow[] = [
  {
    words: "status",
    about: "How the broker is: what is wrong, what waits for somebody, and the load.",
    tool: "callgate.status",
    args: () => ({}),
    view: async () => (await import("./status_view.ts")).statusText,
    examples: ["callgate status --socket run/operator.sock", "callgate status --json | jq .store.condition"],
  },
  {
    words: "reload",
    about: "Reads the config again; a bad one changes nothing.",
    tool: "callgate.reload",
    args: () => ({}),
    view: async () => (await import("./status_view.ts")).reloadedText,
    examples: ["callgate check --config callgate.toml && callgate reload --socket run/operator.sock"],
    exits: { 0: "the new policy is in force", 4: "the old one stays, and it says why" },
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
    examples: [
      "callgate freeze agent  # calls end, connections close, none come in",
      "callgate freeze agent --of chat-17",
      "callgate freeze agent --thaw",
    ],
  },
];

export const ABOUT = "The gate through which every tool call of an AI agent passes.";

/** What `callgate GROUP --help` says of each first word. */
export const GROUPS: Readonly<Record<string, string>> = {
  approvals: "Questions to people about calls.",
  sessions: "Sessions and their taint.",
  grants: "Grants and decisions.",
  calls: "Single calls.",
  audit: "The record of everything that was decided and done.",
  tools: "Tools and announced definitions.",
  role: "Runs a role's program.",
  connector: "The model connector: turns of a model for those who never hold the provider's key.",
  mcp: "MCP servers behind the gate, and MCP clients in front of it.",
  wire: "The codec, for people who write roles in other languages: JSON Lines in and out.",
  completion: "What makes a shell complete commands, options and values at a tab.",
};

export const SECTIONS: readonly Section[] = [
  {
    heading: "First steps",
    commands: ["demo", "init", "check", "serve", "install", "uninstall", "role", "call"],
  },
  { heading: "Questions to people", commands: ["approvals", "console"] },
  { heading: "What agents do and may do", commands: ["calls", "sessions", "grants", "tools"] },
  { heading: "The broker", commands: ["status", "doctor", "tail", "metrics", "traces", "freeze", "reload"] },
  { heading: "MCP", commands: ["mcp"] },
  { heading: "The model connector", commands: ["connector"] },
  { heading: "The record and the state", commands: ["audit", "backup", "restore"] },
  { heading: "Around it", commands: ["help", "man", "completion", "wire"] },
];

export const EXAMPLES: readonly string[] = [
  "callgate demo  # see the idea in a minute",
  "callgate check --config callgate.toml  # is this config right, and what in it is dangerous?",
  "callgate serve --config callgate.toml  # run the broker",
  "callgate role files --socket run/files.sock --root trusted:/srv/docs",
  `callgate call read_file '{"path":"/srv/docs/a.txt"}' --socket run/agent.sock`,
  "callgate approvals watch --socket run/operator.sock",
  `callgate grants explain write_file '{"path":"/srv/docs/a.txt"}' --role agent`,
];

export const OPERATING_ROWS: readonly CommandRow[] = [
  ...RUN_ROWS,
  ...MODEL_ROWS,
  ...MCP_SERVE_ROWS,
  ...DAEMON_ROWS,
  ...APPROVAL_ROWS,
  ...CALL_ROWS,
  ...SESSION_ROWS,
  ...GRANT_ROWS,
  ...TOOL_ROWS,
  ...CONSOLE_ROWS,
  ...METRICS_ROWS,
  ...TAIL_ROWS,
  ...WIRE_ROWS,
];
