// The file of a listening socket: its name, the lock of its directory, what was left there by a
// daemon that died, its mode and owner, and whether it is still ours when we go.
// Listening itself: listen.ts; whether the directory can be trusted: trusted_paths.ts.
//
// Invariant: nothing is removed but a socket that refused a connection, and what is ours by inode.

import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  lstatSync,
  openSync,
  renameSync,
  unlinkSync,
} from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

import { fault, ok, type Result } from "../base/faults.ts";
import { ERRNO, type Libc } from "./libc.ts";
import { errnoCode, type PathFault, pathFault } from "./trusted_paths.ts";

/** `sun_path` holds 108 bytes with the NUL; Node cuts a longer path without a word. */
export const SOCKET_PATH_BYTES_MAX = 107;

const LOCK_NAME = ".callgate.lock";
const PERMISSION_BITS = 0o7777;

/** Where a role listens: `DIRECTORY/ROLE.sock`. */
export function socketPath(directory: string, role: string): Result<string, PathFault> {
  const path = join(directory, `${role}.sock`);
  const bytes = Buffer.byteLength(path);
  if (bytes <= SOCKET_PATH_BYTES_MAX) return ok(path);
  const limit = `${bytes} bytes where a socket's path may have ${SOCKET_PATH_BYTES_MAX}`;
  return pathFault("too_long", path, `has ${limit}: choose a shorter directory or a shorter name.`);
}

/** Of a directory, against a second daemon. */
export interface DirectoryLock {
  release(): void;
}

/**
 * Held until released or until the process is gone, however it went. The file stays: a lock file
 * that is removed lets two hold "the" lock. Without libc only probing stands between two daemons.
 */
export function lockDirectory(directory: string, libc: Libc | undefined): Result<DirectoryLock, PathFault> {
  if (libc === undefined) return ok({ release: () => undefined });
  const path = join(directory, LOCK_NAME);
  const opened = openLock(path);
  if (!opened.ok) return opened;
  const fd = opened.value;
  const outcome = libc.lockExclusive(fd);
  if (outcome === 0) return ok({ release: once(() => closeSync(fd)) });
  closeSync(fd);
  if (outcome === -ERRNO.EAGAIN) return heldByAnother(directory);
  return pathFault("not_ours_to_set", path, `cannot be locked (errno ${-outcome}).`);
}

function openLock(path: string): Result<number, PathFault> {
  // Node adds O_CLOEXEC; without O_NONBLOCK a FIFO in this place would stop the daemon.
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    const fd = openSync(path, flags, 0o600);
    if (fstatSync(fd).isFile()) return ok(fd);
    closeSync(fd);
    return pathFault("not_a_file", path, "is not a regular file: remove it.");
  } catch (error) {
    const remedy = "it must be a file of the daemon's user, in a directory that it can write";
    return pathFault("unreadable", path, `cannot be opened (${errnoCode(error)}): ${remedy}.`);
  }
}

function heldByAnother(path: string): Result<never, PathFault> {
  return pathFault("held_by_another", path, "is held by another daemon that is alive: stop it first.");
}

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (!done) action();
    done = true;
  };
}

/** Which file it is, whatever its name. */
export interface FileIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/**
 * Makes room at `path`: nothing there, or a socket that nobody listens on, which is removed.
 * Everything else stays as it is and is a fault.
 */
export async function clearStale(path: string): Promise<Result<void, PathFault>> {
  const found = identify(path);
  if (!found.ok || found.value === undefined) return found.ok ? ok(undefined) : found;
  if (!found.value.isSocket()) {
    return pathFault("not_a_socket", path, "is something else than a socket: move it away.");
  }
  const answer = await probe(path);
  if (answer === "ENOENT") return ok(undefined);
  if (answer === "connected" || answer === "EAGAIN") return heldByAnother(path);
  if (answer !== "ECONNREFUSED") {
    return pathFault(
      "held_by_another",
      path,
      `is a socket that does not say whether it is in use (${answer}).`,
    );
  }
  return unlinkIf(path, found.value);
}

