// `callgate init`: a config to begin with, for the roles that one names; of a service with systemd's units, which
// `callgate install` writes. Writes all of it or nothing, and never over what is there.

import { lstatSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { visibleLine } from "../base/display.ts";
import { UsageFault } from "./call.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { lengthOf } from "./connector_options.ts";
import { type Choice, type Program, readChoice } from "./init_choice.ts";
import { lookAtServers, takenNotes, takenText, takeOverFrom, unlooked } from "./init_mcp.ts";
import type { Looks } from "./init_mcp_grants.ts";
import { installFlags, nextSteps } from "./init_next.ts";
import { planOf } from "./init_plan.ts";
import { isMissing, type Planned, thereAlready, writePlan } from "./init_write.ts";
import type { ProcessGuard } from "./process_guard.ts";
import { type Dialogue, EXIT, type Terminal } from "./terminal.ts";

/** What init looks at on the machine. */
export interface InitHost {
  readonly uid: number;
  /** The interpreter, and the script that it runs. */
  readonly node: string;
  readonly script: string;
  /** Options of the interpreter: how it runs a source. */
  readonly nodeOptions: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** What keeps a foreign program away from us. */
  readonly guard: () => Promise<ProcessGuard>;
  /** Where relative paths begin. */
  readonly workingDirectory: string;
  /** `callgate install`, with its options. */
  readonly install: (terminal: Terminal, flags: Flags) => Promise<number>;
}

export function thisHost(guard: InitHost["guard"], install: InitHost["install"]): InitHost {
  return {
    ...{ guard, install, nodeOptions: process.execArgv, env: process.env, home: homedir() },
    uid: process.geteuid?.() ?? -1,
    node: process.execPath,
    script: process.argv[1] ?? "",
    workingDirectory: process.cwd(),
  };
}

/** What the kernel shows for a user that it can't map; the daemon takes it for nobody. */
const OVERFLOW_ID = 65_534;

export async function initialise(
  terminal: Dialogue,
  words: Words,
  flags: Flags,
  host: InitHost,
): Promise<number> {
  const file = textOf(flags, "fromMcp");
  const choice = readChoice(
    words,
    flags,
    host.uid,
    file === undefined ? undefined : takeOverFrom(file, host),
  );
  if (choice.kind === "here" && host.uid === OVERFLOW_ID)
    throw new UsageFault("user id 65534 stands for nobody in particular; run init as another user");
  if (choice.taken?.servers.length === 0) return refuseEmpty(terminal, choice.taken.leftOut);
  const programs = { program: programOf(host), ownProgram: [host.node, ...host.nodeOptions, host.script] };
  const planWith = (looks: Looks) => planOf(choice, { ...programs, looks });
  if (flags["print"] !== true) {
    const refused = refuse(terminal, choice, planWith(new Map()));
    if (refused !== undefined) return refused;
  }
  const looks = file === undefined ? new Map() : await looksOf(terminal, choice, flags, host, file);
  if (looks === undefined) return EXIT.failed;
  const plan = planWith(looks);
  if (flags["print"] === true) {
    terminal.out(plan.map((one) => printed(choice, one)).join(""));
    return EXIT.ok;
  }
  const written = writePlan(choice.directory, choice.kind === "here" ? 0o700 : 0o755, plan);
  if (!written.ok) {
    terminal.err(`callgate: ${visibleLine(written.fault, 500)}\n`);
    return EXIT.failed;
  }
  terminal.out(`${takenText(choice, looks)}${made(choice, plan)}`);
  const installs = flags["systemd"] === true;
  terminal.out(nextSteps(choice, { installs, workingDirectory: host.workingDirectory, file, ...programs }));
  for (const note of notesOf(choice, host)) terminal.err(`note: ${visibleLine(note, 500)}\n`);
  return installs ? host.install(terminal, { ...flags, ...installFlags(choice) }) : EXIT.ok;
}

function refuseEmpty(terminal: Dialogue, leftOut: readonly string[]): number {
  const lines = leftOut.map((line) => `  ${line}\n`).join("");
  const why = lines === "" ? "the file names no server" : "no server of the file can be taken over";
  terminal.err(`callgate: nothing was written: ${why}\n${lines}`);
  return EXIT.failed;
}

/** undefined: it was said why not. */
async function looksOf(
  terminal: Dialogue,
  choice: Choice,
  flags: Flags,
  { guard, env, home, workingDirectory }: InitHost,
  given: string,
): Promise<Looks | undefined> {
  const say = (line: string) => terminal.err(`callgate: ${line}\n`);
  if (flags["start"] === false) return unlooked(choice);
  const { sealDescriptors, forbidDumps } = await guard();
  if (!(await sealDescriptors())) {
    say("descriptors that were passed to this process would reach the servers: use --no-start");
    return undefined;
  }
  await forbidDumps();
  const file = resolve(workingDirectory, given);
  return lookAtServers(choice, { file, limitMs: lengthOf(flags, "startTimeout"), env, home, say });
}

/** Why nothing can be put into what is there. */
function wrongDirectory(path: string): string | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === false ? "is no directory" : undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "EACCES" ? "can't be looked at by this user" : undefined; // what else: writing says it
  }
}

