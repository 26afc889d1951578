// Users, groups and directories, for sysusers.d(5) and tmpfiles.d(5).

import { ROOT_DIRECTORY } from "./systemd_sandbox.ts";
import { OPERATORS_GROUP, SOCKETS_DIRECTORY, USER, USER_PREFIX } from "./systemd_units.ts";
import { pathWord } from "./systemd_words.ts";

/** Of the daemon and the connector, and the group of those who operate. */
export const OWN_USERS = `# The users of callgate itself; systemd-sysusers makes them.
u ${USER} - "callgate broker" /var/lib/callgate
u ${USER_PREFIX}connector - "callgate model connector" /var/lib/callgate-connector

# Who may answer questions and keep the broker: those that the config names are put into it, others by usermod --append
# --groups ${OPERATORS_GROUP} NAME. Being put into a group counts from the next login on.
g ${OPERATORS_GROUP}
`;

/** Who gets through the roles' sockets, by names. */
export interface RoleUsers {
  /** A user for each role, by its name: those that the config names and that are callgate's to make. */
  readonly users: readonly string[];
  /** The groups of roles that somebody else runs. */
  readonly groups: readonly string[];
  /** Users of the machine, each with the group of a role of theirs. One that is not there would be made, with no way to log in. */
  readonly members: readonly (readonly [user: string, group: string, isThere: boolean])[];
}

export function roleUsers({ users, groups, members }: RoleUsers): string {
  const about = (name: string) => `"callgate role ${name.slice(USER_PREFIX.length)}"`;
  const lines = [
    ...users.map((user) => `u ${user} - ${about(user)}`),
    ...groups.map((group) => `g ${group}`),
    ...members.map(([user, group, isThere]) => `${isThere ? "" : "#"}m ${user} ${group}`),
  ];
  return `# The users of the roles that the config has, and who runs some of them; systemd-sysusers makes them.
${lines.map((line) => `${line}\n`).join("")}`;
}

/** Root's: nobody else makes, replaces or removes a socket, or puts something into the units' root. */
export function directories(sockets: string): string {
  return `# Where the roles' sockets are, and the root of what the units see; systemd-tmpfiles --create makes both.
d ${pathWord(sockets)} 0755 root root
d ${ROOT_DIRECTORY} 0755 root root
`;
}

export const OWN_DIRECTORIES = directories(SOCKETS_DIRECTORY);
