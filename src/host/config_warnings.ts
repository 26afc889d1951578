// What a config allows although it is dangerous, and what in it does nothing although it looks as
// if it did. Only about configs without faults; a warning never changes a decision.

import { type Pattern, toolPatternMatches } from "../base/ids.ts";
import { covers } from "../base/labels.ts";
import type { Grant, ToolEffect } from "../policy/policy.ts";
import { warnOfNoDestinations, warnOfNoRequest, warnOfUnknownArguments } from "./config_argument_warnings.ts";
import { type ConfigWarning, inFileOrder, listed, type Position } from "./config_faults.ts";
import { warnOfGiving } from "./config_giving_warnings.ts";
import { BUILTIN_TOOLS, couldBeAnnounced, type GrantDraft } from "./config_grants.ts";
import {
  sharesWithAsker,
  warnOfApprover,
  warnOfAskedMemory,
  warnOfQuestions,
} from "./config_question_warnings.ts";
import {
  type Compiled,
  hasExpired,
  hasSameUsers,
  isProvider,
  mayUse,
  reaches,
  sharesUsers,
  type Warn,
  warnOfNothing,
} from "./config_reach.ts";
import type { RoleDraft } from "./config_roles.ts";
import type { ToolDraft } from "./config_tools.ts";

export function findWarnings(compiled: Compiled): readonly ConfigWarning[] {
  const warnings: ConfigWarning[] = [];
  const warn: Warn = (code, at, message) => void warnings.push({ ...at, code, message });
  if (compiled.sameUserAt !== undefined) warn("same_user", compiled.sameUserAt, SAME_USER);
  warnOfShortAudit(compiled, warn);
  for (const role of compiled.roles.values()) {
    warnOfRole(role, compiled, warn);
    warnOfApprover(role, compiled, warn);
    warnOfSilentProvider(role, compiled, warn);
  }
  for (const tool of compiled.tools.values()) {
    warnOfTool(tool, compiled, warn);
    warnOfNoDestinations(tool, warn);
    warnOfAskedMemory(tool, compiled, warn);
  }
  for (const grant of compiled.grants) {
    warnOfGrant(grant, compiled, warn);
    warnOfUnknownArguments(grant, compiled, warn);
    warnOfNoRequest(grant, compiled, warn);
    warnOfQuestions(grant, compiled, warn);
  }
  for (const giving of compiled.gives) warnOfGiving(giving, compiled, warn);
  return inFileOrder(warnings);
}

const SAME_USER =
  "allow_same_user lets one user approve, endorse, settle and give for a role that it itself runs, and open its " +
  "sessions: whoever takes over that user, the agent's process included, answers to nobody else, and every ask " +
  "is as good as an allow; only for a machine with one person on it";

/** What happened could then be asked for again when nothing tells any more that it happened. */
function warnOfShortAudit({ settings, at }: Compiled, warn: Warn): void {
  if (settings.audit.keepForMs >= settings.replayForMs) return;
  warn(
    "audit_short",
    at.auditKeepFor ?? at.replayFor,
    "the audit is kept for less long than answers are (keep_for in [audit], replay_for in [daemon]): an answer " +
      "could be replayed of which no record tells any more; lengthen keep_for, or shorten replay_for",
  );
}

/** A prefix that nobody may announce under does nothing. */
function warnOfSilentProvider({ policy, read, at }: RoleDraft, compiled: Compiled, warn: Warn): void {
  if (policy.provides.length === 0 || mayUse(policy.name, "callgate.tools.announce", compiled)) return;
  warn(
    "never_announces",
    read.fields.provides?.at ?? at,
    `no grant lets role ${policy.name} use callgate.tools.announce, so no tool under its prefixes ever comes into ` +
      "being; add that grant, or remove provides",
  );
}

function warnOfRole(draft: RoleDraft, compiled: Compiled, warn: Warn): void {
  const { policy, read, at } = draft;
  if (policy.taintScope === "session" && !policy.isolated) {
    warn(
      "sessions_not_isolated",
      read.fields.taint_scope?.at ?? at,
      `taint is kept per session, and role ${policy.name} may use several over one connection: its process is ` +
        "trusted to keep them apart; isolated = true binds a connection to one session",
    );
  }
  if (policy.sessions === "opened" && !isOpened(policy.name, compiled)) {
    const why = "no other role may use callgate.sessions.open, so it never has a session to call in";
    warn("sessions_never_opened", read.fields.sessions?.at ?? at, `role ${policy.name}: ${why}`);
  }
  if (policy.admits === "anyone") warnOfAnyone(draft, compiled, warn);
  else {
    if (policy.operator) warnOfSharedOperator(draft, compiled, warn);
    else warnOfSharedUser(draft, compiled, warn);
    warnOfClosedSocket(draft, warn);
  }
}

