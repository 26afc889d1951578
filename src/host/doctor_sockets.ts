// `callgate doctor`: the directory of the sockets and the sockets in it: whether they are there, whose they are, how open they
// are, and whether those who are admitted can reach theirs. They are looked at and never connected to: a stranger's
// connection would be refused, and told in the audit.

import { lstatSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { visibleLine } from "../base/display.ts";
import {
  type Examined,
  errorFinding,
  type Finding,
  noteFinding,
  unseenFinding,
  warningFinding,
} from "../base/findings.ts";
import { shellWord } from "../base/shell_word.ts";
import type { RolePolicy } from "../policy/policy.ts";
import { AS_ROOT, pathFinding, unread } from "./doctor_config.ts";
import type { Place } from "./doctor_place.ts";
import { barrier, type Identity, WANTED } from "./doctor_users.ts";
import { SOCKET_PATH_BYTES_MAX } from "./socket_files.ts";
import { checkDirectory } from "./trusted_paths.ts";

const SUFFIX = ".sock";
/** Room below the limit that a longer name of a role may take one day. */
const PATH_BYTES_NEAR = SOCKET_PATH_BYTES_MAX - 4;

export function examineSockets(place: Place): Examined {
  const check = "sockets";
  if (!place.config.ok) return unread(check, place);
  const { config } = place.config.value;
  const directory = config.socketsDir;
  const roles = [...config.policy.roles.values()];
  const trusted = checkDirectory(directory, place.user.uid);
  const found = roles.map((role) => ({ role, path: join(directory, `${role.name}${SUFFIX}`) }));
  const summary = `${found.filter(({ path }) => isSocket(path)).length} of ${roles.length} sockets in ${visibleLine(directory)}`;
  if (!trusted.ok) {
    const missing = trusted.fault.code === "missing";
    if (missing && place.living === "none") return { check, summary, findings: [notMade(directory)] };
    return { check, summary, findings: [pathFinding("sockets", trusted.fault, place, DIRECTORY_WHY)] };
  }
  const findings = found.flatMap(({ role, path }) => socketFindings(role, path, place));
  return { check, summary, findings: [...findings, ...foreign(directory, roles, place)] };
}

const DIRECTORY_WHY =
  "who can write there, or above it, can put a socket of their own in the place of a role's: the daemon does not start";

function notMade(directory: string): Finding {
  return noteFinding({
    code: "sockets_none",
    what: `${visibleLine(directory)} is not there, and no daemon runs`,
    why: "the daemon makes it at its start, where it may",
    mend: [],
  });
}

function socketFindings(role: RolePolicy, path: string, place: Place): readonly Finding[] {
  const stats = statsOf(path);
  if (stats === "unseen") return [unseenSocket(path, role)];
  if (stats === undefined) return [...absent(role, path, place), ...near(role, path)];
  if (!stats.isSocket()) return [notSocket(path)];
  const wrong = [ownerOf(path, stats, place), modeOf(role, path, stats), groupOf(role, path, stats, place)];
  const findings = wrong.filter((one) => one !== undefined);
  const stale = place.living === "none" && stats.uid !== 0 ? [staleSocket(path)] : [];
  return [...findings, ...stale, ...unreachable(role, path, place), ...near(role, path)];
}

function isSocket(path: string): boolean {
  const stats = statsOf(path);
  return stats !== "unseen" && stats?.isSocket() === true;
}

/** undefined: it is not there. */
function statsOf(path: string): Stats | "unseen" | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return "unseen";
  }
}

function unseenSocket(path: string, { name }: RolePolicy): Finding {
  return unseenFinding({
    code: "socket_unseen",
    what: `${visibleLine(path)} can't be looked at by this user`,
    why: `whether those whom role ${name} admits can connect, and nobody else, is not known`,
    mend: AS_ROOT,
  });
}

/** Where a daemon lives it listens everywhere, or its socket was taken away. */
function absent({ name }: RolePolicy, path: string, { living }: Place): readonly Finding[] {
  if (typeof living !== "object") return [];
  return [
    errorFinding({
      code: "socket_missing",
      what: `the daemon (pid ${living.pid}) lives, and role ${name} has no socket ${visibleLine(path)}`,
      why: "nobody can connect as that role: somebody removed it, or the config was changed since",
      mend: ["systemctl restart callgate"],
    }),
  ];
}

function notSocket(path: string): Finding {
  return errorFinding({
    code: "socket_other",
    what: `${visibleLine(path)} is something else than a socket`,
    why: "the daemon does not start while it is in the way",
    mend: [`mv ${shellWord(path)} ${shellWord(`${path}.aside`)}`],
  });
}

