// Programs of the system's own that we run: found where the system keeps them, never by a server's PATH.

import { accessSync, constants, statSync } from "node:fs";

export const SYSTEM_PATH = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin"];

/** Absolute; undefined: there is none here. */
export function systemProgram(name: string): string | undefined {
  return SYSTEM_PATH.map((directory) => `${directory}/${name}`).find((one) => refusal(one) === undefined);
}

/** Why a file can't be run, as a system's error code; undefined: it can, as far as one sees. */
export function refusal(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? undefined : "EACCES";
  } catch (error) {
    const { code = "ENOENT" } = error as NodeJS.ErrnoException;
    return code === "ENOTDIR" ? "ENOENT" : code;
  }
}
