// Confining a server: which words start it in namespaces of its own, and whether that can be done at all. Its processes see
// none but each other, and of the file system not what is covered; the network and all other files are as they are
// to the role's user. Invariant: no program of ours that runs with more than the server has heeds a variable of the
// server's, which could have it load or do something else.

import { statSync } from "node:fs";
import { resolve } from "node:path";
import { fault, ok, type Result } from "../../../base/faults.ts";
import { type Covers, coversOf, type HeldPaths, type Unhidden } from "./confinement_covers.ts";
import { CONFINEMENT_SCRIPT } from "./confinement_script.ts";
import type { Environment } from "./environment.ts";
import { refusal, systemProgram } from "./system_programs.ts";

/** What a server is kept from, beside every process that is not its own. */
export interface Confinement {
  /** Of the role; undefined where it has none by a path. */
  readonly socket: string | undefined;
  /** Files and directories. A file that is replaced comes into view again. */
  readonly hidden: readonly string[];
  /** What was hidden from the server when it ran before, which may have moved it. */
  readonly held?: HeldPaths | undefined;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Environment;
  readonly cwd?: string | undefined;
  /** Without one it is confined all the same, only that nothing more is hidden. "none": it runs like any child. */
  readonly confinement?: Confinement | "none" | undefined;
}

export interface ConfinedWords {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Environment;
  readonly covers: Covers;
}

/** In front of the names of the server's variables, until the last of our programs has given up all that it may. */
const UNHEEDED = "CALLGATE_FOR_";

/** The fault is a sentence for the owner; it may be another one at the next try. */
export function confinedWords(
  server: ServerCommand,
  { socket, hidden, held }: Confinement,
  uid: number,
): Result<ConfinedWords, Unhidden> {
  const covers = coversOf({ socket, paths: hidden, uid, held });
  if (!covers.ok) return covers;
  const { directories, files } = covers.value;
  const programs = foundPrograms();
  if (!programs.ok) return fault({ why: programs.fault, passes: false });
  const { setpriv, unshare, mount, sh, env, setsid } = programs.value;
  const namespaces = ["--user", "--map-current-user", "--keep-caps", "--mount", "--pid", "--fork"];
  const withoutPowers = ["--ambient-caps=-all", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"];
  const launcher = [
    ...[setpriv, ...withoutPowers, "--"],
    ...[env, "--ignore-environment", "--default-signal", `--chdir=${resolve(server.cwd ?? ".")}`],
    ...[`--split-string=${renamed(Object.keys(server.env))}`],
    ...[setsid, "--", server.command, ...server.args],
  ];
  // The kernel ends `unshare` when we end, and pid 1 when that does; nothing of theirs can be kept from ending.
  const args = [
    ...["--pdeathsig=KILL", "--", unshare, ...namespaces, "--kill-child=SIGKILL", "--"],
    ...[sh, "-c", CONFINEMENT_SCRIPT, "callgate-mcp-server"],
    ...[mount, ...directories, "--", ...files, "--", ...launcher],
  ];
  return ok({ file: setpriv, args, env: unheeded(server.env), covers: covers.value });
}

function unheeded(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [`${UNHEEDED}${name}`, value]));
}

/** For `env`, which puts the values in by itself: in its arguments everybody could read them. */
function renamed(names: readonly string[]): string {
  return names.map((name) => `${name}=\${${UNHEEDED}${name}}`).join(" ");
}

type Programs = Readonly<Record<"setpriv" | "unshare" | "mount" | "sh" | "env" | "setsid", string>>;

function foundPrograms(): Result<Programs> {
  const found: Record<string, string> = {};
  for (const name of ["setpriv", "unshare", "mount", "sh", "env", "setsid"]) {
    const path = systemProgram(name);
    if (path === undefined) return fault(`there is no ${name} here (it comes with util-linux or coreutils)`);
    found[name] = path;
  }
  return ok(found as Programs); // each was looked for just now
}

/** Why this command can't be run, as a system's error code; undefined: it can, as far as one sees. */
export function cannotRun({ command, env, cwd }: ServerCommand): string | undefined {
  const here = resolve(cwd ?? ".");
  const whereNot = statSync(here, { throwIfNoEntry: false });
  if (whereNot?.isDirectory() !== true) return "its --cwd is no directory";
  if (command.includes("/")) return refusal(resolve(here, command));
  const directories = (env["PATH"] ?? "").split(":");
  const refusals = directories.map((directory) => refusal(resolve(here, directory, command)));
  if (refusals.includes(undefined)) return undefined;
  return refusals.includes("EACCES") ? "EACCES" : "ENOENT";
}
