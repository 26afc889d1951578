// The rows of the commands that run something for a role: a call, a role's program, the demo.

import { type CommandRow, textOf } from "./command_row.ts";

export const RUN_ROWS: readonly CommandRow[] = [
  {
    words: "demo",
    about:
      "Shows the idea in a minute. Starts a broker, a files provider and an agent in a temporary directory and shows what gets through; leaves nothing behind.",
    reaches: false,
    run: async () => {
      const { demo } = await import("./demo.ts");
      return (terminal) => demo(terminal);
    },
    examples: ["callgate demo"],
  },
  {
    words: "call <tool> [arguments]",
    about: "Calls a tool and prints each message as it comes. A denial says why.",
    takes: {
      tool: "the tool's name",
      arguments: "one JSON object; `-` reads it from standard input; without it: {}",
    },
    run: async () => {
      const { callTool } = await import("./call.ts");
      return (terminal, [tool = "", args], flags) =>
        callTool(terminal, tool, args, { ...flags, call: textOf(flags, "call") });
    },
    options: [
      { flags: "--call <id>", about: "this very call again: it is joined or replayed, never run twice" },
    ],
    help: "The content goes to standard output, everything about it to standard error. Ctrl-C ends the waiting, not the call: it says how to come back to it.",
    examples: [
      `callgate call read_file '{"path":"/srv/docs/a.txt"}' --socket run/agent.sock --session try`,
      "callgate call list_dir - < arguments.json  # the arguments from a file",
      "callgate call callgate.tools.list --json | jq  # the broker's own tools are called like others",
    ],
  },
  {
    words: "role files",
    about: "A provider of files: list_dir, read_file, write_file, stat, search_files, within its roots.",
    reaches: "socket",
    run: async () => {
      const { runFiles } = await import("./files.ts");
      return (terminal, _, flags) => {
        const { root, announce } = flags;
        return runFiles(terminal, {
          ...flags,
          root: Array.isArray(root) ? root : [],
          prefix: textOf(flags, "prefix"),
          announce: announce === true,
        });
      };
    },
    options: [
      {
        flags: "--root <[options:]dir>",
        about:
          "a directory it serves, e.g. public,trusted:/srv/docs or rw:/srv/notes; may be given again. Options: public, internal (default), confidential or restricted; untrusted (default) or trusted; ro (default) or rw",
        repeats: true,
      },
      { flags: "--prefix <text>", about: "in front of each tool's name" },
      {
        flags: "--announce",
        about: "announces its tools (the role needs a grant for callgate.tools.announce)",
      },
    ],
    exits: {
      0: "a signal ended it",
      1: "no connection to the broker, it was lost, or a root can't be served",
    },
    examples: [
      "callgate role files --socket run/files.sock --root trusted:/srv/docs",
      "callgate role files --socket run/files.sock --root trusted,rw:/srv/notes --root /srv/inbox",
    ],
  },
];
