// The rows of `callgate metrics` and `callgate traces`.

import { secondsOf } from "../base/time_text.ts";
import { type CommandRow, WANTS_LENGTH } from "./command_row.ts";

export const METRICS_ROWS: readonly CommandRow[] = [
  {
    words: "metrics",
    about: "The broker's counts and load in Prometheus' text format. For operators.",
    run: async () => (await import("./metrics.ts")).showMetrics,
    options: [
      {
        flags: "--to <file>",
        about:
          "into this file, which is replaced as a whole (for node_exporter's textfile collector: NAME.prom)",
      },
      {
        flags: "--every <duration>",
        about: "goes on: again after each such time, until ctrl-C",
        parse: secondsOf,
        wants: WANTS_LENGTH,
      },
    ],
    examples: [
      "callgate metrics --socket run/operator.sock",
      "callgate metrics --to /var/lib/node_exporter/callgate.prom --every 15s",
      "callgate metrics --json  # the counts as the broker tells them",
    ],
    help: `Counts begin at zero when the broker starts. Where it can't be asked the file says \`callgate_up 0\` and nothing else. The
role of the socket must be an operator and be granted callgate.status.`,
  },
  {
    words: "traces",
    about:
      "Sends each call as an OpenTelemetry span to a collector, as the audit tells of it. For operators.",
    run: async () => (await import("./traces.ts")).sendTraces,
    options: [
      {
        flags: "--to <url>",
        about: "the collector, by OTLP over HTTP: without a path, /v1/traces",
        required: true,
      },
      {
        flags: "--position <file>",
        about: "remembers in this file how far it came, and goes on there the next time",
      },
      {
        flags: "--from <number>",
        about: "begins at this audit record; without it, with what comes from now on",
      },
      {
        flags: "--header <name=value>",
        about: "sent along; other users can see it in the process list",
        repeats: true,
      },
      { flags: "--header-file <file>", about: "headers that are secret: NAME: VALUE a line" },
      {
        flags: "--resource <name=value>",
        about: "said of the service, such as host.name=gate1 (service.name is callgate)",
        repeats: true,
      },
      {
        flags: "--every <duration>",
        about: "how often it looks for new records; without it, 2s",
        parse: secondsOf,
        wants: WANTS_LENGTH,
      },
    ],
    examples: [
      "callgate traces --to http://127.0.0.1:4318 --socket run/operator.sock",
      "callgate traces --to https://otel.example.org --header-file /etc/callgate/otlp-headers --position traces.json",
    ],
    help: `One span a call (execute_tool TOOL), from its decision to its outcome, by the semantic conventions for GenAI and MCP, with the
wait for a person and the provider's work as spans below it. Never arguments, contents or anybody's words. The trace id
is the first half of the SHA-256 of ["callgate","ROLE","SESSION","CALL"], written so.

While the collector is away nothing is lost: the audit is read no further until it is back. What the collector rejects for good is
dropped, counted and said. After a crash a span may be sent twice, with the same ids. Reads of the broker's own tools are no spans.`,
  },
];
