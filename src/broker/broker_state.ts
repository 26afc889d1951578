// How the broker is, for whoever runs it: what a service manager shows of it.

import type { Policy } from "../policy/policy.ts";
import type { StoreCondition } from "../store/port.ts";
import type { Core } from "./core.ts";

export interface BrokerState {
  readonly policy: Policy;
  /** Why the config on disk was refused; undefined: it is in force. */
  readonly stale: string | undefined;
  readonly store: StoreCondition;
  readonly runningCalls: number;
  readonly pendingApprovals: number;
  readonly frozenRoles: readonly string[];
}

export function stateOf({ runtime, store, live, approvals, sessions }: Core): BrokerState {
  return {
    policy: runtime.policy,
    stale: runtime.stale,
    store: store.condition,
    runningCalls: live.running,
    pendingApprovals: approvals.pending,
    frozenRoles: [...runtime.policy.roles.keys()].filter((role) => sessions.isFrozen(role)),
  };
}
