// What the store has kept of an earlier process, put back into the broker's tables before the first
// connection is taken: sessions, taints, what is frozen, pinned definitions, runtime grants, calls whose outcome
// nobody knows, and questions.
// Invariant: nothing is lower, freer or more open after a restart than it was written down before.

import type { CallRecord } from "../store/records.ts";
import type { Core } from "./core.ts";
import { restoreQuestions } from "./restore_questions.ts";
import { restoreGrants } from "./stored_grants.ts";

/** Called once, before anybody connects. Each step may look at what those before it have put back. */
export async function recover(core: Core): Promise<void> {
  const stored = core.store.load();
  const restored = core.sessions.restore(stored, core.clock.nowMs());
  for (const role of core.runtime.policy.roles.values()) {
    // A scope that is the role's must cover what its sessions were given while each had its own.
    if (role.taintScope === "role") core.sessions.widenToRole(role.name);
  }
  const pins = await core.definitions.restore(stored.pins);
  await restoreGrants(core, stored.grants, stored.uses);
  const calls = { calls: 0, unknown: 0 };
  core.doubts.restore(counted(core.store.calls(), calls));
  restoreQuestions(core, stored.approvals);
  // Not waited for: what can't be written now is told again at the next start.
  if (restored.changes.length > 0) core.store.commit(restored.changes, () => undefined);
  core.log(pins.unreadable.length === 0 ? "info" : "warn", "broker.recovered", {
    sessions: restored.sessions,
    taints: restored.taints,
    frozen: restored.frozen,
    pins: pins.restored,
    pins_unreadable: pins.unreadable,
    grants: core.grants.all().length,
    approvals: core.approvals.pending,
    calls: calls.calls,
    unknown_calls: calls.unknown,
  });
}

function* counted(
  records: Iterable<CallRecord>,
  counts: { calls: number; unknown: number },
): Iterable<CallRecord> {
  for (const record of records) {
    counts.calls += 1;
    if (record.state !== "ended") counts.unknown += 1;
    yield record;
  }
}