/** In a clone the command is started in a way that only works there; what others start names where it is installed to. */
function programOf({ node, script }: InitHost): Program {
  return isSource(script) ? [INSTALLED] : [node, script];
}

const INSTALLED = "/usr/local/bin/callgate";

function isSource(script: string): boolean {
  return script === "" || script.endsWith(".ts");
}

function printed({ directory }: Choice, { path, mode, text }: Planned): string {
  const what = text === undefined ? "directory" : "file";
  const head = `#### ${what} ${join(directory, path)} (mode ${mode.toString(8).padStart(4, "0")})\n`;
  return text === undefined ? head : `${head}${text}\n`;
}

/** The exit status, where it was said that nothing can be written there. */
function refuse(terminal: Dialogue, { directory }: Choice, plan: readonly Planned[]): number | undefined {
  const wrong = wrongDirectory(directory);
  if (wrong !== undefined) {
    const shown = visibleLine(JSON.stringify(directory), 300);
    terminal.err(`callgate: nothing was written: ${shown} ${wrong}\n`);
    return EXIT.failed;
  }
  const there = thereAlready(directory, plan);
  if (there.length === 0) return undefined;
  const paths = there.map((path) => `  ${visibleLine(join(directory, path), 300)}\n`).join("");
  const hint = "Name another directory, move these away, or see with --print what would be written.";
  terminal.err(
    `callgate: nothing was written, since init writes over nothing and there is already\n${paths}${hint}\n`,
  );
  return EXIT.failed;
}

function made({ directory }: Choice, plan: readonly Planned[]): string {
  const told = plan.filter(({ about }) => about !== "");
  const width = Math.max(...told.map(({ path }) => path.length));
  const lines = told.map(({ path, about }) => `  ${path.padEnd(width)}  ${about}\n`);
  return `made in ${directory}:\n${lines.join("")}\n`;
}

function notesOf(choice: Choice, host: InitHost): readonly string[] {
  const { kind, directory } = choice;
  const open = firstOpen(directory, kind === "here" ? host.uid : 0);
  const place = open === undefined ? [] : [`the daemon will not start from here: ${open}`];
  const own = [...place, ...takenNotes(choice)];
  if (kind === "here") return [...own, ...missingRoots(choice).map(notServed)];
  if (isSource(host.script))
    return [
      ...own,
      `this callgate runs from its source, so what was written names ${INSTALLED}: install it there`,
    ];
  const program = firstOpen(host.script, 0) ?? firstOpen(host.node, 0);
  return program === undefined
    ? own
    : [...own, `whoever can change the program can change the gate: ${program}`];
}

function missingRoots({ providers }: Choice): readonly string[] {
  return providers.flatMap(({ roots }) => roots.map(({ path }) => path)).filter(isMissing);
}

function notServed(root: string): string {
  return `nothing is at ${root}: make that directory before the provider that serves it starts`;
}

/** The first on the way down to the path that somebody else than root and this user could change. */
function firstOpen(path: string, uid: number): string | undefined {
  const onTheWay: string[] = [path];
  for (let at = path; at !== dirname(at); at = dirname(at)) onTheWay.unshift(dirname(at));
  for (const at of onTheWay) {
    const stats = lstatSync(at, { throwIfNoEntry: false });
    if (stats === undefined || stats.isSymbolicLink()) continue; // who can change a link can change its directory
    if (stats.uid !== 0 && stats.uid !== uid) return `${at} belongs to uid ${stats.uid}`;
    const isSticky = (stats.mode & 0o1000) !== 0 && at !== path;
    if ((stats.mode & 0o022) !== 0 && !isSticky) return `${at} can be written by others (chmod go-w ${at})`;
  }
  return undefined;
}
