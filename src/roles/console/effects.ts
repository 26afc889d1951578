// What the console takes from the outside world beside its sockets: time, timers and chance. Tests give their own.

import { randomBytes } from "node:crypto";

export interface ConsoleEffects {
  /** Milliseconds since 1970. It never goes back and never stands still: nothing outlives its length where a clock is set. */
  readonly nowMs: () => number;
  /** Runs `run` once in `ms` milliseconds; the function returned calls it off. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** So many bytes that nobody can guess. */
  readonly random: (bytes: number) => Uint8Array;
}

export function realEffects(wallMs = () => Date.now(), steadyMs = () => performance.now()): ConsoleEffects {
  let shown = wallMs();
  let steadyAt = steadyMs();
  return {
    nowMs: () => {
      const steady = steadyMs();
      shown = Math.max(wallMs(), shown + (steady - steadyAt));
      steadyAt = steady;
      return Math.floor(shown);
    },
    after: (ms, run) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
    random: (bytes) => randomBytes(bytes),
  };
}
