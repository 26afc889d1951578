// Files that hold secrets, as commands read them: never a path that others can read, and never a word of what is in them
// in a message.

import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { visibleLine } from "../base/display.ts";
import { UsageFault } from "./call.ts";
import { codeOf } from "./replace_file.ts";

const OTHERS = 0o007;

/** `option`: as it was given, for the message. @throws UsageFault, which names the file and nothing in it */
export function readSecretFile(option: string, path: string, bytesMax: number): Buffer {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(fd);
    if (!stats.isFile()) return refuseSecretFile(option, path, "is no regular file");
    if ((stats.mode & OTHERS) !== 0)
      return refuseSecretFile(option, path, "is open to every user: chmod o= it");
    const buffer = Buffer.alloc(bytesMax + 1);
    const length = readSync(fd, buffer, 0, buffer.length, 0);
    if (length > bytesMax) return refuseSecretFile(option, path, "is too long for a secret");
    return buffer.subarray(0, length);
  } catch (error) {
    if (error instanceof UsageFault) throw error;
    return refuseSecretFile(option, path, `can't be read (${codeOf(error)})`);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** @throws UsageFault */
export function refuseSecretFile(option: string, path: string, why: string): never {
  throw new UsageFault(`${option}: ${visibleLine(JSON.stringify(path), 300)} ${why}`);
}
