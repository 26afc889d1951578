// `callgate doctor`: the config as the daemon would meet it: its mistakes and what `callgate check` warns of, whether the
// daemon's user can read it and nobody else can write it, and whether the users and groups that it names are there.

import { dirname, join } from "node:path";
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
import type { Place } from "./doctor_place.ts";
import { barrier, WANTED } from "./doctor_users.ts";
import { checkFile, type PathFault } from "./trusted_paths.ts";

/** Of what another user is in the way of. */
export const AS_ROOT: readonly string[] = ["# run this as root"];

/** A file with more mistakes has them listed by `callgate check`. */
const TOLD_MAX = 5;

export function examineConfig(place: Place): Examined {
  const { config, configFile, request } = place;
  const path = request.config;
  if (configFile !== "there") {
    const found = configFile === "none" ? missing(path) : unseen(path);
    return { check: "config", summary: "", findings: [found] };
  }
  const warnings = config.ok ? config.value.warnings.length : 0;
  const mistakes = config.ok ? [] : mistakesOf(place);
  return {
    check: "config",
    summary: `${visibleLine(path)} has no mistakes; the daemon's user: ${place.user.text}, ${place.user.because}`,
    findings: [
      ...mistakes,
      ...warned(path, warnings),
      ...filesOf(place).flatMap((file) => fileFindings(file, place)),
    ],
  };
}

function missing(path: string): Finding {
  return errorFinding({
    code: "config_missing",
    what: `there is no config ${visibleLine(path)}`,
    why: "without one the daemon does not start, and little can be looked at here",
    mend: [
      "# callgate doctor --config FILE, where it is elsewhere; or make one:",
      `callgate init ${shellWord(dirname(path))}`,
    ],
  });
}

function unseen(path: string): Finding {
  return unseenFinding({
    code: "config_unseen",
    what: `the config ${visibleLine(path)} is not this user's to read, or to see`,
    why: "it says where things are, and whose",
    mend: AS_ROOT,
  });
}

function mistakesOf({ config, request }: Place): readonly Finding[] {
  if (config.ok) return [];
  const path = request.config;
  const told = config.fault.slice(0, TOLD_MAX).map(({ line, column, message }) =>
    errorFinding({
      code: "config_mistake",
      what: visibleLine(`${path}:${line}:${column}: ${message}`, 500),
      why: "the daemon does not start with it, and one that runs keeps the policy that it has",
      mend: [`# edit line ${line}, then:`, `callgate check --config ${shellWord(path)}`],
    }),
  );
  const more = config.fault.length - told.length;
  if (more <= 0) return told;
  const rest = errorFinding({
    code: "config_mistakes",
    what: `${visibleLine(path)} has ${more} more of them`,
    why: "each keeps the daemon from starting",
    mend: [`callgate check --config ${shellWord(path)}`],
  });
  return [...told, rest];
}

function warned(path: string, count: number): readonly Finding[] {
  if (count === 0) return [];
  return [
    warningFinding({
      code: "config_warnings",
      what: `callgate check warns of ${count === 1 ? "one thing" : `${count} things`} in ${visibleLine(path)}`,
      why: "the policy lets through, or depends on, more than its owner may have meant",
      mend: [`callgate check --config ${shellWord(path)}`],
    }),
  ];
}

/** The config, and the schemas that it reads. */
function filesOf({ config, request }: Place): readonly string[] {
  const schemas = config.ok ? config.value.schemaFiles.map(({ value }) => value) : [];
  return [request.config, ...new Set(schemas)];
}

function fileFindings(path: string, place: Place): readonly Finding[] {
  const { user } = place;
  const checked = checkFile(path, user.uid);
  const closed = checked.ok ? [] : [pathFinding("config", checked.fault, place, POLICY_WHY)];
  const stopped = barrier(path, user, WANTED.read);
  if (stopped === undefined) return closed;
  const wanted = stopped === path ? "g+r" : "g+x";
  const unreadable = errorFinding({
    code: "config_unreadable",
    what: `${user.text}, the daemon's user, can't read ${visibleLine(path)}: by its mode ${visibleLine(stopped)} keeps it out`,
    why: "the daemon does not start, and can't reload",
    mend: [groupCommand(place, stopped), `chmod ${wanted} ${shellWord(stopped)}`],
  });
  return [...closed, unreadable];
}

const POLICY_WHY = "whoever can write it, or put another in its place, decides what agents may do";

function groupCommand({ user, accounts }: Place, path: string): string {
  const [gid] = user.gids;
  const group = gid === undefined ? "GROUP" : (accounts.groupName(gid) ?? String(gid));
  return `chgrp ${shellWord(group)} ${shellWord(path)}`;
}

