// Sessions and taints: what each caller has been given, as labels that only rise. The table answers
// from memory; every rise is also handed back as a change for the store.
// Invariant: the effective taint of a session covers all that its caller was given, and a caller
// that names its own sessions has one taint for all of them.

import { covers, join, type Labels } from "../base/labels.ts";
import type { RolePolicy } from "../policy/policy.ts";
import type { CallKey, Change, SessionRecord, TaintScope } from "../store/records.ts";
import { StoreTaints, Taint } from "./taint.ts";

export interface Session extends Omit<SessionRecord, "request"> {
  /** Given up when it ends. */
  request: string | undefined;
  /** `opening`: not written down yet, so nobody can use it. */
  state: "opening" | "open" | "closed";
  frozen: boolean;
  /** Its own share; the effective taint is told by `SessionTable.taint`. */
  readonly own: Taint;
  lastUsedMs: number;
  /** Calls that run in it: it is not forgotten while there are any. */
  running: number;
}

/** Why a session can't be used now. */
export type SessionRefusal = "not_opened" | "ended" | "frozen" | "too_many";

class RoleSessions {
  readonly byId = new Map<string, Session>();
  /** Opened and not known to have ended; the others are kept only so that their ids are not used again. */
  readonly opened = new Set<Session>();
  readonly taint = new Taint();
  frozen = false;
  /** Until then no session has been idle for long enough to be forgotten. */
  fullUntilMs = 0;
}

export class SessionTable {
  readonly #roles = new Map<string, RoleSessions>();
  readonly #stores = new StoreTaints();

  /** The session a call of this role belongs to; made here where the role names its own. */
  use(role: RolePolicy, id: string, nowMs: number, idleForMs: number): Session | SessionRefusal {
    const sessions = this.#of(role.name);
    if (sessions.frozen) return "frozen";
    let session = sessions.byId.get(id);
    if (session === undefined) {
      if (role.sessions === "opened") return "not_opened";
      if (!makeRoom(sessions, role.limits.sessions, nowMs, idleForMs)) return "too_many";
      session = newSession(selfNamed(role.name, id), "open", nowMs);
      sessions.byId.set(id, session);
    }
    // A name that the caller chose before a reload is not one that somebody opened for it.
    if (session.state === "opening" || (role.sessions === "opened" && session.openedBy === undefined))
      return "not_opened";
    if (session.frozen) return "frozen";
    if (hasEnded(session, nowMs)) return "ended";
    session.lastUsedMs = nowMs;
    return session;
  }

  find(role: string, id: string): Session | undefined {
    return this.#roles.get(role)?.byId.get(id);
  }

  /** Takes the id for a session; an id is used once only, so a known one is refused. Of use after `opened`. */
  open(record: SessionRecord, sessionsMax: number, nowMs: number): Session | "used" | "too_many" {
    const sessions = this.#of(record.role);
    if (sessions.byId.has(record.id)) return "used";
    if (stillOpen(sessions, nowMs) >= sessionsMax) return "too_many";
    const session = newSession(record, "opening", nowMs);
    sessions.byId.set(record.id, session);
    sessions.opened.add(session);
    return session;
  }

  /** Its opening was written, or was not: then it never was. */
  opened(session: Session, written: boolean): void {
    if (written && session.state === "opening") session.state = "open";
    if (written) return;
    const sessions = this.#of(session.role);
    sessions.byId.delete(session.id);
    sessions.opened.delete(session);
  }

  close(session: Session): Change {
    session.state = "closed";
    return { kind: "session_closed", role: session.role, id: session.id };
  }

  freeze(role: string, id: string | undefined, frozen: boolean): void {
    if (id === undefined) {
      this.#of(role).frozen = frozen;
      return;
    }
    const session = this.find(role, id);
    if (session !== undefined) session.frozen = frozen;
  }

  isFrozen(role: string): boolean {
    return this.#roles.get(role)?.frozen ?? false;
  }

  /** What has to be assumed of everything that the session's caller says from now on. */
  taint(session: Session): Labels {
    const role = this.roleTaint(session.role);
    const own = session.own.now;
    return covers(own, role) ? own : join(role, own); // the very same object while nothing rises
  }

