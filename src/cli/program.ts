// The command line: how rows (command_row.ts) become commands, and what joins them with the daemon, its config and
// its state. A command's own code is loaded only when it runs, and none of the others' for the daemon.

import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { visible } from "../base/display.ts";
import type { OfflineAudit } from "./audit.ts";
import type { BackupHost } from "./backup.ts";
import type { LoadConfig } from "./check.ts";
import { type CommandRow, type Flags, type OptionRow, reachOptions, type Words } from "./command_row.ts";
import type { Commands } from "./command_tree.ts";
import type { ConnectorHost } from "./connector_commands.ts";
import type { DoctorHost } from "./doctor.ts";
import type { ReadConfig } from "./install.ts";
import { packageVersion } from "./package_version.ts";
import { coloured, plain } from "./paint.ts";
import type { ProcessGuard } from "./process_guard.ts";
import { type Dialogue, EXIT, lookOf } from "./terminal.ts";

/** Runs one command line; resolves with the exit status. */
export async function runProgram(argv: readonly string[], terminal: Dialogue): Promise<number> {
  const run: Run = { status: EXIT.ok, path: "" };
  const program = bareProgram(terminal);
  if (isDaemon(argv)) addRow(program, SERVE_ROW.words, SERVE_ROW, terminal, run);
  else if (!(await addAll(argv, program, terminal, run))) return EXIT.usage;
  try {
    await program.parseAsync([...argv], { from: "user" });
    return run.status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    const { UsageFault } = await import("./call.ts");
    if (!(error instanceof UsageFault)) throw error;
    terminal.err(`callgate: ${error.message}\n${hint(run.path)}\n`);
    return EXIT.usage;
  }
}

/** What the command that runs leaves behind. */
interface Run {
  status: number;
  path: string;
}

/** What helps after wrong use. */
function hint(path: string, shows = "how it is used"): string {
  return `(callgate ${path === "" ? "" : `${path} `}--help shows ${shows})`;
}

const HELP = new Set(["-h", "--help"]);

function isDaemon(argv: readonly string[]): boolean {
  return argv[0] === "serve" && !argv.some((word) => HELP.has(word));
}

function bareProgram(terminal: Dialogue): Command {
  return new Command("callgate")
    .version(packageVersion(), "-V, --version")
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.err(text),
      outputError: (text, write) => write(`callgate: ${visible(text.replace(/^error: /, ""))}`),
      getOutHasColors: () => terminal.paint === coloured,
      getErrHasColors: () => terminal.paintErr === coloured,
    })
    .exitOverride()
    .enablePositionalOptions() // --version behind a command is that command's own
    .helpCommand(false)
    .showHelpAfterError(hint("", "the commands"));
}

const SERVE_ROW: CommandRow = {
  words: "serve",
  about:
    "Runs the broker: one Unix socket a role, logs on standard output. SIGHUP reloads, SIGTERM drains, a second one ends at once.",
  reaches: false,
  run: async () => {
    const { serve } = await import("../main.ts");
    return (_, __, flags) => serve(String(flags["config"]), packageVersion());
  },
  options: [{ flags: "--config <file>", about: "the config, in TOML", required: true }],
  exits: { 0: "a signal ended it", 70: "a fault of its own, which its log tells", 78: "it could not start" },
  examples: [
    "callgate serve --config callgate.toml",
    "callgate serve --config callgate.toml | callgate tail",
  ],
};

/** The host's part of `callgate check`. */
async function loadingConfig(): Promise<LoadConfig> {
  return (await import("../host/config_places.ts")).inspectConfig;
}

/** The host's part of `callgate audit`, which needs no broker. */
function offlineAudit(): Promise<OfflineAudit> {
  return import("../host/audit_offline.ts");
}

async function connectorHost(): Promise<ConnectorHost> {
  const [{ serveConnector }, { checkConnector }] = await Promise.all([
    import("../connector_main.ts"),
    import("../host/connector_check.ts"),
  ]);
  return { serveConnector, checkConnector };
}

/** The host's part of `callgate mcp provide` and `callgate init --from-mcp`. */
function processGuard(): Promise<ProcessGuard> {
  return import("../host/libc.ts");
}

function backupHost(): Promise<BackupHost> {
  return import("../host/backup_by_config.ts");
}

/** The host's part of `callgate doctor`. */
function doctorHost(): Promise<DoctorHost> {
  return import("../host/doctor.ts");
}

/** The host's part of `callgate install`. */
async function readingConfig(): Promise<ReadConfig> {
  return (await import("../host/install_config.ts")).readInstalledConfig;
}

