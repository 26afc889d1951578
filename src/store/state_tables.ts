// Everything that is kept beside calls and the audit: which record of which table a change puts or takes
// away, and what a store's tables amount to when they are read back. Where tables are is not here.
// Invariant: what `loaded` gives of the records that changes left is what those changes said last.

import { CLEAN, covers } from "../base/labels.ts";
import type { Stored, StoredFreeze, StoredTaint } from "./port.ts";
import type {
  ApprovalRecord,
  Change,
  GrantUses,
  PinRecord,
  SessionRecord,
  StoredGrant,
  StoredSession,
  TaintScope,
} from "./records.ts";

/** What a table's records are. */
export interface Tables {
  readonly session: SessionRecord;
  /** Ended sessions: their ids are not used again. */
  readonly closed: { readonly role: string; readonly id: string };
  readonly taint: StoredTaint;
  readonly frozen: StoredFreeze;
  readonly pin: PinRecord;
  readonly approval: ApprovalRecord;
  readonly grant: StoredGrant;
  readonly uses: GrantUses;
}

export type TableName = keyof Tables;

export const TABLE_NAMES = [
  "session",
  "closed",
  "taint",
  "frozen",
  "pin",
  "approval",
  "grant",
  "uses",
] as const satisfies readonly TableName[];

/** One record of a table, by its name in it. `value` undefined: it goes. */
export type RecordWrite = {
  readonly [T in TableName]: {
    readonly table: T;
    readonly name: string;
    readonly value: Tables[T] | undefined;
  };
}[TableName];

/** None for changes of calls and for what only the audit is told. */
export function recordWrites(change: Change): readonly RecordWrite[] {
  switch (change.kind) {
    case "taint":
      return [taintWrite({ scope: change.scope, labels: change.labels, by: change.by })];
    case "endorsed":
      return [taintWrite({ scope: change.scope, labels: change.labels, by: undefined })];
    case "session_opened": {
      const { session } = change;
      return [{ table: "session", name: `${session.role} ${session.id}`, value: session }];
    }
    case "session_closed":
    case "frozen":
      return [scopeWrite(change)];
    case "pinned":
      return [{ table: "pin", name: change.pin.tool, value: change.pin }];
    case "approval":
      return [{ table: "approval", name: change.approval.id, value: change.approval }];
    case "approval_forgotten":
      return [{ table: "approval", name: change.id, value: undefined }];
    case "grant_added":
      return [{ table: "grant", name: change.grant.id, value: change.grant }];
    case "grant_gone":
      return [{ table: "grant", name: change.id, value: undefined }];
    case "grant_used":
      return [{ table: "uses", name: change.grant, value: change.uses }];
    default:
      return [];
  }
}

function scopeWrite(change: Extract<Change, { kind: "session_closed" | "frozen" }>): RecordWrite {
  const { role } = change;
  if (change.kind === "session_closed")
    return { table: "closed", name: `${role} ${change.id}`, value: { role, id: change.id } };
  const { session, frozen } = change;
  const name = session === undefined ? role : `${role} ${session}`;
  return { table: "frozen", name, value: frozen ? { role, session } : undefined };
}

/** A taint that says nothing is as good as none. */
function taintWrite(taint: StoredTaint): RecordWrite {
  const value = covers(CLEAN, taint.labels) ? undefined : taint;
  return { table: "taint", name: taintName(taint.scope), value };
}

/** Names of roles, sessions and stores hold no space. */
function taintName(scope: TaintScope): string {
  if (scope.of === "role") return `role ${scope.role}`;
  if (scope.of === "session") return `session ${scope.role} ${scope.session}`;
  return scope.key === undefined ? `store ${scope.store}` : `store ${scope.store} ${scope.key}`;
}

/** Every record of every table. */
export type AllRecords = { readonly [T in TableName]: readonly Tables[T][] };

export function loaded(records: AllRecords): Stored {
  const { session, closed, taint, frozen, pin, approval, grant, uses } = records;
  return {
    sessions: sessionsOf(session, closed),
    taints: taint,
    frozen,
    pins: pin,
    approvals: approval,
    grants: grant,
    uses,
  };
}

/** Of an ended session the user's words are not handed out again. */
function sessionsOf(
  opened: readonly SessionRecord[],
  closed: AllRecords["closed"],
): readonly StoredSession[] {
  const ended = new Map(closed.map(({ role, id }) => [`${role} ${id}`, { role, id }]));
  const sessions = opened.map((session) => {
    const isEnded = ended.delete(`${session.role} ${session.id}`);
    return { session: isEnded ? { ...session, request: undefined } : session, closed: isEnded };
  });
  const unopened = [...ended.values()].map(({ role, id }) => ({
    session: {
      role,
      id,
      request: undefined,
      requestLabels: undefined,
      openedBy: undefined,
      expiresAtMs: undefined,
    },
    closed: true,
  }));
  return [...sessions, ...unopened];
}
