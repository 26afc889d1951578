// What a connector program implements for its provider (spec: connector, 6.4). The kit names no provider.

import type { EventPayload, Outcome, TransportInvocation } from "./contract.ts";

/** One turn: what the model said, in order, and how it ended. Events may precede a failure. */
export interface ProviderTurn {
  readonly events: readonly EventPayload[];
  readonly outcome: Outcome;
}

/**
 * Sees only invocations that passed every check, and each at most once. A thrown error, or a turn that forms no
 * valid result, becomes `Failed BackendFault`; its text goes nowhere. `signal` fires when the execution limit is
 * over: what comes later is discarded. Retries inside are the backend's own affair.
 */
export interface ProviderBackend {
  /** An id, copied into receipts. */
  readonly transport: string;
  execute(invocation: TransportInvocation, signal: AbortSignal): Promise<ProviderTurn>;
}
