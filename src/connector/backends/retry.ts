// When a request is sent again: only where the provider surely did not run a turn. That is: no connection stood, or
// it answered with a status that says "not now". A status without its header may come from a proxy behind which the
// turn ran (503), or from a spent budget that no wait brings back (429). Never after a 200, a reset, a 500 or a 504.

import type { Clock } from "../../base/ports.ts";

const NO_CONNECTION_WAIT_MS = 500;
const OVERLOADED_WAIT_MS = 1000;

/** Milliseconds, as the answer asks for them: `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function askedWaitMs(header: (name: string) => string | undefined, clock: Clock): number | undefined {
  const inMs = parseDecimal(header("retry-after-ms"));
  if (inMs !== undefined) return Math.ceil(inMs);
  const text = header("retry-after");
  const seconds = parseDecimal(text);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - clock.nowMs());
}

function parseDecimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}

/**
 * How long to wait until the next attempt, by the status of this one; undefined: there is none. `attempt` counts from
 * 0. A server that says `x-should-retry: false` is believed; one that says true is not.
 */
export function waitForStatusMs(
  status: number,
  header: (name: string) => string | undefined,
  attempt: number,
  clock: Clock,
): number | undefined {
  if (header("x-should-retry") === "false") return undefined;
  const asked = askedWaitMs(header, clock);
  if (status === 429 || status === 503) return asked;
  // 529 has one meaning, and those who send it leave the header out at times.
  return status === 529 ? (asked ?? OVERLOADED_WAIT_MS * 2 ** attempt) : undefined;
}

export function waitForConnectionMs(attempt: number): number {
  return NO_CONNECTION_WAIT_MS * 2 ** attempt;
}

/** True: the time passed. False: `signal` fired first. */
export function wait(ms: number, clock: Clock, signal: AbortSignal): Promise<boolean> {
  return new Promise((settle) => {
    if (signal.aborted) return settle(false);
    const onAbort = (): void => {
      stop();
      settle(false);
    };
    const stop = clock.after(ms, () => {
      signal.removeEventListener("abort", onAbort);
      settle(true);
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
