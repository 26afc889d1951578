// Counting instead of repeating: of equal denials, requests that failed before dispatch, reads of the broker's
// own tools, and peers refused for the same reason, the first is a record, and those within a minute after it are counted and written as one when the minute is over. What
// was counted when the process dies is lost: at most the last minute's repetitions.
// Invariant: a role's peers can cause only so many records a minute, whatever they try.

import type { AuditRecord, CallKey, DecisionRecord } from "../store/records.ts";

export const WINDOW_MS = 60_000;
/** Kinds of denials told apart in a minute for one role; all beyond are counted as one. */
const KINDS_MAX = 256;
/** Counted denials of a role that `calls.why` still finds. */
const DENIALS_KEPT = 1024;
/** In place of what many counted denials do not have in common. */
export const VARIOUS = "(various)";

interface Window<R> {
  readonly record: R;
  readonly endsAtMs: number;
  count: number;
}

type Refused = Extract<AuditRecord, { kind: "peer_refused" }>;
type Failed = Extract<AuditRecord, { kind: "failed" }>;

class RoleBudget {
  readonly decisions = new Map<string, Window<DecisionRecord>>();
  readonly failures = new Map<string, Window<Failed>>();
  readonly refused = new Map<string, Window<Refused>>();
  readonly counted = new Map<string, DecisionRecord>();
}

export class AuditBudget {
  readonly #roles = new Map<string, RoleBudget>();
  #open = 0;

  /** Minutes that run; none: there is nothing to wait for. */
  get open(): number {
    return this.#open;
  }

  /** The record to write; undefined: it was counted. `known`: there is a tool of that name. */
  decided(decision: DecisionRecord, known: boolean, nowMs: number): AuditRecord | undefined {
    const role = this.#role(decision.key.role);
    const { key, row, grant, denied } = decision;
    const tool = known ? decision.tool : "(unknown)";
    const kind = [key.session, tool, row, grant ?? "", denied ?? ""].join(" "); // a row tells the verdict too
    const overflow = [row, denied ?? ""].join(" ");
    const fits = role.decisions.has(kind) || role.decisions.size < KINDS_MAX;
    const record = fits ? decision : { ...decision, key: { ...key, session: VARIOUS }, tool: VARIOUS };
    if (this.#first(role.decisions, fits ? kind : overflow, record, nowMs))
      return { kind: "decision", decision };
    if (decision.verdict === "deny") keep(role.counted, decision);
    return undefined;
  }

  /** The same for a request that failed before dispatch. */
  failed({ key, tool, code }: Omit<Failed, "kind" | "count">, nowMs: number): AuditRecord | undefined {
    const role = this.#role(key.role);
    const kind = [key.session, tool, code].join(" ");
    const fits = role.failures.has(kind) || role.failures.size < KINDS_MAX;
    const record: Failed = { kind: "failed", key, tool, code, count: 1 };
    const various = { ...record, key: { ...key, session: VARIOUS }, tool: VARIOUS };
    const isFirst = this.#first(role.failures, fits ? kind : code, fits ? record : various, nowMs);
    return isFirst ? record : undefined;
  }

  /** The same for a peer that was turned away. */
  peerRefused(refused: Omit<Refused, "kind" | "count">, nowMs: number): AuditRecord | undefined {
    const role = this.#role(refused.role);
    const kind = `${refused.uid ?? ""} ${refused.why}`;
    const fits = role.refused.has(kind) || role.refused.size < KINDS_MAX;
    const record: Refused = { kind: "peer_refused", ...refused, count: 1 };
    const various = { ...record, uid: undefined, pid: undefined };
    const isFirst = this.#first(role.refused, fits ? kind : refused.why, fits ? record : various, nowMs);
    return isFirst ? record : undefined;
  }

  /** A denial that was counted, where it is still kept. */
  find(key: CallKey): DecisionRecord | undefined {
    return this.#roles.get(key.role)?.counted.get(callName(key));
  }

  /** The counts of all minutes that are over; with `undefined`: of all. */
  due(nowMs: number | undefined): readonly AuditRecord[] {
    const records: AuditRecord[] = [];
    for (const { decisions, failures, refused } of this.#roles.values()) {
      for (const { record, count } of this.#take(decisions, nowMs))
        records.push({ kind: "repeated", decision: record, count });
      for (const { record, count } of this.#take(failures, nowMs)) records.push({ ...record, count });
      for (const { record, count } of this.#take(refused, nowMs)) records.push({ ...record, count });
    }
    return records;
  }

  #role(name: string): RoleBudget {
    let role = this.#roles.get(name);
    if (role === undefined) {
      role = new RoleBudget();
      this.#roles.set(name, role);
    }
    return role;
  }

  /** Whether it is the first of its kind; any other is counted. */
  #first<R>(windows: Map<string, Window<R>>, kind: string, record: R, nowMs: number): boolean {
    const window = windows.get(kind);
    if (window !== undefined) {
      window.count += 1;
      return false;
    }
    windows.set(kind, { record, endsAtMs: nowMs + WINDOW_MS, count: 0 });
    this.#open += 1;
    return true;
  }

  /** Closed: the next one of its kind is a first one again. Windows are in the order of their ends. */
  #take<R>(windows: Map<string, Window<R>>, nowMs: number | undefined): readonly Window<R>[] {
    const counted: Window<R>[] = [];
    for (const [kind, window] of windows) {
      if (nowMs !== undefined && window.endsAtMs > nowMs) break;
      windows.delete(kind);
      this.#open -= 1;
      if (window.count > 0) counted.push(window);
    }
    return counted;
  }
}

function keep(counted: Map<string, DecisionRecord>, decision: DecisionRecord): void {
  const name = callName(decision.key);
  counted.delete(name);
  counted.set(name, decision);
  if (counted.size <= DENIALS_KEPT) return;
  const oldest = counted.keys().next();
  if (!oldest.done) counted.delete(oldest.value);
}

/** A session id holds no space. */
function callName({ session, call }: CallKey): string {
  return `${session} ${call}`;
}
