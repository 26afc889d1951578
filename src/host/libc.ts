// The few calls of the C library that Node does not offer, as typed functions. The one file that
// imports koffi, and only when asked: where it cannot be loaded the answer is `undefined`, and
// whoever needs it decides what that costs. No policy here, and no memory is owned by C.

import { readdirSync, readFileSync } from "node:fs";

/**
 * Calls return 0 or more on success and the negated errno otherwise, as the kernel does: they sit
 * on the path of every accepted connection, and a number costs nothing.
 */
export interface Libc {
  /** `lengthBytes[0]` is the room in `into` on entry and what the kernel wrote, or wants, on return. */
  getsockopt(fd: number, level: number, option: number, into: Uint32Array, lengthBytes: Uint32Array): number;
  /** Writes the socket's own address (family, then path) into `into`; returns its length in bytes. */
  getsockname(fd: number, into: Uint8Array): number;
  /** Takes the exclusive advisory lock of an open file without waiting; it goes with the descriptor. */
  lockExclusive(fd: number): number;
  /** Gives that lock back. */
  unlock(fd: number): number;
}

export const ERRNO = { EAGAIN: 11, ERANGE: 34 } as const;

const LOCK_EX_NB = 2 | 4;
const LOCK_UN = 8;

/** Once, at start. Undefined where the library, or one of its functions, is not to be had. */
export async function loadLibc(): Promise<Libc | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const koffi = await import("koffi");
    return bindFunctions(koffi);
  } catch {
    return undefined;
  }
}

function bindFunctions(koffi: typeof import("koffi")): Libc {
  const library = koffi.load(null);
  const buffer = "void *";
  const getsockopt = library.func("getsockopt", "int", ["int", "int", "int", buffer, buffer]);
  const getsockname = library.func("getsockname", "int", ["int", buffer, buffer]);
  const flock = library.func("flock", "int", ["int", "int"]);
  const outcome = (returned: number): number => (returned < 0 ? -koffi.errno() : returned);
  return {
    getsockopt: (fd, level, option, into, lengthBytes) =>
      outcome(getsockopt(fd, level, option, into, lengthBytes)),
    getsockname: (fd, into) => {
      const lengthBytes = Uint32Array.of(into.byteLength);
      const failed = outcome(getsockname(fd, into, lengthBytes));
      return failed < 0 ? failed : lengthBytes[0]!;
    },
    lockExclusive: (fd) => outcome(flock(fd, LOCK_EX_NB)),
    unlock: (fd) => outcome(flock(fd, LOCK_UN)),
  };
}

const PR_SET_DUMPABLE = 4;
const RLIMIT_CORE = 4;

/**
 * From here on the kernel writes no core of this process, and lets no other process of the same user read its memory:
 * for those that hold secrets. Resolves to whether both are so.
 */
export async function forbidDumps(): Promise<boolean> {
  if (process.platform !== "linux") return false;
  try {
    const koffi = await import("koffi");
    const library = koffi.load(null);
    const prctl = library.func("prctl", "int", ["int", "ulong", "ulong", "ulong", "ulong"]);
    const setrlimit = library.func("setrlimit", "int", ["int", "void *"]);
    const none = new BigUint64Array(2); // the soft limit and the hard one
    return setrlimit(RLIMIT_CORE, none) === 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) === 0;
  } catch {
    return false;
  }
}

/** Of `struct timex`, with room to spare, and where `maxerror` is in it, in longs. */
const TIMEX_LONGS = 64;
const TIMEX_MAX_ERROR = 3;

/** How wrong the kernel takes its clock to be at most, in microseconds (adjtimex(2)); undefined where it can't be asked. */
export async function clockErrorUs(): Promise<number | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const koffi = await import("koffi");
    const adjtimex = koffi.load(null).func("adjtimex", "int", ["void *"]);
    const timex = new BigInt64Array(TIMEX_LONGS); // `modes` 0: nothing is set
    return adjtimex(timex) < 0 ? undefined : Number(timex[TIMEX_MAX_ERROR]);
  } catch {
    return undefined;
  }
}

const F_SETFD = 2;
const FD_CLOEXEC = 1;
const STANDARD = 2;

/**
 * From here on no child gets a descriptor that we inherited ourselves, beside the three standard ones: for those that run
 * foreign code. (What Node opens is closed in a child anyway.) Resolves to whether that is so.
 */
export async function sealDescriptors(): Promise<boolean> {
  try {
    const open = inheritable();
    if (open.length === 0) return true;
    const koffi = await import("koffi");
    const fcntl = koffi.load(null).func("int fcntl(int fd, int command, ...)");
    for (const fd of open) fcntl(fd, F_SETFD, "int", FD_CLOEXEC);
    return inheritable().length === 0;
  } catch {
    return false;
  }
}

const O_CLOEXEC = 0o2000000;

/** Open descriptors that a child would get. */
function inheritable(): readonly number[] {
  const open = readdirSync("/proc/self/fd").map(Number);
  return open.filter((fd) => {
    if (fd <= STANDARD) return false;
    const flags = /^flags:\s*([0-7]+)$/m.exec(infoOf(fd))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  });
}

/** Empty where it is closed by now: the one that listed them is. */
function infoOf(fd: number): string {
  try {
    return readFileSync(`/proc/self/fdinfo/${fd}`, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;

/** Sends one datagram without waiting; the answer is 0 or more, or the negated errno. */
export type SendDatagram = (message: Uint8Array) => number;

/**
 * Datagrams to the Unix socket of this `sockaddr_un`, which Node itself does not have. Undefined where koffi can't be
 * loaded or no socket is to be had. The one descriptor lives as long as the process; no child gets it.
 */
export async function openDatagrams(address: Uint8Array): Promise<SendDatagram | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const koffi = await import("koffi");
    const library = koffi.load(null);
    const socket = library.func("socket", "int", ["int", "int", "int"]);
    // `intptr_t` for ssize_t, which koffi does not know.
    const words = ["int", "void *", "size_t", "int", "void *", "uint"];
    const sendto = library.func("sendto", "intptr_t", words);
    const fd: number = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return undefined;
    return (message) => {
      const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
      const sent = Number(sendto(fd, message, message.byteLength, flags, address, address.byteLength));
      return sent < 0 ? -koffi.errno() : sent;
    };
  } catch {
    return undefined;
  }
}
