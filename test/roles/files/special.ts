// Things on a disk that are no files, and users that may not read: what node:fs alone cannot make.

import { execFileSync } from "node:child_process";

export function namedPipe(path: string): void {
  execFileSync("mkfifo", [path]);
}

/**
 * Runs as a user without rights. A superuser, whom permissions don't stop, becomes another user for
 * that long; anybody else is one already.
 */
export async function unprivileged<T>(run: () => Promise<T>): Promise<T> {
  const { geteuid, seteuid } = process;
  if (geteuid === undefined || seteuid === undefined) throw new Error("no user ids here");
  if (geteuid() !== 0) return run();
  seteuid(65_534);
  try {
    return await run();
  } finally {
    seteuid(0);
  }
}
