// Users, groups and directories, for sysusers.d(5) and tmpfiles.d(5).

import { ROOT_DIRECTORY } from "./systemd_sandbox.ts";
import { OPERATORS_GROUP, SOCKETS_DIRECTORY, USER, USER_PREFIX } from "./systemd_units.ts";
import { pathWord } from "./systemd_words.ts";

/** Of the daemon and the connector, and the group of those who operate. */
export const OWN_USERS = `# The users of callgate itself; systemd-sysusers makes them.
u ${USER} - "callgate broker" /var/lib/callgate
u ${USER_PREFIX}connector - "callgate model connector" /var/lib/callgate-connector

# Who may answer questions and keep the broker: usermod --append --groups ${OPERATORS_GROUP} NAME. Being put into a group counts
# from the next login on.
g ${OPERATORS_GROUP}
`;

/** A user for each role, by its name: those that the config names and that are callgate's to make. */
export function roleUsers(users: readonly string[]): string {
  const lines = users.map((user) => `u ${user} - "callgate role ${user.slice(USER_PREFIX.length)}"\n`);
  return `# The users of the roles that the config has; systemd-sysusers makes them.\n${lines.join("")}`;
}

/** Root's: nobody else makes, replaces or removes a socket, or puts something into the units' root. */
export function directories(sockets: string): string {
  return `# Where the roles' sockets are, and the root of what the units see; systemd-tmpfiles --create makes both.
d ${pathWord(sockets)} 0755 root root
d ${ROOT_DIRECTORY} 0755 root root
`;
}

export const OWN_DIRECTORIES = directories(SOCKETS_DIRECTORY);
