// Whether a path can be replaced or written by somebody else: the walk from / down to the sockets'
// directory, the config file, the state directory. Symbolic links are followed by hand, so that
// the directories which hold a link are checked as well as those of its target.
//
// Invariant: the walk goes downwards. What has been passed can be changed by root and by us only,
// so an answer stays true after it was given.

import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { dirname, join, resolve } from "node:path";

import { fault, ok, type Result } from "../base/faults.ts";

export const PATH_FAULT_CODES = [
  "not_plain",
  "too_long",
  "missing",
  "unreadable",
  "too_many_links",
  "not_a_directory",
  "not_a_file",
  "not_a_socket",
  "foreign_owner",
  "open_to_others",
  "held_by_another",
  "not_ours_to_set",
] as const;
export type PathFaultCode = (typeof PATH_FAULT_CODES)[number];

/** For the owner: which path, what is wrong with it, and what would be right. */
export interface PathFault {
  readonly code: PathFaultCode;
  readonly path: string;
  readonly sentence: string;
}

/** `what` follows the quoted path: "is …; do …". */
export function pathFault(code: PathFaultCode, path: string, what: string): Result<never, PathFault> {
  return fault({ code, path, sentence: `${JSON.stringify(path)} ${what}` });
}

const LINKS_MAX = 40;
const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * A directory in which only root and `uid` can create, rename or remove. Above it a sticky
 * directory (/tmp) will do where the next component is root's or ours; it itself may not be one.
 */
export function checkDirectory(path: string, uid: number): Result<void, PathFault> {
  const end = walk(path, uid);
  if (!end.ok) return end;
  if (!end.value.stats.isDirectory()) return pathFault("not_a_directory", path, "is not a directory.");
  return checkClosed(end.value);
}

/** A regular file that only root and `uid` can write or replace. */
export function checkFile(path: string, uid: number): Result<void, PathFault> {
  const end = walk(path, uid);
  if (!end.ok) return end;
  if (!end.value.stats.isFile()) return pathFault("not_a_file", path, "is not a regular file.");
  return checkClosed(end.value);
}

/** A place on the walk: its physical path (no links in it) and what is there. */
interface Place {
  readonly path: string;
  readonly stats: Stats;
}

function walk(path: string, uid: number): Result<Place, PathFault> {
  if (path !== resolve(path) || path.includes("\0")) {
    return pathFault(
      "not_plain",
      path,
      "must be an absolute path without `.`, `..`, `//` or a `/` at its end.",
    );
  }
  const pending = path.split("/");
  let at = look("/");
  let links = 0;
  while (at.ok) {
    const holder = checkHolder(at.value, uid);
    if (!holder.ok) return holder;
    const name = nextName(pending);
    if (name === undefined) return at;
    const entered = enter(at.value, name, uid);
    if (!entered.ok || !entered.value.stats.isSymbolicLink()) {
      at = entered;
      continue;
    }
    links += 1;
    if (links > LINKS_MAX) return pathFault("too_many_links", path, "goes through too many symbolic links.");
    const target = readLink(entered.value.path);
    if (!target.ok) return target;
    pending.unshift(...target.value.split("/"));
    if (target.value.startsWith("/")) at = look("/");
  }
  return at;
}

function nextName(pending: string[]): string | undefined {
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    if (name !== "" && name !== ".") return name;
  }
  return undefined;
}

function enter(at: Place, name: string, uid: number): Result<Place, PathFault> {
  if (!at.stats.isDirectory()) return pathFault("not_a_directory", at.path, "is not a directory.");
  if (name === "..") return look(dirname(at.path));
  const next = look(join(at.path, name));
  if (!next.ok) return next;
  // In a sticky directory the entry's owner may replace it, and everybody may have made it.
  if (isOpen(at.stats) && !isTrusted(next.value.stats, uid)) return foreignOwner(next.value, uid);
  return next;
}

/** What everything on the way must satisfy: root's or ours; written by others only if sticky. */
function checkHolder(at: Place, uid: number): Result<void, PathFault> {
  if (!isTrusted(at.stats, uid)) return foreignOwner(at, uid);
  if (at.stats.isDirectory() && (at.stats.mode & STICKY) !== 0) return ok(undefined);
  return checkClosed(at);
}

function checkClosed(at: Place): Result<void, PathFault> {
  if (!isOpen(at.stats)) return ok(undefined);
  const mode = (at.stats.mode & 0o7777).toString(8).padStart(4, "0");
  const remedy = `chmod go-w ${JSON.stringify(at.path)}`;
  return pathFault(
    "open_to_others",
    at.path,
    `can be written by others than its owner (mode ${mode}): ${remedy}`,
  );
}

function foreignOwner(at: Place, uid: number): Result<never, PathFault> {
  const wanted = uid === 0 ? "root" : `root or uid ${uid}`;
  const remedy = `chown root ${JSON.stringify(at.path)}`;
  return pathFault("foreign_owner", at.path, `belongs to uid ${at.stats.uid}, not to ${wanted}: ${remedy}`);
}

function isTrusted(stats: Stats, uid: number): boolean {
  return stats.uid === 0 || stats.uid === uid;
}

/** Group bits are also the mask of an access list, so this sees writers who are named there. */
function isOpen(stats: Stats): boolean {
  return (stats.mode & WRITABLE_BY_OTHERS) !== 0;
}

function look(path: string): Result<Place, PathFault> {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats === undefined ? pathFault("missing", path, "does not exist.") : ok({ path, stats });
  } catch (error) {
    return pathFault("unreadable", path, `cannot be examined (${errnoCode(error)}).`);
  }
}

function readLink(path: string): Result<string, PathFault> {
  try {
    return ok(readlinkSync(path));
  } catch (error) {
    return pathFault("unreadable", path, `cannot be examined (${errnoCode(error)}).`);
  }
}

/** The symbolic name of a system error (`EACCES`), fit for a log; never the library's message. */
export function errnoCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "unknown";
}
