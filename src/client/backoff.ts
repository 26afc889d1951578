// When to try again for a lost connection, and when to stop. Pure; the timer is the link's.

export interface ReconnectOptions {
  /** Before the first attempt; doubles for each that fails. Default 50. */
  readonly delayMs?: number | undefined;
  /** Above which the delay does not grow. Default 5,000. */
  readonly delayMsMax?: number | undefined;
  /** From the loss until no further attempt is made. Infinity: never stops. Default 60,000. */
  readonly giveUpAfterMs?: number | undefined;
  /** How long a connection without a message must have lasted to count as good. Default 5,000. */
  readonly stableAfterMs?: number | undefined;
}

export type Reconnect = { readonly [K in keyof ReconnectOptions]-?: number };

export function normalReconnect(options: ReconnectOptions | undefined): Reconnect {
  return {
    delayMs: options?.delayMs ?? 50,
    delayMsMax: options?.delayMsMax ?? 5_000,
    giveUpAfterMs: options?.giveUpAfterMs ?? 60_000,
    stableAfterMs: options?.stableAfterMs ?? 5_000,
  };
}

/**
 * Milliseconds before attempt number `attempt` (from 0), or undefined where it would be too late.
 * Whole, between half of the full delay and all of it, so that clients of one broker don't come back in step.
 */
export function retryDelayMs(
  reconnect: Reconnect,
  attempt: number,
  outageMs: number,
  random: number,
): number | undefined {
  if (outageMs >= reconnect.giveUpAfterMs) return undefined;
  const full = Math.min(reconnect.delayMsMax, reconnect.delayMs * 2 ** Math.min(attempt, 30));
  const delayMs = full * (0.5 + random / 2);
  // Whole, as timers are: a fraction of one that is left over would be waited for again and again.
  return Math.ceil(Math.min(delayMs, reconnect.giveUpAfterMs - outageMs));
}
