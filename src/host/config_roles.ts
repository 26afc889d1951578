// `[roles.NAME]`: who may connect as a role, through which socket, under which limits. Each role is
// read on its own here; what two roles must not both claim is checked in config_provides.ts.

import { isRoleName } from "../base/ids.ts";
import { DATA_CLASSES } from "../base/labels.ts";
import { ROLE_LIMITS_DEFAULT, type RoleLimits } from "../base/limits.ts";
import type { RolePolicy } from "../policy/policy.ts";
import { type Position, quote, type Report } from "./config_faults.ts";
import { type Identities, nameOrId, resolveId } from "./config_identities.ts";
import { flag, integer, list, oneOf, readTable, type TableRead, table, text } from "./config_shape.ts";
import type { TomlTable } from "./config_toml.ts";

const PREFIX = /^[a-z][a-z0-9_.-]{0,126}$/;

const ROLE_SHAPE = {
  users: list(nameOrId, "a list of user names or ids"),
  groups: list(nameOrId, "a list of group names or ids"),
  anyone: flag,
  mode: text('"0600", "0660" or, with anyone = true, "0666"', (mode) => /^06(?:00|60|66)$/.test(mode)),
  group: nameOrId,
  sessions: oneOf(["any", "opened"]),
  taint_scope: oneOf(["role", "session"]),
  isolated: flag,
  operator: flag,
  broker: flag,
  class_max: oneOf(DATA_CLASSES),
  provides: list(
    text('a prefix of tool names without *, such as "files."', (prefix) => PREFIX.test(prefix)),
    "a list of prefixes of tool names",
  ),
  connections: integer(1, 10_000),
  limits: table,
} as const;

const BYTES_MIN = 4096;
const BYTES_MAX = 1_099_511_627_776;

const LIMITS_SHAPE = {
  connects_per_second: integer(1, 100_000),
  calls_per_second: integer(1, 10_000_000),
  calls_in_flight: integer(1, 1_000_000),
  joins: integer(1, 1_000_000),
  queued_bytes_in: integer(BYTES_MIN, BYTES_MAX),
  queued_bytes_out: integer(BYTES_MIN, BYTES_MAX),
  sessions: integer(1, 10_000_000),
  stored_bytes: integer(BYTES_MIN, BYTES_MAX),
  pending_approvals: integer(1, 100_000),
  questions_per_hour: integer(1, 1_000_000),
} as const;

export type RoleRead = TableRead<typeof ROLE_SHAPE>;

/** A role and where its parts stand. Faulty parts were reported and are at their defaults. */
export interface RoleDraft {
  readonly policy: RolePolicy;
  readonly read: RoleRead;
  readonly at: Position;
}

export function readRoles(
  roles: TomlTable,
  identities: Identities,
  report: Report,
): ReadonlyMap<string, RoleDraft> {
  const drafts = new Map<string, RoleDraft>();
  for (const [name, entry] of roles.entries) {
    if (!isRoleName(name)) {
      report(
        entry.keyAt,
        `${quote(name)} is no role name; write a lower-case letter, then letters, digits, _ or - (at most 48)`,
      );
    }
    const found = table(entry.value, `roles.${quote(name)}`, report);
    if (found !== undefined) drafts.set(name, readRole(name, found, entry.keyAt, identities, report));
  }
  return drafts;
}

const IN_LIMITS = new Map(
  Object.keys(LIMITS_SHAPE)
    .filter((key) => !Object.hasOwn(ROLE_SHAPE, key))
    .map((key) => [key, `it stands in the role's own table of limits: [roles.NAME.limits]`]),
);
const IN_ROLE = new Map([["connections", "it stands in the role itself, beside users"]]);

function readRole(
  name: string,
  found: TomlTable,
  at: Position,
  identities: Identities,
  report: Report,
): RoleDraft {
  const read = readTable(found, { name: "a role", shape: ROLE_SHAPE, elsewhere: IN_LIMITS }, report);
  const { fields } = read;
  checkSessions(read, report);
  const policy: RolePolicy = {
    name,
    admits: readAdmits(read, identities, at, report),
    socket: readSocket(read, identities, report),
    sessions: fields.sessions?.value ?? "any",
    taintScope: fields.taint_scope?.value ?? "role",
    isolated: fields.isolated?.value ?? false,
    operator: fields.operator?.value ?? false,
    broker: fields.broker?.value ?? false,
    classMax: fields.class_max?.value ?? "restricted",
    provides: (fields.provides?.value ?? []).map((prefix) => prefix.value),
    limits: readLimits(read, report),
  };
  return { policy, read, at };
}

function readAdmits(
  read: RoleRead,
  identities: Identities,
  at: Position,
  report: Report,
): RolePolicy["admits"] {
  const { users, groups, anyone } = read.fields;
  const named = read.keys.get("users") ?? read.keys.get("groups");
  if (anyone?.value === true) {
    if (named !== undefined) report(named, "users and groups mean nothing beside anyone = true; keep one");
    return "anyone";
  }
  if (admitsNobody(read)) {
    report(named ?? at, 'the role admits nobody; write users = ["..."], groups = ["..."] or anyone = true');
  }
  return { uids: idsOf(users, "user"), gids: idsOf(groups, "group") };

  function idsOf(field: RoleRead["fields"]["users"], kind: "user" | "group"): ReadonlySet<number> {
    const ids = (field?.value ?? []).map((who) => resolveId(who.value, kind, identities, who.at, report));
    return new Set(ids.filter((id) => id !== undefined));
  }
}

/** Keys that were refused have been reported and may have named somebody. */
function admitsNobody({ fields, keys }: RoleRead): boolean {
  if (keys.has("anyone") && fields.anyone === undefined) return false;
  return (["users", "groups"] as const).every((key) =>
    keys.has(key) ? fields[key]?.value.length === 0 : true,
  );
}

function readSocket(read: RoleRead, identities: Identities, report: Report): RolePolicy["socket"] {
  const { mode, group, anyone } = read.fields;
  const open = anyone?.value === true;
  if (mode?.value === "0666" && !open) {
    report(
      mode.at,
      'mode "0666" lets every local user connect; write anyone = true too, or "0660" and a group',
    );
  }
  const gid = group === undefined ? undefined : resolveId(group.value, "group", identities, group.at, report);
  const byDefault = read.keys.has("group") ? 0o660 : open ? 0o666 : 0o600;
  return { mode: mode === undefined ? byDefault : Number.parseInt(mode.value, 8), gid };
}

/** A name that the caller chooses must not be a clean slate (spec: broker, Sessions and taint). */
function checkSessions(read: RoleRead, report: Report): void {
  const { taint_scope: scope, sessions } = read.fields;
  if (scope?.value !== "session" || sessions?.value === "opened") return;
  if (sessions === undefined && read.keys.has("sessions")) return;
  report(
    scope.at,
    'taint_scope = "session" needs sessions = "opened": a caller that names its sessions could pick a clean one',
  );
}

function readLimits(read: RoleRead, report: Report): RoleLimits {
  const { connections, limits } = read.fields;
  const set = new Map<string, number>();
  if (connections !== undefined) set.set("connections", connections.value);
  if (limits !== undefined) {
    const rules = { name: "a role's limits", shape: LIMITS_SHAPE, elsewhere: IN_ROLE };
    for (const [key, limit] of Object.entries(readTable(limits.value, rules, report).fields)) {
      if (limit !== undefined) set.set(key, limit.value);
    }
  }
  return { ...ROLE_LIMITS_DEFAULT, ...Object.fromEntries(set) };
}
