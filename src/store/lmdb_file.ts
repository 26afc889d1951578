// Whether a file can be handed to the engine at all: the library ends the process where it is given a file
// that is none of its own.

import { closeSync, openSync, readSync } from "node:fs";

/** Where the first page of a file of LMDB's has what; little-endian. */
const AT = { magic: 24, version: 28 } as const;
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
