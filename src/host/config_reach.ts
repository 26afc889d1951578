// Questions that warnings ask of a config without faults: who may use which tool, who provides, which
// roles are one user. Approximate where only a call could tell; decides nothing.

import { type Pattern, toolPatternMatches } from "../base/ids.ts";
import { type ConfigWarning, type Located, listed, type Position, quote } from "./config_faults.ts";
import type { GivingDraft } from "./config_gives.ts";
import { BUILTIN_TOOLS, couldBeAnnounced, type GrantDraft, type Surroundings } from "./config_grants.ts";
import type { RoleDraft } from "./config_roles.ts";
import type { Settings, SettingsPlaces } from "./config_settings.ts";

/** A config without faults, with the places of its parts. */
export interface Compiled extends Surroundings {
  readonly grants: readonly GrantDraft[];
  readonly gives: readonly GivingDraft[];
  readonly settings: Settings;
  readonly at: SettingsPlaces;
  /** Where `allow_same_user = true` stands. */
  readonly sameUserAt: Position | undefined;
  readonly nowMs: number;
}

export type Warn = (code: ConfigWarning["code"], at: Position, message: string) => void;

export function reaches(patterns: readonly Pattern[], tool: string): boolean {
  return patterns.some((pattern) => toolPatternMatches(pattern, tool));
}

/** Whether some grant of the role may let it use the tool: one that has not expired, and no plain deny against it. */
export function mayUse(role: string, tool: string, { grants, nowMs }: Compiled): boolean {
  const serving = grants
    .map(({ policy }) => policy)
    .filter((grant) => grant.role === role && reaches(grant.tools, tool));
  if (serving.some((grant) => grant.effect === "deny" && isUnconditional(grant))) return false;
  return serving.some((grant) => grant.effect !== "deny" && !hasExpired(grant, nowMs));
}

export function hasExpired({ expiresAtMs }: GrantDraft["policy"], nowMs: number): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= nowMs;
}

function isUnconditional(grant: GrantDraft["policy"]): boolean {
  return grant.when === undefined && grant.sessions.length === 0;
}

/** Whoever connects as a provider reads the arguments of its calls, and answers them. */
export function isProvider({ policy }: RoleDraft, { tools }: Compiled): boolean {
  return policy.provides.length > 0 || [...tools.values()].some((tool) => tool.policy.role === policy.name);
}

/** Names of configured tools that a pattern reaches, and whether one that is announced one day could be among them. */
export function reachedTools(pattern: Pattern, around: Surroundings): readonly string[] {
  const names = [...around.tools.keys()].filter((name) => toolPatternMatches(pattern, name));
  return !around.tools.has(pattern) && couldBeAnnounced(pattern, around)
    ? [...names, "announced tools"]
    : names;
}

/**
 * A deny that matches nothing protects nothing, and an allow that does is likely misspelt. Tools that may be announced one
 * day are told of together: servers have dozens.
 */
export function warnOfNothing(tools: readonly Located<Pattern>[], around: Surroundings, warn: Warn): void {
  const unreached = tools.filter(({ value }) => !isReached(value, around));
  for (const { value, at } of unreached) {
    if (couldBeAnnounced(value, around)) continue;
    const why = "matches no tool that is configured or that a role may announce; correct or remove it";
    warn("matches_nothing", at, `${quote(value)} ${why}`);
  }
  const later = unreached.filter(({ value }) => couldBeAnnounced(value, around) && !value.endsWith("*"));
  const [first] = later;
  if (first === undefined) return;
  const names = listed(later.map(({ value }) => quote(value)));
  const why =
    later.length === 1
      ? "is not configured: this does nothing until a role announces it and an operator accepts it"
      : "are not configured: each does nothing until a role announces it and an operator accepts it";
  warn("not_configured", first.at, `${names} ${why}`);
}

function isReached(pattern: Pattern, { tools }: Surroundings): boolean {
  const known = [...tools.keys(), ...BUILTIN_TOOLS];
  return pattern === "*" || known.some((name) => toolPatternMatches(pattern, name));
}

/** Whether a user or group that is named for the one is named for the other too. */
export function sharesUsers(a: RoleDraft, b: RoleDraft): boolean {
  const [one, other] = [a.policy.admits, b.policy.admits];
  if (one === "anyone" || other === "anyone") return false;
  return intersects(one.uids, other.uids) || intersects(one.gids, other.gids);
}

/** Whether they are one and the same, as far as users go. */
export function hasSameUsers(a: RoleDraft, b: RoleDraft): boolean {
  const [one, other] = [a.policy.admits, b.policy.admits];
  if (one === "anyone" || other === "anyone") return false;
  return isEqual(one.uids, other.uids) && isEqual(one.gids, other.gids);
}

function isEqual(a: ReadonlySet<number>, b: ReadonlySet<number>): boolean {
  return a.size === b.size && [...a].every((id) => b.has(id));
}

function intersects(a: ReadonlySet<number>, b: ReadonlySet<number>): boolean {
  return [...a].some((id) => b.has(id));
}

/**
 * Whether whoever connects as `actor` would act for itself toward `role`, however it comes in: the broker
 * holds anybody who could connect as a role for that role's own (unless `allow_same_user`).
 */
export function actsForItself(actor: RoleDraft, role: RoleDraft, { sameUserAt }: Compiled): boolean {
  if (actor === role) return true;
  if (sameUserAt !== undefined) return false;
  const [one, other] = [actor.policy.admits, role.policy.admits];
  if (other === "anyone") return true;
  if (one === "anyone") return false;
  return (
    [...one.uids].every((uid) => other.uids.has(uid)) && [...one.gids].every((gid) => other.gids.has(gid))
  );
}