function warnOfAnyone(draft: RoleDraft, compiled: Compiled, warn: Warn): void {
  const { policy, read, at } = draft;
  const open = read.fields.anyone?.at ?? at;
  if (policy.operator) {
    warn(
      "anyone_operator",
      open,
      `every local user may connect as the operator ${policy.name}; name its users`,
    );
  }
  if (isProvider(draft, compiled)) {
    const harm = "reads the arguments of its calls and answers for it, with its labels; name its users";
    warn(
      "anyone_provider",
      open,
      `every local user may connect as the provider ${policy.name}: that one ${harm}`,
    );
  }
  const risky = compiled.grants
    .filter(({ policy: grant }) => grant.role === policy.name && grant.effect === "allow")
    .flatMap(({ policy: grant }) => grant.tools.flatMap((pattern) => riskyTools(pattern, compiled)));
  if (risky.length > 0) {
    const names = listed(new Set(risky));
    warn("anyone_effects", open, `every local user may use, as ${policy.name}, tools with effects: ${names}`);
  }
}

/** A role never opens sessions for itself. */
function isOpened(role: string, { grants }: Compiled): boolean {
  return grants.some(
    ({ policy }) =>
      policy.role !== role && policy.effect !== "deny" && reaches(policy.tools, "callgate.sessions.open"),
  );
}

/** Roles are apart only as far as their users are. */
function warnOfSharedOperator(operator: RoleDraft, compiled: Compiled, warn: Warn): void {
  const others = [...compiled.roles.values()]
    .filter((other) => other !== operator && !other.policy.operator && sharesUsers(operator, other))
    .filter((other) => !sharesWithAsker(operator, other, compiled)) // told as what it is
    .map(({ policy }) => policy.name);
  if (others.length === 0) return;
  const whose = others.length === 1 ? "role" : "each of the roles";
  warn(
    "operator_shared",
    (operator.read.fields.users ?? operator.read.fields.groups)?.at ?? operator.at,
    `a user or group of ${whose} ${listed(others)} may also connect as the operator ${operator.policy.name}; ` +
      "give the operator a user of its own",
  );
}

/** Told once of each pair, at the later one; of roles with the very same users once, at the last of them. */
function warnOfSharedUser(draft: RoleDraft, { roles }: Compiled, warn: Warn): void {
  const all = [...roles.values()].filter(({ policy }) => !policy.operator);
  const place = all.indexOf(draft);
  const others = all.slice(0, place).filter((other) => sharesUsers(draft, other));
  if (others.length === 0 || all.slice(place + 1).some((later) => hasSameUsers(draft, later))) return;
  warn(
    "shared_user",
    (draft.read.fields.users ?? draft.read.fields.groups)?.at ?? draft.at,
    `a user or group of role ${draft.policy.name} is also admitted as ${listed(others.map(({ policy }) => policy.name))}: a process that is taken ` +
      "over may act as each of them; give every role a user of its own",
  );
}

/** Two users cannot both own the socket file. */
function warnOfClosedSocket({ policy, read, at }: RoleDraft, warn: Warn): void {
  if (policy.admits === "anyone" || policy.socket.mode !== 0o600) return;
  if (policy.admits.uids.size < 2 && policy.admits.gids.size === 0) return;
  warn(
    "socket_closed",
    read.fields.mode?.at ?? at,
    `only the daemon's own user can reach the socket of role ${policy.name} (mode "0600"), whoever else it ` +
      'admits; write group = "..." with a group that they are in',
  );
}

function warnOfTool({ policy, read, at }: ToolDraft, { grants, gives }: Compiled, warn: Warn): void {
  if (policy.store === undefined) {
    warn(
      "no_store",
      read.fields.store?.at ?? at,
      `what is put into ${policy.name} loses its taint there and comes back clean; leave store out to keep it`,
    );
  }
  if (read.fields.effect === undefined) {
    warn(
      "effect_assumed",
      at,
      `${policy.name} declares no effect and counts as "execute"; write effect = "read", "write", "send", ` +
        '"spend" or "execute"',
    );
  }
  const granted = grants.some(
    ({ policy: grant }) => grant.effect !== "deny" && reaches(grant.tools, policy.name),
  );
  if (granted || gives.some((giving) => reaches(giving.policy.tools, policy.name))) return;
  warn("unreachable_tool", at, `no grant allows ${policy.name} or asks for it: nobody can call it`);
}

