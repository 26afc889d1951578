// The listening socket of a role: bound by us in a directory that was checked and locked, or
// inherited from the service manager. Who connects and what they may do is told elsewhere.
//
// Invariant: the socket file is at no moment more open than configured, and an inherited one is never removed.

import { closeSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";

import { ok, type Result } from "../base/faults.ts";
import type { InheritedSocket } from "./activation.ts";
import type { Libc } from "./libc.ts";
import {
  checkNotWider,
  clearStale,
  closeKeepingOthers,
  type DirectoryLock,
  type FileIdentity,
  lockDirectory,
  openToGroup,
  socketPath,
} from "./socket_files.ts";
import { checkDirectory, errnoCode, type PathFault, pathFault } from "./trusted_paths.ts";

/** Leaves the new socket file to its owner alone until it has its group and mode. */
const NARROW_UMASK = 0o177;

/** The sockets' directory, checked. */
export interface SocketDirectory {
  readonly path: string;
  /**
   * Keeps it from other daemons until it is released. Taken before the first socket is bound, not
   * earlier: a daemon whose sockets are all inherited needs no right to write here.
   */
  lock(): Result<void, PathFault>;
  /** After the last listener is closed. */
  release(): void;
}

export function openSocketDirectory(
  path: string,
  libc: Libc | undefined,
): Result<SocketDirectory, PathFault> {
  const checked = checkDirectory(path, effectiveUid());
  if (!checked.ok) return checked;
  let held: DirectoryLock | undefined;
  const lock = (): Result<void, PathFault> => {
    if (held !== undefined) return ok(undefined);
    const taken = lockDirectory(path, libc);
    if (!taken.ok) return taken;
    held = taken.value;
    return ok(undefined);
  };
  const release = (): void => {
    held?.release();
    held = undefined;
  };
  return ok({ path, lock, release });
}

export interface ListenOptions {
  readonly role: string;
  /** Permission bits of the socket file. */
  readonly mode: number;
  /** Left out: the daemon's own group, also in a directory that hands down its group. */
  readonly gid: number | undefined;
  /** Connections that may wait to be accepted. */
  readonly backlog: number;
  /** Called for each connection, before anything is read from it. The socket's `error` event is taken care of. */
  readonly onConnection: (socket: Socket) => void;
  /** The system's code of an accept that failed, for the log. The listener stays. */
  readonly onAcceptFault: (code: string) => void;
}

export interface RoleListener {
  readonly role: string;
  readonly path: string;
  readonly server: Server;
  /** No connection from now on; a socket file of ours is removed, those who are connected stay. */
  stopAccepting(): void;
  /** Also ends every connection that came in here. */
  close(): void;
}

/** Binds `DIRECTORY/ROLE.sock`, replacing what a dead daemon left there. */
export async function listenRole(
  directory: SocketDirectory,
  options: ListenOptions,
): Promise<Result<RoleListener, PathFault>> {
  const path = socketPath(directory.path, options.role);
  if (!path.ok) return path;
  const locked = directory.lock();
  if (!locked.ok) return locked;
  const cleared = await clearStale(path.value);
  if (!cleared.ok) return cleared;
  const entrance = makeEntrance(options);
  const bound = await bindNarrow(entrance.server, path.value, options);
  if (!bound.ok) return bound;
  return ok(listener(path.value, entrance, bound.value, options));
}

/** Goes on listening on a socket that activation.ts has validated. */
export async function listenInherited(
  inherited: InheritedSocket,
  options: ListenOptions,
): Promise<Result<RoleListener, PathFault>> {
  const { path, fd } = inherited;
  const directory = checkDirectory(dirname(path), effectiveUid());
  if (!directory.ok) return directory;
  const file = checkNotWider(path, options.mode, options.gid);
  if (!file.ok) return file;
  const entrance = makeEntrance(options);
  // Node calls listen() again and would put its own backlog in place of the unit's.
  const failed = await started(entrance.server, () => entrance.server.listen({ fd }, options.backlog));
  if (failed !== undefined) return pathFault("not_ours_to_set", path, `cannot be taken over (${failed}).`);
  return ok(listener(path, entrance, undefined, options));
}

/**
 * Takes a socket that is nobody's, so that whoever connects is let go at once and does not wait for an answer that never
 * comes. Without one where the descriptor is no such socket; then it is closed. The file stays.
 */
export async function turnAway(fd: number, backlog: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  const failed = await started(server, () => server.listen({ fd }, backlog));
  if (failed === undefined) return server.on("error", () => undefined);
  closeSync(fd);
  return undefined;
}

/** A server and those who came in through it. */
interface Entrance {
  readonly server: Server;
  readonly inside: ReadonlySet<Socket>;
}

function makeEntrance(options: ListenOptions): Entrance {
  const inside = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    inside.add(socket);
    // A peer's death shows as `close`; an `error` that nobody hears would end the daemon.
    socket.on("error", () => undefined);
    socket.once("close", () => inside.delete(socket));
    options.onConnection(socket);
  });
  return { server, inside };
}

/** Bind, group, mode, in this order; a fault on the way leaves no file behind. */
async function bindNarrow(
  server: Server,
  path: string,
  options: ListenOptions,
): Promise<Result<FileIdentity, PathFault>> {
  const failed = await started(server, () =>
    underUmask(NARROW_UMASK, () => server.listen(path, options.backlog)),
  );
  if (failed !== undefined) return pathFault("not_ours_to_set", path, `cannot be bound (${failed}).`);
  const opened = openToGroup(path, options.mode, options.gid ?? effectiveGid());
  if (!opened.ok) server.close();
  return opened;
}

/** The umask belongs to the whole process, so `action` must not wait for anything. */
function underUmask(umask: number, action: () => void): void {
  const before = process.umask(umask);
  try {
    action();
  } finally {
    process.umask(before);
  }
}

/**
 * Node binds and listens within the call and tells of a failure later. Resolves with the system's
 * code of what went wrong. A bind that comes later than the call (a cluster worker's) would have
 * missed the umask, so it counts as a failure.
 */
function started(server: Server, listen: () => void): Promise<string | undefined> {
  return new Promise((settle) => {
    server.once("error", (error) => settle(errnoCode(error)));
    listen();
    if (server.listening) return settle(undefined);
    server.once("listening", () => {
      server.close();
      settle("late");
    });
  });
}

/** `ours` is undefined for an inherited socket: closing it removes no file. */
function listener(
  path: string,
  { server, inside }: Entrance,
  ours: FileIdentity | undefined,
  { role, onAcceptFault }: ListenOptions,
): RoleListener {
  server.on("error", (error) => onAcceptFault(errnoCode(error)));
  const stopAccepting = (): void => {
    if (!server.listening) return;
    if (ours === undefined) server.close();
    else closeKeepingOthers(path, ours, () => server.close());
  };
  const close = (): void => {
    stopAccepting();
    for (const socket of inside) socket.destroy();
  };
  return { role, path, server, stopAccepting, close };
}

function effectiveUid(): number {
  return process.geteuid?.() ?? -1;
}

function effectiveGid(): number {
  return process.getegid?.() ?? -1;
}
