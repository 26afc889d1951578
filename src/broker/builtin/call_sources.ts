// All calls that there are, one after the other, none of them read before it is asked for: those that go on, those
// whose outcome nobody knows, those that ended; each the newest first. From the beginning or behind a place.

import type { FoundCall } from "../../store/port.ts";
import type { CallKey } from "../../store/records.ts";
import type { Core } from "../core.ts";
import { recordsOf } from "../live.ts";
import type { Cursor, Phase } from "./call_cursor.ts";
import { type FoundRecord, liveCall, liveState } from "./call_row.ts";

/** One that may be in a list. Good within one turn. */
export interface Candidate {
  readonly at: Cursor;
  /** What reading it costs, about; 0: nothing. */
  readonly bytes: number;
  /** undefined: it is gone, or it stands before the place after all. */
  read(): FoundRecord | undefined;
}

/** A place that the list goes on behind. */
export interface Place extends Cursor {
  /** false: whoever names it may not see that call, so it is not looked up: its time alone counts. */
  readonly isKnown: boolean;
}

/** Of one part of the list: a role's, or (undefined) all. */
export function candidates(
  core: Core,
  phase: Phase,
  role: string | undefined,
  behind: Place | undefined,
): Iterable<Candidate> {
  switch (phase) {
    case "live":
      return liveCalls(core, role, behind);
    case "unknown":
      return unknownCalls(core, role, behind);
    case "ended":
      return endedCalls(core, role, behind);
  }
}

function liveCalls(core: Core, role: string | undefined, behind: Place | undefined): readonly Candidate[] {
  const found: Candidate[] = [];
  for (const live of core.live.all()) {
    if (role !== undefined && live.key.role !== role) continue;
    for (const record of recordsOf(live)) {
      const { key, askedAtMs: atMs } = record;
      const at: Cursor = { phase: "live", key, atMs, number: 0 };
      if (behind !== undefined && newestFirst(at, behind) <= 0) continue;
      found.push({ at, bytes: 0, read: () => ({ record, state: liveState(live) }) });
    }
  }
  return found.sort((a, b) => newestFirst(a.at, b.at));
}

/** A total order that depends on nothing but the two. */
function newestFirst(a: Cursor, b: Cursor): number {
  if (a.atMs !== b.atMs) return b.atMs - a.atMs;
  if (a.key.call !== b.key.call) return a.key.call > b.key.call ? -1 : 1;
  return inOrder(a.key.role, b.key.role) || inOrder(a.key.session, b.key.session);
}

function inOrder(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function* unknownCalls(core: Core, role: string | undefined, behind: Place | undefined): Iterable<Candidate> {
  const open = [...core.store.open()].filter(({ key }) => role === undefined || key.role === role);
  const index = behind?.isKnown ? open.findIndex(({ key }) => isSame(key, behind.key)) : -1;
  // Where the call that is named was settled meanwhile, its time alone counts.
  const askedMaxMs = behind === undefined || index >= 0 ? Number.POSITIVE_INFINITY : behind.atMs;
  for (const one of open.slice(index + 1)) {
    if (liveCall(core, one.key) !== undefined) continue;
    // Before it is read nobody knows when it was asked; then none is left out for it.
    const at: Cursor = { phase: "unknown", key: one.key, atMs: Number.MAX_SAFE_INTEGER, number: 0 };
    yield { at, bytes: one.bytes, read: () => readUnknown(one, askedMaxMs) };
  }
}

function readUnknown({ read }: FoundCall, askedMaxMs: number): FoundRecord | undefined {
  const record = read();
  return record && record.askedAtMs <= askedMaxMs ? { record, state: "unknown" } : undefined;
}

function isSame(a: CallKey, b: CallKey): boolean {
  return a.call === b.call && a.session === b.session && a.role === b.role;
}

function* endedCalls(core: Core, role: string | undefined, behind: Place | undefined): Iterable<Candidate> {
  const place = behind && {
    endedAtMs: behind.atMs,
    number: behind.number,
    key: behind.isKnown ? behind.key : undefined,
  };
  for (const { key, endedAtMs, number, bytes, read } of core.store.ended({ role, behind: place })) {
    const at: Cursor = { phase: "ended", key, atMs: endedAtMs, number };
    yield { at, bytes, read: () => ended(read()) };
  }
}

function ended(record: ReturnType<FoundCall["read"]>): FoundRecord | undefined {
  return record && { record, state: "ended" };
}
