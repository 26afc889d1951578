// What `callgate init --from-mcp` writes beside the config: a file for each server with how it is reached, a script that
// starts a tryout, and the one entry that the client gets in place of its servers. Texts only. Invariant: commands,
// arguments, variables and headers of servers stand in the servers' own files, which nobody else may read, and nowhere else.

import { join } from "node:path";
import { shellWord } from "../base/shell_word.ts";
import { type Choice, OPERATOR_ROLE, type Program } from "./init_choice.ts";
import type { Planned } from "./init_write.ts";
import { type McpServerReach, serverFileText } from "./mcp_server_entry.ts";
import type { McpFileForm } from "./mcp_servers_file.ts";

const DIRECTORY = "mcp";
export const START_SCRIPT = "start.sh";
export const CLIENT_ENTRY = "client.json";
/** What the client calls it. */
const ENTRY_NAME = "callgate";

export function serverFile(role: string): string {
  return `${DIRECTORY}/${role}.json`;
}

/** In order; nothing without servers. `program`: how the client and the script start the command. */
export function mcpFiles(choice: Choice, program: Program): readonly Planned[] {
  const { kind, taken, providers } = choice;
  if (taken === undefined) return [];
  const files = providers.flatMap(({ role, server }): readonly Planned[] =>
    server === undefined
      ? []
      : [
          {
            path: serverFile(role),
            mode: 0o600,
            text: serverFileText(server.reach),
            about: `how ${role} is reached; may hold secrets`,
          },
        ],
  );
  const entry = `${JSON.stringify(clientEntry(choice, taken.form, program), undefined, 2)}\n`;
  return [
    { path: DIRECTORY, mode: 0o700, about: "" },
    ...files,
    ...(kind === "here" ? [script(choice, program)] : []),
    {
      path: CLIENT_ENTRY,
      mode: kind === "here" ? 0o600 : 0o644,
      text: entry,
      about: "for the client's file",
    },
  ];
}

function script({ providers }: Choice, program: Program): Planned {
  const servers = providers.flatMap(({ server }) => (server === undefined ? [] : [server]));
  const lines = servers.map(
    ({ role, reach }) =>
      `callgate mcp provide --socket run/${role}.sock --prefix ${role}. --server-file ${serverFile(role)}${commandWords(reach)} &`,
  );
  const text = `#!/bin/sh
# The broker and, for each MCP server, the role that runs it. The log of all is what this prints; ctrl-C ends all of it.
cd "$(dirname "$0")" || exit 1
mkdir -p -m 700 state
callgate() { exec ${program.map(shellWord).join(" ")} "$@"; }
roles=
finish() { trap '' INT TERM HUP; kill $roles "$broker" 2>/dev/null; wait; }
trap 'finish; exit 0' INT TERM HUP
callgate serve --config callgate.toml &
broker=$!
${lines.map((line) => `${line}\nroles="$roles $!"\n`).join("")}wait "$broker"
finish
`;
  return { path: START_SCRIPT, mode: 0o700, text, about: "starts the broker and the servers" };
}

/**
 * It sees nothing of other servers and of the broker, nor the script, which a shell goes on reading while it runs; and one
 * that does not say where it runs does not run among our files.
 */
function commandWords(reach: McpServerReach): string {
  if (reach.kind === "url") return "";
  return ` --hide mcp --hide state --hide callgate.toml --hide ${START_SCRIPT}${reach.cwd === undefined ? ' --cwd "$HOME"' : ""}`;
}

/** In the form that the client's file has. */
export function clientEntry(choice: Choice, form: McpFileForm, [command = "", ...args]: Program): object {
  const [caller = "agent"] = choice.callers;
  const directory = choice.kind === "here" ? join(choice.directory, "run") : "/run/callgate";
  const words = [...args, "mcp", "serve", "--socket", join(directory, `${caller}.sock`)];
  const entry = { [ENTRY_NAME]: inForm(form, command, words) };
  return form.split(".").reduceRight<object>((inner, name) => ({ [name]: inner }), entry);
}

function inForm(form: McpFileForm, command: string, args: readonly string[]): object {
  switch (form) {
    case "mcpServers":
      return { command, args };
    case "servers":
    case "mcp.servers":
      return { type: "stdio", command, args };
    case "context_servers":
      return { source: "custom", command, args, env: {} };
    case "mcp":
      return { type: "local", command: [command, ...args], enabled: true };
  }
}

/** The operator's socket, where commands of next steps go. */
export function operatorSocket({ kind, directory }: Choice): string {
  return kind === "here"
    ? join(directory, "run", `${OPERATOR_ROLE}.sock`)
    : `/run/callgate/${OPERATOR_ROLE}.sock`;
}
