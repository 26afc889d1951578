// Space that is kept back on the store's disk: a file of zeros that goes when operators need to write
// on a full disk, and comes back when there is room. Whether it can come back tells that there is.
// Invariant: held means that its bytes are on disk; a part of it is never left behind.

import { open, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Reserve } from "../store/journal.ts";

/** What an operator's commits may take on a full disk: some hundred of them. */
export const RESERVE_BYTES = 4_194_304;
const RESERVE_FILE = "reserve";
const BESIDE_FILE = "reserve.probe";
const CHUNK_BYTES = 262_144;

export function reserveFile(directory: string): Reserve {
  const path = join(directory, RESERVE_FILE);
  const beside = join(directory, BESIDE_FILE);
  const hold = async () => (await bytesOf(path)) === RESERVE_BYTES || fill(path);
  return {
    hold,
    regain: async () => {
      const room = (await hold()) && (await fill(beside));
      await rm(beside, { force: true }).catch(() => undefined);
      return room;
    },
    release: async () => {
      const held = (await bytesOf(path)) > 0;
      await rm(path, { force: true }).catch(() => undefined);
      return held;
    },
  };
}

async function bytesOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch {
    return 0;
  }
}

async function fill(path: string): Promise<boolean> {
  try {
    const file = await open(path, "w", 0o600);
    try {
      const zeros = Buffer.alloc(CHUNK_BYTES);
      for (let at = 0; at < RESERVE_BYTES; at += CHUNK_BYTES) await writeWhole(file, zeros);
      await file.sync();
    } finally {
      await file.close();
    }
    return true;
  } catch {
    await rm(path, { force: true }).catch(() => undefined);
    return false;
  }
}

async function writeWhole(file: Awaited<ReturnType<typeof open>>, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
}
