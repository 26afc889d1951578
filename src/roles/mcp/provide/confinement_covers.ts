// What a confined server is not to see, as paths to mount something empty over: every place where the file or directory
// shows, also by another mount of the same file system, and also where a server that ran before has moved it to.
// Invariant: a path that is in doubt is a fault, never left out.

import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { visibleLine } from "../../../base/display.ts";
import { fault, ok, type Result } from "../../../base/faults.ts";

export interface Covers {
  readonly directories: readonly string[];
  readonly files: readonly string[];
  /** Of the role's socket. */
  readonly socketDirectory: string | undefined;
}

export interface ToHide {
  /** The role's socket; its whole directory is hidden, since a broker that starts again makes new sockets there. */
  readonly socket: string | undefined;
  /** Files and directories. */
  readonly paths: readonly string[];
  /** Whose `/run/user` is hidden: sockets there start programs outside. */
  readonly uid: number;
  /** What was hidden before. */
  readonly held?: HeldPaths | undefined;
}

export interface Unhidden {
  /** For the owner. */
  readonly why: string;
  /** It may be otherwise at the next try. */
  readonly passes: boolean;
}

export function coversOf({ socket, paths, uid, held }: ToHide): Result<Covers, Unhidden> {
  const directory = socket === undefined ? ok(undefined) : socketDirectory(socket);
  if (!directory.ok) return directory;
  const wanted = [...paths];
  if (directory.value !== undefined) wanted.push(directory.value);
  const runtime = `/run/user/${uid}`;
  if (statOf(runtime) !== undefined) wanted.push(runtime);
  const heldNow = held === undefined ? ok([]) : held.placesWith(wanted);
  if (!heldNow.ok) return heldNow;
  const mounts = parseMounts(readFileSync("/proc/self/mountinfo", "utf8"));
  const found = { directories: new Set<string>(), files: new Set<string>() };
  for (const path of new Set([...wanted, ...heldNow.value])) {
    const places = shownAt(path, mounts);
    if (!places.ok) return places;
    for (const place of places.value)
      (statOf(place)?.isDirectory() ? found.directories : found.files).add(place);
  }
  const directories = [...found.directories].filter((one) => !isBelowAny(one, found.directories));
  const files = [...found.files].filter((one) => !isBelowAny(one, found.directories));
  return ok({ directories, files, socketDirectory: directory.value });
}

function shownAt(path: string, mounts: readonly Mount[]): Result<readonly string[], Unhidden> {
  const stats = statOf(path);
  const real = realOf(path);
  if (stats === undefined || real === undefined)
    return fault({ why: `what it is not to see is not there: ${shownPath(path)}`, passes: false });
  const places = placesOf(real, mounts).flatMap(({ path: place, inside }) => {
    const there = statOf(place);
    // What another mount hides there already is not there.
    return there !== undefined && (inside || isSame(there, stats)) ? [{ place, inside }] : [];
  });
  if (places.every(({ inside }) => inside))
    return fault({ why: `what it is not to see can't be found again: ${shownPath(path)}`, passes: false });
  return ok(places.map(({ place }) => place));
}

/**
 * Everything that was ever hidden, held open: a server may move the directory that it lies in, put another in its place
 * and end, and what is hidden by its path when it is started again would be the other.
 */
export class HeldPaths {
  readonly #fds: number[] = [];

  /** Where it all is by now; `paths` from now on too. What has been removed is nowhere. */
  placesWith(paths: readonly string[]): Result<readonly string[], Unhidden> {
    for (const path of paths) {
      const why = this.#hold(path);
      if (why !== undefined) return fault({ why, passes: false });
    }
    const places: string[] = [];
    for (const fd of this.#fds) {
      const stats = fstatSync(fd);
      if (stats.nlink === 0) continue;
      const place = readlinkSync(`/proc/self/fd/${fd}`);
      const there = statOf(place);
      if (there === undefined || !isSame(there, stats))
        return fault({ why: `what it is not to see has gone from ${shownPath(place)}`, passes: false });
      places.push(place);
    }
    return ok(places);
  }

