// The rows of `callgate init`. What keeps a foreign program away from us is handed in: only program.ts knows the host.

import type { CommandRow, Flags } from "./command_row.ts";
import { lengthOption } from "./connector_options.ts";
import type { ReadConfig } from "./install.ts";
import type { ProcessGuard } from "./process_guard.ts";
import type { Terminal } from "./terminal.ts";

const INIT_HELP = `
There are two kinds of start:

A tryout (--here, the rule outside of /etc) has everything in the directory and is run by one user, who plays every
part: callgate init demo && callgate serve --config demo/callgate.toml

A service (--systemd, the rule below /etc) gives each role a user of its own. Its units, sockets, users and directories are written by
callgate install, which --systemd runs at once; without it init makes files in the directory, changes nothing else on the machine,
and says at the end how to go on.

--provider NAME=ROOT serves a directory with callgate role files; ROOT is as in its --root, and may be given again for the
same name. --provider NAME is a program of your own that announces its tools: it gets a role, and runs as callgate-program@NAME.

--from-mcp FILE takes over the MCP servers that a client's config file names (mcpServers, servers, context_servers, mcp): each
becomes a role, behind callgate mcp provide. The file itself stays as it is. How a server is reached, with its variables and
headers, goes into a file that only you can read. Each server is started once, as the client starts it every day, to see
its tools; what it says of them is written into the config as suggested grants, none of which is in force. At the end stands
the one entry that the client gets in place of its servers.

Nothing is written over. Either all is written or nothing.`;

export function initRows(
  guard: () => Promise<ProcessGuard>,
  read: () => Promise<ReadConfig>,
): readonly CommandRow[] {
  return [
    {
      words: "init [directory]",
      about: "Writes a config to begin with, for the roles that you name.",
      takes: { directory: "where, made if it is not there (default: callgate)" },
      reaches: false,
      run: async () => {
        const { initialise, thisHost } = await import("./init.ts");
        const host = thisHost(guard, (terminal, flags) => installed(terminal, flags, read));
        return (terminal, words, flags) => initialise(terminal, words, flags, host);
      },
      options: [
        {
          flags: "--caller <name[=user]>",
          about:
            "a role that calls tools (default: agent); of a service: the user who runs it, else one of its own",
          repeats: true,
        },
        {
          flags: "--provider <name[=root]>",
          about: "a role that provides tools: files of a directory, or a program of yours (default: files)",
          repeats: true,
        },
        {
          flags: "--operator <user>",
          about: "a user of this machine who keeps a service and answers questions",
          repeats: true,
        },
        {
          flags: "--from-mcp <file>",
          about: "takes over the MCP servers of a client's config file, which stays as it is",
        },
        { flags: "--no-start", about: "starts none of these servers: nothing is suggested for their tools" },
        lengthOption(
          "--start-timeout <duration>",
          "how long each of these servers may take to say its tools",
          60,
          "1m",
        ),
        { flags: "--here", about: "a tryout: all of it in the directory, by this user", excludes: "systemd" },
        {
          flags: "--systemd",
          about: "a service: each role a user of its own, and callgate install for it",
          excludes: "here",
        },
        { flags: "--print", about: "shows what would be written, and writes nothing" },
      ],
      examples: [
        "callgate init gate --from-mcp ~/.cursor/mcp.json  # what a client starts, behind the gate",
        "callgate init demo  # a tryout in ./demo",
        "callgate init /etc/callgate --systemd --operator alice  # a service, with an agent and a provider of files",
        "callgate init /etc/callgate --caller agent --provider files=trusted:/srv/docs --provider mail --operator alice",
      ],
      exits: { 4: "something is there already, could not be written, or there is no server to take over" },
      help: INIT_HELP,
    },
  ];
}

async function installed(terminal: Terminal, flags: Flags, read: () => Promise<ReadConfig>): Promise<number> {
  const [{ install }, { runCommand }, { thisInstallHost }] = await Promise.all([
    import("./install.ts"),
    import("./install_steps.ts"),
    import("./install_host.ts"),
  ]);
  return install(terminal, [], flags, { read: await read(), host: thisInstallHost(), run: runCommand });
}
