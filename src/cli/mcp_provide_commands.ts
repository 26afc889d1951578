// The row of `callgate mcp provide`. What keeps the server away from us is handed in: only program.ts knows the
// host.

import { type CommandRow, wholeNumber } from "./command_row.ts";
import { lengthOption } from "./connector_options.ts";
import type { ProcessGuard } from "./process_guard.ts";

export function mcpProvideRows(load: () => Promise<ProcessGuard>): readonly CommandRow[] {
  return [
    {
      words: "mcp provide [command...]",
      about:
        "An MCP server's tools as tools of the broker: of a server that is run here, or of one with a URL.",
      takes: { command: "the server's command and its arguments, after --" },
      reaches: "socket",
      run: async () => {
        const { runMcpProvide } = await import("./mcp_provide.ts");
        return async (terminal, words, flags) => runMcpProvide(terminal, words, flags, await load());
      },
      options: [
        { flags: "--url <url>", about: "a server over Streamable HTTP, instead of a command" },
        {
          flags: "--header-file <file>",
          about: "headers for that server, a `Name: value` a line; nobody else may read the file",
        },
        {
          flags: "--server-file <file>",
          about:
            "instead of a command or --url: a file with the server's entry as clients have it, in JSON; nobody else may read it",
        },
        {
          flags: "--prefix <text>",
          about: "in front of every tool's name, as `provides` of the role has it: fs.",
        },
        {
          flags: "--env <variable>",
          about:
            "a variable for the command: NAME (as it is here) or NAME=VALUE; PATH and HOME it has always",
          repeats: true,
        },
        { flags: "--cwd <directory>", about: "where the command runs (else here)" },
        {
          flags: "--hide <path>",
          about:
            "a directory or file that the command is not to see, beside the socket's directory: the broker's state and config, keys",
          repeats: true,
        },
        {
          flags: "--unconfined",
          about: "run the command as it is: a hostile one can then reach what this user can",
        },
        {
          flags: "--concurrency <number>",
          about: "calls at the server at once; others wait",
          parse: wholeNumber,
          wants: "It must be a whole number from 1.",
          fallback: { value: 64, shown: "64" },
        },
        lengthOption(
          "--timeout <duration>",
          "how long a call may be without an answer or progress",
          600,
          "10m",
        ),
        lengthOption("--total-timeout <duration>", "how long a call may take in all", 86_400, "1d"),
        lengthOption(
          "--start-timeout <duration>",
          "how long each step of the server's start may take",
          30,
          "30s",
        ),
        {
          flags: "--unchecked-schemas",
          about:
            "tools whose schema the broker refuses are announced without one: nothing checks their arguments then",
        },
      ],
      exits: {
        0: "a signal ended it",
        1: "no connection to the broker, or it was lost",
        4: "the server can't be started, or the broker lets this role announce nothing",
      },
      help: "The role needs `provides` with the prefix and a grant for callgate.tools.announce; give it `connections = 1`, and a role of its own for each server. What a server has announced is out of service until an operator accepts it (callgate tools diff, accept) or the config names it. The server runs in namespaces of its own, without capabilities: it sees no process but its own, the directory of the role's socket is empty for it, and it gets none of our descriptors and no variable that it was not given; whatever it starts ends with it and with us. Where this user may not make namespaces it is not started, unless with --unconfined. The network and the files of this user are open to it either way: a user of its own for each server is what keeps it from them.",
      examples: [
        "callgate mcp provide --socket run/fs.sock --prefix fs. -- npx -y @modelcontextprotocol/server-filesystem /srv/docs",
        "callgate mcp provide --socket run/issues.sock --prefix issues. --url https://mcp.example/mcp --header-file issues.headers",
        "callgate mcp provide --socket run/fs.sock --prefix fs. --server-file mcp/fs.json  # as callgate init --from-mcp writes it",
      ],
    },
  ];
}
