// What was refused and is not to be asked again for a while, over all sessions of a role; and sessions
// that were refused so often that they ask nothing for a while. Where a role names its own sessions a new name
// is no clean slate: the whole role is counted and paused as one. Told from approvals that were refused, so
// that a restart forgets nothing of it.
// Invariant: bounded for each role; where the bound bites, the refusal that ends first is given up.

import type { Session } from "../session/sessions.ts";
import type { ApprovalRecord } from "../store/records.ts";

const REFUSALS_KEPT = 1024;
/** So many refusals of one session within that time pause its questions for as long. */
export const REFUSALS_TO_PAUSE = 5;
export const PAUSE_MS = 3_600_000;

/** No session has this id. */
const ALL_SESSIONS = "";

/** `openedBy` undefined: its caller chose the name. */
type PausedSession = Pick<Session, "role" | "id" | "openedBy">;

interface RoleRefusals {
  /** By equal digest: until when. */
  readonly untilMs: Map<string, number>;
  /** By session: when its questions were refused, the latest last. */
  readonly times: Map<string, readonly number[]>;
}

export class Refusals {
  readonly #roles = new Map<string, RoleRefusals>();

  /** Takes in an approval that was refused. */
  take(record: ApprovalRecord): void {
    const { key, equal, refusedUntilMs, decidedAtMs } = record;
    if (decidedAtMs === undefined) return;
    const refusals = this.#of(key.role);
    if (refusedUntilMs !== undefined) {
      const before = refusals.untilMs.get(equal) ?? 0;
      refusals.untilMs.set(equal, Math.max(before, refusedUntilMs));
      if (refusals.untilMs.size > REFUSALS_KEPT) giveUpFirst(refusals.untilMs, (untilMs) => untilMs);
    }
    for (const session of [ALL_SESSIONS, key.session]) {
      const times = [...(refusals.times.get(session) ?? []), decidedAtMs].sort((a, b) => a - b);
      refusals.times.set(session, times.slice(-REFUSALS_TO_PAUSE));
    }
    while (refusals.times.size > REFUSALS_KEPT) giveUpFirst(refusals.times, (all) => all.at(-1) ?? 0);
  }

  /** Until when an equal call of the role stays refused; undefined: it may be asked. */
  refusedUntilMs(role: string, equal: string, nowMs: number): number | undefined {
    const untilMs = this.#roles.get(role)?.untilMs.get(equal);
    return untilMs !== undefined && nowMs < untilMs ? untilMs : undefined;
  }

  /** Until when the session asks nothing; undefined: it may ask. */
  pausedUntilMs({ role, id, openedBy }: PausedSession, nowMs: number): number | undefined {
    const times = this.#roles.get(role)?.times.get(openedBy === undefined ? ALL_SESSIONS : id) ?? [];
    const [first, last] = [times[0], times.at(-1)];
    if (first === undefined || last === undefined || times.length < REFUSALS_TO_PAUSE) return undefined;
    const untilMs = last + PAUSE_MS;
    return last - first <= PAUSE_MS && nowMs < untilMs ? untilMs : undefined;
  }

  #of(role: string): RoleRefusals {
    let refusals = this.#roles.get(role);
    if (refusals === undefined) {
      refusals = { untilMs: new Map(), times: new Map() };
      this.#roles.set(role, refusals);
    }
    return refusals;
  }
}

function giveUpFirst<T>(entries: Map<string, T>, atMs: (value: T) => number): void {
  let first: [string, T] | undefined;
  for (const entry of entries) if (first === undefined || atMs(entry[1]) < atMs(first[1])) first = entry;
  if (first !== undefined) entries.delete(first[0]);
}
