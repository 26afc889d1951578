// Runtime grants as they come back from the store at start: conditions compiled again, the defaults of
// their questions filled in. Invariant: a restart widens nothing. What no longer compiles is dropped
// where it allows; where it asks or denies it stays, for whatever the arguments are.

import type { Condition, ConditionCompiler } from "../policy/conditions.ts";
import { type Grant, QUESTION_DEFAULTS } from "../policy/policy.ts";
import type { GrantUses, StoredGrant } from "../store/records.ts";
import { type Core, putInForce } from "./core.ts";
import type { GrantOrigin } from "./runtime_grants.ts";

/** Puts the grants and uses of an earlier process into force. Called once, before the first connection is taken. */
export async function restoreGrants(
  core: Core,
  stored: Iterable<StoredGrant>,
  uses: Iterable<GrantUses>,
): Promise<void> {
  const grants = [...stored];
  const conditional = grants.some(({ when }) => when !== undefined);
  const compiler = conditional ? await core.loadConditions() : undefined;
  core.grants.restore(
    {
      log: core.log,
      changed: () => putInForce(core, core.runtime.policy, core.runtime.stale),
      isConfigured: (id) => core.runtime.policy.grants.some((grant) => grant.id === id),
    },
    grants.flatMap((one) => restored(core, one, compiler)),
    uses,
  );
}

interface Restored {
  readonly grant: Grant;
  readonly origin: GrantOrigin;
}

function restored(core: Core, stored: StoredGrant, compiler: ConditionCompiler | undefined): Restored[] {
  const { by, labels, addedAtMs, approval } = stored;
  const origin = { by, labels, addedAtMs, approval };
  if (stored.when === undefined) return [{ grant: grantOf(stored, undefined), origin }];
  const compiled = compiler?.compile(stored.when);
  if (compiled?.ok) return [{ grant: grantOf(stored, compiled.value), origin }];
  const kept = stored.effect !== "allow";
  core.log("error", "grant.dropped", { role: stored.role, grant: stored.id, effect: stored.effect, kept });
  return kept ? [{ grant: grantOf(stored, unjudgeable(stored.when)), origin }] : [];
}

const UNREADABLE = { kind: "error", why: "the condition no longer compiles" } as const;

/** Matches for an ask and a deny, whatever it is asked. */
function unjudgeable(source: string): Condition {
  return { source, argumentNames: new Set(), evaluate: () => UNREADABLE };
}

function grantOf(stored: StoredGrant, when: Condition | undefined): Grant {
  const { id, role, tools, sessions, effect, taintMax, aboveTaint } = stored;
  const { expiresAtMs, maxCalls, remembers, equal, reason } = stored;
  return {
    ...{ id, role, tools, sessions, effect, when, taintMax, aboveTaint },
    ...{ expiresAtMs, maxCalls, remembers, equal, reason },
    ...{ ...QUESTION_DEFAULTS, remember: true },
  };
}