/** How a connection attempt ends: on a Unix socket at once, with `EAGAIN` where the backlog is full. */
function probe(path: string): Promise<string> {
  return new Promise((settle) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      settle("connected");
    });
    socket.on("error", (error) => settle(errnoCode(error)));
  });
}

function unlinkIf(path: string, expected: FileIdentity): Result<void, PathFault> {
  const now = identify(path);
  if (!now.ok) return now;
  if (now.value === undefined) return ok(undefined);
  // Somebody bound here while we were asking the old one.
  if (!isSame(now.value, expected)) return heldByAnother(path);
  try {
    unlinkSync(path);
    return ok(undefined);
  } catch (error) {
    return pathFault("not_ours_to_set", path, `is stale and cannot be removed (${errnoCode(error)}).`);
  }
}

/**
 * Gives a socket that was just bound under a narrow umask its group and then its mode: in this
 * order it is never more open than it ends. Returns what it is known by from now on.
 */
export function openToGroup(path: string, mode: number, gid: number): Result<FileIdentity, PathFault> {
  try {
    lchownSync(path, -1, gid);
    chmodSync(path, mode);
    const stats = lstatSync(path, { bigint: true });
    const exact = stats.isSocket() && Number(stats.mode) % (PERMISSION_BITS + 1) === mode;
    if (exact && stats.gid === BigInt(gid)) return ok({ dev: stats.dev, ino: stats.ino });
    return pathFault("not_ours_to_set", path, "did not take the configured group and mode.");
  } catch (error) {
    const wanted = `group ${gid} and mode ${mode.toString(8).padStart(4, "0")}`;
    const remedy = "the daemon's user must be a member of that group";
    return pathFault("not_ours_to_set", path, `cannot be given ${wanted} (${errnoCode(error)}): ${remedy}.`);
  }
}

/** Of a socket file that somebody else made: no bit beyond `mode`, and `gid` where the group may connect. */
export function checkNotWider(path: string, mode: number, gid: number | undefined): Result<void, PathFault> {
  const found = identify(path);
  if (!found.ok) return found;
  if (found.value === undefined) return pathFault("missing", path, "does not exist.");
  if (!found.value.isSocket()) return pathFault("not_a_socket", path, "is something else than a socket.");
  const has = Number(found.value.mode) & 0o777;
  if ((has & ~mode) !== 0) {
    const bits = `mode ${octal(has)} where the config says ${octal(mode)}`;
    return pathFault("open_to_others", path, `has ${bits}: set SocketMode= in its unit.`);
  }
  if (gid !== undefined && (has & 0o070) !== 0 && found.value.gid !== BigInt(gid)) {
    const groups = `group ${found.value.gid} where the config says ${gid}`;
    return pathFault("open_to_others", path, `has ${groups}: set SocketGroup= in its unit.`);
  }
  return ok(undefined);
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

/**
 * Runs `close`, which unlinks `path` whatever is there (libuv does, for a socket it has bound), so
 * that only our own file can be lost: what has taken its place stands aside meanwhile.
 */
export function closeKeepingOthers(path: string, ours: FileIdentity, close: () => void): void {
  const now = identify(path);
  const foreign = now.ok && now.value !== undefined && !isSame(now.value, ours);
  const aside = `${path}.aside-${process.pid}`;
  const moved = foreign && rename(path, aside);
  close();
  if (moved) rename(aside, path);
}

function rename(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch {
    // Who may not rename in this directory may not unlink in it either, so nothing is lost.
    return false;
  }
}

function isSame(a: FileIdentity, b: FileIdentity): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

/** `undefined` where nothing is there. */
function identify(path: string): Result<BigIntStats | undefined, PathFault> {
  try {
    return ok(lstatSync(path, { bigint: true, throwIfNoEntry: false }));
  } catch (error) {
    return fault({
      code: "unreadable",
      path,
      sentence: `${JSON.stringify(path)} cannot be examined (${errnoCode(error)}).`,
    });
  }
}
