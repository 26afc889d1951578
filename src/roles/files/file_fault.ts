// What can stand between a call and a file, as a closed table, and the sentence that the caller is
// told. No sentence quotes a path, a name or a byte: a failure's text carries nothing from a peer
// or from the disk. `attempt` and `attemptNow` are where the exceptions of node:fs end; anything else
// goes on as the bug that it is.

import { fault, ok, type Result } from "../../base/faults.ts";

const SENTENCES = {
  bad_path:
    "the path must be absolute and plain: no empty, `.` or `..` segment, no slash at the end, no control or invisible character, fewer than 4096 bytes",
  outside: "the path is in none of this provider's directories",
  missing: "nothing exists at this path",
  not_directory: "a directory is expected here, and the path names something else",
  is_directory: "the path names a directory, not a file",
  symlink: "the path leads through a symbolic link, and links are not followed",
  not_regular: "the path names a device, pipe or socket, which is never opened",
  other_root: "the path leads into another configured directory by another name",
  other_filesystem:
    "the path crosses into another file system or mount, which would have to be configured by itself",
  ambiguous_name:
    "the file system knows this name by another spelling too, so that no policy could judge the path",
  permission: "this provider has no permission",
  read_only: "this directory is read-only here",
  exists: "something exists at this path, and the mode is create",
  owner_lost: "the file belongs to another user or group, which replacing it would change",
  binary: "the file is binary (it contains a NUL byte); only UTF-8 text can be read",
  not_utf8: "the file is not valid UTF-8; only UTF-8 text can be read",
  past_end: "the offset is past the end of the file",
  too_large: "the content is larger than may be written",
  not_text: "the content holds a lone surrogate, which UTF-8 cannot express",
  no_space: "the disk or the quota is full",
  busy: "the file or the provider is busy; the same call may succeed later",
  not_durable: "the file was written, but the disk did not confirm that it will survive a crash",
  cancelled: "the call was cancelled, and nothing was changed",
  io: "the file system reported an error",
} as const;

export type FileFault = keyof typeof SENTENCES;

/** For the caller; constant text. */
export function sentenceOf(code: FileFault): string {
  return SENTENCES[code];
}

const BY_ERRNO: ReadonlyMap<string, FileFault> = new Map([
  ["ENOENT", "missing"],
  ["ENOTDIR", "not_directory"],
  ["EISDIR", "is_directory"],
  ["ELOOP", "symlink"],
  ["ENXIO", "not_regular"],
  ["ENAMETOOLONG", "bad_path"],
  ["EACCES", "permission"],
  ["EPERM", "permission"],
  ["EROFS", "read_only"],
  ["EEXIST", "exists"],
  ["ENOSPC", "no_space"],
  ["EDQUOT", "no_space"],
  ["EFBIG", "too_large"],
  ["EMFILE", "busy"],
  ["ENFILE", "busy"],
  ["EAGAIN", "busy"],
  ["EBUSY", "busy"],
  ["ETXTBSY", "busy"],
]);

/** Runs one or more file system calls; an errno becomes a value, every other exception passes. */
export async function attempt<T>(calls: () => Promise<T>): Promise<Result<T, FileFault>> {
  try {
    return ok(await calls());
  } catch (error) {
    return fault(faultOf(error));
  }
}

/** The same for calls that do not wait. */
export function attemptNow<T>(calls: () => T): Result<T, FileFault> {
  try {
    return ok(calls());
  } catch (error) {
    return fault(faultOf(error));
  }
}

function faultOf(error: unknown): FileFault {
  const errno = errnoOf(error);
  if (errno === undefined) throw error;
  return BY_ERRNO.get(errno) ?? "io";
}

function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("syscall" in error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
