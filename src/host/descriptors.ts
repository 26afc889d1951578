// How many descriptors this process may have. Where none is left, libuv takes and drops connections
// without a word, so whether they suffice is told beforehand.

import { readFileSync } from "node:fs";

/** Of the runtime's own and of the listening sockets, beside one for each connection. */
const OTHERS = 64;

/** The soft limit; undefined where it is unlimited or can't be read. */
export function descriptorsMax(limits = processLimits()): number | undefined {
  const soft = /^Max open files +(\d+) /m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** What so many connections need at most, if that is more than there may be. */
export function missingDescriptors(connections: number, max = descriptorsMax()): number | undefined {
  const needed = connections + OTHERS;
  return max === undefined || needed <= max ? undefined : needed;
}

function processLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}
