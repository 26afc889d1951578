// The last line of a backup's file: a digest of all that stands before it. A damaged file must be found
// out before the engine maps it, since the engine trusts what it maps.
// Invariant: what `checkSeal` lets through is byte for byte what `seal` was given.

import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { fault, ok, type Result } from "../base/faults.ts";
import { errnoCode } from "./trusted_paths.ts";

const BEGIN = "callgate backup 1 sha256:";
const SEAL_BYTES = BEGIN.length + 65;
const SEAL = new RegExp(`^${BEGIN}([0-9a-f]{64})\\n$`);
const CHUNK_BYTES = 1_048_576;

/** Appends it, and flushes the file. @throws what the system throws */
export async function seal(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    const { size } = await file.stat();
    await file.write(`${BEGIN}${await digestOf(file, size)}\n`, size, "latin1");
    await file.sync();
  } finally {
    await file.close();
  }
}

/** How many bytes stand before the seal. The fault is a sentence for people. */
export async function checkSeal(path: string): Promise<Result<number>> {
  try {
    const file = await open(path, "r");
    try {
      return await check(file, path);
    } finally {
      await file.close();
    }
  } catch (error) {
    return fault(`the backup ${JSON.stringify(path)} can't be read (${errnoCode(error)}).`);
  }
}

async function check(file: FileHandle, path: string): Promise<Result<number>> {
  const bytes = (await file.stat()).size - SEAL_BYTES;
  const last = Buffer.alloc(SEAL_BYTES);
  if (bytes > 0) await file.read(last, 0, SEAL_BYTES, bytes);
  const [, digest] = SEAL.exec(last.toString("latin1")) ?? [];
  if (digest === undefined)
    return fault(`${JSON.stringify(path)} is no backup of callgate's, or its end is cut off.`);
  if (digest === (await digestOf(file, bytes))) return ok(bytes);
  return fault(
    `the backup ${JSON.stringify(path)} is damaged: it is not what was written. Take another one.`,
  );
}

/** Of the file's first bytes. */
async function digestOf(file: FileHandle, bytes: number): Promise<string> {
  const digest = createHash("sha256");
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let at = 0; at < bytes; ) {
    const { bytesRead } = await file.read(chunk, 0, Math.min(CHUNK_BYTES, bytes - at), at);
    if (bytesRead === 0) break;
    digest.update(chunk.subarray(0, bytesRead));
    at += bytesRead;
  }
  return digest.digest("hex");
}
