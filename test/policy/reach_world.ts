// Small policies for the tests of what a policy comes to.

import type { Labels } from "../../src/base/labels.ts";
import type { Moment } from "../../src/policy/decision.ts";
import type { Grant, RolePolicy, ToolEffect, ToolPolicy } from "../../src/policy/policy.ts";
import { type PolicyReach, policyReach, SINKS_DEFAULT } from "../../src/policy/reach.ts";
import type { ReachSurface } from "../../src/policy/reach_tools.ts";
import { grant, index, NOW } from "./grants.ts";

export const UNTRUSTED: Labels = { class: "public", untrusted: true };
export const CLEAN_FLOOR: Labels = { class: "public", untrusted: false };

/** Of a tool: what its reach looks at. */
export type WorldTool = Pick<ToolPolicy, "name" | "role" | "effect" | "floor" | "store">;

/** `role.verb` is a tool of that role, in its store, untrusted unless told otherwise. */
export function tool(name: string, effect: ToolEffect, more: Partial<WorldTool> = {}): WorldTool {
  const role = name.split(".")[0] ?? name;
  return { name, role, effect, floor: UNTRUSTED, store: role, ...more };
}

export interface World {
  /** With the prefixes that they may announce under. */
  readonly roles: Readonly<Record<string, readonly string[]>>;
  readonly tools: readonly WorldTool[];
  readonly grants: readonly Grant[];
}

export function surface({ roles, tools, grants }: World): ReachSurface {
  // Only what is looked at: the rest of a role and a tool has no part in it.
  const rolePolicies = Object.entries(roles).map(
    ([name, provides]) => [name, { name, provides } as unknown as RolePolicy] as const,
  );
  const toolPolicies = tools.map((one) => [one.name, one as ToolPolicy] as const);
  return {
    policy: { roles: new Map(rolePolicies), tools: new Map(toolPolicies) },
    index: index(
      grants,
      tools.map(({ name }) => name),
    ),
    accepted: [],
    builtins: new Map([
      ["callgate.status", "read"],
      ["callgate.freeze", "write"],
    ]),
  };
}

export function reachOf(world: World, sinks = SINKS_DEFAULT, moment: Moment = { nowMs: NOW }): PolicyReach {
  return policyReach(surface(world), moment, sinks);
}

/** Grants of one role, told by their id: `ROLE-…`. */
export function allows(id: string, tools: readonly string[], more: Partial<Grant> = {}): Grant {
  return grant(id, "allow", { role: id.split("-")[0] ?? id, tools, ...more });
}
