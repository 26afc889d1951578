// The order of checks, from a frame to a claim (spec: connector, 6.2): read it downwards. The first row that fails decides.
// Rows 2 to 6 end in silence, rows 7 to 19 in a sealed refusal; row 1 is the accept loop's (serve_connection.ts), row 20
// the service's. Invariant: each stage takes what only the one before it makes, so none can be left out.

import { fault, ok, type Result } from "../base/faults.ts";
import { decodeRequestFrame } from "./carriage.ts";
import type { Claim, Claims } from "./claims.ts";
import type { Refusal, TransportEnvelope, TransportInvocation } from "./contract.ts";
import { decode } from "./decode.ts";
import { replayKey, requestDigestWithin, sha256 } from "./digest.ts";
import { TRANSPORT_ENVELOPE, TRANSPORT_INVOCATION } from "./documents.ts";
import { open } from "./envelope.ts";
import type { ReplayStore } from "./replay.ts";
import type { Admitted } from "./service_config.ts";
import { isId } from "./text_rules.ts";

/** Rows whose failure ends in silence. */
export type Unanswered = "carriage" | "envelope" | "binding" | "caller" | "authentication";

/** A frame that this caller has sealed. */
export interface Authentic {
  readonly caller: Admitted;
  readonly envelope: TransportEnvelope;
  readonly plaintext: Buffer;
}

/** What it asks for, by a caller that may ask. */
export interface Understood {
  readonly caller: Admitted;
  readonly invocation: TransportInvocation;
  readonly invocationSha256: Buffer;
  readonly key: Buffer;
}

/** What rows 12 to 20 come to. `replay`: the recorded frame. `damaged`: its record is no more to be read. */
export type Verdict =
  | { readonly kind: "refused"; readonly refusal: Refusal }
  | { readonly kind: "replay"; readonly frame: Buffer }
  | { readonly kind: "claimed"; readonly claim: Claim }
  | { readonly kind: "damaged" };

export interface Callers {
  readonly admitted: ReadonlyMap<string, Admitted>;
  /** Nobody's: a stranger's frame costs the same work as one with a wrong tag. */
  readonly nobodysKey: Buffer;
}

/** Rows 2 to 6. */
export function authenticate(frame: Buffer, callers: Callers): Result<Authentic, Unanswered> {
  const carried = decodeRequestFrame(frame);
  if (carried === undefined) return fault("carriage");
  const envelope = decode(TRANSPORT_ENVELOPE, carried.envelope);
  if (envelope === undefined) return fault("envelope");
  const { request_id, message_kind, caller_runtime_id } = envelope;
  if (carried.messageId !== request_id || message_kind !== "Invocation") return fault("binding");
  const caller = callers.admitted.get(caller_runtime_id);
  const plaintext = open(envelope, caller?.key ?? callers.nobodysKey);
  if (caller === undefined) return fault("caller");
  if (plaintext === undefined) return fault("authentication");
  return ok({ caller, envelope, plaintext });
}

/** Rows 7 to 11. */
export function understand({ caller, envelope, plaintext }: Authentic): Result<Understood, Refusal> {
  if (!isId(envelope.request_id)) return fault("Malformed");
  if (envelope.ciphertext.length > caller.payloadBytesMax) return fault("PayloadOverBound");
  const invocation = decode(TRANSPORT_INVOCATION, plaintext);
  if (invocation === undefined) return fault("Malformed");
  const { caller_runtime_id, request, provider_request_sha256 } = invocation;
  if (caller_runtime_id !== caller.id || request.request_id !== envelope.request_id)
    return fault("IdentitySubstitution");
  if (requestDigestWithin(plaintext, invocation)?.equals(provider_request_sha256) !== true)
    return fault("ProviderDigestSubstitution");
  const key = replayKey(caller.id, request.request_id);
  // What decodes is canonical, so these bytes are the invocation's encoding.
  return ok({ caller, invocation, invocationSha256: sha256(plaintext), key });
}

export interface Standing {
  readonly claims: Claims;
  readonly store: ReplayStore;
  readonly nowMs: number;
  readonly expiryHorizonMs: number;
}

/** Rows 12 to 19, and the claim: one step, in which nothing else happens. */
export function claim(understood: Understood, { claims, store, nowMs, expiryHorizonMs }: Standing): Verdict {
  const { caller, invocation, invocationSha256, key } = understood;
  const running = claims.find(key);
  const record = store.find(key);
  if (record === "damaged") return { kind: "damaged" };
  const taken = running ?? record;
  if (taken !== undefined && !taken.invocationSha256.equals(invocationSha256))
    return refused("ReplayConflict");
  if (running !== undefined) return refused("InFlight");
  if (record !== undefined) {
    if (record.state === "active" || !record.keySha256.equals(caller.keySha256))
      return refused("Indeterminate");
    const frame = store.frame(key);
    return frame === undefined ? { kind: "damaged" } : { kind: "replay", frame };
  }
  const expiresInMs = invocation.expires_at_unix_ms - nowMs;
  const mayHaveRun = invocation.expires_at_unix_ms <= store.forgottenUpToMs;
  if (expiresInMs < 0 || expiresInMs > expiryHorizonMs || mayHaveRun) return refused("Expired");
  if (!caller.allowedModels.has(invocation.request.model)) return refused("ModelNotAllowed");
  if (invocation.request.max_output_tokens > caller.outputTokensMax) return refused("OutputTokensOverBound");
  if (claims.countOf(caller.id) >= caller.concurrentRequestsMax) return refused("Capacity");
  return { kind: "claimed", claim: claims.take(understood) };
}

function refused(refusal: Refusal): Verdict {
  return { kind: "refused", refusal };
}
