// `callgate init`: a config to begin with, and what systemd needs for the roles that one names. Writes all of
// it or nothing, and never over what is there.

import { lstatSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { visibleLine } from "../base/display.ts";
import { UsageFault } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { type Choice, readChoice } from "./init_choice.ts";
import { nextSteps } from "./init_next.ts";
import { type Planned, planOf } from "./init_plan.ts";
import type { Program } from "./init_units.ts";
import { isMissing, thereAlready, writePlan } from "./init_write.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

/** What init looks at on the machine. */
export interface InitHost {
  readonly uid: number;
  /** The interpreter, and the script that it runs. */
  readonly node: string;
  readonly script: string;
  /** Where relative paths begin. */
  readonly workingDirectory: string;
  /** The text of /etc/passwd. */
  readonly passwd: () => string;
}

export function thisHost(): InitHost {
  return {
    uid: process.geteuid?.() ?? -1,
    node: process.execPath,
    script: process.argv[1] ?? "",
    workingDirectory: process.cwd(),
    passwd: () => readFileSync("/etc/passwd", "utf8"),
  };
}

/** What the kernel shows for a user that it can't map; the daemon takes it for nobody. */
const OVERFLOW_ID = 65_534;

export async function initialise(
  terminal: Dialogue,
  words: Words,
  flags: Flags,
  host: InitHost = thisHost(),
): Promise<number> {
  const choice = readChoice(words, flags, host.uid);
  if (choice.kind === "here" && host.uid === OVERFLOW_ID)
    throw new UsageFault("user id 65534 stands for nobody in particular; run init as another user");
  const users = namesIn(host.passwd);
  const isUser = (name: string) => users.has(name);
  const plan = planOf(choice, { program: programOf(host), isMissing, isUser });
  if (flags["print"] === true) {
    terminal.out(plan.map((one) => printed(choice, one)).join(""));
    return EXIT.ok;
  }
  if (isNoDirectory(choice.directory)) {
    terminal.err(
      `callgate: nothing was written: ${visibleLine(JSON.stringify(choice.directory), 300)} is no directory\n`,
    );
    return EXIT.failed;
  }
  const there = thereAlready(choice.directory, plan);
  if (there.length > 0) return refuse(terminal, choice, there);
  const written = writePlan(choice.directory, choice.kind === "here" ? 0o700 : 0o755, plan);
  if (!written.ok) {
    terminal.err(`callgate: ${visibleLine(written.fault, 500)}\n`);
    return EXIT.failed;
  }
  terminal.out(made(choice, plan));
  terminal.out(nextSteps(choice, { isUser, workingDirectory: host.workingDirectory }));
  for (const note of notesOf(choice, host)) terminal.err(`note: ${visibleLine(note, 500)}\n`);
  return EXIT.ok;
}

/** Something that nothing can be put into; what can't be looked at is told of by the writing. */
function isNoDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;
  } catch {
    return false;
  }
}

function namesIn(passwd: () => string): ReadonlySet<string> {
  try {
    return new Set(
      passwd()
        .split("\n")
        .map((line) => line.split(":")[0] ?? ""),
    );
  } catch {
    return new Set(); // each is then told of as missing, which can be seen to be wrong
  }
}

/** In a clone the command is started in a way that only works there; a unit names where it is installed to. */
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

function refuse(terminal: Dialogue, { directory }: Choice, there: readonly string[]): number {
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
  if (kind === "here") return [...place, ...missingRoots(choice).map(notServed)];
  if (isSource(host.script))
    return [...place, `this callgate runs from its source, so the units name ${INSTALLED}: install it there`];
  const program = firstOpen(host.script, 0) ?? firstOpen(host.node, 0);
  return program === undefined
    ? place
    : [...place, `whoever can change the program can change the gate: ${program}`];
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