  #hold(path: string): string | undefined {
    const stats = statOf(path);
    if (stats === undefined) return `what it is not to see is not there: ${shownPath(path)}`;
    if (this.#fds.some((fd) => isSame(fstatSync(fd), stats))) return undefined;
    this.#dropRemoved();
    if (this.#fds.length >= HELD_MAX)
      return `what it is not to see was replaced too often: ${shownPath(path)}`;
    this.#fds.push(openSync(path, O_PATH));
    return undefined;
  }

  #dropRemoved(): void {
    const removed = this.#fds.filter((fd) => fstatSync(fd).nlink === 0);
    for (const fd of removed) {
      closeSync(fd);
      this.#fds.splice(this.#fds.indexOf(fd), 1);
    }
  }
}

const HELD_MAX = 256;

/** A directory that is held open, so that no other gets its number. */
export class HeldDirectory {
  readonly #path: string;
  readonly #fd: number;

  /** @throws where it can't be opened */
  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(path, constants.O_DIRECTORY | O_PATH);
  }

  /** Whether it is at its path still: another one there is not covered. */
  isThere(): boolean {
    const stats = statOf(this.#path);
    return stats !== undefined && isSame(stats, fstatSync(this.#fd));
  }

  release(): void {
    closeSync(this.#fd);
  }
}

/** It need not be one that we may list. Node has no name for it. */
const O_PATH = 0o10000000;

/** A hard link would show the socket elsewhere; and what else is in its directory the server would lose with it. */
function socketDirectory(socket: string): Result<string, Unhidden> {
  const stats = statOf(socket);
  if (stats !== undefined && stats.nlink > 1)
    return fault({
      why: "the role's socket has a second name (a hard link) that it could be reached by",
      passes: false,
    });
  const path = dirname(realOf(socket) ?? join(realOf(dirname(socket)) ?? dirname(socket), "socket"));
  // It comes and goes with a broker.
  if (statOf(path) === undefined)
    return fault({
      why: `the directory of the role's socket is not there: ${shownPath(path)}`,
      passes: true,
    });
  const other = otherThan(path);
  if (other !== undefined)
    return fault({
      why: `the directory of the role's socket is hidden from it, and ${shownPath(path)} holds other things (${visibleLine(other, 60)}): sockets need a directory of their own`,
      passes: false,
    });
  return ok(path);
}

/** Something in it that is neither a socket nor a hidden file. */
function otherThan(path: string): string | undefined {
  try {
    const entries = readdirSync(path, { withFileTypes: true });
    return entries.find((entry) => !entry.isSocket() && !entry.name.startsWith("."))?.name;
  } catch {
    return undefined; // a directory that we may enter and not list
  }
}

export interface Mount {
  /** Of the file system: `8:1`. */
  readonly device: string;
  /** Which directory or file of the file system shows at `point`. */
  readonly root: string;
  readonly point: string;
}

/** The lines of /proc/PID/mountinfo. */
export function parseMounts(mountinfo: string): readonly Mount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [, , device, root, point] = line.split(" ");
    if (device === undefined || root === undefined || point === undefined) return [];
    return [{ device, root: unescaped(root), point: unescaped(point) }];
  });
}

function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

export interface PlaceOfPath {
  readonly path: string;
  /** It is a part of what is to be hidden, mounted elsewhere by itself. */
  readonly inside: boolean;
}

/** Where a real path shows: there, and wherever a mount shows the same part of the same file system. */
export function placesOf(path: string, mounts: readonly Mount[]): readonly PlaceOfPath[] {
  const places: PlaceOfPath[] = [{ path, inside: false }];
  const own = mounts
    .filter(({ point }) => isWithin(path, point))
    .reduce<Mount | undefined>(
      (best, one) => (best === undefined || one.point.length >= best.point.length ? one : best),
      undefined,
    );
  if (own === undefined) return places;
  const stored = join(own.root, relative(own.point, path));
  for (const mount of mounts) {
    if (mount === own || mount.device !== own.device) continue;
    if (isWithin(stored, mount.root))
      places.push({ path: join(mount.point, relative(mount.root, stored)), inside: false });
    else if (isWithin(mount.root, stored)) places.push({ path: mount.point, inside: true });
  }
  return places.filter(({ path: one }, index) => places.findIndex((other) => other.path === one) === index);
}

/** Both are absolute and have no `..` in them. */
function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

function isBelowAny(path: string, directories: ReadonlySet<string>): boolean {
  return [...directories].some((directory) => directory !== path && isWithin(path, directory));
}

function isSame(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync.native(path); // the other one remembers where we were, by a path
  } catch {
    return undefined;
  }
}

function shownPath(path: string): string {
  return visibleLine(JSON.stringify(path), 200);
}
