// Ids of new calls: u64, ordered by time, never twice from one process.

import type { Effects } from "./effects.ts";

const LOW_BITS = 20n;
/** Half of the low bits, so that a burst in one millisecond seldom reaches into the next. */
const START_RANGE = 2 ** 19;

/** Shared by all callers of the process: two of them may use one session. */
let last = 0n;

/**
 * Milliseconds since the epoch in the upper 44 bits; below them a number that starts at random in each
 * millisecond, so that two processes of one role that share a session don't meet, and then counts.
 * A clock that goes back does not: the id goes on from the last one.
 */
export function newCallId(effects: Pick<Effects, "epochMs" | "random">): bigint {
  const start = BigInt(Math.floor(effects.random() * START_RANGE));
  const now = (BigInt(Math.floor(effects.epochMs())) << LOW_BITS) | start;
  last = now > last ? now : last + 1n;
  return last;
}
