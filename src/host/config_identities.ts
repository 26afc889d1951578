// Names of users and groups to numeric ids, out of the texts of /etc/passwd and /etc/group. Users
// that only a directory service knows are named by number; nothing is asked over a network.

import { type Position, quote, type Report } from "./config_faults.ts";
import type { Reader } from "./config_shape.ts";

export interface Identities {
  uid(name: string): number | undefined;
  gid(name: string): number | undefined;
}

export function identitiesOf(passwdText: string, groupText: string): Identities {
  const uids = idsByName(passwdText);
  const gids = idsByName(groupText);
  return { uid: (name) => uids.get(name), gid: (name) => gids.get(name) };
}

/** Lines of `name:x:id:...`; the first of a name counts, as it does for the C library. */
function idsByName(lines: string): ReadonlyMap<string, number> {
  const ids = new Map<string, number>();
  for (const line of lines.split("\n")) {
    const [name, , id] = line.split(":");
    if (name === undefined || name === "" || id === undefined || !/^[0-9]{1,10}$/.test(id)) continue;
    if (!ids.has(name)) ids.set(name, Number(id));
  }
  return ids;
}

/** What the kernel shows for a user that it cannot map: it must never name somebody. */
const OVERFLOW_ID = 65_534;
/** The highest value means "no id" to the kernel. */
const ID_MAX = 4_294_967_294;

/** A name, or an id as a number. A name of digits alone would be both, so it is neither. */
export const nameOrId: Reader<string | number> = (node, name, report) => {
  if (node.kind === "integer" && node.value >= 0 && node.value <= ID_MAX) return node.value;
  if (node.kind === "string" && node.value !== "" && !/^[0-9]+$/.test(node.value)) return node.value;
  return void report(node.at, `${name} must be a name in quotes or a numeric id without quotes`);
};

export function resolveId(
  who: string | number,
  kind: "user" | "group",
  identities: Identities,
  at: Position,
  report: Report,
): number | undefined {
  const id = typeof who === "number" ? who : kind === "user" ? identities.uid(who) : identities.gid(who);
  if (id === undefined) {
    const file = kind === "user" ? "/etc/passwd" : "/etc/group";
    return void report(at, `no ${kind} ${quote(String(who))} in ${file}; create it, or give its numeric id`);
  }
  if (id !== OVERFLOW_ID && id <= ID_MAX) return id;
  return void report(at, `${kind} id ${id} stands for nobody in particular; name a ${kind} of its own`);
}
