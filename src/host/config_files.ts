// Text files that a config is made of: regular files of bounded size, strictly UTF-8, without a
// byte order mark. Who may write to them is checked where the daemon starts, not here.

import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { fault, ok, type Result } from "../base/faults.ts";
import { type ConfigFault, FILE_START } from "./config_faults.ts";

export const CONFIG_BYTES_MAX = 1_048_576;

/** The fault is at the first line that is no UTF-8, else at the start of the file. */
export async function readText(path: string, bytesMax: number): Promise<Result<string, ConfigFault>> {
  const bytes = await readBytes(path, bytesMax);
  if (!bytes.ok) return fault({ ...FILE_START, message: bytes.fault });
  const decoded = decodeText(bytes.value);
  if (decoded === undefined) {
    const line = firstBrokenLine(bytes.value);
    return fault({ line, column: 1, message: "this line is not UTF-8; save the file as UTF-8" });
  }
  if (decoded.startsWith("\u{feff}")) {
    return fault({ ...FILE_START, message: "the file begins with a byte order mark; save it without one" });
  }
  return ok(decoded);
}

/** A regular file, whole; more than the bound is a fault. */
export async function readBytes(path: string, bytesMax: number): Promise<Result<Buffer>> {
  try {
    // Without O_NONBLOCK a FIFO in the file's place would hold the daemon for ever.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const about = await file.stat();
      if (!about.isFile()) return fault("this is no regular file; name the file itself");
      const buffer = Buffer.alloc(Math.min(about.size, bytesMax) + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length);
        length += bytesRead;
        if (bytesRead === 0 || length === buffer.length) break;
      }
      if (length <= Math.min(about.size, bytesMax)) return ok(buffer.subarray(0, length));
      return fault(`the file is larger than ${bytesMax} bytes, or grows while it is read`);
    } finally {
      await file.close();
    }
  } catch (error) {
    return fault(openFault(error));
  }
}

function openFault(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return "there is no such file";
  if (code === "EACCES") return "the file is not readable for this user";
  return `the file cannot be read (${typeof code === "string" ? code : "unknown error"})`;
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** A line feed is never part of a longer character, so each line can be judged alone. */
function firstBrokenLine(bytes: Buffer): number {
  let line = 1;
  for (let start = 0; start <= bytes.length; line += 1) {
    const found = bytes.indexOf(0x0a, start);
    const end = found === -1 ? bytes.length : found;
    if (decodeText(bytes.subarray(start, end)) === undefined) return line;
    start = end + 1;
  }
  return 1;
}
