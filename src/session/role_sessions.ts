// The sessions of one role: those in use, those that have ended and whose ids are never used again, and what
// is frozen. Invariants: an id that was opened once is known for good, or nothing more is opened; a
// session is forgotten only while nothing runs in it, and its taint is not.

import { CLEAN, covers, type Labels } from "../base/labels.ts";
import type { Actor, Change, SessionRecord } from "../store/records.ts";
import { Taint, type Versions } from "./taint.ts";

export interface Session extends Omit<SessionRecord, "request"> {
  /** Given up when it ends. */
  request: string | undefined;
  /** `opening`: not written down yet, so nobody can use it. `expired` once somebody has noticed. */
  state: "opening" | "open" | "closed" | "expired";
  frozen: boolean;
  /** Its own share; the effective taint is told by `SessionTable.taint`. */
  readonly own: Taint;
  lastUsedMs: number;
  /** Calls that run or wait in it: it is not forgotten while there are any. */
  running: number;
}

/**
 * Ids that one role may open for one other, ever; and, apart from these, that a role which names its own may close.
 * They are kept for good, so that none is used twice; a hijacked opener uses up its own and nobody else's.
 */
export const IDS_MAX = 262_144;
/** In place of an opener, where a role names its sessions itself: no role can have this name. */
const NOBODY = "";
/** Ended sessions of a role that can still be looked at. */
const ENDED_SHOWN = 1024;
/** How often a full table is searched at most: a caller can ask for new names at will. */
const SEARCH_EVERY_MS = 1000;

export class RoleSessions {
  readonly byId = new Map<string, Session>();
  readonly taint: Taint;
  frozen = false;
  /** Ids that are frozen, whether there is a session of that name now or not. */
  readonly frozenIds = new Set<string>();
  readonly #role: string;
  readonly #versions: Versions;
  /** Opened and not known to have ended. */
  readonly #opened = new Set<Session>();
  /** Expired, and nobody was asked yet to write that down. */
  #expired: Session[] = [];
  /** Ended, in the order in which that was noticed; still in `byId`. */
  readonly #ended = new Set<Session>();
  /** Ended and forgotten but for the id, and the taint where there is one. */
  readonly #used = new Map<string, Taint | undefined>();
  readonly #openedBy = new Map<string, number>();
  /** Until then no session has been idle for long enough to be forgotten. */
  #fullUntilMs = 0;

  constructor(role: string, versions: Versions) {
    this.#role = role;
    this.#versions = versions;
    this.taint = new Taint(versions);
  }

