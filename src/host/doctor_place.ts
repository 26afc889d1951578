// `callgate doctor`: what the checks go by: the config, as far as it can be read, the user that the daemon is or would be,
// and the daemon that lives, where one does. Who that is, the kernel's table of locks tells: nothing is locked, and nobody
// is connected to, to find out.

import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Result } from "../base/faults.ts";
import { type ConfigRead, loadConfig } from "./config.ts";
import type { ConfigFault } from "./config_faults.ts";
import type { Units } from "./doctor_systemctl.ts";
import { type Accounts, type Identity, identityOfProcess, readAccounts } from "./doctor_users.ts";
import { errnoCode } from "./trusted_paths.ts";

export interface DoctorRequest {
  /** Absolute. */
  readonly config: string;
  /** The daemon's user, as somebody says. */
  readonly user: string | undefined;
  /** Of a connector, absolute; undefined: there is none. */
  readonly connector: string | undefined;
}

export interface DaemonUser extends Identity {
  /** `callgate (uid 998)`. */
  readonly text: string;
  /** How that is known, in words. */
  readonly because: string;
}

/** A daemon that holds the state directory; `unseen`: this user may not look. */
export type Living = { readonly pid: number } | "none" | "unseen";

/** What a file is to this user, whatever is in it. */
export type Sight = "there" | "none" | "unseen";

export interface Place {
  readonly request: DoctorRequest;
  readonly config: Result<ConfigRead, readonly ConfigFault[]>;
  readonly configFile: Sight;
  readonly accounts: Accounts;
  readonly user: DaemonUser;
  readonly living: Living;
  /** Paths of sockets that systemd makes. */
  readonly listens: ReadonlySet<string>;
  readonly nowMs: number;
}

export async function findPlace(request: DoctorRequest, units: Units, nowMs: number): Promise<Place> {
  const config = await loadConfig(request.config);
  const accounts = readAccounts();
  const living: Living = config.ok ? livingIn(config.value.config.stateDir) : "unseen";
  const user = daemonUser(
    request,
    accounts,
    living,
    units,
    config.ok ? config.value.config.stateDir : undefined,
  );
  const listens = new Set(units.units.flatMap((unit) => unit.listens));
  const configFile = sightOf(request.config);
  return { request, config, configFile, accounts, user, living, listens, nowMs };
}

/** Whether this user may read it. */
export function sightOf(path: string): Sight {
  try {
    accessSync(path, constants.R_OK);
    return "there";
  } catch (error) {
    const code = errnoCode(error);
    if (code === "EACCES" || code === "EPERM") return "unseen";
    return code === "ENOENT" ? "none" : "there"; // what else is wrong with it, who reads it says
  }
}

/** Where it can't be told: whoever asks. */
function daemonUser(
  { user: given }: DoctorRequest,
  accounts: Accounts,
  living: Living,
  units: Units,
  stateDir: string | undefined,
): DaemonUser {
  const of = (identity: Identity, because: string): DaemonUser => ({
    ...identity,
    text: accounts.userText(identity.uid),
    because,
  });
  if (given !== undefined) {
    const uid = accounts.uidOf(given) ?? (/^[0-9]{1,9}$/.test(given) ? Number(given) : undefined);
    if (uid !== undefined) return of(accounts.identity(uid), "as --user says");
  }
  const process_ = typeof living === "object" ? identityOfProcess(living.pid) : undefined;
  if (process_ !== undefined) return of(process_, "the daemon runs as that user");
  const ofUnit = units.daemonUser === undefined ? undefined : accounts.uidOf(units.daemonUser);
  if (ofUnit !== undefined) return of(accounts.identity(ofUnit), "User= of callgate.service");
  const owner = stateDir === undefined ? undefined : ownerOf(stateDir);
  if (owner !== undefined) return of(accounts.identity(owner), "the state directory's owner");
  const own = process.geteuid?.() ?? -1;
  return of({ uid: own, gids: new Set(process.getgroups?.() ?? []) }, "who asks here");
}

/** undefined: it is not there, or this user can't see it. */
function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid;
  } catch {
    return undefined;
  }
}

/** Whoever holds the lock of a state directory (state_dir.ts). */
function livingIn(stateDir: string): Living {
  try {
    const stats = statSync(join(stateDir, "lock"), { throwIfNoEntry: false });
    if (stats === undefined) return "none";
    const pid = holderOf(readFileSync("/proc/locks", "utf8"), stats.ino);
    return pid === undefined ? "none" : { pid };
  } catch {
    return "unseen";
  }
}

/** The process that has that file locked as flock(2) does. proc_locks(5): `1: FLOCK ADVISORY WRITE 815 fe:00:4711 0 EOF`. */
export function holderOf(locks: string, inode: number): number | undefined {
  for (const line of locks.split("\n")) {
    const [, kind, , , pid, file = ""] = line.trim().split(/\s+/);
    if (kind === "FLOCK" && file.split(":")[2] === String(inode) && /^[1-9][0-9]*$/.test(pid ?? ""))
      return Number(pid);
  }
  return undefined;
}
