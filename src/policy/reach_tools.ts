// Which tools a policy's reach is told of, and which grants of a role serve each: those of the config, those that are
// in service by an operator's acceptance, the broker's own, and of those that may still be announced what a grant
// could serve. A name that nobody could call is listed nowhere.

import { BUILTIN_PREFIX, type Pattern, toolPatternMatches } from "../base/ids.ts";
import { CLEAN, type Labels } from "../base/labels.ts";
import { isWithinTaint, type Moment } from "./decision.ts";
import { type GrantIndex, grantsForTool, grantsOfRole } from "./grant_index.ts";
import type { Grant, Policy, ToolEffect, ToolPolicy } from "./policy.ts";
import { type ReachVerdict, type Serving, serving, TAINTS, verdictAt } from "./reach_verdict.ts";

/** A tool, or (`isPrefix`) all that a role may announce under a prefix and that nobody has named yet. */
export interface ReachTool {
  /** Of a prefix: with its `*`. */
  readonly name: string;
  readonly isPrefix: boolean;
  /** Its role; for the broker's own: `callgate`. */
  readonly provider: string;
  readonly isBuiltin: boolean;
  readonly effect: ToolEffect;
  /** What its results are at least. */
  readonly floor: Labels;
  readonly store: string | undefined;
}

/** One role's calls of one tool, at each of `TAINTS`. */
export interface Reaching {
  readonly role: string;
  readonly tool: ReachTool;
  readonly at: readonly ReachVerdict[];
}

/** No role has this name and a tool: the broker is none. */
export const BROKER = "callgate";
/** As `announcedTool` of the broker has it: what the config does not name is read in the strictest way. */
const ANNOUNCED = { effect: "execute", floor: { class: "public", untrusted: true } } as const;

/** What is looked at beside the policy. */
export interface ReachSurface {
  readonly policy: Pick<Policy, "roles" | "tools">;
  readonly index: GrantIndex;
  /** Tools in service that the config does not name. */
  readonly accepted: readonly ToolPolicy[];
  readonly builtins: ReadonlyMap<string, "read" | "write">;
}

/** All tools that some grant could serve, by name: configured, accepted, the broker's, announced ones. */
export function reachTools(surface: ReachSurface): readonly ReachTool[] {
  const { policy, accepted, builtins } = surface;
  const tools = new Map<string, ReachTool>();
  for (const tool of [...policy.tools.values(), ...accepted]) tools.set(tool.name, declared(tool));
  for (const [name, effect] of builtins) tools.set(name, builtin(name, effect));
  for (const { name: role, provides } of policy.roles.values()) {
    for (const prefix of provides) {
      for (const name of namedUnder(surface, prefix)) {
        if (!tools.has(name)) tools.set(name, announced(name, role, false));
      }
      tools.set(`${prefix}*`, announced(`${prefix}*`, role, true));
    }
  }
  return [...tools.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function declared({ name, role, effect, floor, store }: ToolPolicy): ReachTool {
  return { name, isPrefix: false, provider: role, isBuiltin: false, effect, floor, store };
}

function builtin(name: string, effect: "read" | "write"): ReachTool {
  return {
    ...{ name, isPrefix: false, provider: BROKER, isBuiltin: true },
    ...{ effect, floor: CLEAN, store: undefined },
  };
}

function announced(name: string, role: string, isPrefix: boolean): ReachTool {
  return { name, isPrefix, provider: role, isBuiltin: false, ...ANNOUNCED, store: role };
}

/** Whole names in grants that only an announcement can bring into being. */
function namedUnder({ policy, index }: ReachSurface, prefix: string): readonly string[] {
  return [...policy.roles.keys()]
    .flatMap((role) => grantsOfRole(index, role))
    .flatMap(({ tools }) => tools)
    .filter((pattern) => !pattern.endsWith("*") && pattern.startsWith(prefix));
}

/** Of one role: the tools that some grant of it could open. */
export function reachingsOf(
  { index }: Pick<ReachSurface, "index">,
  tools: readonly ReachTool[],
  role: string,
  moment: Moment,
): readonly Reaching[] {
  const unused: Moment = { isSpent: () => false, ...moment };
  return tools.flatMap((tool) => {
    const servings = servingsOf(index, role, tool);
    if (servings.length === 0) return [];
    return [{ role, tool, at: verdictsOf(servings, unused) }];
  });
}

/** For each of `TAINTS`. Where the same grants hold, the verdict is the same. */
function verdictsOf(servings: readonly Serving[], moment: Moment): readonly ReachVerdict[] {
  const known = new Map<string, ReachVerdict>();
  return TAINTS.map((taint) => {
    const holding = servings.map(({ grant }) => (isWithinTaint(grant, taint) ? "1" : "0")).join("");
    const verdict = known.get(holding) ?? verdictAt(servings, taint, moment);
    known.set(holding, verdict);
    return verdict;
  });
}

/** The role's grants that serve a tool; empty where none of them could ever let a call of it through. */
export function servingsOf(index: GrantIndex, role: string, tool: ReachTool): readonly Serving[] {
  const servings = tool.isPrefix
    ? servingsOfPrefix(grantsOfRole(index, role), tool.name.slice(0, -1))
    : grantsForTool(index, role, tool.name).map((grant) => serving(grant, true));
  return servings.some(({ grant }) => grant.effect !== "deny") ? servings : [];
}

function servingsOfPrefix(grants: readonly Grant[], prefix: string): readonly Serving[] {
  return grants.flatMap((grant) => {
    const fits = grant.tools.map((pattern) => fitOf(pattern, prefix));
    if (!fits.some((fit) => fit !== "none")) return [];
    return [serving(grant, fits.includes("every"))];
  });
}

/** A pattern serves every name below a prefix, some of them, or none. Whole names are tools of their own here. */
function fitOf(pattern: Pattern, prefix: string): "every" | "some" | "none" {
  if (!pattern.endsWith("*") || pattern.startsWith(BUILTIN_PREFIX)) return "none";
  if (toolPatternMatches(pattern, prefix)) return "every";
  return pattern.slice(0, -1).startsWith(prefix) ? "some" : "none";
}
