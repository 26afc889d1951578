// Sockets that the service manager made and handed to this process (sd_listen_fds(3)): which
// descriptor is which role's, by name only, since their order changes between starts. Taking them
// into service: listen.ts.
//
// Invariant: a descriptor is returned only if the kernel says that it listens, is a Unix stream
// socket, and has the role's own path as its address.

import { fault, ok, type Result } from "../base/faults.ts";
import type { Libc } from "./libc.ts";
import { SOCKET_PATH_BYTES_MAX } from "./socket_files.ts";

export interface InheritedSocket {
  readonly role: string;
  readonly path: string;
  readonly fd: number;
}

export interface Inherited {
  readonly byRole: ReadonlyMap<string, InheritedSocket>;
  /** Of roles that there are no more: nobody serves them, and the service manager keeps them open. */
  readonly strangers: readonly Stranger[];
}

export interface Stranger {
  /** As its unit has it. */
  readonly name: string;
  readonly fd: number;
}

const NONE: Inherited = { byRole: new Map(), strangers: [] };

export const ACTIVATION_FAULT_CODES = [
  "malformed",
  "unnamed",
  "unknown_name",
  "duplicate_name",
  "cannot_check",
  "not_listening",
  "wrong_kind",
  "wrong_address",
] as const;
export type ActivationFaultCode = (typeof ACTIVATION_FAULT_CODES)[number];

export interface ActivationFault {
  readonly code: ActivationFaultCode;
  readonly sentence: string;
}

const VARIABLES = ["LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"] as const;
/** SD_LISTEN_FDS_START. Node itself marks what it inherits close-on-exec at start. */
const FIRST_FD = 3;
const FDS = /^(?:0|[1-9][0-9]{0,3})$/;

const SOL_SOCKET = 1;
const SO_TYPE = 3;
const SO_ACCEPTCONN = 30;
const SO_DOMAIN = 39;
const AF_UNIX = 1;
const SOCK_STREAM = 1;
const INT_BYTES = 4;
const FAMILY_BYTES = 2;

/** What the variables say, if they speak to us. */
interface Announcement {
  readonly pid: string | undefined;
  readonly fds: string | undefined;
  readonly names: string | undefined;
}

/**
 * The inherited sockets by role; none where `env` has none or means another process. A unit names
 * its descriptor with `FileDescriptorName=ROLE`. `paths` tells where each role listens. A name that no role has is a
 * stranger's where every role has its socket (the config was changed and the units were not), else a mistake in a unit.
 * Removes the variables from `env` in every case, so that no later reader takes them as its own.
 */
export function takeInherited(
  env: NodeJS.ProcessEnv,
  pid: number,
  paths: ReadonlyMap<string, string>,
  libc: Libc | undefined,
): Result<Inherited, ActivationFault> {
  const announced: Announcement = {
    pid: env["LISTEN_PID"],
    fds: env["LISTEN_FDS"],
    names: env["LISTEN_FDNAMES"],
  };
  for (const variable of VARIABLES) delete env[variable];
  if (announced.pid !== String(pid)) return ok(NONE);
  const names = readNames(announced);
  if (!names.ok) return names;
  if (names.value.length === 0) return ok(NONE);
  if (libc === undefined) {
    return activationFault("cannot_check", "Inherited sockets cannot be checked: koffi did not load.");
  }
  return assign(names.value, paths, libc);
}

/** The names in the order of the descriptors. */
function readNames({ fds, names }: Announcement): Result<readonly string[], ActivationFault> {
  if (fds === undefined || !FDS.test(fds)) {
    return activationFault("malformed", "LISTEN_FDS is not a number of descriptors.");
  }
  const count = Number(fds);
  if (count === 0) return ok([]);
  const list = names?.split(":") ?? [];
  if (list.length === count) return ok(list);
  const both = `LISTEN_FDS says ${count}, LISTEN_FDNAMES has ${list.length}`;
  return activationFault("unnamed", `${both}: each socket needs FileDescriptorName=ROLE in its unit.`);
}

function assign(
  names: readonly string[],
  paths: ReadonlyMap<string, string>,
  libc: Libc,
): Result<Inherited, ActivationFault> {
  const inherited = new Map<string, InheritedSocket>();
  const strangers: Stranger[] = [];
  for (const [index, role] of names.entries()) {
    const path = paths.get(role);
    const fd = FIRST_FD + index;
    if (path === undefined) {
      strangers.push({ name: role, fd });
      continue;
    }
    if (inherited.has(role))
      return activationFault(
        "duplicate_name",
        `Two inherited sockets have the name ${JSON.stringify(role)}.`,
      );
    const socket: InheritedSocket = { role, path, fd };
    const checked = checkDescriptor(socket, libc);
    if (!checked.ok) return checked;
    inherited.set(role, socket);
  }
  const [stranger] = strangers;
  if (stranger === undefined || inherited.size === paths.size) return ok({ byRole: inherited, strangers });
  const name = JSON.stringify(stranger.name);
  const without = [...paths.keys()].find((role) => !inherited.has(role)) ?? "";
  const missing = `and role ${JSON.stringify(without)} has no socket`;
  return activationFault("unknown_name", `No role has the name ${name} of an inherited socket, ${missing}.`);
}

function checkDescriptor(socket: InheritedSocket, libc: Libc): Result<void, ActivationFault> {
  const { fd } = socket;
  const which = `The inherited socket of ${JSON.stringify(socket.role)} (descriptor ${fd})`;
  if (option(libc, fd, SO_DOMAIN) !== AF_UNIX || option(libc, fd, SO_TYPE) !== SOCK_STREAM) {
    return activationFault(
      "wrong_kind",
      `${which} is not a Unix stream socket: use ListenStream= with a path.`,
    );
  }
  if (option(libc, fd, SO_ACCEPTCONN) !== 1) {
    return activationFault("not_listening", `${which} does not listen: set Accept=no in its unit.`);
  }
  if (!hasAddress(libc, fd, socket.path)) {
    const wanted = `ListenStream=${socket.path}`;
    return activationFault("wrong_address", `${which} has another address than the role: set ${wanted}.`);
  }
  return ok(undefined);
}

/** An integer option of a socket; undefined where there is no such socket. */
function option(libc: Libc, fd: number, name: number): number | undefined {
  const value = new Uint32Array(1);
  const outcome = libc.getsockopt(fd, SOL_SOCKET, name, value, Uint32Array.of(INT_BYTES));
  return outcome < 0 ? undefined : value[0];
}

/** Compared as bytes: an abstract or an unnamed address never equals a path. */
function hasAddress(libc: Libc, fd: number, path: string): boolean {
  const address = Buffer.alloc(FAMILY_BYTES + SOCKET_PATH_BYTES_MAX + 1);
  const length = libc.getsockname(fd, address);
  if (length < 0 || length > address.length) return false;
  const expected = Buffer.from(`${path}\0`);
  return address.subarray(FAMILY_BYTES, length).equals(expected);
}

function activationFault(code: ActivationFaultCode, sentence: string): Result<never, ActivationFault> {
  return fault({ code, sentence });
}
