// The command line: which commands there are and what each takes. A command's own code is loaded
// only when it runs.

import { readFileSync } from "node:fs";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { Reach } from "./call.ts";
import type { FilesFlags } from "./files.ts";
import { EXIT, type Terminal } from "./terminal.ts";

type Flags = Reach & Readonly<Record<string, string | number | boolean | undefined>>;

/** Runs one command line; resolves with the exit status. */
export async function runProgram(argv: readonly string[], terminal: Terminal): Promise<number> {
  const run = { status: EXIT.ok as number };
  const program = buildProgram(terminal, run);
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

function buildProgram(terminal: Terminal, run: Finish): Command {
  const program = new Command("callgate")
    .description("The gate through which every tool call of an AI agent passes.")
    .version(packageVersion(), "-V, --version")
    .configureOutput({ writeOut: (text) => terminal.out(text), writeErr: (text) => terminal.err(text) })
    .exitOverride()
    .showHelpAfterError("(callgate --help shows the commands)")
    .addHelpText("after", EXAMPLES);
  addDaemon(program, terminal, run);
  addCalls(program, terminal, run);
  addOperating(program, terminal, run);
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

Exit status: 0 result, 1 no connection to the broker, 2 wrong use, 3 denied, 4 failed, 5 refused or
expired at a human's. check: 1 where the config has a mistake. serve: 78 where it can't start.`;

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

function addDaemon(program: Command, terminal: Terminal, run: Finish): void {
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
      const [{ checkConfig }, { loadConfig }] = await Promise.all([
        import("./check.ts"),
        import("../host/config.ts"),
      ]);
      run.status = await checkConfig({
        path: config,
        json: json === true,
        load: loadConfig,
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

function seconds(given: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(given)) return Number(given);
  throw new InvalidArgumentError("It must be a number of seconds.");
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

function addCalls(program: Command, terminal: Terminal, run: Finish): void {
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

function addOperating(program: Command, terminal: Terminal, run: Finish): void {
  const operating = (
    parent: Command,
    name: string,
    about: string,
    tool: string,
    args: (given: (string | undefined)[], flags: Flags) => object,
  ) =>
    reaching(parent.command(name), "cli")
      .description(about)
      .action(async (...given: unknown[]) => {
        const flags = given.at(-2) as Flags;
        const [{ operate, fields }, { explanation }] = await Promise.all([
          import("./operate.ts"),
          import("./explanation.ts"),
        ]);
        run.status = await operate(
          terminal,
          flags,
          tool,
          args(given.slice(0, -2) as (string | undefined)[], flags) as Record<string, unknown>,
          tool === "callgate.grants.explain" ? explanation : fields,
        );
      });

  operating(program, "status", "How the broker is.", "callgate.status", () => ({}));
  operating(
    program,
    "reload",
    "Reads the config again; a bad one changes nothing.",
    "callgate.reload",
    () => ({}),
  );
  operating(
    program,
    "freeze <role>",
    "Stops a role, or one session of it, at once.",
    "callgate.freeze",
    ([role], flags) => ({
      role,
      session: flags["of"],
      frozen: flags["thaw"] !== true,
    }),
  )
    .option("--of <session>", "only this session of the role")
    .option("--thaw", "let it go on");

  const tools = program.command("tools").description("Tools and announced definitions.");
  operating(
    tools,
    "list",
    "The tools that this role could be granted.",
    "callgate.tools.list",
    (_, flags) => ({ prefix: flags["prefix"] }),
  ).option("--prefix <text>", "only names that begin so");
  operating(
    tools,
    "diff <tool>",
    "An announced definition beside the pinned one.",
    "callgate.tools.diff",
    ([tool]) => ({ tool }),
  );
  operating(
    tools,
    "accept <tool> <digest>",
    "Puts that very definition into service.",
    "callgate.tools.accept",
    ([tool, digest]) => ({ tool, digest }),
  );

  const sessions = program.command("sessions").description("Sessions.");
  operating(
    sessions,
    "open <role> <id>",
    "Opens a session for a role.",
    "callgate.sessions.open",
    ([role, session], flags) => ({
      role,
      session,
      request: flags["request"],
      expires_in_seconds: flags["expires"],
    }),
  )
    .option("--request <text>", "the user's own words")
    .addOption(new Option("--expires <seconds>", "how long it lives").default(3600).argParser(seconds));
  operating(
    sessions,
    "show [id]",
    "A session's state, taint and what raised it.",
    "callgate.sessions.show",
    ([session], flags) => ({ session, role: flags["role"] }),
  ).option("--role <role>", "whose session");
  operating(sessions, "close <id>", "Ends a session.", "callgate.sessions.close", ([session], flags) => ({
    session,
    role: flags["role"],
  })).option("--role <role>", "whose session");

  const grants = program.command("grants").description("Grants and decisions.");
  operating(
    grants,
    "list",
    "The grants of this role; an operator's: all.",
    "callgate.grants.list",
    (_, flags) => ({ role: flags["role"] }),
  ).option("--role <role>", "whose grants");
  operating(
    grants,
    "explain <tool> [arguments]",
    "What would be decided, and why, grant by grant. Runs nothing.",
    "callgate.grants.explain",
    ([tool, args], flags) => ({
      tool,
      arguments: args,
      role: flags["role"],
      session: flags["of"],
      taint_class: flags["taintClass"],
      taint_untrusted: flags["untrusted"],
    }),
  )
    .option("--role <role>", "whose call")
    .option("--of <session>", "in which session")
    .option("--taint-class <class>", "as if the session's class were this")
    .option("--untrusted", "as if the session had read something untrusted");

  const calls = program.command("calls").description("Single calls.");
  operating(calls, "why <call>", "Why a call was denied.", "callgate.calls.why", ([call], flags) => ({
    call,
    session: flags["of"] ?? flags.session,
    role: flags["role"],
  }))
    .option("--role <role>", "whose call")
    .option("--of <session>", "in which session");
  operating(calls, "cancel <call>", "Ends a running call.", "callgate.calls.cancel", ([call], flags) => ({
    call,
    session: flags["of"] ?? flags.session,
    role: flags["role"],
  }))
    .option("--role <role>", "whose call")
    .option("--of <session>", "in which session");
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