  /** A session that its caller names; undefined: the table is full of such that are not idle for so long. */
  nameOwn(id: string, sessionsMax: number, nowMs: number, idleForMs: number): Session | undefined {
    if (!this.#makeRoom(sessionsMax, nowMs, idleForMs)) return undefined;
    return this.put(selfNamed(this.#role, id), "open", nowMs);
  }

  isUsed(id: string): boolean {
    return this.byId.has(id) || this.#used.has(id);
  }

  /** Whether it has ended so long ago that only its id is known. */
  isForgotten(id: string): boolean {
    return this.#used.has(id);
  }

  /** What that session was given, where each has a taint of its own; also long after its end. */
  ownTaint(id: string): Labels {
    return this.byId.get(id)?.own.now ?? this.#used.get(id)?.now ?? CLEAN;
  }

  /** Ids that may still be used up: of those that this opener opens, or, without one, of those closed here. */
  idsLeft(opener: string = NOBODY): number {
    return IDS_MAX - (this.#openedBy.get(opener) ?? 0);
  }

  /** Sessions that were opened and have not ended. */
  stillOpen(nowMs: number): number {
    for (const session of this.#opened) if (hasEnded(session, nowMs)) this.#retire(session);
    return this.#opened.size;
  }

  /** Takes a session in; the id must not be used. */
  put(record: SessionRecord, state: Session["state"], nowMs: number): Session {
    const frozen = this.frozenIds.has(record.id);
    const own = new Taint(this.#versions);
    const session: Session = { ...record, state, frozen, own, lastUsedMs: nowMs, running: 0 };
    this.byId.set(record.id, session);
    if (record.openedBy !== undefined) {
      this.#opened.add(session);
      this.#count(record.openedBy, 1);
    } else if (state === "closed") this.#close(session);
    return session;
  }

  /** Its id is never used again. Its taint and what is said of it stay as they are. */
  close(session: Session): void {
    if (session.state === "closed") return;
    session.state = "closed";
    if (session.openedBy === undefined) this.#close(session);
  }

  /** Sessions that have expired, each told once: their end is still to be written down. */
  takeExpired(nowMs: number): readonly Session[] {
    this.stillOpen(nowMs);
    return this.#expired.splice(0);
  }

  /** It never was. */
  drop(session: Session): void {
    this.byId.delete(session.id);
    this.#opened.delete(session);
    this.#ended.delete(session);
    if (session.openedBy !== undefined) this.#count(session.openedBy, -1);
  }

  freeze(id: string, frozen: boolean): void {
    if (frozen) this.frozenIds.add(id);
    else this.frozenIds.delete(id);
    const session = this.byId.get(id);
    if (session !== undefined) session.frozen = frozen;
  }

  /** All taints of its sessions that are not clean, those of ended ones too, with the session's id. */
  *tainted(): Iterable<readonly [string, Taint]> {
    for (const [id, { own }] of this.byId) if (!isClean(own.now)) yield [id, own];
    for (const [id, own] of this.#used) if (own !== undefined && !isClean(own.now)) yield [id, own];
  }

  #count(opener: string, more: number): void {
    this.#openedBy.set(opener, (this.#openedBy.get(opener) ?? 0) + more);
  }

  /** One that its role named itself. */
  #close(session: Session): void {
    this.#count(NOBODY, 1);
    this.#retire(session);
  }

  #retire(session: Session): void {
    session.request = undefined;
    if (session.state !== "closed") {
      session.state = "expired";
      this.#expired.push(session);
    }
    this.#opened.delete(session);
    this.#ended.add(session);
    if (this.#ended.size > ENDED_SHOWN) this.#forgetEnded();
  }

  /** The one that ended first, or of which nothing runs any more. */
  #forgetEnded(): boolean {
    for (const session of this.#ended) {
      if (session.running > 0) continue;
      this.#ended.delete(session);
      this.byId.delete(session.id);
      this.#used.set(session.id, isClean(session.own.now) ? undefined : session.own);
      return true;
    }
    return false;
  }

  /** Forgets a session that nobody used for so long that nothing of it is kept for replay. */
  #makeRoom(sessionsMax: number, nowMs: number, idleForMs: number): boolean {
    if (this.byId.size < sessionsMax) return true;
    if (nowMs < this.#fullUntilMs) return false;
    this.stillOpen(nowMs);
    if (this.#forgetEnded()) return true;
    for (const [id, session] of this.byId) {
      const isKept = session.openedBy !== undefined || session.state === "closed";
      const used = session.running > 0 || session.frozen || isKept;
      if (used || nowMs - session.lastUsedMs <= idleForMs) continue;
      this.taint.widen(session.own.now, session.own.raisedBy);
      this.byId.delete(id);
      return true;
    }
    this.#fullUntilMs = nowMs + SEARCH_EVERY_MS;
    return false;
  }
}

export function hasEnded(session: Session, nowMs: number): boolean {
  const { state, expiresAtMs } = session;
  return state === "closed" || state === "expired" || (expiresAtMs !== undefined && nowMs >= expiresAtMs);
}

/** As people see it. */
export type SessionState = "opening" | "open" | "closed" | "expired" | "frozen";

export function stateOf(session: Session, nowMs: number): SessionState {
  if (session.state === "closed") return "closed";
  if (hasEnded(session, nowMs)) return "expired";
  return session.frozen ? "frozen" : session.state;
}

export function closedChange({ role, id }: Session, by: Actor): Change {
  return { kind: "session_closed", role, id, by };
}

/** Of a session that its role named itself. */
export function selfNamed(role: string, id: string): SessionRecord {
  return {
    role,
    id,
    request: undefined,
    requestLabels: undefined,
    openedBy: undefined,
    expiresAtMs: undefined,
  };
}

function isClean(labels: Labels): boolean {
  return covers(CLEAN, labels);
}
