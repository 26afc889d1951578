// Sessions and taints: what each caller has been given, as labels that only rise. The table answers
// from memory; every rise is also handed back as a change for the store, and what the store kept of an earlier
// process is put back before anything else happens. How an operator lowers a taint is in endorsement.ts.
// Invariant: the effective taint of a session covers all that its caller was given, and a caller
// that names its own sessions has one taint for all of them.

import { covers, join, type Labels } from "../base/labels.ts";
import type { RolePolicy } from "../policy/policy.ts";
import type { Stored } from "../store/port.ts";
import {
  type Actor,
  type CallKey,
  type Change,
  HOST,
  type SessionRecord,
  type TaintScope,
} from "../store/records.ts";
import { type Endorsement, type EndorseRefusal, endorseTaints, type Lowering } from "./endorsement.ts";
import { closedChange, hasEnded, RoleSessions, type Session, selfNamed } from "./role_sessions.ts";
import { type StoreTaint, StoreTaints } from "./store_taints.ts";
import { type Taint, Versions } from "./taint.ts";

export type { Session } from "./role_sessions.ts";

/** Why a session can't be used now. */
export type SessionRefusal = "not_opened" | "ended" | "frozen" | "too_many";

/** Why a session can't be opened: `used_up` is of the opener, which has opened as many for that role as are ever kept. */
export type OpenRefusal = "used" | "too_many" | "used_up";

/** What was put back from the store, for people; and what is to be written of it. */
export interface RestoredSessions {
  readonly sessions: number;
  readonly taints: number;
  readonly frozen: number;
  readonly changes: readonly Change[];
}

export class SessionTable {
  /** Calls whose settlement by an operator is being written, as `ROLE SESSION CALL`: nobody settles one twice. */
  readonly settling = new Set<string>();
  readonly #roles = new Map<string, RoleSessions>();
  readonly #versions = new Versions();
  readonly #stores = new StoreTaints(this.#versions);

