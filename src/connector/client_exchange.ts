// What a client does without a connection (spec: connector, 7, steps 1 to 3 and 6 to 10): an invocation becomes the frame
// that asks for it, and a frame becomes the result that answers it. Pure but for the nonce, which is given.

import { fault, ok, type Result } from "../base/faults.ts";
import { decodeResponseFrame, encodeRequestFrame, statusOf } from "./carriage.ts";
import { type ConnectorFault, sent, unsent } from "./client_error.ts";
import type { TransportEnvelope, TransportInvocation, TransportResult } from "./contract.ts";
import { decode } from "./decode.ts";
import { requestDigestWithin } from "./digest.ts";
import { TRANSPORT_ENVELOPE, TRANSPORT_INVOCATION, TRANSPORT_RESULT } from "./documents.ts";
import { encode } from "./encode.ts";
import { open, seal } from "./envelope.ts";
import { explainValue } from "./explain_value.ts";
import { FRAME_BYTES_WORKABLE } from "./frame.ts";
import { requestFrameBytes } from "./frame_arithmetic.ts";
import { IDENTITY_BYTES_MAX, TAG_BYTES } from "./limits.ts";

/** What an answer is held against: copied from an invocation, which may change or go meanwhile. */
export interface Asked {
  readonly requestId: string;
  readonly caller: string;
  readonly model: string;
  readonly nativeDigest: Buffer;
  readonly providerDigest: Buffer;
}

export interface SealedRequest {
  readonly asked: Asked;
  /** Without a length before it. */
  readonly frame: Buffer;
}

/** Steps 1 to 3. `nonce`: as of `Seal`. Faults: RequestIdTooLong, InvalidInvocation, FrameSize. */
export function sealRequest(
  invocation: TransportInvocation,
  bounds: { readonly key: Uint8Array; readonly frameBytesMax: number },
  nonce: () => Uint8Array,
): Result<SealedRequest, ConnectorFault> {
  const checked = checkInvocation(invocation);
  if (!checked.ok) return checked;
  const asked = askedBy(invocation);
  const { requestId, caller } = asked;
  const needed = requestFrameBytes(
    Buffer.byteLength(requestId),
    Buffer.byteLength(caller),
    checked.value.length + TAG_BYTES,
  );
  const most = Math.min(bounds.frameBytesMax, FRAME_BYTES_WORKABLE);
  if (needed > most)
    return fault(unsent("FrameSize", `the request takes ${needed} bytes, more than the frame's ${most}`));
  const from = { key: bounds.key, caller, requestId, kind: "Invocation", nonce: nonce() } as const;
  return ok({ asked, frame: encodeRequestFrame(requestId, seal(from, checked.value)) });
}

/** Its canonical bytes. What the types promise is checked all the same: the contract binds every caller. */
function checkInvocation(invocation: TransportInvocation): Result<Buffer, ConnectorFault> {
  const requestId: unknown = invocation?.request?.request_id;
  if (typeof requestId === "string" && isTooLong(requestId))
    return fault(unsent("RequestIdTooLong", `the request id has more than ${IDENTITY_BYTES_MAX} bytes`));
  const bytes = encode(TRANSPORT_INVOCATION, invocation);
  if (bytes === undefined) return fault(unsent("InvalidInvocation", whyInvalid(invocation)));
  if (!requestDigestWithin(bytes, invocation)?.equals(invocation.provider_request_sha256))
    return fault(
      unsent("InvalidInvocation", "provider_request_sha256 is not the digest of the invocation's request"),
    );
  return ok(bytes);
}

function whyInvalid(invocation: unknown): string {
  return `the invocation is not valid: ${explainValue(TRANSPORT_INVOCATION, invocation) ?? "it has no encoding"}`;
}

/** A text has at least as many bytes as UTF-16 units: a huge one is not measured. */
function isTooLong(requestId: string): boolean {
  return requestId.length > IDENTITY_BYTES_MAX || Buffer.byteLength(requestId) > IDENTITY_BYTES_MAX;
}

function askedBy(invocation: TransportInvocation): Asked {
  return {
    requestId: invocation.request.request_id,
    caller: invocation.caller_runtime_id,
    model: invocation.request.model,
    nativeDigest: Buffer.from(invocation.native_request_sha256),
    providerDigest: Buffer.from(invocation.provider_request_sha256),
  };
}

/** Steps 6 to 10: the result in a response frame. Faults: Carriage, Envelope, Authentication, Result. */
export function openResponse(
  frame: Uint8Array,
  asked: Asked,
  key: Uint8Array,
): Result<TransportResult, ConnectorFault> {
  const carried = decodeResponseFrame(frame);
  if (carried?.messageId !== asked.requestId)
    return fault(sent("Carriage", "what came is no response message to this request"));
  const envelope = decode(TRANSPORT_ENVELOPE, carried.envelope);
  if (envelope === undefined || !isAddressed(envelope, asked))
    return fault(sent("Envelope", "the response holds no result envelope for this caller and request"));
  const plaintext = open(envelope, key);
  if (plaintext === undefined)
    return fault(sent("Authentication", "the response was not sealed with this connection secret"));
  const result = decode(TRANSPORT_RESULT, plaintext);
  if (result === undefined || !answers(result, asked))
    return fault(sent("Result", "the sealed result is not valid or does not answer this invocation"));
  if (statusOf(result.disposition) !== carried.status)
    return fault(sent("Carriage", "the response's status contradicts the sealed result"));
  return ok(result);
}

function isAddressed(envelope: TransportEnvelope, { caller, requestId }: Asked): boolean {
  return (
    envelope.message_kind === "Result" &&
    envelope.caller_runtime_id === caller &&
    envelope.request_id === requestId
  );
}

function answers({ request_id, caller_runtime_id, disposition }: TransportResult, asked: Asked): boolean {
  if (request_id !== asked.requestId || caller_runtime_id !== asked.caller) return false;
  if (!("Transported" in disposition)) return true;
  const { model, native_request_sha256, provider_request_sha256 } = disposition.Transported.receipt;
  return (
    model === asked.model &&
    asked.nativeDigest.equals(native_request_sha256) &&
    asked.providerDigest.equals(provider_request_sha256)
  );
}
