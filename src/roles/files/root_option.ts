// How the owner writes a root on the command line: `[OPTION,…:]/DIRECTORY`. Options stand in front
// and hold no slash, so that everything from the first slash on is the directory, colons and commas
// included. What is not said is the careful reading: internal, untrusted, read-only.

import { fault, ok, type Result } from "../../base/faults.ts";
import { DATA_CLASSES } from "../../base/labels.ts";
import type { FilesRoot } from "./roots.ts";

export const ROOT_OPTION_SYNTAX = `[OPTION,...:]/DIRECTORY with the options ${DATA_CLASSES.join("|")} (default internal), trusted|untrusted (default untrusted), rw|ro (default ro)`;

/** `/srv/docs`, `confidential:/srv/hr`, `public,trusted,rw:/srv/a:b`. Two options about one thing are refused. */
export function parseRootOption(option: string): Result<FilesRoot> {
  const slash = option.indexOf("/");
  const before = option.slice(0, Math.max(slash, 0));
  if (slash < 0 || (before !== "" && !before.endsWith(":"))) return fault(`a root is ${ROOT_OPTION_SYNTAX}`);
  const words = before === "" ? [] : before.slice(0, -1).split(",");
  const known: readonly (readonly string[])[] = [DATA_CLASSES, ["trusted", "untrusted"], ["rw", "ro"]];
  const unknown = words.some((word) => !known.some((group) => group.includes(word)));
  const twice = known.some((group) => words.filter((word) => group.includes(word)).length > 1);
  if (unknown || twice) return fault(`a root is ${ROOT_OPTION_SYNTAX}, each at most once`);
  return ok({
    path: option.slice(slash),
    class: DATA_CLASSES.find((one) => words.includes(one)) ?? "internal",
    untrusted: !words.includes("trusted"),
    writable: words.includes("rw"),
  });
}
