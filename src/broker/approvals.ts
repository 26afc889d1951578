// The table of questions to humans: those that wait, with the limits of asking, and what became of the
// latest that no longer wait. Who asks, answers and is told is not here.
// Invariant: a question is open from the moment it is handed to the store until it is closed here, once;
// what could not be written of a closing is owed and handed out again.

import type { RoleLimits } from "../base/limits.ts";
import type { Actor, ApprovalRecord, ApprovalState, Change } from "../store/records.ts";
import type { LiveCall, Peer } from "./live.ts";
import type { Metrics } from "./metrics.ts";
import { Refusals } from "./refusals.ts";
import { Waiters } from "./waiters.ts";

const HOUR_MS = 3_600_000;
/** Of a role, closed and not needed to keep an equal call refused: so many are kept to be looked at. */
const CLOSED_KEPT = 256;
const CLOSED_BYTES_MAX = 4_194_304;
/** What is kept in all, refused ones among them. */
const CLOSED_MAX = 1024;

/** Without its arguments, which are in the record of its call. */
interface Closed {
  readonly record: ApprovalRecord;
  /** What it takes in the store. */
  readonly bytes: number;
}

class RoleApprovals {
  readonly open = new Map<string, LiveCall>();
  /** The latest closed last. */
  readonly closed = new Map<string, Closed>();
  closedBytes = 0;
  /** Questions of the last hour, the latest last. */
  asked: { readonly session: string; readonly atMs: number }[] = [];
}

export class Approvals {
  readonly refusals = new Refusals();
  /** Who waits for a change of the table. */
  readonly watchers = new Waiters<Peer>(({ connection }) => connection.role);
  readonly #roles = new Map<string, RoleApprovals>();
  readonly #metrics: Metrics;
  #version: number;
  readonly #owed: ApprovalRecord[] = [];
  /** Whether what is owed is about to be written. */
  paying = false;

  /** `version` differs between two runs, so that a client that watched the one before looks again. */
  constructor(version: number, metrics: Metrics) {
    this.#version = version;
    this.#metrics = metrics;
  }

  /** Another one whenever anything here has changed. */
  get version(): number {
    return this.#version;
  }

