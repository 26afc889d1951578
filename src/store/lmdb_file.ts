// Whether a file can be handed to the engine at all: the library ends the process where it is given a file
// that is none of its own, and the system does where a page that it maps is beyond the file's end.

import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from "node:fs";

/** Where the first page of a file of LMDB's has what; little-endian. */
const AT = { magic: 24, version: 28, pageBytes: 48, lastPage: 144 } as const;
const MAGIC = 0xbeef_c0de;
const VERSION = 2;
/** Both pages that say where the tree is, at the least size of a page. */
const FILE_BYTES_MIN = 8192;

/** Looks at its beginning only. undefined: the engine may open it; else a symbolic name for why not. @throws what the system throws */
export function unfitFile(path: string): string | undefined {
  const head = Buffer.alloc(FILE_BYTES_MIN);
  const file = openSync(path, "r");
  try {
    if (readSync(file, head, 0, FILE_BYTES_MIN, 0) < FILE_BYTES_MIN) return "TOO_SHORT";
  } finally {
    closeSync(file);
  }
  if (head.readUInt32LE(AT.magic) !== MAGIC) return "NO_DATABASE";
  return head.readUInt32LE(AT.version) === VERSION ? undefined : "OTHER_VERSION";
}

const PAGE_BYTES_MAX = 65_536;

/** Whether it is shorter than it says: it was cut, or its last pages are free and never were written. @throws what the system throws */
export function endsEarly(path: string): boolean {
  const file = openSync(path, "r");
  try {
    return fstatSync(file).size < bytesTold(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Makes a file that was cut as long as it says it is, with zeros: what is missing is then an error where it is
 * read, and not the end of the process. Of a file that `unfitFile` admits. @throws what the system throws
 */
export function lengthenCut(path: string): void {
  const file = openSync(path, "r+");
  try {
    const bytes = fstatSync(file).size;
    const wanted = bytesTold(file);
    if (bytes < wanted) ftruncateSync(file, wanted);
  } finally {
    closeSync(file);
  }
}

/** What the later of both first pages says that the file has. */
function bytesTold(file: number): number {
  const page = Buffer.alloc(FILE_BYTES_MIN);
  readSync(file, page, 0, FILE_BYTES_MIN, 0);
  const pageBytes = page.readUInt32LE(AT.pageBytes);
  if (pageBytes < FILE_BYTES_MIN / 2 || pageBytes > PAGE_BYTES_MAX) return 0;
  let last = page.readBigUInt64LE(AT.lastPage);
  if (readSync(file, page, 0, FILE_BYTES_MIN / 2, pageBytes) === FILE_BYTES_MIN / 2) {
    const other = page.readBigUInt64LE(AT.lastPage);
    if (page.readUInt32LE(AT.magic) === MAGIC && other > last) last = other;
  }
  const bytes = (last + 1n) * BigInt(pageBytes);
  return bytes <= MAP_BYTES_MAX ? Number(bytes) : 0;
}

/** No file of ours is longer. */
const MAP_BYTES_MAX = 68_719_476_736n;
