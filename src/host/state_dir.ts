// The directory of the store: made where it is not there, the daemon's alone, and locked against a
// second daemon for as long as this one lives. What is in it is the store's.
// Invariant: nobody but root and our own user can read, write or replace what is in it, and one
// daemon at a time writes there.

import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import { ERRNO, type Libc } from "./libc.ts";
import { checkDirectory, errnoCode, type PathFault, pathFault } from "./trusted_paths.ts";

const MODE = 0o700;
const OPEN_TO_OTHERS = 0o077;
const LOCK_FILE = "lock";
/** Decimal digits of a process id, and more than that. */
const PID_BYTES = 16;

export interface StateDirectory {
  readonly path: string;
  /** Lets another daemon have it; what is in it must be closed by then. */
  release(): void;
}

/** The fault is a sentence for the owner. */
export function openStateDirectory(path: string, libc: Libc | undefined): Result<StateDirectory> {
  const uid = process.geteuid?.() ?? -1;
  const prepared = make(path);
  if (!prepared.ok) return fault(prepared.fault.sentence);
  const checked = checkOurs(path, uid);
  if (!checked.ok) return fault(checked.fault.sentence);
  const planted = checkFiles(path, uid);
  if (!planted.ok) return fault(planted.fault.sentence);
  if (libc === undefined)
    return fault(`${JSON.stringify(path)} can't be locked against a second daemon: koffi did not load.`);
  const locked = lock(path, libc);
  if (!locked.ok) return fault(locked.fault.sentence);
  const fd = locked.value;
  let held = true;
  return ok({
    path,
    release: () => {
      if (held) closeSync(fd);
      held = false;
    },
  });
}

/** In a directory that is there; more would be made with owners and modes that nobody has chosen. */
function make(path: string): Result<void, PathFault> {
  try {
    mkdirSync(path, { mode: MODE });
    return ok(undefined);
  } catch (error) {
    const code = errnoCode(error);
    if (code === "EEXIST") return ok(undefined);
    const parent = JSON.stringify(dirname(path));
    const remedy =
      code === "ENOENT"
        ? `make ${parent} first`
        : `make it, with mode 0700 and this daemon's user as its owner`;
    return pathFault("missing", path, `does not exist and can't be made (${code}): ${remedy}.`);
  }
}

/** Stricter than what sockets need: others may not so much as enter. */
function checkOurs(path: string, uid: number): Result<void, PathFault> {
  const trusted = checkDirectory(path, uid);
  if (!trusted.ok) return trusted;
  // The walk was there: what a link in this place leads to can be replaced by root and by us only.
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return pathFault("missing", path, "does not exist.");
  if (stats.uid !== uid)
    return pathFault(
      "foreign_owner",
      path,
      `belongs to uid ${stats.uid}, not to this daemon's user (uid ${uid}).`,
    );
  if ((stats.mode & OPEN_TO_OTHERS) === 0) return ok(undefined);
  return pathFault(
    "open_to_others",
    path,
    `can be entered by others than its owner: chmod 0700 ${JSON.stringify(path)}`,
  );
}

/** What we write to, where it is there: others may have put it there while the directory was open to them. */
const OUR_FILES = [LOCK_FILE, "state.mdb", "state.mdb-lock", "reserve"];

function checkFiles(directory: string, uid: number): Result<void, PathFault> {
  for (const name of OUR_FILES) {
    const path = join(directory, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined || (stats.isFile() && stats.uid === uid && stats.nlink === 1)) continue;
    return pathFault(
      "foreign_owner",
      path,
      `is not a plain file of this daemon's user (uid ${uid}): somebody else may have put it there. Move it away.`,
    );
  }
  return ok(undefined);
}

/** The file stays when it is released: one that is removed lets two hold "the" lock. */
function lock(directory: string, libc: Libc): Result<number, PathFault> {
  const path = join(directory, LOCK_FILE);
  let fd: number | undefined;
  try {
    // Without O_NONBLOCK a FIFO in this place would stop the daemon.
    fd = openSync(
      path,
      constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK,
      0o600,
    );
    const taken = take(fd, directory, path, libc);
    if (!taken.ok) closeSync(fd);
    return taken;
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    return pathFault("unreadable", path, `can't be opened or written (${errnoCode(error)}).`);
  }
}

function take(fd: number, directory: string, path: string, libc: Libc): Result<number, PathFault> {
  if (!fstatSync(fd).isFile()) return pathFault("not_a_file", path, "is not a regular file: remove it.");
  const outcome = libc.lockExclusive(fd);
  if (outcome === -ERRNO.EAGAIN) return heldBy(directory, readPid(fd));
  if (outcome !== 0) return pathFault("not_ours_to_set", path, `can't be locked (errno ${-outcome}).`);
  // For the sentence that a second one gives; a full disk is no reason not to start.
  try {
    ftruncateSync(fd);
    writeSync(fd, `${process.pid}\n`, 0);
  } catch {
    return ok(fd);
  }
  return ok(fd);
}

function heldBy(directory: string, pid: string | undefined): Result<never, PathFault> {
  const who =
    pid === undefined ? "another daemon that is alive" : `another daemon that is alive (pid ${pid})`;
  return pathFault(
    "held_by_another",
    directory,
    `is in use by ${who}: stop it first, or give this one a state directory of its own.`,
  );
}

function readPid(fd: number): string | undefined {
  const bytes = Buffer.alloc(PID_BYTES);
  const text = bytes.toString("latin1", 0, readSync(fd, bytes, 0, PID_BYTES, 0)).trim();
  return /^[1-9][0-9]*$/.test(text) ? text : undefined;
}
