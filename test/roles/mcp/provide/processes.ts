// Processes by a word in their command line: what a server in a namespace calls its processes says nothing out here.

import { readdirSync, readFileSync } from "node:fs";

export interface Found {
  readonly pid: number;
  readonly words: readonly string[];
}

/** Those of which some word contains it; one that has ended, and that nobody has asked for yet, has no words. */
export function processesWith(mark: string): readonly Found[] {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .map((name) => ({ pid: Number(name), words: wordsOf(name) }))
    .filter(({ pid, words }) => pid !== process.pid && words.some((word) => word.includes(mark)));
}

/** Resolves when as many of them are there; a process's start and end are no events for others. */
export async function untilProcesses(mark: string, isEnough: (count: number) => boolean): Promise<void> {
  while (!isEnough(processesWith(mark).length)) await new Promise((resolve) => setTimeout(resolve, 25));
}

function wordsOf(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
}

/** Zombies whose parent is this process. */
export function zombiesOf(parent: number): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .filter((name) => {
      try {
        const status = readFileSync(`/proc/${name}/status`, "utf8");
        return /^State:\s+Z/m.test(status) && new RegExp(`^PPid:\\s+${parent}$`, "m").test(status);
      } catch {
        return false;
      }
    })
    .map(Number);
}
