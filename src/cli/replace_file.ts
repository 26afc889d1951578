// A file that somebody else reads while it is written anew: replaced as a whole, or not at all.

import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";

/**
 * Replaces the file by one with this text, which is on disk before the name is. What the file's name links to is left as it
 * is. The fault is the system's code.
 */
export async function replaceFile(path: string, text: string, mode = 0o644): Promise<Result<void>> {
  // Hidden, and with another ending: who reads all files of a directory by their ending passes it by.
  const made = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    await writeNew(made, text, mode);
    await rename(made, path);
    return ok(undefined);
  } catch (error) {
    await rm(made, { force: true }).catch(() => undefined);
    return fault(codeOf(error));
  }
}

async function writeNew(path: string, text: string, mode: number): Promise<void> {
  const file = await open(path, "wx", mode);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The system's code of what went wrong with a file. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "unknown error";
}