  find(id: string): ApprovalRecord | undefined {
    for (const { open, closed } of this.#roles.values()) {
      const found = open.get(id)?.question ?? closed.get(id)?.record;
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The call whose question is open. */
  open(id: string): LiveCall | undefined {
    for (const { open } of this.#roles.values()) {
      const live = open.get(id);
      if (live !== undefined) return live;
    }
    return undefined;
  }

  /** Of a role, or of all: the calls whose questions are open, each role's in the order of asking. */
  *waiting(role: string | undefined): Iterable<LiveCall> {
    for (const { open } of this.#some(role)) yield* open.values();
  }

  /** Of a role, or of all: the questions that no longer wait, so far as they are kept. */
  *ended(role: string | undefined): Iterable<ApprovalRecord> {
    for (const { closed } of this.#some(role)) for (const { record } of closed.values()) yield record;
  }

  #some(role: string | undefined): Iterable<RoleApprovals> {
    if (role === undefined) return this.#roles.values();
    const ofRole = this.#roles.get(role);
    return ofRole === undefined ? [] : [ofRole];
  }

  get pending(): number {
    let pending = 0;
    for (const { open } of this.#roles.values()) pending += open.size;
    return pending;
  }

  /** Of the question that waits longest; undefined: none waits. Each role's are in the order of asking. */
  get oldestAskedAtMs(): number | undefined {
    let oldest: number | undefined;
    for (const { open } of this.#roles.values()) {
      const [first] = open.values();
      const askedAtMs = first?.question?.askedAtMs;
      if (askedAtMs !== undefined && askedAtMs < (oldest ?? Number.POSITIVE_INFINITY)) oldest = askedAtMs;
    }
    return oldest;
  }

  /** The open question that an equal call of the same session and user would ask again. */
  same(live: Pick<LiveCall, "session">, equal: string, uid: number | undefined): LiveCall | undefined {
    for (const one of this.#of(live.session.role).open.values()) {
      const { question, session } = one;
      if (session === live.session && question?.equal === equal && question.uid === uid) return one;
    }
    return undefined;
  }

  /** The limit that a new question of that session would break; it may have at most half of its role's. */
  limitReached(
    role: string,
    session: string,
    limits: RoleLimits,
    nowMs: number,
  ): "pending_approvals" | "questions_per_hour" | undefined {
    const ofRole = this.#of(role);
    const ofSession = [...ofRole.open.values()].filter(({ key }) => key.session === session).length;
    const { pending_approvals: pendingMax, questions_per_hour: askedMax } = limits;
    if (ofRole.open.size >= pendingMax || ofSession >= half(pendingMax)) return "pending_approvals";
    ofRole.asked = ofRole.asked.filter(({ atMs }) => nowMs - atMs < HOUR_MS);
    const asked = ofRole.asked.filter((one) => one.session === session).length;
    if (ofRole.asked.length >= askedMax || asked >= half(askedMax)) return "questions_per_hour";
    return undefined;
  }

  /** Bytes of arguments that open questions of that session hold. */
  heldBytes(role: string, session: string): number {
    let bytes = 0;
    for (const { key, question } of this.#of(role).open.values())
      if (key.session === session) bytes += question?.arguments.length ?? 0;
    return bytes;
  }

  /** Takes in a call whose question is being written, or was by an earlier process. */
  ask(live: LiveCall, record: ApprovalRecord): void {
    const ofRole = this.#of(record.key.role);
    live.question = record;
    ofRole.open.set(record.id, live);
    ofRole.asked.push({ session: record.key.session, atMs: record.askedAtMs });
  }

  /** The question could not be written: it never was. */
  unask(record: ApprovalRecord): void {
    const ofRole = this.#of(record.key.role);
    ofRole.open.delete(record.id);
    const at = ofRole.asked.findLastIndex(({ session }) => session === record.key.session);
    if (at >= 0) ofRole.asked.splice(at, 1);
  }

  /** Whether the call's question is open. */
  isOpen({ key, question }: LiveCall): boolean {
    return question !== undefined && this.#of(key.role).open.has(question.id);
  }

  /** Withdraws what is left open of a call that can't go on. */
  giveUp(live: LiveCall, nowMs: number): ApprovalRecord | undefined {
    if (live.question === undefined || !this.isOpen(live)) return undefined;
    const record = closed(live.question, "withdrawn", nowMs);
    this.close(record);
    return record;
  }

  /** Takes in a question that no longer waits; what has to be written for those that are no longer kept. */
  close(record: ApprovalRecord): readonly Change[] {
    const ofRole = this.#of(record.key.role);
    const live = ofRole.open.get(record.id);
    if (live !== undefined) live.question = record;
    ofRole.open.delete(record.id);
    this.changed();
    return this.keepEnded(record);
  }

  /** The same for one that was never taken in here, since it ended while the broker began. */
  keepEnded(record: ApprovalRecord): readonly Change[] {
    const { state, askedAtMs, decidedAtMs = askedAtMs } = record;
    this.#metrics.questionClosed(state, decidedAtMs - askedAtMs);
    return this.keep(record);
  }

  /** The same for one that an earlier process closed. */
  keep(record: ApprovalRecord): readonly Change[] {
    const ofRole = this.#of(record.key.role);
    if (record.state === "refused") this.refusals.take(record);
    const bytes = record.arguments.length;
    ofRole.closed.set(record.id, { record: { ...record, arguments: "" }, bytes });
    ofRole.closedBytes += bytes;
    return forgetOldest(ofRole, record.decidedAtMs ?? 0);
  }

  /** For the limits: a question that an earlier process asked. */
  askedBefore({ key, askedAtMs }: ApprovalRecord): void {
    this.#of(key.role).asked.push({ session: key.session, atMs: askedAtMs });
  }

  changed(): void {
    this.#version += 1;
    this.watchers.wakeAll();
  }

  /** A closing that could not be written. Until it is, a restart would find the question open. */
  owe(record: ApprovalRecord): void {
    this.#owed.push(record);
  }

  takeOwed(): readonly ApprovalRecord[] {
    return this.#owed.splice(0);
  }

  #of(role: string): RoleApprovals {
    let ofRole = this.#roles.get(role);
    if (ofRole === undefined) {
      ofRole = new RoleApprovals();
      this.#roles.set(role, ofRole);
    }
    return ofRole;
  }
}

/** The question as it is once it no longer waits. */
export function closed(
  question: ApprovalRecord,
  state: Exclude<ApprovalState, "pending">,
  nowMs: number,
  by?: Actor,
  refusedUntilMs?: number,
): ApprovalRecord {
  return { ...question, state, decidedBy: by, decidedAtMs: nowMs, refusedUntilMs };
}

function half(limit: number): number {
  return Math.max(1, Math.floor(limit / 2));
}

/** Gives up the oldest beyond what is kept; those that keep an equal call refused, or count for a pause, last. */
function forgetOldest(ofRole: RoleApprovals, nowMs: number): readonly Change[] {
  const forgotten: Change[] = [];
  for (const [id, { record, bytes }] of ofRole.closed) {
    const { closed, closedBytes } = ofRole;
    if (closed.size <= CLOSED_KEPT && closedBytes <= CLOSED_BYTES_MAX) break;
    const { state, refusedUntilMs = 0, decidedAtMs = 0 } = record;
    const counts = state === "refused" && (nowMs < refusedUntilMs || nowMs - decidedAtMs < HOUR_MS);
    if (counts && closed.size <= CLOSED_MAX) continue;
    closed.delete(id);
    ofRole.closedBytes -= bytes;
    forgotten.push({ kind: "approval_forgotten", id });
  }
  return forgotten;
}
