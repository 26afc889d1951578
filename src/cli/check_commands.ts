// The row of `callgate check`. How a config is loaded is handed in: only program.ts knows the host.

import type { LoadConfig } from "./check.ts";
import type { CommandRow, Flags } from "./command_row.ts";
import { plain } from "./paint.ts";
import { EXIT, type Terminal } from "./terminal.ts";
import { fitted } from "./text_table.ts";

const HELP = `
A way leads from a tool whose results count as untrusted to one that sends, spends or executes, without a person in
it. Ways go through stores that one role writes to and another reads, through providers that call in turn, and through results that
count as trusted. They are told from the grants alone: a condition may shut one, look at it. docs/policy.md says more.`;

export function checkRows(load: () => Promise<LoadConfig>): readonly CommandRow[] {
  return [
    {
      words: "check",
      about:
        "Lists a config's mistakes with their lines, warns about dangerous grants, explains what it lets through.",
      reaches: false,
      run: async () => (terminal, _, flags) => check(terminal, flags, load),
      options: [
        { flags: "--config <file>", about: "the config, in TOML", required: true },
        {
          flags: "--reach",
          about: "which role reaches which tool, before and after reading something untrusted",
        },
        { flags: "--paths", about: "which ways lead from untrusted content to an effect without a person" },
        {
          flags: "--graph <language>",
          about: "the same as a picture on standard output: callgate check … --graph dot | dot -Tsvg",
          choices: ["dot", "mermaid"],
        },
        {
          flags: "--sinks <effect>",
          about: "beside send, spend and execute, where a way ends",
          choices: ["write"],
        },
        { flags: "--json", about: "one JSON object; with --reach or --paths it has `reach`" },
      ],
      examples: [
        "callgate check --config callgate.toml",
        "callgate check --config callgate.toml --paths",
        "callgate check --config callgate.toml --graph dot | dot -Tsvg > policy.svg",
      ],
      exits: { 0: "no mistakes", 1: "the config has a mistake" },
      help: HELP,
    },
  ];
}

async function check(terminal: Terminal, flags: Flags, load: () => Promise<LoadConfig>): Promise<number> {
  const { config, reach, paths, graph, sinks, json } = flags as Flags & CheckFlags;
  if (json === true && graph !== undefined) {
    terminal.err("callgate: --graph and --json each want standard output for themselves; give one of them\n");
    return EXIT.usage;
  }
  const [{ checkConfig }, loadConfig] = await Promise.all([import("./check.ts"), load()]);
  const isTold = json !== true && graph === undefined;
  return checkConfig({
    path: config,
    json: json === true,
    reach: reach === true,
    paths: paths === true,
    graph,
    writes: sinks === "write",
    load: loadConfig,
    out: (text) => terminal.out(isTold ? fitted(text, terminal.columns) : text),
    err: (text) => terminal.err(text),
    paint: (graph === undefined ? terminal.paint : terminal.paintErr) ?? plain,
  });
}

interface CheckFlags {
  readonly config: string;
  readonly reach?: boolean;
  readonly paths?: boolean;
  readonly graph?: "dot" | "mermaid";
  readonly sinks?: "write";
}
