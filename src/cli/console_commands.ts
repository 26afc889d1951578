// The rows of `callgate console`.

import type { CommandRow } from "./command_row.ts";

export const CONSOLE_ROWS: readonly CommandRow[] = [
  {
    words: "console",
    about:
      "Serves a page for this user's browser on this machine: questions, calls, sessions, grants, policy, audit, load.",
    run: async () => (await import("./console.ts")).runConsole,
    options: [
      {
        flags: "--port <number>",
        about: "where it listens; without it a free port is taken",
        parse: portOf,
        wants: "It must be a number from 1 to 65535, or 0 for a free port.",
      },
      {
        flags: "--address <address>",
        about: "which loopback address it listens on",
        choices: ["127.0.0.1", "::1"],
        fallback: { value: "127.0.0.1", shown: "127.0.0.1" },
      },
      {
        flags: "--user <user>",
        about: "whose browser is served, by name or uid, where the console itself runs as another user",
      },
      {
        flags: "--metrics-token-file <file>",
        about: "also serves /metrics for Prometheus, to whoever sends the token in this file",
      },
    ],
    examples: [
      "callgate console --socket run/operator.sock  # prints a link to open in the browser",
      "callgate console --socket run/operator.sock --port 9464 --metrics-token-file console.token  # figures too",
      "callgate console --socket /run/callgate/operator.sock --user alice  # as a service, for alice's browser",
    ],
    help: `
The link on standard output logs in once, within ten minutes; it is written nowhere else. Enter in the terminal (or SIGUSR2 to
the process) prints another. It opens no browser itself: the arguments of a program can be read by everybody.

Only processes of one user are served, by the kernel's word: this user, or the one of --user. The page asks the broker as
the role of the socket, and can do nothing that the role may not.`,
  },
];

function portOf(text: string): number | undefined {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 65_536;
  return port <= 65_535 ? port : undefined;
}
