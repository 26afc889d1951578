// From a forwarded call to the invocation that the connector gets. Invariants: the request id stands for one forwarded
// (session, call) and no other; and one call, one expiry and the same arguments always give the same bytes, because
// the connector knows a retry by the digest of the whole invocation.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { TransportInvocation } from "../../connector/contract.ts";
import { type InvocationParts, invocationOf } from "../../connector/invocation.ts";
import { isId } from "../../connector/text_rules.ts";

/** Of the longest: 9 + 20 digits + 1 + 128 characters of a session; an id has 256 bytes. */
const PREFIX = "callgate/";

/**
 * Injective: the call is digits alone, so the first `/` behind it ends it, and what follows is the session, whole. No
 * hash is needed: a session that the broker forwards has at most 128 characters.
 */
export function requestIdOf(session: string, call: bigint): Result<string> {
  const id = `${PREFIX}${call}/${session}`;
  return isId(id) ? ok(id) : fault("the session can't be named to the connector");
}

/**
 * Expiries on a grid, so that a retry can find the one of the first attempt without anybody having kept it: each lies one to
 * two steps ahead. The first is that of now; then those that attempts up to `lookBackMs` ago had, latest first.
 */
export function* expiriesOf(nowMs: number, stepMs: number, lookBackMs: number): Generator<number> {
  const newest = (Math.floor(nowMs / stepMs) + 2) * stepMs;
  const oldest = (Math.floor((nowMs - lookBackMs) / stepMs) + 2) * stepMs;
  for (let expiry = newest; expiry >= oldest && expiry > 0; expiry -= stepMs) yield expiry;
}

/** The widest grid whose every expiry lies within the horizon. */
export function gridStepOf(horizonMs: number): number {
  return Math.max(1, Math.floor(horizonMs / 2));
}

/** The same request for any expiry, its digest taken once. @throws ConnectorError InvalidInvocation where it is not valid */
export function invocationAt(
  parts: Omit<InvocationParts, "expiresAtUnixMs">,
): (expiresAtUnixMs: number) => TransportInvocation {
  const invocation = invocationOf({ ...parts, expiresAtUnixMs: 1 });
  return (expiresAtUnixMs) => ({ ...invocation, expires_at_unix_ms: expiresAtUnixMs });
}
