// The grants in force, sorted by role and tool whenever they change, so that a call looks only at the few
// that can match it. Session and condition are not looked at here (decision.ts).
// Invariant: nothing is remembered per call. Every prefix that fits a name is a prefix of the longest
// one that fits, so the longest alone tells which grants serve a name that nobody listed: endless
// invented tool names cost a look-up for each length of the role's prefixes, and no memory.

import { BUILTIN_PREFIX, type Pattern, patternMatches, toolPatternMatches } from "../base/ids.ts";
import type { Grant, Policy } from "./policy.ts";

interface Prefixes {
  /** By what stands before the `*`: every grant that serves all names that begin so. */
  readonly grants: ReadonlyMap<string, readonly Grant[]>;
  /** Of those beginnings, longest first. */
  readonly lengths: readonly number[];
}

interface RoleGrants {
  /** All of the role, in the order of the policy. */
  readonly all: readonly Grant[];
  /** Every tool that the policy or a grant names in full. */
  readonly byTool: ReadonlyMap<string, readonly Grant[]>;
  /** For every other name. */
  readonly byPrefix: Prefixes;
}

/** Compiled whenever the grants in force change, immutable; read it through the functions below. */
export interface GrantIndex {
  readonly roles: ReadonlyMap<string, RoleGrants>;
}

const NO_GRANTS: readonly Grant[] = [];

/** `grants` in the order of the config, those of run time behind them. */
export function indexGrants({ grants, tools }: Pick<Policy, "grants" | "tools">): GrantIndex {
  const ofRoles = new Map<string, Grant[]>();
  for (const grant of grants) {
    const ofRole = ofRoles.get(grant.role);
    if (ofRole === undefined) ofRoles.set(grant.role, [grant]);
    else ofRole.push(grant);
  }
  const roles = new Map<string, RoleGrants>();
  for (const [role, all] of ofRoles) roles.set(role, indexRole(all, tools.keys()));
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

/** Places in the role's list of the grants that name something, by what they name. */
type Places = Map<string, Set<number>>;

function indexRole(all: readonly Grant[], toolsOfPolicy: Iterable<string>): RoleGrants {
  const names: Places = new Map();
  const prefixes: Places = new Map();
  for (const [place, grant] of all.entries()) {
    for (const pattern of grant.tools) {
      if (isPrefix(pattern)) put(prefixes, pattern.slice(0, -1), place);
      else put(names, pattern, place);
    }
  }
  const lengths = [...new Set([...prefixes.keys()].map((prefix) => prefix.length))].sort((a, b) => b - a);
  const serving = (text: string, exact: Iterable<number>): readonly Grant[] => {
    const places = new Set(exact);
    for (const prefix of beginnings(lengths, text))
      for (const at of prefixes.get(prefix) ?? []) places.add(at);
    return [...places].sort((a, b) => a - b).flatMap((at) => all[at] ?? []);
  };
  const grants = new Map([...prefixes.keys()].map((prefix) => [prefix, serving(prefix, [])]));
  const byPrefix = { grants, lengths };
  const byTool = new Map<string, readonly Grant[]>();
  for (const tool of toolsOfPolicy) byTool.set(tool, longestPrefix(byPrefix, tool));
  for (const [name, exact] of names) byTool.set(name, serving(name, exact));
  return { all, byTool, byPrefix };
}

function put(places: Places, key: string, place: number): void {
  const at = places.get(key);
  if (at === undefined) places.set(key, new Set([place]));
  else at.add(place);
}

function isPrefix(pattern: Pattern): boolean {
  return pattern.endsWith("*");
}

/** What a prefix that fits the text would have to be, longest first; for a built-in only one that is itself a built-in's. */
function* beginnings(lengths: readonly number[], text: string): Iterable<string> {
  const shortest = text.startsWith(BUILTIN_PREFIX) ? BUILTIN_PREFIX.length : 0;
  for (const length of lengths) {
    if (length <= text.length && length >= shortest) yield text.slice(0, length);
  }
}

function longestPrefix({ grants, lengths }: Prefixes, tool: string): readonly Grant[] {
  for (const prefix of beginnings(lengths, tool)) {
    const found = grants.get(prefix);
    if (found !== undefined) return found;
  }
  return NO_GRANTS;
}
