// The rows of `callgate connector` and of `callgate role model`. The daemon and the check of its config are handed in:
// only program.ts knows the host.

import { type CommandRow, type Flags, type OptionRow, wholeNumber } from "./command_row.ts";
import { CONNECTOR_OPTIONS, lengthOption } from "./connector_options.ts";
import type { Terminal } from "./terminal.ts";

/** The daemon's part of these commands. */
export interface ConnectorHost {
  /** Until a signal ends it; resolves with the exit status. */
  serveConnector(configPath: string): Promise<number>;
  checkConnector(configPath: string): Promise<ConnectorReport>;
}

export interface ConnectorReport {
  /** With a mistake it would not start. */
  readonly ok: boolean;
  /** One line each, the file and the place in front. */
  readonly lines: readonly string[];
}

const WHOLE = "It must be a whole number from 1.";

const TIMEOUT_OPTION = lengthOption("--timeout <duration>", "how long a turn may take", 1200, "20m");

/** Each five minutes more are two questions more where an id is another turn's. */
function lookBackOption(seconds: number, shown: string): OptionRow {
  const about = "how long ago the same may have been asked, for its answer to be found";
  return lengthOption("--look-back <duration>", about, seconds, shown);
}

export function connectorRows(load: () => Promise<ConnectorHost>): readonly CommandRow[] {
  return [
    {
      words: "connector serve",
      about:
        "Runs the model connector: it holds a provider's key, and its callers get turns and never the key. Logs on standard output. SIGTERM drains, a second one ends at once.",
      reaches: false,
      run: async () => {
        const host = await load();
        return (terminal, _, flags) => serve(terminal, flags, host);
      },
      options: [
        { flags: "--config <file>", about: "the connector's config, in TOML", required: true },
        { flags: "--check", about: "only says whether it would start so, and why not" },
      ],
      exits: {
        0: "a signal ended it; --check: it would start",
        1: "--check: it would not start",
        70: "a fault of its own, which its log tells",
        78: "it could not start",
      },
      examples: [
        "callgate connector serve --config connector.toml --check",
        "callgate connector serve --config connector.toml",
      ],
    },
    CALL_ROW,
    {
      words: "connector secret",
      about: "A fresh connection secret: 32 random bytes as text.",
      reaches: false,
      run: async () => (await import("./connector_secret.ts")).connectorSecret,
      options: [{ flags: "--to <file>", about: "into this new file, which nobody else can read" }],
      exits: { 4: "the file is there already, or can't be written" },
      examples: ["callgate connector secret --to agent.secret"],
    },
  ];
}

async function serve(terminal: Terminal, flags: Flags, host: ConnectorHost): Promise<number> {
  const path = String(flags["config"]);
  if (flags["check"] !== true) return host.serveConnector(path);
  const { ok, lines } = await host.checkConnector(path);
  terminal.out(lines.map((line) => `${line}\n`).join(""));
  return ok ? 0 : 1;
}

const CALL_ROW: CommandRow = {
  words: "connector call [prompt]",
  about: "Takes one turn of a model, and prints what it says.",
  takes: { prompt: "what to ask; `-` reads it from standard input" },
  reaches: false,
  run: async () => (await import("./connector_call.ts")).connectorCall,
  options: [
    ...CONNECTOR_OPTIONS,
    { flags: "--model <name>", about: "the model, as the connector's config allows it" },
    {
      flags: "--instructions <text>",
      about: "what the model is told beforehand (default: Answer the user.)",
    },
    {
      flags: "--max-output-tokens <number>",
      about: "at most so many (default: 1024)",
      parse: wholeNumber,
      wants: WHOLE,
    },
    {
      flags: "--request <file>",
      about:
        "a whole request in its JSON view instead of a prompt, a model, instructions and a bound; `-`: standard input",
    },
    {
      flags: "--request-id <id>",
      about: "this very turn again: its answer is fetched, and the model does not run twice",
    },
    TIMEOUT_OPTION,
    lookBackOption(86_400, "1d"),
    { flags: "--json", about: "the whole result in its JSON view, on one line" },
  ],
  exits: {
    1: "no connection to the connector, or no answer that can be believed",
    3: "the connector's config does not allow it",
    4: "the turn failed, or was refused",
  },
  help: "What the model says goes to standard output, everything about it to standard error. Ctrl-C ends the waiting, not the turn: it says how to fetch the answer. A prompt that is an argument can be seen in the process list while it runs: `-` keeps it out of there.",
  examples: [
    "callgate connector call --caller me --secret-file me.secret --model gpt-oss 'Say hello'",
    "callgate connector call --caller me --secret-file me.secret --request turn.json --json | jq .disposition",
  ],
};

export const MODEL_ROWS: readonly CommandRow[] = [
  {
    words: "role model",
    about: "A provider of model turns: model.turn, by a connector that runs on this machine.",
    reaches: "socket",
    run: async () => (await import("./model.ts")).runModel,
    options: [
      ...CONNECTOR_OPTIONS,
      {
        flags: "--concurrency <number>",
        about: "turns at once, as the connector's max_concurrent_requests; others wait",
        parse: wholeNumber,
        wants: WHOLE,
        fallback: { value: 4, shown: "4" },
      },
      lengthOption("--wait <duration>", "how long a connector that is down is waited for", 60, "60s"),
      TIMEOUT_OPTION,
      lookBackOption(3600, "1h"),
      { flags: "--prefix <text>", about: "in front of the tool's name" },
      {
        flags: "--announce",
        about: "announces the tool (the role needs a grant for callgate.tools.announce)",
      },
    ],
    exits: {
      0: "a signal ended it",
      1: "no connection to the broker, or it was lost",
    },
    examples: ["callgate role model --socket run/model.sock --caller broker --secret-file broker.secret"],
  },
];
