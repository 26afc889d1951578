// Settings of the kernel that keep unprivileged users from making namespaces, which confining a server needs.

import { readFileSync } from "node:fs";

/** By sysctl's name, the value that forbids them: Ubuntu's, Debian's older one, and everybody's. */
const FORBIDDING = [
  ["kernel.apparmor_restrict_unprivileged_userns", "1"],
  ["kernel.unprivileged_userns_clone", "0"],
  ["user.max_user_namespaces", "0"],
] as const;

/** `NAME = VALUE` of each that forbids them here; a profile or a service manager may forbid them without any. */
export function forbiddingSettings(read: (path: string) => string | undefined = fileText): readonly string[] {
  return FORBIDDING.filter(
    ([name, value]) => read(`/proc/sys/${name.replaceAll(".", "/")}`)?.trim() === value,
  ).map(([name, value]) => `${name} = ${value}`);
}

/** undefined: this kernel has no such setting. */
function fileText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
