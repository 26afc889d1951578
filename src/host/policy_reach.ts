// What the policy of a config file comes to, told without a broker: nothing has been announced, added or used yet.

import { builtinEffects } from "../broker/builtin/table.ts";
import { indexGrants } from "../policy/grant_index.ts";
import type { Policy, ToolEffect } from "../policy/policy.ts";
import { type PolicyReach, policyReach, SINKS_DEFAULT } from "../policy/reach.ts";

/** `writes`: a write counts as the end of a way too. */
export function reachOfConfig(policy: Policy, nowMs: number, writes: boolean): PolicyReach {
  const sinks: ReadonlySet<ToolEffect> = writes ? new Set([...SINKS_DEFAULT, "write"]) : SINKS_DEFAULT;
  const surface = { policy, index: indexGrants(policy), accepted: [], builtins: builtinEffects() };
  return policyReach(surface, { nowMs }, sinks);
}
