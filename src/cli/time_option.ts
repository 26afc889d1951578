// Times that people give to an option: a moment, or how long ago.

import { secondsOf } from "../base/time_text.ts";
import { UsageFault } from "./call.ts";
import type { Flags } from "./command_row.ts";

export const MOMENT_WORDS = "2026-11-30T08:00:00Z, or how long ago: 15m, 2h";

/** Milliseconds since 1970; undefined: it was not given. @throws UsageFault */
export function momentOf(flags: Flags, name: "since" | "until", nowMs: number): number | undefined {
  const given = flags[name];
  if (typeof given !== "string") return undefined;
  const seconds = secondsOf(given);
  if (seconds !== undefined) return Math.max(0, nowMs - seconds * 1000);
  const ms = /^\d{4}-\d{2}-\d{2}/.test(given) ? Date.parse(given) : Number.NaN;
  if (Number.isNaN(ms) || ms < 0) throw new UsageFault(`--${name} must be a time such as ${MOMENT_WORDS}`);
  return ms;
}
