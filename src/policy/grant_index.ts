// The grants of a policy, sorted at load by role and tool, so that a call looks only at the few that
// can match it. Session and condition are not looked at here (decision.ts).
// Invariant: nothing is remembered per call. Every prefix that fits a name is a prefix of the longest
// one that fits, so the longest alone tells which grants serve a name that nobody listed: endless
// invented tool names cost a scan of the role's prefixes and no memory.

import { type Pattern, patternMatches, toolPatternMatches } from "../base/ids.ts";
import type { Grant, Policy } from "./policy.ts";

interface PrefixGrants {
  /** `PREFIX*` */
  readonly pattern: Pattern;
  readonly grants: readonly Grant[];
}

interface RoleGrants {
  /** All of the role, in the order of the policy. */
  readonly all: readonly Grant[];
  /** Every tool that the policy or a grant names in full. */
  readonly byTool: ReadonlyMap<string, readonly Grant[]>;
  /** Longest prefix first; for every other name. */
  readonly byPrefix: readonly PrefixGrants[];
}

/** Compiled once per policy, immutable; read it through the functions below. */
export interface GrantIndex {
  readonly roles: ReadonlyMap<string, RoleGrants>;
}

const NO_GRANTS: readonly Grant[] = [];

export function indexGrants(policy: Pick<Policy, "grants" | "tools">): GrantIndex {
  const roles = new Map<string, RoleGrants>();
  for (const role of new Set(policy.grants.map((grant) => grant.role))) {
    const all = policy.grants.filter((grant) => grant.role === role);
    roles.set(role, indexRole(all, policy.tools.keys()));
  }
  return { roles };
}

/** The role's grants that name the tool, in the order of the policy. Any text will do for role and tool. */
export function grantsForTool(index: GrantIndex, role: string, tool: string): readonly Grant[] {
  const ofRole = index.roles.get(role);
  if (ofRole === undefined) return NO_GRANTS;
  return ofRole.byTool.get(tool) ?? longestPrefix(ofRole.byPrefix, tool);
}

/** All grants of the role, in the order of the policy. */
export function grantsOfRole(index: GrantIndex, role: string): readonly Grant[] {
  return index.roles.get(role)?.all ?? NO_GRANTS;
}

export function servesTool(grant: Grant, tool: string): boolean {
  for (const pattern of grant.tools) {
    if (toolPatternMatches(pattern, tool)) return true;
  }
  return false;
}

/** No session pattern at all: every session. */
export function servesSession(grant: Grant, session: string): boolean {
  if (grant.sessions.length === 0) return true;
  for (const pattern of grant.sessions) {
    if (patternMatches(pattern, session)) return true;
  }
  return false;
}

function indexRole(all: readonly Grant[], toolsOfPolicy: Iterable<string>): RoleGrants {
  const patterns = new Set(all.flatMap((grant) => grant.tools));
  const byPrefix = [...patterns]
    .filter(isPrefix)
    .sort((a, b) => b.length - a.length)
    .map((pattern) => ({ pattern, grants: all.filter((grant) => coversPrefix(grant, pattern)) }));
  const byTool = new Map<string, readonly Grant[]>();
  for (const tool of toolsOfPolicy) {
    byTool.set(tool, longestPrefix(byPrefix, tool));
  }
  for (const pattern of patterns) {
    if (isPrefix(pattern)) continue;
    byTool.set(
      pattern,
      all.filter((grant) => servesTool(grant, pattern)),
    );
  }
  return { all, byTool, byPrefix };
}

function isPrefix(pattern: Pattern): boolean {
  return pattern.endsWith("*");
}

/** Whether the grant serves every tool under `prefix`; a name listed in full says nothing about those. */
function coversPrefix(grant: Grant, prefix: Pattern): boolean {
  const shortest = prefix.slice(0, -1);
  return grant.tools.some((pattern) => isPrefix(pattern) && toolPatternMatches(pattern, shortest));
}

function longestPrefix(byPrefix: readonly PrefixGrants[], tool: string): readonly Grant[] {
  for (const { pattern, grants } of byPrefix) {
    if (toolPatternMatches(pattern, tool)) return grants;
  }
  return NO_GRANTS;
}
