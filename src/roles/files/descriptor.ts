// File descriptors that pin what they name. Node has no openat(2); `/proc/self/fd/N/NAME` is the
// same look-up: the kernel starts at the object that descriptor N pins, whatever happened to the
// path that once led there. Everything is first opened with O_PATH, which runs no driver, waits for
// no pipe and follows no link; only what fstat(2) then calls a regular file or a directory is opened
// again through its own descriptor. Whoever gets a `Pinned` lets it go.
//
// Pinning and letting go take microseconds and do not wait for a thread; reading, writing and
// listing do not hold up the event loop.

import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { fault, ok, type Result } from "../../base/faults.ts";
import { attempt, attemptNow, type FileFault } from "./file_fault.ts";

/** Not in node:fs. The same number on every architecture that Node runs on (asm-generic/fcntl.h). */
const O_PATH = 0o10000000;
const PIN = O_PATH | constants.O_NOFOLLOW;
/** O_NONBLOCK: never wait for a lease, nor for the next byte of a kernel file that blocks. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

export interface Pinned {
  readonly descriptor: number;
  /** Of the moment of opening: type, device and inode stay true, size and times may not. */
  readonly stat: BigIntStats;
}

/** A name as the directory holds it: text from a path, bytes from a listing. */
export type EntryName = string | Buffer;

/** The path of an object that a descriptor pins; following it reaches that object and no other. */
export function pathOfDescriptor(descriptor: number): string {
  return `/proc/self/fd/${descriptor}`;
}

/** The path of a child of a pinned directory; `name` is one name, without a slash. */
export function pathOfChild(parent: Pinned, name: EntryName): string | Buffer {
  const prefix = `${pathOfDescriptor(parent.descriptor)}/`;
  return typeof name === "string" ? prefix + name : Buffer.concat([Buffer.from(prefix), name]);
}

export function pinAbsolute(path: string): Result<Pinned, FileFault> {
  return pin(path, PIN);
}

/** The object itself, also a symbolic link, device, pipe or socket; nothing is followed. */
export function pinChild(parent: Pinned, name: EntryName): Result<Pinned, FileFault> {
  return pin(pathOfChild(parent, name), PIN);
}

/** A second descriptor of a pinned directory. */
export function pinAgain(directory: Pinned): Result<Pinned, FileFault> {
  return pin(pathOfDescriptor(directory.descriptor), O_PATH | constants.O_DIRECTORY);
}

function pin(path: string | Buffer, flags: number): Result<Pinned, FileFault> {
  const opened = attemptNow(() => openSync(path, flags));
  if (!opened.ok) return opened;
  const descriptor = opened.value;
  const stat = attemptNow(() => fstatSync(descriptor, { bigint: true }));
  if (stat.ok) return ok({ descriptor, stat: stat.value });
  closeSync(descriptor);
  return stat;
}

export function letGo(pinned: Pinned): void {
  closeSync(pinned.descriptor);
}

/** Opens a pinned regular file for reading; anything else is refused unopened. */
export async function openText(pinned: Pinned): Promise<Result<FileHandle, FileFault>> {
  const objection = notRegular(pinned);
  if (objection !== undefined) return fault(objection);
  return attempt(() => open(pathOfDescriptor(pinned.descriptor), READ));
}

/** A descriptor of a pinned directory that can be synced. */
export async function openDirectory(pinned: Pinned): Promise<Result<FileHandle, FileFault>> {
  return attempt(() => open(pathOfDescriptor(pinned.descriptor), READ | constants.O_DIRECTORY));
}

/** Whether the file's own permissions let this process write to it; nothing is written. */
export async function checkWritable(pinned: Pinned): Promise<Result<true, FileFault>> {
  const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
  const opened = await attempt(() => open(pathOfDescriptor(pinned.descriptor), flags));
  if (!opened.ok) return opened;
  await opened.value.close();
  return ok(true);
}

/** Why it can't be opened as a file; undefined for a regular file. */
export function notRegular(pinned: Pinned): FileFault | undefined {
  if (pinned.stat.isFile()) return undefined;
  if (pinned.stat.isDirectory()) return "is_directory";
  return pinned.stat.isSymbolicLink() ? "symlink" : "not_regular";
}

/** Whether a name of a pinned directory leads, or for all that can be told might lead, to this very object. */
export function mayLeadTo(parent: Pinned, name: EntryName, pinned: Pinned): boolean {
  const path = pathOfChild(parent, name);
  const found = attemptNow(() => lstatSync(path, { bigint: true, throwIfNoEntry: false }));
  if (!found.ok) return found.fault !== "bad_path";
  return found.value !== undefined && identityOf(found.value) === identityOf(pinned.stat);
}

/** Equal exactly for the same object, while one of the two is pinned. */
export function identityOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}`;
}

/**
 * Which mount an object was reached through. Its device does not tell: a bind mount may show another part of
 * the same one, and an overlay gives its files numbers of their own. Where the kernel does not say, the device.
 */
export function mountOf(pinned: Pinned): string {
  const about = attemptNow(() => readFileSync(`/proc/self/fdinfo/${pinned.descriptor}`, "latin1"));
  const mount = about.ok ? /^mnt_id:\s*([0-9]+)$/m.exec(about.value)?.[1] : undefined;
  return mount ?? `device ${pinned.stat.dev}`;
}

/** Bytes from a position until `length` or the end of the file. */
export async function readBytes(
  file: FileHandle,
  position: number,
  length: number,
  signal: AbortSignal,
): Promise<Result<Buffer, FileFault>> {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    if (signal.aborted) return fault("cancelled");
    const at = filled;
    const read = await attempt(() => file.read(buffer, at, length - at, position + at));
    if (!read.ok) return read;
    if (read.value.bytesRead === 0) break;
    filled += read.value.bytesRead;
  }
  return ok(buffer.subarray(0, filled));
}
