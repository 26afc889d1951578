// Outcomes that are expected, as values: the Result type and the closed table of codes that a
// `failed` message begins with. Nothing here throws; a broken assumption is thrown by whoever
// meets it and caught at the call or at the process, nowhere else.

/** A value, or the fault that stood in its way. */
export type Result<T, F = string> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly fault: F };

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function fault<F>(reason: F): { readonly ok: false; readonly fault: F } {
  return { ok: false, fault: reason };
}

/** The first word of every `failed.message` (spec: broker, Calls). Closed. */
export const FAIL_CODES = [
  "bad_arguments",
  "capacity",
  "no_provider",
  "provider_lost",
  "timeout",
  "too_large",
  "conflict",
  "cancelled",
  "outcome_unknown",
  "unavailable",
  "provider",
] as const;
export type FailCode = (typeof FAIL_CODES)[number];

/** A call that ends without a result: the code, a sentence for people that says whether the provider may have run. */
export interface CallFault {
  readonly code: FailCode;
  readonly sentence: string;
}

/** Why a call was denied (spec: wire, Envelope). Closed. */
export const DENY_REASONS = [
  "no_grant",
  "grant_expired",
  "taint_too_high",
  "denied_by_grant",
  "approval_refused",
  "approval_expired",
] as const;
export type DenyReason = (typeof DENY_REASONS)[number];