function staleSocket(path: string): Finding {
  return noteFinding({
    code: "socket_stale",
    what: `${visibleLine(path)} was left by a daemon that is gone`,
    why: "the next start removes it",
    mend: [],
  });
}

function ownerOf(path: string, { uid }: Stats, { user, accounts }: Place): Finding | undefined {
  if (uid === 0 || uid === user.uid) return undefined;
  return errorFinding({
    code: "socket_owner",
    what: `${visibleLine(path)} belongs to ${accounts.userText(uid)}, neither to the daemon's user ${user.text} nor to root`,
    why: "whoever owns a socket can open it to others, and listen there in the daemon's place",
    mend: [`rm ${shellWord(path)}`, "systemctl restart callgate"],
  });
}

function modeOf({ name, socket }: RolePolicy, path: string, { mode }: Stats): Finding | undefined {
  const has = mode & 0o777;
  if (has === socket.mode) return undefined;
  const told = {
    code: "socket_mode",
    what: `${visibleLine(path)} has mode ${octal(has)} where the config says ${octal(socket.mode)}`,
    mend: [
      `chmod ${octal(socket.mode)} ${shellWord(path)}`,
      "# where systemd makes it: SocketMode= in its .socket unit",
    ],
  };
  if ((has & ~socket.mode) === 0)
    return warningFinding({ ...told, why: `not everybody whom role ${name} admits can connect` });
  return errorFinding({ ...told, why: "users whom the config keeps out get to speak to the daemon" });
}

function groupOf(
  { name, socket }: RolePolicy,
  path: string,
  { gid }: Stats,
  { accounts }: Place,
): Finding | undefined {
  if (socket.gid === undefined || socket.gid === gid) return undefined;
  const group = accounts.groupName(socket.gid) ?? String(socket.gid);
  return errorFinding({
    code: "socket_group",
    what: `${visibleLine(path)} is of group ${accounts.groupText(gid)} where the config says ${accounts.groupText(socket.gid)}`,
    why: `those whom role ${name} is for can't connect, and others get to try`,
    mend: [
      `chgrp ${shellWord(group)} ${shellWord(path)}`,
      "# where systemd makes it: SocketGroup= in its .socket unit",
    ],
  });
}

/**
 * Users by name alone: who is in a group is known only when they connect. So are the groups of a user without an account here
 * (of another container): that user counts as one of the socket's group.
 */
function unreachable(
  { name, admits, socket }: RolePolicy,
  path: string,
  { accounts }: Place,
): readonly Finding[] {
  if (admits === "anyone") return [];
  const users = [...admits.uids].map((uid): Identity => {
    const isKnown = accounts.userName(uid) !== undefined;
    return isKnown || socket.gid === undefined
      ? accounts.identity(uid)
      : { uid, gids: new Set([socket.gid]) };
  });
  return users.flatMap((user) => {
    const stopped = barrier(path, user, WANTED.write);
    if (stopped === undefined) return [];
    const isSocket = stopped === path;
    return [
      errorFinding({
        code: "socket_unreachable",
        what: `${accounts.userText(user.uid)}, whom role ${name} admits, can't reach ${visibleLine(path)}: by its mode ${visibleLine(stopped)} keeps them out`,
        why: "every call of that user ends in `unreachable` (EACCES)",
        mend: isSocket
          ? [
              `# give [roles.${name}] a \`group\` that they are in (or SocketGroup= in its .socket unit), then:`,
              "systemctl restart callgate",
            ]
          : [`chmod a+x ${shellWord(stopped)}`],
      }),
    ];
  });
}

function near({ name }: RolePolicy, path: string): readonly Finding[] {
  const bytes = Buffer.byteLength(path);
  if (bytes <= PATH_BYTES_NEAR) return []; // one that is too long is a mistake of the config
  return [
    noteFinding({
      code: "socket_path_long",
      what: `the socket of role ${name} has a path of ${bytes} bytes; ${SOCKET_PATH_BYTES_MAX} are the most`,
      why: "a role with a longer name would have no room",
      mend: [],
    }),
  ];
}

/** Sockets of roles that the config does not have any more. */
function foreign(directory: string, roles: readonly RolePolicy[], { living }: Place): readonly Finding[] {
  const known = new Set(roles.map(({ name }) => `${name}${SUFFIX}`));
  const others = namesIn(directory).filter((name) => name.endsWith(SUFFIX) && !known.has(name));
  return others.map((name) => {
    const path = join(directory, name);
    return warningFinding({
      code: "socket_foreign",
      what: `${visibleLine(path)} belongs to no role of the config`,
      why:
        typeof living === "object"
          ? "its role was removed, or another program listens there; whoever connects is served by no policy that you can read"
          : "nobody removes it, and who connects waits in vain",
      mend: [`rm ${shellWord(path)}`],
    });
  });
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}
