// The row of `callgate mcp serve`.

import type { CommandRow } from "./command_row.ts";
import { wholeNumber } from "./command_row.ts";

export const MCP_SERVE_ROWS: readonly CommandRow[] = [
  {
    words: "mcp serve",
    about:
      "Serves the tools of a role to an MCP client: on standard input and output, or over HTTP on loopback.",
    reaches: "socket",
    run: async () => (await import("./mcp_serve.ts")).runMcpServe,
    options: [
      {
        flags: "--http <address:port>",
        about: "listens there for Streamable HTTP instead: 127.0.0.1:PORT or [::1]:PORT, at /mcp",
      },
      {
        flags: "--token-file <file>",
        about: "with --http: clients must send the token in this file as a bearer token",
      },
      {
        flags: "--wait <seconds>",
        about: "how long a request waits for a person, a little less than the client's own patience",
        parse: wholeNumber,
        wants: "It must be a whole number of seconds from 1.",
        fallback: { value: 55, shown: "55" },
      },
    ],
    examples: [
      "callgate mcp serve --socket run/agent.sock  # the command that a client's config file names",
      "callgate mcp serve --socket run/agent.sock --http 127.0.0.1:4711 --token-file mcp.token",
    ],
    help: `
A client sees the tools that the socket's role could be granted, as their owner described them or an operator has accepted
them; the broker's own (callgate.…) are not among them. What the policy denies comes back as a tool error that says why.

While a person is asked, a client of protocol 2026-07-28 is told to come again, one that wants to hear of progress is kept waiting, and
any other is told to call the tool again with the same arguments: that goes on waiting for the same call, and runs nothing twice.`,
  },
];