  roleTaint(role: string): Labels {
    return this.#of(role).taint.now;
  }

  /** The call that raised the session's taint last, its own or its role's. */
  raisedBy(session: Session): CallKey | undefined {
    return session.own.raisedBy ?? this.#roles.get(session.role)?.taint.raisedBy;
  }

  /** Raises a session's taint, or its role's where that is the scope. undefined: nothing has to be written for it. */
  raise(role: RolePolicy, session: Session, labels: Labels, by: CallKey): Change | undefined {
    if (role.taintScope === "role") return this.raiseRole(role.name, labels, by);
    if (covers(this.#of(role.name).taint.written, labels)) return undefined;
    if (!session.own.raise(labels, by)) return undefined;
    return taintChange({ of: "session", role: role.name, session: session.id }, session.own.now, by);
  }

  raiseRole(role: string, labels: Labels, by: CallKey): Change | undefined {
    const { taint } = this.#of(role);
    return taint.raise(labels, by) ? taintChange({ of: "role", role }, taint.now, by) : undefined;
  }

  /** Labels of what may come out of a store's item; without a name: out of any. */
  storeTaint(store: string, item: string | undefined): Labels {
    return this.#stores.of(store, item);
  }

  raiseStore(store: string, item: string | undefined, labels: Labels, by: CallKey): Change | undefined {
    const rise = this.#stores.raise(store, item, labels, by);
    return rise && taintChange({ of: "store", store, key: rise.key }, rise.labels, by);
  }

  /** Of changes that are now written: the taints among them. */
  wrote(changes: readonly Change[]): void {
    for (const change of changes) if (change.kind === "taint") this.#wrote(change.scope, change.labels);
  }

  #wrote(scope: TaintScope, labels: Labels): void {
    if (scope.of === "role") this.#of(scope.role).taint.wrote(labels);
    else if (scope.of === "store") this.#stores.wrote(scope.store, scope.key, labels);
    else this.find(scope.role, scope.session)?.own.wrote(labels);
  }

  /** A scope that became the role's must cover what its sessions were given before. */
  widenToRole(role: string): void {
    const { byId, taint } = this.#of(role);
    for (const session of byId.values()) taint.widen(session.own.now);
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

function stillOpen(sessions: RoleSessions, nowMs: number): number {
  for (const session of sessions.opened) {
    if (!hasEnded(session, nowMs)) continue;
    session.request = undefined;
    sessions.opened.delete(session);
  }
  return sessions.opened.size;
}

function hasEnded(session: Session, nowMs: number): boolean {
  return session.state === "closed" || (session.expiresAtMs !== undefined && nowMs >= session.expiresAtMs);
}

function selfNamed(role: string, id: string): SessionRecord {
  return {
    role,
    id,
    request: undefined,
    requestLabels: undefined,
    openedBy: undefined,
    expiresAtMs: undefined,
  };
}

function newSession(record: SessionRecord, state: Session["state"], nowMs: number): Session {
  return { ...record, state, frozen: false, own: new Taint(), lastUsedMs: nowMs, running: 0 };
}

/** How often a full table is searched at most: a caller can ask for new names at will. */
const SEARCH_EVERY_MS = 1000;

/** Forgets a session that nobody used for so long that nothing of it is kept for replay. */
function makeRoom(sessions: RoleSessions, sessionsMax: number, nowMs: number, idleForMs: number): boolean {
  if (sessions.byId.size < sessionsMax) return true;
  if (nowMs < sessions.fullUntilMs) return false;
  for (const [id, session] of sessions.byId) {
    const used = session.running > 0 || session.frozen || session.openedBy !== undefined;
    if (used || nowMs - session.lastUsedMs <= idleForMs) continue;
    sessions.taint.widen(session.own.now);
    sessions.byId.delete(id);
    return true;
  }
  sessions.fullUntilMs = nowMs + SEARCH_EVERY_MS;
  return false;
}

function taintChange(scope: TaintScope, labels: Labels, by: CallKey): Change {
  return { kind: "taint", scope, labels, by };
}
