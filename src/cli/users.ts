// Names of users as this machine's own list has them. Users that only a directory service knows keep
// their number.

import { readFileSync } from "node:fs";
import { visibleLine } from "../base/display.ts";

/** `alice (uid 1000)`; without a name where the list has none. */
export function userText(uid: number | null | undefined, listing: () => string = readPasswd): string {
  if (uid === null || uid === undefined) return "user unknown (the kernel did not say)";
  const name = nameOf(uid, listing());
  return name === undefined ? `uid ${uid}` : `${visibleLine(name, 40)} (uid ${uid})`;
}

function nameOf(uid: number, listing: string): string | undefined {
  for (const line of listing.split("\n")) {
    const [name, , number] = line.split(":");
    if (number === String(uid) && name !== undefined && name !== "") return name;
  }
  return undefined;
}

function readPasswd(): string {
  try {
    return readFileSync("/etc/passwd", "utf8");
  } catch {
    return ""; // numbers say enough
  }
}
