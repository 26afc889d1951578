// What a backup that is put back must not bring back with it. Pure: from what the backup holds, and from
// what the state that it replaces held, where that can be read.
// Invariant: nothing is freer, lower or more open than in either of the two.

import { covers, join, type Labels } from "../base/labels.ts";
import type { Stored, StoredFreeze, StoredTaint } from "../store/port.ts";
import { type CallKey, type Change, type GrantUses, HOST, type TaintScope } from "../store/records.ts";

/** In place of the call that raised a taint, where nobody knows it any more. */
const BY_RESTORE: CallKey = { role: HOST.role, session: "restore", call: 0n };

export function changesOfRestore(
  backup: Stored,
  replaced: Stored | undefined,
  nowMs: number,
): readonly Change[] {
  const taints = [...backup.taints];
  const frozen = [...backup.frozen];
  return [
    ...voided(backup, nowMs),
    ...closed(backup, replaced),
    ...takenBack(backup),
    ...raised(taints, [...(replaced?.taints ?? [])]),
    ...frozenAgain(frozen, [...(replaced?.frozen ?? [])]),
    ...usedAgain([...backup.uses], [...(replaced?.uses ?? [])]),
    ...refusedAgain(backup, replaced, nowMs),
  ];
}

/** Somebody may have answered them since, and their calls may have run. */
function voided({ approvals }: Stored, nowMs: number): Change[] {
  return [...approvals]
    .filter(({ state }) => state === "pending")
    .map((approval) => ({
      kind: "approval",
      approval: { ...approval, state: "void", decidedBy: HOST, decidedAtMs: nowMs },
    }));
}

/** An opened session may have been closed since, and an id is used once. */
function closed(backup: Stored, replaced: Stored | undefined): Change[] {
  const ended = new Set<string>();
  const changes: Change[] = [];
  for (const { session, closed: isEnded } of backup.sessions)
    if (isEnded) ended.add(`${session.role} ${session.id}`);
  for (const { session, closed: isEnded } of [...backup.sessions, ...(replaced?.sessions ?? [])]) {
    const { role, id, openedBy } = session;
    if (ended.has(`${role} ${id}`) || (openedBy === undefined && !isEnded)) continue;
    ended.add(`${role} ${id}`);
    changes.push({ kind: "session_closed", role, id, by: HOST });
  }
  return changes;
}

/** May have been revoked since, or used as often as it may be. What asks or denies stays. */
function takenBack({ grants }: Stored): Change[] {
  return [...grants]
    .filter(({ effect }) => effect === "allow")
    .map(({ id }) => ({ kind: "grant_gone", id, why: "revoked", by: HOST }));
}

function raised(now: readonly StoredTaint[], before: readonly StoredTaint[]): Change[] {
  const labels = new Map<string, Labels>(now.map((taint) => [scopeName(taint.scope), taint.labels]));
  return before.flatMap(({ scope, labels: wanted, by }): Change[] => {
    const has = labels.get(scopeName(scope));
    if (has !== undefined && covers(has, wanted)) return [];
    const raisedTo = has === undefined ? wanted : join(has, wanted);
    return [{ kind: "taint", scope, labels: raisedTo, by: by ?? BY_RESTORE }];
  });
}

function scopeName(scope: TaintScope): string {
  return JSON.stringify(
    scope.of === "role"
      ? [scope.role]
      : scope.of === "session"
        ? [scope.role, scope.session]
        : ["", scope.store, scope.key ?? null],
  );
}

function frozenAgain(now: readonly StoredFreeze[], before: readonly StoredFreeze[]): Change[] {
  const isFrozen = ({ role, session }: StoredFreeze) =>
    now.some((freeze) => freeze.role === role && freeze.session === session);
  return before
    .filter((freeze) => !isFrozen(freeze))
    .map(({ role, session }) => ({ kind: "frozen", role, session, frozen: true, by: HOST }));
}

/** What was used up stays used up. */
function usedAgain(now: readonly GrantUses[], before: readonly GrantUses[]): Change[] {
  const known = new Map(now.map((uses) => [uses.grant, uses]));
  return before
    .filter((uses) => {
      const has = known.get(uses.grant);
      return has === undefined || uses.sinceMs > has.sinceMs || uses.used > has.used;
    })
    .map((uses) => ({ kind: "grant_used", grant: uses.grant, uses }));
}

/** What was refused since stays refused for as long as it was. */
function refusedAgain(backup: Stored, replaced: Stored | undefined, nowMs: number): Change[] {
  const known = new Set([...backup.approvals].filter(({ state }) => state === "refused").map(({ id }) => id));
  return [...(replaced?.approvals ?? [])]
    .filter(
      ({ id, state, refusedUntilMs = 0 }) => state === "refused" && nowMs < refusedUntilMs && !known.has(id),
    )
    .map((approval) => ({ kind: "approval", approval }));
}
