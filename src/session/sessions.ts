// Sessions and taints: what each caller has been given, as labels that only rise. The table answers
// from memory; every rise is also handed back as a change for the store.
// Invariant: the effective taint of a session covers all that its caller was given, and a caller
// that names its own sessions has one taint for all of them.

import { CLEAN, covers, join, type Labels } from "../base/labels.ts";
import type { RolePolicy } from "../policy/policy.ts";
import type { CallKey, Change, SessionRecord, TaintScope } from "../store/records.ts";

export interface Session {
  readonly role: string;
  readonly id: string;
  readonly request: string | undefined;
  readonly openedBy: string | undefined;
  readonly expiresAtMs: number | undefined;
  state: "open" | "closed";
  frozen: boolean;
  /** Its own share; the effective taint is told by `SessionTable.taint`. */
  own: Labels;
  /** The call that raised its taint last. */
  raisedBy: CallKey | undefined;
  lastUsedMs: number;
}

/** Why a session can't be used now. */
export type SessionRefusal = "not_opened" | "ended" | "frozen" | "too_many";

class RoleSessions {
  readonly byId = new Map<string, Session>();
  taint: Labels = CLEAN;
  raisedBy: CallKey | undefined;
  frozen = false;
}

export class SessionTable {
  readonly #roles = new Map<string, RoleSessions>();
  readonly #stores = new Map<string, Labels>();

  /** The session a call of this role belongs to; made here where the role names its own. */
  use(role: RolePolicy, id: string, nowMs: number, idleForMs: number): Session | SessionRefusal {
    const sessions = this.#of(role.name);
    if (sessions.frozen) return "frozen";
    let session = sessions.byId.get(id);
    if (session === undefined) {
      if (role.sessions === "opened") return "not_opened";
      if (!makeRoom(sessions, role.limits.sessions, nowMs - idleForMs)) return "too_many";
      session = newSession(
        { role: role.name, id, request: undefined, openedBy: undefined, expiresAtMs: undefined },
        nowMs,
      );
      sessions.byId.set(id, session);
    }
    if (session.frozen) return "frozen";
    if (hasEnded(session, nowMs)) return "ended";
    session.lastUsedMs = nowMs;
    return session;
  }

  find(role: string, id: string): Session | undefined {
    return this.#roles.get(role)?.byId.get(id);
  }

  list(role: string): Iterable<Session> {
    return this.#roles.get(role)?.byId.values() ?? [];
  }

  /** Opens a session; an id is used once only, so a known one is refused. */
  open(record: SessionRecord, sessionsMax: number, nowMs: number): Change | "used" | "too_many" {
    const { byId } = this.#of(record.role);
    if (byId.has(record.id)) return "used";
    if (openSessions(byId.values(), nowMs) >= sessionsMax) return "too_many";
    byId.set(record.id, newSession(record, nowMs));
    return { kind: "session_opened", session: record };
  }

  close(session: Session): Change {
    session.state = "closed";
    return { kind: "session_closed", role: session.role, id: session.id };
  }

  freeze(role: string, id: string | undefined, frozen: boolean): Change {
    if (id === undefined) this.#of(role).frozen = frozen;
    else {
      const session = this.find(role, id);
      if (session !== undefined) session.frozen = frozen;
    }
    return { kind: "frozen", role, session: id, frozen };
  }

  isFrozen(role: string): boolean {
    return this.#roles.get(role)?.frozen ?? false;
  }

  /** What has to be assumed of everything that the session's caller says from now on. */
  taint(session: Session): Labels {
    return join(this.roleTaint(session.role), session.own);
  }

  roleTaint(role: string): Labels {
    return this.#roles.get(role)?.taint ?? CLEAN;
  }

  /** The call that raised the session's taint last, its own or its role's. */
  raisedBy(session: Session): CallKey | undefined {
    return session.raisedBy ?? this.#roles.get(session.role)?.raisedBy;
  }

  /** Raises a session's taint, or its role's where that is the scope. undefined: it covered the labels already. */
  raise(role: RolePolicy, session: Session, labels: Labels, by: CallKey): Change | undefined {
    if (covers(this.taint(session), labels)) return undefined;
    if (role.taintScope === "role") return this.raiseRole(role.name, labels, by);
    session.own = join(session.own, labels);
    session.raisedBy = by;
    return taintChange({ of: "session", role: session.role, session: session.id }, session.own, by);
  }

  raiseRole(role: string, labels: Labels, by: CallKey): Change | undefined {
    const sessions = this.#of(role);
    if (covers(sessions.taint, labels)) return undefined;
    sessions.taint = join(sessions.taint, labels);
    sessions.raisedBy = by;
    return taintChange({ of: "role", role }, sessions.taint, by);
  }

  storeTaint(store: string, key: string | undefined): Labels {
    const whole = this.#stores.get(storeName(store, undefined)) ?? CLEAN;
    return key === undefined ? whole : join(whole, this.#stores.get(storeName(store, key)) ?? CLEAN);
  }

  raiseStore(store: string, key: string | undefined, labels: Labels, by: CallKey): Change | undefined {
    const taint = this.storeTaint(store, key);
    if (covers(taint, labels)) return undefined;
    const raised = join(taint, labels);
    // An agent may name endless items: past the bound their labels go to the whole store, which only rises.
    const kept = this.#stores.size < STORE_ITEMS_MAX ? key : undefined;
    this.#stores.set(storeName(store, kept), join(this.storeTaint(store, kept), raised));
    return taintChange({ of: "store", store, key: kept }, raised, by);
  }

  /** A scope that became the role's must cover what its sessions were given before. */
  widenToRole(role: string): void {
    const sessions = this.#of(role);
    for (const session of sessions.byId.values()) sessions.taint = join(sessions.taint, session.own);
  }

  #of(role: string): RoleSessions {
    let sessions = this.#roles.get(role);
    if (sessions === undefined) {
      sessions = new RoleSessions();
      this.#roles.set(role, sessions);
    }
    return sessions;
  }
}

const STORE_ITEMS_MAX = 65_536;

/** Ended ones are kept so that their ids are not used again, and don't count. */
function openSessions(sessions: Iterable<Session>, nowMs: number): number {
  let open = 0;
  for (const session of sessions) if (!hasEnded(session, nowMs)) open += 1;
  return open;
}

function hasEnded(session: Session, nowMs: number): boolean {
  return session.state === "closed" || (session.expiresAtMs !== undefined && nowMs >= session.expiresAtMs);
}

function newSession(record: SessionRecord, nowMs: number): Session {
  return { ...record, state: "open", frozen: false, own: CLEAN, raisedBy: undefined, lastUsedMs: nowMs };
}

/** Forgets the session that was idle longest, if it was idle long enough to have nothing kept for replay. */
function makeRoom(sessions: RoleSessions, sessionsMax: number, idleSinceMs: number): boolean {
  if (sessions.byId.size < sessionsMax) return true;
  for (const [id, session] of sessions.byId) {
    if (session.lastUsedMs >= idleSinceMs || session.frozen) continue;
    sessions.taint = join(sessions.taint, session.own);
    sessions.byId.delete(id);
    return true;
  }
  return false;
}

function taintChange(scope: TaintScope, labels: Labels, by: CallKey): Change {
  return { kind: "taint", scope, labels, by };
}

function storeName(store: string, key: string | undefined): string {
  return key === undefined ? store : `${store} ${key}`;
}
