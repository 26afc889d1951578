// The one file that imports lmdb: how its environment is opened, the same way by whoever reads and by
// the worker that writes. What is done with it is theirs.
// Invariant: a transaction that has returned is flushed to disk (no overlapping sync).

import { getSystemErrorName } from "node:util";
import { open, type RootDatabase } from "lmdb";

export type Environment = RootDatabase<Buffer, Uint8Array>;

/** Address space that the map may take, which bounds the file; memory and disk are taken as they are used. */
const MAP_BYTES = 68_719_476_736;

export const STATE_FILE = "state.mdb";

/** `readOnly`: beside whoever writes. Throws what the library throws; whoever calls makes it a value. */
export function openEnvironment(path: string, readOnly = false): Environment {
  const options = {
    path,
    readOnly,
    noSubdir: true,
    encoding: "binary",
    keyEncoding: "binary",
    overlappingSync: false,
    cache: false,
    compression: false,
    /** Nothing of this process's memory gets into the file but what is written to it. */
    noMemInit: false,
    mapSize: MAP_BYTES,
    /** The library knows it, its types do not. */
    permissionsMode: 0o600,
  } as const;
  return open<Buffer, Uint8Array>(options);
}

/** Symbolic name of what the library threw; never its message, which may quote a path. */
export function lmdbCode(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const named = /\b(?:MDB_[A-Z_]+|E[A-Z]{2,})\b/.exec(error.message)?.[0];
  if (named !== undefined) return named;
  const code = "code" in error ? error.code : undefined;
  // The system's own numbers are positive, the library's negative.
  if (typeof code === "number" && code > 0) return getSystemErrorName(-code);
  return code === undefined ? error.name : String(code);
}