/** Every command there is: its rows, and the tree that is made of them. */
export async function allCommands(): Promise<Commands & { readonly rows: readonly CommandRow[] }> {
  const [
    { auditRows },
    { backupRows },
    { checkRows },
    { commandTree },
    { connectorRows },
    { doctorRows },
    { initRows },
    { installRows },
    { manualRows },
    { mcpProvideRows },
    operating,
  ] = await Promise.all([
    import("./audit_commands.ts"),
    import("./backup_commands.ts"),
    import("./check_commands.ts"),
    import("./command_tree.ts"),
    import("./connector_commands.ts"),
    import("./doctor_commands.ts"),
    import("./init_commands.ts"),
    import("./install_commands.ts"),
    import("./manual_commands.ts"),
    import("./mcp_provide_commands.ts"),
    import("./operating_commands.ts"),
  ]);
  const { ABOUT, EXAMPLES, GROUPS, OPERATING_ROWS, SECTIONS } = operating;
  const rows: readonly CommandRow[] = [
    SERVE_ROW,
    ...checkRows(loadingConfig),
    ...OPERATING_ROWS,
    ...auditRows(offlineAudit),
    ...connectorRows(connectorHost),
    ...doctorRows(doctorHost),
    ...initRows(processGuard, readingConfig),
    ...installRows(readingConfig),
    ...mcpProvideRows(processGuard),
    ...backupRows(backupHost),
    ...manualRows(() => commands),
  ];
  const told = { about: ABOUT, groups: GROUPS, sections: SECTIONS, examples: EXAMPLES };
  const commands = { tree: commandTree(rows, told), sections: SECTIONS, version: packageVersion() };
  return { ...commands, rows };
}

/** False: there is no command in it, so it was told what there is. */
async function addAll(
  argv: readonly string[],
  program: Command,
  terminal: Dialogue,
  run: Run,
): Promise<boolean> {
  const [{ tree, sections, rows }, { briefHelp, helpText }, { nodeAt }] = await Promise.all([
    allCommands(),
    import("./help_text.ts"),
    import("./command_tree.ts"),
  ]);
  if (argv.length === 0) {
    const { paintErr: paint = plain, columns } = terminal;
    terminal.err(briefHelp(tree, sections, { paint, columns }));
    return false;
  }
  const look = { ...lookOf(terminal), paint: coloured }; // taken away again where there are none
  program.configureHelp({
    formatHelp: (command) => helpText(nodeAt(tree, wordsOf(command)) ?? tree, sections, look),
  });
  addRows(program, rows, terminal, run);
  return true;
}

/** `approvals`, `list` of that command. */
function wordsOf(command: Command): readonly string[] {
  return command.parent === null ? [] : [...wordsOf(command.parent), command.name()];
}

function addRows(program: Command, rows: readonly CommandRow[], terminal: Dialogue, run: Run): void {
  const groups = new Map<string, Command>();
  for (const row of rows) {
    const [first = "", second] = row.words.split(" ");
    const isGrouped = second !== undefined && !/^[<[]/.test(second);
    if (!isGrouped) {
      addRow(program, row.words, row, terminal, run);
      continue;
    }
    const group = groups.get(first) ?? program.command(first).showHelpAfterError(hint(first, "its commands"));
    groups.set(first, group);
    addRow(group, row.words.slice(first.length + 1), row, terminal, run);
  }
}

function addRow(parent: Command, words: string, row: CommandRow, terminal: Dialogue, run: Run): void {
  const command = parent.command(words, { hidden: row.hidden === true });
  const path = wordsOf(command).join(" ");
  command.showHelpAfterError(hint(path));
  for (const option of [...(row.options ?? []), ...reachOptions(row)]) command.addOption(optionOf(option));
  command.action(async (...given: unknown[]) => {
    const taken = given.slice(0, -2).flat() as Words; // then come the options and the command itself
    const flags = given.at(-2) as Flags;
    run.path = path;
    if ("run" in row) {
      run.status = await (await row.run())(terminal, taken, flags);
      return;
    }
    const [{ operate }, { inOptionWords }, view] = await Promise.all([
      import("./operate.ts"),
      import("./option_words.ts"),
      row.view?.(),
    ]);
    run.status = await operate(terminal, flags, row.tool, row.args(taken, flags), {
      view,
      nowMs: () => terminal.nowMs(),
      worded: (sentence) => inOptionWords(sentence, row.options ?? []),
    });
  });
}

function optionOf(row: OptionRow): Option {
  const option = new Option(row.flags, row.about).makeOptionMandatory(row.required === true);
  const { parse, wants, choices, fallback, excludes, repeats } = row;
  if (choices !== undefined) option.choices(choices);
  if (excludes !== undefined) option.conflicts(excludes);
  if (fallback !== undefined) option.default(fallback.value, fallback.shown);
  if (repeats === true) option.default([]).argParser<readonly string[]>((text, before) => [...before, text]);
  if (parse !== undefined) {
    option.argParser((text) => {
      const value = parse(text);
      if (value === undefined) throw new InvalidArgumentError(wants ?? "It is not understood.");
      return value;
    });
  }
  return option;
}
