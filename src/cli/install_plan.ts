// What `callgate install` puts onto a machine for one config, as values: files with their texts, and the units to enable.
// Invariant: every role of the config has its socket unit, and no other has one.

import type { InstalledRole } from "../base/installed_config.ts";
import type { FilesRoot } from "../roles/files/roots.ts";
import { filesPrefix } from "./init_files.ts";
import { daemonDropIn, filesDropIn, type McpGiven, mcpDropIn, socketDropIn } from "./systemd_drop_ins.ts";
import { systemUnits } from "./systemd_files.ts";
import { directories, OWN_USERS, type RoleUsers, roleUsers } from "./systemd_identity.ts";
import { consoleUserUnit, type Places, USER, USER_PREFIX } from "./systemd_units.ts";
import { section, unitText } from "./systemd_words.ts";

export interface InstallRequest {
  readonly places: Places;
  readonly roles: readonly InstalledRole[];
  /** What is given to roles this time; what they were given before stays. */
  readonly files: ReadonlyMap<string, readonly FilesRoot[]>;
  readonly mcp: ReadonlyMap<string, Omit<McpGiven, "prefix" | "user">>;
  /** Whether the machine has a user of that name. */
  readonly isUser: (name: string) => boolean;
  /** Of systemd here; undefined where that is not known. */
  readonly systemd: number | undefined;
}

export interface InstallFile {
  /** Below the root. */
  readonly path: string;
  readonly text: string;
}

export const UNITS = "etc/systemd/system";
export const DROP_IN = "50-callgate.conf";
/** From there on a reload is told by the service itself; two later restarts are spread by the manager. */
const NOTIFY_RELOAD_SINCE = 253;
const RESTART_STEPS_SINCE = 254;

export function planInstall(request: InstallRequest): readonly InstallFile[] {
  const { places, roles, files, mcp } = request;
  const units = [...systemUnits(places)].map(([name, text]) => ({ path: `${UNITS}/${name}`, text }));
  const served = [...files].map(([role, roots]) => {
    const given = { prefix: prefixOf(roles, role), roots, user: otherUser(roles, role) };
    return dropIn(`callgate-files@${role}.service`, filesDropIn(places, role, given));
  });
  const servers = [...mcp].map(([role, one]) => {
    const given = { ...one, prefix: prefixOf(roles, role), user: otherUser(roles, role) };
    return dropIn(`callgate-mcp@${role}.service`, mcpDropIn(places, role, given));
  });
  return [
    ...units,
    dropIn("callgate.service", daemonDropIn(roles.map(({ name }) => `callgate-role@${name}.socket`))),
    ...newer(request.systemd),
    ...roles.flatMap(socketOf),
    ...served,
    ...servers,
    { path: "etc/systemd/user/callgate-console.service", text: consoleUserUnit(places) },
    { path: "etc/sysusers.d/callgate.conf", text: OWN_USERS },
    { path: "etc/sysusers.d/callgate-roles.conf", text: roleUsers(identitiesOf(request)) },
    { path: "etc/tmpfiles.d/callgate.conf", text: directories(places.sockets) },
  ];
}

export function dropInPath(unit: string): string {
  return `${UNITS}/${unit}.d/${DROP_IN}`;
}

function dropIn(unit: string, text: string): InstallFile {
  return { path: dropInPath(unit), text };
}

function socketOf({ name, group, mode }: InstalledRole): readonly InstallFile[] {
  const text = socketDropIn(name, { group: group ?? USER, mode });
  return text === undefined ? [] : [dropIn(`callgate-role@${name}.socket`, text)];
}

/** What an older systemd does not know, and would complain of. */
function newer(systemd: number | undefined): readonly InstallFile[] {
  if (systemd === undefined || systemd < NOTIFY_RELOAD_SINCE) return [];
  const spread = [["RestartSteps", "8"] as const, ["RestartMaxDelaySec", "10"] as const];
  const lines = [
    ["Type", "notify-reload"] as const,
    ["ExecReload", ""] as const,
    ...(systemd < RESTART_STEPS_SINCE ? [] : spread),
  ];
  const about = `systemd ${NOTIFY_RELOAD_SINCE} and newer: a reload ends when the daemon says so.`;
  const path = `${UNITS}/callgate.service.d/60-callgate-newer.conf`;
  return [{ path, text: unitText(about, section("Service", lines)) }];
}

/** What its tools' names begin with: what the config lets it announce, else as `callgate init` writes it. */
function prefixOf(roles: readonly InstalledRole[], role: string): string {
  return roles.find(({ name }) => name === role)?.provides[0] ?? filesPrefix(role);
}

/** Whom the config has for the role where that is not the user of the template. */
function otherUser(roles: readonly InstalledRole[], role: string): string | undefined {
  const users = roles.find(({ name }) => name === role)?.users ?? [];
  return users.length === 0 || users.includes(`${USER_PREFIX}${role}`) ? undefined : users[0];
}

/** What is named after callgate is callgate's to make; everybody else is a person or a program of the machine. */
export function identitiesOf({ roles, isUser }: Pick<InstallRequest, "roles" | "isUser">): RoleUsers {
  const isMade = (name: string) => name.startsWith(USER_PREFIX) && !OWN_NAMES.has(name);
  const users = new Set(roles.flatMap((role) => role.users).filter(isMade));
  const groups = new Set(roles.flatMap(({ group = "" }) => (isMade(group) ? [group] : [])));
  for (const user of users) groups.delete(user); // a user comes with its group
  const members = roles.flatMap(({ users: own, group = "" }) =>
    group.startsWith(USER_PREFIX)
      ? own
          .filter((user) => user !== group && user !== "root")
          .map((user) => [user, group, isMade(user) || isUser(user)] as const)
      : [],
  );
  return { users: [...users].sort(), groups: [...groups].sort(), members };
}

const OWN_NAMES: ReadonlySet<string> = new Set([...[`${USER_PREFIX}operators`, `${USER_PREFIX}connector`]]);
