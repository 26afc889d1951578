// From a root to what a path names, one name at a time, each looked up in the directory that is
// pinned already. Symbolic links are never followed, not even within the root; mounts and other
// roots are not entered; a name that the file system would also answer to in another spelling is
// refused. So what is reached lies where the path says, at the moment each name was looked up,
// whoever swaps things meanwhile.

import { fault, type Result } from "../../base/faults.ts";
import {
  type EntryName,
  identityOf,
  letGo,
  mayLeadTo,
  mountOf,
  type Pinned,
  pinAgain,
  pinChild,
} from "./descriptor.ts";
import type { FileFault } from "./file_fault.ts";
import type { PinnedRoot } from "./roots.ts";

/** The last name may be anything, also a symbolic link; what leads to it are directories. */
export function pinPath(
  root: PinnedRoot,
  names: readonly string[],
  signal: AbortSignal,
): Result<Pinned, FileFault> {
  if (signal.aborted) return fault("cancelled");
  let current = pinAgain(root.directory);
  for (const name of names) {
    if (!current.ok) return current;
    const parent = current.value;
    current = pinExact(root, parent, name);
    letGo(parent);
  }
  return current;
}

export function pinDirectory(
  root: PinnedRoot,
  names: readonly string[],
  signal: AbortSignal,
): Result<Pinned, FileFault> {
  const pinned = pinPath(root, names, signal);
  if (!pinned.ok) return pinned;
  const objection = notDirectory(pinned.value);
  return objection === undefined ? pinned : refuse(pinned.value, objection);
}

/** One name from a path: also refuses a name that is not the only spelling of itself. */
export function pinExact(root: PinnedRoot, parent: Pinned, name: string): Result<Pinned, FileFault> {
  const objection = notDirectory(parent);
  if (objection !== undefined) return fault(objection);
  const child = pinWithin(root, parent, name);
  if (!child.ok) return child;
  for (const spelling of otherSpellings(name)) {
    if (mayLeadTo(parent, spelling, child.value)) return refuse(child.value, "ambiguous_name");
  }
  return child;
}

/** One name from a listing of `parent`: a child that belongs to this root. */
export function pinWithin(root: PinnedRoot, parent: Pinned, name: EntryName): Result<Pinned, FileFault> {
  const child = pinChild(parent, name);
  if (!child.ok) return child;
  if (root.others.has(identityOf(child.value.stat))) return refuse(child.value, "other_root");
  // Files too: a container's secrets are often single files, mounted one by one.
  return mountOf(child.value) === root.mount ? child : refuse(child.value, "other_filesystem");
}

/** Runs `use` with what was pinned and closes it on every way out. */
export async function usePinned<T>(
  pinned: Result<Pinned, FileFault>,
  use: (pinned: Pinned) => Promise<Result<T, FileFault>>,
): Promise<Result<T, FileFault>> {
  if (!pinned.ok) return pinned;
  try {
    return await use(pinned.value);
  } finally {
    letGo(pinned.value);
  }
}

/**
 * What a file system that folds case, composes characters or drops dots would take for the same
 * name. Each is only probed; on an ordinary file system none of them leads to the same object.
 */
export function otherSpellings(name: string): readonly string[] {
  const folded = /[a-z]/i.test(name) ? name.replace(/[a-z]/gi, swapCase) : swapCase(name);
  const candidates = [folded, name.normalize("NFC"), name.normalize("NFD"), name.replace(/[. ]+$/, "")];
  return candidates.filter((one) => one !== name && one !== "" && one !== "." && one !== "..");
}

function swapCase(letter: string): string {
  const upper = letter.toUpperCase();
  return upper === letter ? letter.toLowerCase() : upper;
}

function notDirectory(pinned: Pinned): FileFault | undefined {
  if (pinned.stat.isDirectory()) return undefined;
  return pinned.stat.isSymbolicLink() ? "symlink" : "not_directory";
}

function refuse(pinned: Pinned, why: FileFault): Result<never, FileFault> {
  letGo(pinned);
  return fault(why);
}
