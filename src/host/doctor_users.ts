// `callgate doctor`: who somebody is on this machine (names, groups), whether the modes of a path let them reach it, and
// doing something as another user, where root asks. Only /etc/passwd and /etc/group are asked, as the config's own reader does.
// Invariant: whoever is become for a while is left again, however the work ends.

import { readFileSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";

/** A user as the kernel would judge them. */
export interface Identity {
  readonly uid: number;
  readonly gids: ReadonlySet<number>;
}

export interface Accounts {
  /** `callgate (uid 998)`, or `uid 998`. */
  userText(uid: number): string;
  groupText(gid: number): string;
  userName(uid: number): string | undefined;
  groupName(gid: number): string | undefined;
  uidOf(name: string): number | undefined;
  /** With the primary group and those that list them. */
  identity(uid: number): Identity;
}

interface Entry {
  readonly name: string;
  readonly id: number;
  readonly fields: readonly string[];
}

export function readAccounts(passwd = textOf("/etc/passwd"), group = textOf("/etc/group")): Accounts {
  const users = entriesOf(passwd);
  const groups = entriesOf(group);
  const userName = (uid: number) => users.find(({ id }) => id === uid)?.name;
  const groupName = (gid: number) => groups.find(({ id }) => id === gid)?.name;
  return {
    userName,
    groupName,
    userText: (uid) => named("uid", uid, userName(uid)),
    groupText: (gid) => named("gid", gid, groupName(gid)),
    uidOf: (name) => users.find((user) => user.name === name)?.id,
    identity: (uid) => identityOf(uid, users, groups),
  };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/** Lines of `name:x:id:…`. */
function entriesOf(text: string): readonly Entry[] {
  return text.split("\n").flatMap((line) => {
    const fields = line.split(":");
    const [name = "", , id = ""] = fields;
    return /^[a-zA-Z0-9_.-]+\$?$/.test(name) && /^[0-9]{1,10}$/.test(id)
      ? [{ name, id: Number(id), fields }]
      : [];
  });
}

function named(kind: "uid" | "gid", id: number, name: string | undefined): string {
  return name === undefined ? `${kind} ${id}` : `${name} (${kind} ${id})`;
}

function identityOf(uid: number, users: readonly Entry[], groups: readonly Entry[]): Identity {
  const user = users.find(({ id }) => id === uid);
  const primary = Number(user?.fields[3] ?? Number.NaN);
  const others = groups.filter(
    ({ fields }) => user !== undefined && (fields[3] ?? "").split(",").includes(user.name),
  );
  const gids = [primary, ...others.map(({ id }) => id)].filter((gid) => Number.isInteger(gid));
  return { uid, gids: new Set(gids) };
}

/** Of a living process, out of /proc. */
export function identityOfProcess(pid: number): Identity | undefined {
  const status = textOf(`/proc/${pid}/status`);
  const numbers = (name: string) =>
    (new RegExp(`^${name}:\\s*(.*)$`, "m").exec(status)?.[1] ?? "")
      .split(/\s+/)
      .filter((word) => word !== "");
  const uid = numbers("Uid")[1]; // the effective one
  const gid = numbers("Gid")[1];
  if (uid === undefined || gid === undefined) return undefined;
  return { uid: Number(uid), gids: new Set([gid, ...numbers("Groups")].map(Number)) };
}

const READ = 4;
const WRITE = 2;
const ENTER = 1;
export const WANTED = { read: READ, write: WRITE, make: WRITE | ENTER } as const;

/** By owner, group and mode; access lists are not looked at. */
function allows(stats: Stats, { uid, gids }: Identity, wanted: number): boolean {
  if (uid === 0) return true;
  const shift = stats.uid === uid ? 6 : gids.has(stats.gid) ? 3 : 0;
  return ((stats.mode >> shift) & wanted) === wanted;
}

/**
 * The place on the way to `path` that keeps them out: a directory that they can't enter, or it itself where they have not what
 * is wanted of it. undefined: none, or we can't see it.
 */
export function barrier(path: string, who: Identity, wanted: number): string | undefined {
  try {
    const real = realpathSync(path);
    for (const directory of directoriesOf(real))
      if (!allows(statSync(directory), who, ENTER)) return directory;
    return allows(statSync(real), who, wanted) ? undefined : path;
  } catch {
    return undefined;
  }
}

/** From / down. */
function directoriesOf(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...directoriesOf(parent), parent];
}

/** Whether `asUser` can be them. */
export function canBe(uid: number): boolean {
  const own = process.geteuid?.();
  return own === uid || own === 0;
}

/** What is made and opened meanwhile is theirs. One such work at a time: it holds for the whole process. */
export async function asUser<T>(uid: number, work: () => Promise<T>): Promise<T> {
  const own = process.geteuid?.();
  if (own === undefined || own === uid) return work();
  process.seteuid?.(uid);
  try {
    return await work();
  } finally {
    process.seteuid?.(own);
  }
}
