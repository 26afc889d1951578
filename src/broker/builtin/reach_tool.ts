// `callgate.grants.explain` without a tool: what the policy in force comes to as a whole, grants of run time included.
// Operators see all roles or the one that they name, with every way that it has a part in; others see their own role
// and the ways that stay within it. Bounded by what one message holds; a role at a time, so others are served in between.

import { fault } from "../../base/faults.ts";
import { grantsOfRole } from "../../policy/grant_index.ts";
import type { ToolPolicy } from "../../policy/policy.ts";
import { type PolicyReach, pathsOf, type RoleReach, roleReaches } from "../../policy/reach.ts";
import type { OpenPath } from "../../policy/reach_paths.ts";
import {
  type Reaching,
  type ReachSurface,
  type ReachTool,
  reachingsOf,
  reachTools,
} from "../../policy/reach_tools.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { text } from "./arguments.ts";
import { shown } from "./builtin.ts";
import { grantWordsLabels } from "./grant_words.ts";
import { namedRole } from "./visibility.ts";

/** Characters of a part of the answer, as they stand in the message: a frame holds a mebibyte. */
const PATHS_CHARS_MAX = 250_000;
const ROLES_CHARS_MAX = 600_000;

/** What says something about one call only. */
const OF_ONE_CALL = ["session", "arguments", "taint_class", "taint_untrusted"];

export async function explainPolicy(core: Core, call: BuiltinCall): Promise<BuiltinOutcome> {
  const stray = OF_ONE_CALL.find((name) => call.args.has(name));
  if (stray !== undefined) {
    const why = `\`${stray}\` is about one call: name its \`tool\` too, or leave both out`;
    return fault(callFault("bad_arguments", `${why}. ${NOTHING_RAN}`));
  }
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const isWhole = call.role.operator && text(call.args, "role") === undefined;
  const ids = isWhole ? [...core.runtime.policy.roles.keys()] : [named.value.name];
  const surface = surfaceOf(core);
  const reachings = await reachingsInTurns(core, surface, call.role.operator ? undefined : ids);
  const paths = pathsOf(reachings);
  const answer: PolicyReach = {
    roles: roleReaches(reachings.filter(({ role }) => ids.includes(role))),
    paths: isWhole ? paths.paths : paths.paths.filter((path) => ids.some((role) => isAbout(path, role))),
    more: paths.more,
  };
  const grants = ids.flatMap((role) => grantsOfRole(surface.index, role).map(({ id }) => id));
  // What lies on a way of the role has names of other roles' grants.
  const onWays = answer.paths.flatMap(({ by }) => by);
  const labels = grantWordsLabels(core, new Set([...grants, ...onWays]));
  return shown(fitting(call.role.operator ? answer : withoutProviders(answer)), labels);
}

function surfaceOf(core: Core): ReachSurface {
  const { policy, index } = core.runtime;
  const accepted = core.definitions
    .names()
    .filter((name) => !policy.tools.has(name))
    .map((name) => core.definitions.resolve(policy, name)?.tool)
    .filter((tool): tool is ToolPolicy => tool !== undefined);
  const builtins = new Map([...core.builtins.values()].map(({ name, effect }) => [name, effect]));
  return { policy, index, accepted, builtins };
}

/** `only`: these roles are all that the asker may know of; nothing is told of what could be announced to it. */
async function reachingsInTurns(
  core: Core,
  surface: ReachSurface,
  only: readonly string[] | undefined,
): Promise<readonly Reaching[]> {
  const tools = reachTools(surface).filter(({ isPrefix }: ReachTool) => only === undefined || !isPrefix);
  const nowMs = core.clock.nowMs();
  const isSpent: Core["grants"]["isSpent"] = (grant, atMs) => core.grants.isSpent(grant, atMs);
  const reachings: Reaching[] = [];
  for (const role of only ?? surface.policy.roles.keys()) {
    if (reachings.length > 0) await new Promise<void>((resolve) => core.clock.afterInput(resolve));
    reachings.push(...reachingsOf(surface, tools, role, { nowMs, isSpent }));
  }
  return reachings;
}

function isAbout({ role, sink_role, through }: OpenPath, named: string): boolean {
  return role === named || sink_role === named || through.some((hop) => hop.role === named);
}

/** Who provides a tool is for operators. */
function withoutProviders({ roles, ...rest }: PolicyReach): PolicyReach {
  return {
    ...rest,
    roles: roles.map(({ role, tools }) => ({
      role,
      tools: tools.map((tool) => ({ ...tool, provider: "" })),
    })),
  };
}

/** As much as one message holds. A role that is cut can be asked for alone. */
function fitting({ roles, paths, more }: PolicyReach): PolicyReach {
  const keptPaths = within(paths, PATHS_CHARS_MAX);
  const rows = roles.flatMap(({ role, tools }) => tools.map((tool) => ({ role, tool })));
  const keptRows = within(rows, ROLES_CHARS_MAX);
  const cut = keptPaths.length < paths.length || keptRows.length < rows.length;
  const kept = new Map<string, RoleReach["tools"][number][]>(roles.map(({ role }) => [role, []]));
  for (const { role, tool } of keptRows) kept.get(role)?.push(tool);
  return {
    roles: [...kept].filter(([, tools]) => tools.length > 0).map(([role, tools]) => ({ role, tools })),
    paths: keptPaths,
    more: more || cut,
  };
}

/** The first of them that fit. A quotation mark takes two characters in the message. */
function within<T>(items: readonly T[], charsMax: number): readonly T[] {
  let chars = 0;
  const beyond = items.findIndex((item) => {
    chars += JSON.stringify(JSON.stringify(item)).length;
    return chars > charsMax;
  });
  return beyond < 0 ? items : items.slice(0, beyond);
}
