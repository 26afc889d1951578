// What a policy comes to as a whole: which role reaches which tool at which taint, and which ways lead from untrusted
// content to an effect without a person (reach_paths.ts). Told from the grants alone, before any call. Conditions are not
// looked into, so a way may be told of that a condition shuts; that there is none is never told wrongly, as far as
// effects, floors and stores are what they are declared to be.
// The shapes are those that programs are shown (client/load_answers.ts); the compiler holds the two together where
// cli/program.ts hands the one to who wants the other.

import type { Labels } from "../base/labels.ts";
import type { Moment } from "./decision.ts";
import type { ToolEffect } from "./policy.ts";
import { type FoundPaths, findPaths, type OpenPath } from "./reach_paths.ts";
import { type Reaching, type ReachSurface, reachingsOf, reachTools } from "./reach_tools.ts";
import { type ReachVerdict, TAINTS } from "./reach_verdict.ts";

export interface ToolReach {
  readonly tool: string;
  readonly provider: string;
  readonly effect: string;
  readonly brings: Labels;
  readonly at: readonly (Labels & ReachVerdict)[];
}

export interface RoleReach {
  readonly role: string;
  readonly tools: readonly ToolReach[];
}

export interface PolicyReach {
  readonly roles: readonly RoleReach[];
  readonly paths: readonly OpenPath[];
  readonly more: boolean;
}

/** Effects that count as the end of a way. A `write` stays within what its store carries on, so it is asked for. */
export const SINKS_DEFAULT: ReadonlySet<ToolEffect> = new Set<ToolEffect>(["send", "spend", "execute"]);

/** More ways than that nobody reads. */
export const PATHS_MAX = 500;

/** All at once. `moment`: when, and which grants are used up by then (left out, none is). */
export function policyReach(surface: ReachSurface, moment: Moment, sinks = SINKS_DEFAULT): PolicyReach {
  const tools = reachTools(surface);
  const reachings = [...surface.policy.roles.keys()].flatMap((role) =>
    reachingsOf(surface, tools, role, moment),
  );
  const { paths, more } = pathsOf(reachings, sinks);
  return { roles: roleReaches(reachings), paths, more };
}

export function pathsOf(
  reachings: readonly Reaching[],
  sinks: ReadonlySet<ToolEffect> = SINKS_DEFAULT,
): FoundPaths {
  return findPaths({ reachings, sinks }, PATHS_MAX);
}

/** As it is shown, in the order of the roles. */
export function roleReaches(reachings: readonly Reaching[]): readonly RoleReach[] {
  const roles = new Map<string, ToolReach[]>();
  for (const reaching of reachings) {
    const tools = roles.get(reaching.role);
    if (tools === undefined) roles.set(reaching.role, [shown(reaching)]);
    else tools.push(shown(reaching));
  }
  return [...roles].map(([role, tools]) => ({ role, tools }));
}

function shown({ tool, at }: Reaching): ToolReach {
  const { name, provider, effect, floor } = tool;
  const verdicts = at.flatMap((verdict, i) => {
    const taint = TAINTS[i];
    return taint === undefined ? [] : [{ ...taint, ...verdict }];
  });
  return { tool: name, provider, effect, brings: floor, at: verdicts };
}
