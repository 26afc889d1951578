// Which lines `callgate tail` shows: the options that choose, and whether an entry is chosen.

import { patternMatches } from "../base/ids.ts";
import { callId } from "./call.ts";
import type { Flags } from "./command_row.ts";
import { type Entry, LEVELS, type Level } from "./tail_entry.ts";
import { momentOf } from "./time_option.ts";

export interface TailFilter {
  readonly role: string | undefined;
  readonly session: string | undefined;
  readonly tool: string | undefined;
  readonly decision: string | undefined;
  /** A name, or the beginning of names with `*`. */
  readonly event: string | undefined;
  readonly call: string | undefined;
  /** This one and those above it. */
  readonly level: Level | undefined;
  readonly sinceMs: number | undefined;
}

/** @throws UsageFault */
export function readFilter(flags: Flags, nowMs: number): TailFilter {
  const text = (name: string) => (typeof flags[name] === "string" ? flags[name] : undefined);
  const call = text("call");
  return {
    role: text("role"),
    session: text("of"),
    tool: text("tool"),
    decision: text("decision"),
    event: text("event"),
    call: call === undefined ? undefined : callId(call).toString(),
    level: LEVELS.find((one) => one === flags["level"]),
    sinceMs: momentOf(flags, "since", nowMs),
  };
}

export function isChosen(entry: Entry, filter: TailFilter): boolean {
  return (
    fits(entry.role, filter.role) &&
    fits(entry.session, filter.session) &&
    fits(entry.tool, filter.tool) &&
    fits(entry.decision, filter.decision) &&
    fits(entry.call, filter.call) &&
    (filter.event === undefined || patternMatches(filter.event, entry.event)) &&
    (filter.level === undefined || rank(entry.level) >= rank(filter.level)) &&
    (filter.sinceMs === undefined || (entry.atMs ?? filter.sinceMs) >= filter.sinceMs)
  );
}

function fits(has: string | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || has === wanted;
}

/** A level that nobody knows is above all: it may matter. */
function rank(level: Level | undefined): number {
  return level === undefined ? LEVELS.length : LEVELS.indexOf(level);
}