function warnOfGrant({ policy, read }: GrantDraft, compiled: Compiled, warn: Warn): void {
  if (hasExpired(policy, compiled.nowMs)) {
    warn(
      "expired_grant",
      read.fields.expires?.at ?? read.at,
      `the grant ${policy.id} has expired: what it ${policy.effect}s is denied; renew or remove it`,
    );
  }
  const tools = read.fields.tools?.value ?? [];
  warnOfNothing(tools, compiled, warn);
  for (const { value, at } of tools) {
    if (value === "*" && policy.effect !== "deny") warn("every_tool", at, everyTool(policy.id));
    if (policy.effect === "allow") warnOfOperatorTools(value, at, policy.role, compiled, warn);
  }
  if (policy.effect !== "allow") return;
  warnOfUntrustedUse({ policy, read }, compiled, warn);
  warnOfUntrustedOpener({ policy, read }, compiled, warn);
  warnOfBypass({ policy, read }, compiled, warn);
}

/** The request that a session is opened with is taken for the user's own words. */
function warnOfUntrustedOpener({ policy, read }: GrantDraft, { roles }: Compiled, warn: Warn): void {
  if (roles.get(policy.role)?.policy.operator === true) return;
  if (policy.taintMax?.untrusted !== true || !reaches(policy.tools, "callgate.sessions.open")) return;
  warn(
    "untrusted_opener",
    read.fields.taint_untrusted?.at ?? read.at,
    `the grant ${policy.id} lets a role that has read untrusted text open clean sessions, with a request that ` +
      "in_request takes for the user's own words; write taint_untrusted = false",
  );
}

/** Another allow that asks for nothing makes a condition a decoration. */
function warnOfBypass({ policy, read }: GrantDraft, compiled: Compiled, warn: Warn): void {
  if (policy.when === undefined) return;
  const known = [...compiled.tools.keys(), ...BUILTIN_TOOLS].filter((name) => reaches(policy.tools, name));
  for (const { policy: other } of compiled.grants) {
    const bypassed = isWider(other, policy) ? known.filter((name) => reaches(other.tools, name)) : [];
    if (bypassed.length === 0) continue;
    warn(
      "condition_bypassed",
      read.fields.when?.at ?? read.at,
      `the condition of ${policy.id} decides nothing for ${listed(bypassed)}: the grant ${other.id} allows that ` +
        "without one; remove one of the two",
    );
  }
}

function isWider(other: Grant, grant: Grant): boolean {
  if (other.effect !== "allow" || other.when !== undefined || other.role !== grant.role) return false;
  if (other.expiresAtMs !== undefined || other.maxCalls !== undefined || other.sessions.length > 0)
    return false;
  const [above, below] = [other.taintMax, grant.taintMax];
  return above !== undefined && below !== undefined && covers(above, below);
}

function everyTool(id: string): string {
  return `the grant ${id} covers every tool, also each one that is added later; name the tools it is for`;
}

const OPERATOR_TOOLS = ["callgate.tools.accept", "callgate.freeze", "callgate.reload"];

function warnOfOperatorTools(
  pattern: Pattern,
  at: Position,
  role: string,
  compiled: Compiled,
  warn: Warn,
): void {
  if (compiled.roles.get(role)?.policy.operator === true) return;
  const reached = OPERATOR_TOOLS.filter((name) => toolPatternMatches(pattern, name));
  if (reached.length === 0) return;
  warn(
    "operator_tool",
    at,
    `role ${role} is no operator and may use ${listed(reached)}; grant these to an operator`,
  );
}

/** What an injected instruction would want: an effect outside, from a session that has read untrusted text. */
function warnOfUntrustedUse({ policy, read }: GrantDraft, compiled: Compiled, warn: Warn): void {
  if (policy.taintMax?.untrusted !== true || policy.when !== undefined) return;
  const risky = new Set(policy.tools.flatMap((pattern) => riskyTools(pattern, compiled)));
  if (risky.size === 0) return;
  warn(
    "untrusted_effect",
    read.fields.taint_untrusted?.at ?? read.at,
    `the grant ${policy.id} lets a session that has read untrusted text use ${listed(risky)} freely; add a ` +
      'condition, or taint_untrusted = false, perhaps with above_taint = "ask"',
  );
}

const RISKY: ReadonlySet<ToolEffect> = new Set<ToolEffect>(["send", "spend", "execute"]);

/** Names of tools that send, spend or execute; an announced one counts as `execute`. */
function riskyTools(pattern: Pattern, compiled: Compiled): readonly string[] {
  const names = [...compiled.tools.values()]
    .filter(({ policy }) => RISKY.has(policy.effect) && toolPatternMatches(pattern, policy.name))
    .map(({ policy }) => policy.name);
  const configured = compiled.tools.has(pattern);
  return !configured && couldBeAnnounced(pattern, compiled) ? [...names, "announced tools"] : names;
}
