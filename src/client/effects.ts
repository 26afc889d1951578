// What the client takes from the outside world beside its socket: two clocks, chance and a timer.
// Tests give their own.

export interface Effects {
  /** Milliseconds since the Unix epoch: for call ids. */
  readonly epochMs: () => number;
  /** Milliseconds that only ever grow: for durations. */
  readonly monotonicMs: () => number;
  /** At least 0, less than 1. Spreads clients apart; nothing secret hangs on it. */
  readonly random: () => number;
  /** Runs `run` once in `ms` milliseconds; the function returned calls it off. */
  readonly after: (ms: number, run: () => void) => () => void;
}

/** The longest that Node's timers wait; anything longer would fire at once. */
const TIMER_MS_MAX = 2_147_483_647;

export const REAL_EFFECTS: Effects = {
  epochMs: Date.now,
  monotonicMs: () => performance.now(),
  random: Math.random,
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(ms, TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};

/** Resolves after the time, or when it is stopped. */
export function pause(ms: number, stop: AbortSignal): Promise<void> {
  if (stop.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      callOff();
      stop.removeEventListener("abort", end);
      resolve();
    };
    const callOff = REAL_EFFECTS.after(ms, end);
    stop.addEventListener("abort", end);
  });
}