  /** The session a call of this role belongs to; made here where the role names its own. */
  use(role: RolePolicy, id: string, nowMs: number, idleForMs: number): Session | SessionRefusal {
    const sessions = this.#of(role.name);
    if (sessions.frozen) return "frozen";
    let session = sessions.byId.get(id);
    if (session === undefined) {
      if (sessions.isForgotten(id)) return "ended";
      if (role.sessions === "opened") return "not_opened";
      session = sessions.nameOwn(id, role.limits.sessions, nowMs, idleForMs);
      if (session === undefined) return "too_many";
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

  /** Sessions of all roles that can be looked at. */
  *all(): Iterable<Session> {
    for (const { byId } of this.#roles.values()) yield* byId.values();
  }

  /**
   * The session of a call that was kept over a restart: put back, or one that its role had named. Whether it may
   * be used is not said here.
   */
  ofKept(role: string, id: string, nowMs: number): Session {
    return this.find(role, id) ?? this.#of(role).put(selfNamed(role, id), "open", nowMs);
  }

  /** Takes the id for a session; an id is used once only, so a known one is refused. Of use after `opened`. */
  open(record: SessionRecord, sessionsMax: number, nowMs: number): Session | OpenRefusal {
    const sessions = this.#of(record.role);
    if (sessions.isUsed(record.id)) return "used";
    if (sessions.stillOpen(nowMs) >= sessionsMax) return "too_many";
    if (sessions.idsLeft(record.openedBy) <= 0) return "used_up";
    return sessions.put(record, "opening", nowMs);
  }

  /** Its opening was written, or was not: then it never was. */
  opened(session: Session, written: boolean): void {
    if (written && session.state === "opening") session.state = "open";
    if (!written) this.#of(session.role).drop(session);
  }

  /**
   * Closes it at once; the change has to be written. `used_up`: a role that names its own sessions has closed as
   * many as are ever kept.
   */
  close(session: Session, by: Actor): Change | "used_up" {
    const sessions = this.#of(session.role);
    const isNew = session.openedBy === undefined && session.state !== "closed";
    if (isNew && sessions.idsLeft() <= 0) return "used_up";
    sessions.close(session);
    return closedChange(session, by);
  }

  /** The ends of sessions that have expired, each told once; a restart tells again what was not written. */
  expiries(role: string, nowMs: number): readonly Change[] {
    return this.#of(role)
      .takeExpired(nowMs)
      .map((session) => closedChange(session, HOST));
  }

  /** Whether its time is up or somebody closed it: nothing is run in it any more. */
  hasEnded(session: Session, nowMs: number): boolean {
    return hasEnded(session, nowMs);
  }

  /** A session id need not be known: a name that a role chooses itself is frozen before it is used. */
  freeze(role: string, id: string | undefined, frozen: boolean): void {
    if (id === undefined) this.#of(role).frozen = frozen;
    else this.#of(role).freeze(id, frozen);
  }

  isFrozen(role: string): boolean {
    return this.#roles.get(role)?.frozen ?? false;
  }

  frozenIds(role: string): readonly string[] {
    return [...(this.#roles.get(role)?.frozenIds ?? [])];
  }

  /** What has to be assumed of everything that the session's caller says from now on. */
  taint(session: Session): Labels {
    const role = this.roleTaint(session.role);
    const own = session.own.now;
    return covers(own, role) ? own : join(role, own); // the very same object while nothing rises
  }

  /** The same by its name: of one that is not in use any more too. */
  taintOf(role: string, id: string): Labels {
    const sessions = this.#of(role);
    return join(sessions.taint.now, sessions.ownTaint(id));
  }

  roleTaint(role: string): Labels {
    return this.#of(role).taint.now;
  }

  /** The role's own, with its version and what raised it. */
  ofRole(role: string): Taint {
    return this.#of(role).taint;
  }

  /** The call that raised the session's taint last, its own or its role's. */
  raisedBy(session: Session): CallKey | undefined {
    const { taint } = this.#of(session.role);
    const [later, earlier] =
      taint.version > session.own.version ? [taint, session.own] : [session.own, taint];
    return later.raisedBy ?? earlier.raisedBy;
  }

  /** Number of the state that the session's taint is in: with any change of it, another. */
  version(session: Session): number {
    return Math.max(session.own.version, this.#of(session.role).taint.version);
  }

  /** Raises a session's taint, or its role's where that is the scope. undefined: nothing has to be written for it. */
  raise(role: RolePolicy, session: Session, labels: Labels, by: CallKey): Change | undefined {
    if (role.taintScope === "role") return this.raiseRole(role.name, labels, by);
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

  ofStore(store: string): StoreTaint | undefined {
    return this.#stores.find(store);
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
    const sessions = this.#of(role);
    for (const [, own] of sessions.tainted()) {
      sessions.taint.widen(own.now, own.raisedBy);
      // Its number counts from here on, so it has to be above theirs.
      if (own.version > sessions.taint.version) sessions.taint.renumber();
    }
  }

  /** Lowers what a session or, where the scope is the role's, its role has been given. See endorsement.ts. */
  endorse(lowering: Lowering): Endorsement | EndorseRefusal {
    const { target } = lowering;
    if (target.of === "store") return endorseTaints(lowering, this.#stores.find(target.store));
    return endorseTaints(lowering, this.#of(target.role));
  }

  /** What an earlier process wrote down. Once, before anything else is asked of this table. */
  restore(stored: Pick<Stored, "sessions" | "taints" | "frozen">, nowMs: number): RestoredSessions {
    this.#versions.begin(nowMs);
    const counts = { sessions: 0, taints: 0, frozen: 0 };
    for (const { role, session } of stored.frozen) {
      this.freeze(role, session, true);
      counts.frozen += 1;
    }
    for (const { session, closed } of stored.sessions) {
      this.#of(session.role).put(session, closed ? "closed" : "open", nowMs);
      counts.sessions += 1;
    }
    for (const { scope, labels, by } of stored.taints) {
      this.#restoreTaint(scope, labels, by, nowMs);
      counts.taints += 1;
    }
    const changes = [...this.#roles.keys()].flatMap((role) => this.expiries(role, nowMs));
    return { ...counts, changes };
  }

  /** Whatever the role is now, or whether there is one: its taint waits for it. */
  #restoreTaint(scope: TaintScope, labels: Labels, by: CallKey | undefined, nowMs: number): void {
    if (scope.of === "store") this.#stores.restore(scope.store, scope.key, labels, by);
    else if (scope.of === "role") this.#of(scope.role).taint.restore(labels, by);
    else this.ofKept(scope.role, scope.session, nowMs).own.restore(labels, by);
  }

  #of(role: string): RoleSessions {
    let sessions = this.#roles.get(role);
    if (sessions === undefined) {
      sessions = new RoleSessions(role, this.#versions);
      this.#roles.set(role, sessions);
    }
    return sessions;
  }
}

function taintChange(scope: TaintScope, labels: Labels, by: CallKey): Change {
  return { kind: "taint", scope, labels, by };
}