/** Of a path that the daemon would refuse, or that we may not look at. */
export function pathFinding(
  check: string,
  found: PathFault,
  { user, accounts }: Place,
  why: string,
): Finding {
  const { code, path, sentence } = found;
  const word = shellWord(path);
  const what = visibleLine(sentence.replace(/:? (?:chmod|chown) .*$|\.$/, ""), 500);
  if (code === "unreadable") return unseenFinding({ code: `${check}_unseen`, what, why, mend: AS_ROOT });
  const owner = user.uid === 0 ? "root" : (accounts.userName(user.uid) ?? String(user.uid));
  const mends: Readonly<Partial<Record<PathFault["code"], string>>> = {
    open_to_others: `chmod go-w ${word}`,
    foreign_owner: `chown ${path === "/" ? "root" : shellWord(owner)} ${word}`,
    missing: `install -d -o ${shellWord(owner)} -m 0755 ${word}`,
  };
  return errorFinding({
    code: `${check}_${code}`,
    what,
    why,
    mend: [mends[code] ?? `ls -ld ${word}  # and move away what is there`],
  });
}

/** Who the roles are for, and whether the daemon can give them their sockets. */
export function examineUsers(place: Place): Examined {
  const { config, accounts } = place;
  const check = "users";
  if (!config.ok) return unread(check, place);
  const roles = [...config.value.config.policy.roles.values()];
  const told = roles.map((role) => `${role.name}: ${admittedText(role, place)}`);
  return {
    check,
    summary: visibleLine(`${told.join("; ")}`, 1000),
    findings: roles.flatMap((role) => [
      ...unnamed(role, place),
      ...(isMember(role, place) ? [] : [notMember(role, place, accounts.groupText(role.socket.gid ?? -1))]),
    ]),
  };
}

/** Of a check that has nothing to go by. */
export function unread(check: string, { configFile }: Place): Examined {
  return {
    check,
    summary: "",
    findings: [
      unseenFinding({
        code: "config_needed",
        what: "not looked at: the config can't be used",
        why: "the config says where things are, and whose",
        mend: configFile === "unseen" ? AS_ROOT : ["# mend the config first"],
      }),
    ],
  };
}

function admittedText({ admits }: RolePolicy, { accounts }: Place): string {
  if (admits === "anyone") return "anyone";
  const users = [...admits.uids].map((uid) => accounts.userName(uid) ?? `uid ${uid}`);
  const groups = [...admits.gids].map((gid) => `group ${accounts.groupName(gid) ?? gid}`);
  return [...users, ...groups].join(", ");
}

/** Named by number: that number may become somebody's one day. */
function unnamed({ name, admits }: RolePolicy, { accounts }: Place): readonly Finding[] {
  if (admits === "anyone") return [];
  const users = [...admits.uids]
    .filter((uid) => accounts.userName(uid) === undefined)
    .map((uid) => `user ${uid}`);
  const groups = [...admits.gids]
    .filter((gid) => accounts.groupName(gid) === undefined)
    .map((gid) => `group ${gid}`);
  return [...users, ...groups].map((who) =>
    noteFinding({
      code: "user_unknown",
      what: `role ${name} admits ${who}, which has no name on this machine`,
      why: "usual in containers; elsewhere some new account may be given that very number one day",
      mend: [],
    }),
  );
}

/** Only root may give a file to a group that it is not in. Sockets that systemd makes are given by it. */
function isMember({ name, socket: { gid } }: RolePolicy, { user, config, listens }: Place): boolean {
  if (gid === undefined || user.uid === 0 || user.gids.has(gid)) return true;
  return config.ok && listens.has(join(config.value.config.socketsDir, `${name}.sock`));
}

function notMember({ name, socket }: RolePolicy, { user, accounts, living }: Place, group: string): Finding {
  const daemon = accounts.userName(user.uid) ?? String(user.uid);
  const named = accounts.groupName(socket.gid ?? -1) ?? String(socket.gid);
  return errorFinding({
    code: "user_not_in_group",
    what: `${user.text}, the daemon's user, is not in the group ${group}, whose the socket of role ${name} shall be`,
    why:
      typeof living === "object"
        ? "the daemon that runs can't make that socket anew, so its next start fails"
        : "the daemon can't give the socket to that group, so it does not start",
    mend: [
      `usermod --append --groups ${shellWord(named)} ${shellWord(daemon)}`,
      "systemctl restart callgate",
    ],
  });
}
