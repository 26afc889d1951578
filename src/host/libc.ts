// The few calls of the C library that Node does not offer, as typed functions. The one file that
// imports koffi, and only when asked: where it cannot be loaded the answer is `undefined`, and
// whoever needs it decides what that costs. No policy here, and no memory is owned by C.

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
}

export const ERRNO = { EAGAIN: 11, ERANGE: 34 } as const;

const LOCK_EX_NB = 2 | 4;

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
