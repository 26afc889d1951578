// The names in a pinned directory, and how an entry is described to the caller: JSON values whose
// names are text even where the disk holds other bytes.

import { type BigIntStats, constants, type Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { fault, ok, type Result } from "../../base/faults.ts";
import { type Pinned, pathOfDescriptor } from "./descriptor.ts";
import { attempt, type FileFault } from "./file_fault.ts";
import { isPlainName } from "./file_path.ts";

export interface Entry {
  /** As the disk holds it. */
  readonly name: Buffer;
  /** As it was when the directory was read: good for skipping, never for trusting. */
  readonly type: EntryType;
}

export interface Entries {
  /** By name, in byte order. */
  readonly entries: readonly Entry[];
  /** Whether the directory holds more than were asked for. */
  readonly more: boolean;
}

/** At most `max` entries; which ones of a larger directory is the file system's choice. */
export async function readEntries(
  directory: Pinned,
  max: number,
  signal: AbortSignal,
): Promise<Result<Entries, FileFault>> {
  const path = pathOfDescriptor(directory.descriptor);
  const read = await attempt(async () => {
    const entries: Entry[] = [];
    for await (const entry of await opendir(path, { encoding: BYTES, bufferSize: 256 })) {
      if (signal.aborted || entries.length > max) break;
      entries.push({ name: bytesOf(entry.name), type: typeOf(entry) });
    }
    return entries;
  });
  if (!read.ok) return read;
  if (signal.aborted) return fault("cancelled");
  const entries = read.value.slice(0, max).sort((a, b) => Buffer.compare(a.name, b.name));
  return ok({ entries, more: read.value.length > max });
}

/** Node takes and gives names as bytes here as in readdir; only its type declarations don't say so. */
const BYTES = "buffer" as BufferEncoding;

function bytesOf(name: unknown): Buffer {
  if (Buffer.isBuffer(name)) return name;
  throw new Error("opendir gave a name that is not bytes");
}

type Kind = Pick<Dirent, "isFile" | "isDirectory" | "isSymbolicLink" | "isFIFO" | "isSocket">;

export type EntryType = "file" | "directory" | "symlink" | "fifo" | "socket" | "device";

export function typeOf(stat: Kind): EntryType {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  if (stat.isSymbolicLink()) return "symlink";
  if (stat.isFIFO()) return "fifo";
  return stat.isSocket() ? "socket" : "device";
}

/** The name as text, and `unnameable` where no path that this provider accepts could name it. */
export function describeName(name: Buffer): { readonly name: string; readonly unnameable?: true } {
  const text = name.toString("utf8");
  const exact = isPlainName(text) && Buffer.from(text).equals(name);
  return exact ? { name: text } : { name: text, unnameable: true };
}

export function describeStat(stat: BigIntStats): Record<string, unknown> {
  return {
    type: typeOf(stat),
    ...(stat.isFile() ? { size: Number(stat.size) } : {}),
    ...describeTime(stat.mtimeMs),
    mode: (Number(stat.mode) & ~constants.S_IFMT).toString(8).padStart(4, "0"),
  };
}

/** The most milliseconds from the epoch that a Date can hold (ECMA-262, 21.4.1.1). */
const DATE_MS_MAX = 8_640_000_000_000_000n;

/** Nothing for a time that no calendar reaches: anybody may set a file's times. */
function describeTime(ms: bigint): { readonly modified?: string } {
  if (ms > DATE_MS_MAX || ms < -DATE_MS_MAX) return {};
  return { modified: new Date(Number(ms)).toISOString() };
}
