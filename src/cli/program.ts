// The command line: the commands that run something, and how the rows of the others (command_row.ts)
// become commands. A command's own code is loaded only when it runs.

import { readFileSync } from "node:fs";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { OfflineAudit } from "./audit.ts";
import type { BackupFlags, RestoreFlags } from "./backup.ts";
import type { CommandRow, Flags, OptionRow, Words } from "./command_row.ts";
import type { FilesFlags } from "./files.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

/** Runs one command line; resolves with the exit status. */
export async function runProgram(argv: readonly string[], terminal: Dialogue): Promise<number> {
  const run = { status: EXIT.ok as number };
  const program = await buildProgram(argv, terminal, run);
  try {
    await program.parseAsync([...argv], { from: "user" });
    return run.status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    const { UsageFault } = await import("./call.ts");
    if (!(error instanceof UsageFault)) throw error;
    terminal.err(`callgate: ${error.message}\n`);
    return EXIT.usage;
  }
}

type Finish = { status: number };

async function buildProgram(argv: readonly string[], terminal: Dialogue, run: Finish): Promise<Command> {
  const program = new Command("callgate")
    .description("The gate through which every tool call of an AI agent passes.")
    .version(packageVersion(), "-V, --version")
    .configureOutput({ writeOut: (text) => terminal.out(text), writeErr: (text) => terminal.err(text) })
    .exitOverride()
    .enablePositionalOptions() // --version behind a command is that command's own
    .showHelpAfterError("(callgate --help shows the commands)")
    .addHelpText("after", EXAMPLES);
  addDaemon(program, terminal, run);
  addCalls(program, terminal, run);
  if (argv[0] !== "serve") await addOperating(program, terminal, run); // the daemon needs none of their code
  addBackup(program, terminal, run);
  addWire(program, run);
  return program;
}

const EXAMPLES = `
Examples:
  callgate demo                                      see the idea in a minute
  callgate check --config callgate.toml              is this config right, and what in it is dangerous?
  callgate serve --config callgate.toml              run the broker
  callgate role files --socket run/files.sock --root trusted:/srv/docs
  callgate call read_file '{"path":"/srv/docs/a.txt"}' --socket run/agent.sock --session try
  callgate grants explain write_file '{"path":"/srv/docs/a.txt"}' --role agent --socket run/operator.sock
  callgate approvals watch --socket run/operator.sock

Exit status: 0 result, 1 no connection to the broker, 2 wrong use, 3 denied, 4 failed, 5 refused by a
person, 6 nobody answered in time. check: 1 where the config has a mistake. serve: 78 where it can't start.`;

function packageVersion(): string {
  for (const up of ["../../package.json", "../../../package.json"]) {
    try {
      const found = JSON.parse(readFileSync(new URL(up, import.meta.url), "utf8")) as {
        name?: string;
        version?: string;
      };
      if (found.name === "callgate" && found.version !== undefined) return found.version;
    } catch {
      // from source it is two levels up, compiled three
    }
  }
  return "unknown";
}

/** A command that connects to a broker. */
function connecting(command: Command): Command {
  return command
    .option("--socket <path>", "the role's socket (or CALLGATE_SOCKET in the environment)")
    .addOption(
      new Option("--fd <number>", "an inherited descriptor that is connected to the broker").conflicts(
        "socket",
      ),
    );
}

/** A command that asks the broker something. */
function reaching(command: Command, session: string | undefined): Command {
  return connecting(command)
    .option("--session <id>", "the session to speak in", session)
    .option("--json", "one JSON object a line, for programs");
}

function addBackup(program: Command, terminal: Dialogue, run: Finish): void {
  const load = () => Promise.all([import("./backup.ts"), import("../host/backup_by_config.ts")]);
  program
    .command("backup")
    .description("Copies the state directory into a new file, while the daemon runs or not.")
    .requiredOption("--config <file>", "the daemon's config, in TOML")
    .requiredOption("--to <file>", "where the backup goes")
    .option("--json", "one JSON object")
    .action(async (flags: BackupFlags) => {
      const [{ backup }, host] = await load();
      run.status = await backup(terminal, flags, host);
    });
  program
    .command("restore")
    .description("Puts a backup in place of the state, for a daemon that does not run; begins a new epoch.")
    .requiredOption("--config <file>", "the daemon's config, in TOML")
    .requiredOption("--from <file>", "the backup")
    .option("--replace", "also where there is a state already, which is kept aside")
    .option("--json", "one JSON object")
    .action(async (flags: RestoreFlags) => {
      const [{ restore }, host] = await load();
      run.status = await restore(terminal, flags, host);
    });
}

