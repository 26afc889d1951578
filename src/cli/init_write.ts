// Writes what `callgate init` has planned, or nothing of it. Invariant: what is there already is never
// written to, not through a link either; after a failure nothing that was made is left.

import {
  closeSync,
  constants,
  fchmodSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";

export interface Planned {
  readonly path: string;
  readonly mode: number;
  /** undefined: a directory. */
  readonly text?: string;
  /** What it is, in a few words. */
  readonly about: string;
}

/** Of the planned paths, those where something is already. */
export function thereAlready(directory: string, plan: readonly Planned[]): readonly string[] {
  return plan.map(({ path }) => path).filter((path) => !isMissing(join(directory, path)));
}

export function isMissing(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false; // not ours to see, or not reachable: what it is, nobody may overwrite
  }
}

/** Synchronous, so that no signal comes in between. `mode`: of the directory itself, where it is made. */
export function writePlan(directory: string, mode: number, plan: readonly Planned[]): Result<void> {
  const undo: (() => void)[] = [];
  try {
    for (const path of missingAbove(directory)) make(path, mode, undo);
    for (const { path, mode: own, text } of plan) {
      if (text === undefined) make(join(directory, path), own, undo);
      else write(join(directory, path), own, text, undo);
    }
    return ok(undefined);
  } catch (error) {
    for (const action of undo.reverse()) quietly(action);
    return fault(`nothing was written: ${sentence(error)}`);
  }
}

/** One thing that stays must not keep the others. */
function quietly(action: () => void): void {
  try {
    action();
  } catch {
    // somebody else has put something there, or taken it away
  }
}

/** The directory and those above it that are not there, from above. */
function missingAbove(directory: string): readonly string[] {
  const missing: string[] = [];
  for (let path = directory; isMissing(path); path = dirname(path)) missing.unshift(path);
  return missing;
}

function make(path: string, mode: number, undo: (() => void)[]): void {
  mkdirSync(path, { mode });
  undo.push(() => rmdirSync(path));
  within(openSync(path, DIRECTORY), (made) => fchmodSync(made, mode)); // whatever the umask is
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

function write(path: string, mode: number, text: string, undo: (() => void)[]): void {
  const made = openSync(path, "wx", mode);
  undo.push(() => unlinkSync(path));
  within(made, () => {
    writeFileSync(made, text);
    fchmodSync(made, mode);
  });
}

/** By what was opened, never by its name again: whoever may write to the directory could have put a link there meanwhile. */
function within(opened: number, action: (opened: number) => void): void {
  try {
    action(opened);
  } finally {
    closeSync(opened);
  }
}

function sentence(error: unknown): string {
  const { code, path } = error as NodeJS.ErrnoException;
  const where = path === undefined ? "" : ` ${JSON.stringify(path)}`;
  if (code === "EACCES" || code === "EPERM" || code === "EROFS")
    return `${where.trim()} can't be written here by this user`;
  if (code === "ENOTDIR" || code === "EEXIST") return `something else is at${where}`;
  if (code === "ENOSPC" || code === "EDQUOT") return "the disk is full";
  if (code === "ENAMETOOLONG") return "the directory's name is too long";
  return `${typeof code === "string" ? code : "an unknown fault"}${where === "" ? "" : ` at${where}`}`;
}