function addDaemon(program: Command, terminal: Dialogue, run: Finish): void {
  program
    .command("serve")
    .description(
      "Runs the broker: one Unix socket a role, logs on standard output. SIGHUP reloads, SIGTERM drains.",
    )
    .requiredOption("--config <file>", "the config, in TOML")
    .action(async ({ config }: { config: string }) => {
      run.status = await (await import("../main.ts")).serve(config);
    });
  program
    .command("check")
    .description("Lists a config's mistakes with their lines, and warns about dangerous grants.")
    .requiredOption("--config <file>", "the config, in TOML")
    .option("--json", "one JSON object")
    .action(async ({ config, json }: { config: string; json?: boolean }) => {
      const [{ checkConfig }, { inspectConfig }] = await Promise.all([
        import("./check.ts"),
        import("../host/config_places.ts"),
      ]);
      run.status = await checkConfig({
        path: config,
        json: json === true,
        load: inspectConfig,
        write: terminal.out,
      });
    });
  program
    .command("demo")
    .description(
      "Starts a broker, a files provider and an agent in a temporary directory and shows what gets through.",
    )
    .action(async () => {
      run.status = await (await import("./demo.ts")).demo(terminal);
    });
  program
    .command("tail")
    .description(
      "Makes logs readable: callgate serve … | callgate tail, or journalctl -o cat -fu callgate | callgate tail",
    )
    .action(async () => {
      run.status = await (await import("./tail.ts")).tail(terminal, process.stdin);
    });
  connecting(program.command("role").description("Runs a role's program.").command("files"))
    .description(
      "A provider of files: list_dir, read_file, write_file, stat, search_files, within its roots.",
    )
    .option(
      "--root <[options:]dir>",
      "a directory it serves, e.g. public,trusted:/srv/docs or rw:/srv/notes; may be given again. Options: public, internal (default), confidential or restricted; untrusted (default) or trusted; ro (default) or rw",
      collect,
      [],
    )
    .option("--prefix <text>", "in front of each tool's name")
    .option("--announce", "announces its tools (the role needs a grant for callgate.tools.announce)")
    .action(async (flags: FilesFlags) => {
      run.status = await (await import("./files.ts")).runFiles(terminal, flags);
    });
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

function addCalls(program: Command, terminal: Dialogue, run: Finish): void {
  reaching(program.command("call"), undefined)
    .description("Calls a tool and prints each message as it comes; a denial says why.")
    .argument("<tool>", "the tool's name")
    .argument("[arguments]", "one JSON object; `-` reads it from standard input", "{}")
    .option("--call <id>", "this very call again: it is joined or replayed, never run twice")
    .action(async (tool: string, args: string, flags: Flags) => {
      run.status = await (await import("./call.ts")).callTool(terminal, tool, args, {
        ...flags,
        session: flags.session ?? "cli",
      });
    });
}

/** The host's part of `callgate audit`, which needs no broker. */
function offlineAudit(): Promise<OfflineAudit> {
  return import("../host/audit_offline.ts");
}

async function addOperating(program: Command, terminal: Dialogue, run: Finish): Promise<void> {
  const [{ auditRows }, { GROUPS, OPERATING_ROWS }] = await Promise.all([
    import("./audit_commands.ts"),
    import("./operating_commands.ts"),
  ]);
  addRows(program, GROUPS, [...OPERATING_ROWS, ...auditRows(offlineAudit)], terminal, run);
}

function addRows(
  program: Command,
  about: Readonly<Record<string, string>>,
  rows: readonly CommandRow[],
  terminal: Dialogue,
  run: Finish,
): void {
  const groups = new Map<string, Command>();
  for (const row of rows) {
    const [first = "", second] = row.words.split(" ");
    const isGrouped = second !== undefined && !/^[<[]/.test(second);
    if (isGrouped && !groups.has(first))
      groups.set(first, program.command(first).description(about[first] ?? ""));
    const parent = groups.get(first) ?? program;
    const words = isGrouped ? row.words.slice(first.length + 1) : row.words;
    const command = parent.command(words);
    addRow(row.reaches === false ? command : reaching(command, "cli"), row, terminal, run);
  }
}

function addRow(command: Command, row: CommandRow, terminal: Dialogue, run: Finish): void {
  command.description(row.about);
  for (const option of row.options ?? []) command.addOption(optionOf(option));
  if (row.help !== undefined) command.addHelpText("after", row.help);
  command.action(async (...given: unknown[]) => {
    const words = given.slice(0, -2) as Words; // then come the options and the command itself
    const flags = given.at(-2) as Flags;
    if ("run" in row) {
      run.status = await (await row.run())(terminal, words, flags);
      return;
    }
    const { operate } = await import("./operate.ts");
    const view = await row.view?.();
    run.status = await operate(terminal, flags, row.tool, row.args(words, flags), view, () =>
      terminal.nowMs(),
    );
  });
}

function optionOf({ flags, about, parse, wants, choices, fallback, required }: OptionRow): Option {
  const option = new Option(flags, about).makeOptionMandatory(required === true);
  if (choices !== undefined) option.choices(choices);
  if (fallback !== undefined) option.default(fallback.value, fallback.shown);
  if (parse !== undefined) {
    option.argParser((text) => {
      const value = parse(text);
      if (value === undefined) throw new InvalidArgumentError(wants ?? "It is not understood.");
      return value;
    });
  }
  return option;
}

const WIRE_ERRORS = `
A line that is no such object is answered too: outcome error, detail says why; the exit status is then 1.`;

const WIRE_HELP = {
  decode: `
One line for each that is not empty, in order. The bytes are one stream, of which the first frame is read. Outcomes: ok,
closed, empty, too_large (detail: the length), bad_version (detail: the v), json, io. For long streams, instead of hex:
"recipe":{"prefix_hex":…,"fill_hex":…,"fill_count":…,"suffix_hex":…}.
${WIRE_ERRORS}`,
  encode: `
One line for each that is not empty, in order. In the envelope, id, call and expires are decimal strings, and
{"repeat":…,"count":…} may stand in place of a string. Outcomes: ok, too_large (detail: the length), json (outside the
grammar).
${WIRE_ERRORS}`,
} as const;

function addWire(program: Command, run: Finish): void {
  const wire = program
    .command("wire")
    .description("The codec, for people who write roles in other languages: JSON Lines in and out.");
  for (const mode of ["decode", "encode"] as const) {
    wire
      .command(mode)
      .description(
        mode === "decode"
          ? '{"name":…,"hex":…} to {"name","outcome","detail","reencoded_hex"}'
          : '{"name":…,"envelope":{…}} to {"name","outcome","detail","hex"}',
      )
      .addHelpText("after", WIRE_HELP[mode])
      .action(async () => {
        run.status = await (await import("./wire.ts")).runWire(mode, process.stdin, process.stdout);
      });
  }
}
