// What is told apart by its SHA-256: requests, invocations, and the records of turns (spec: connector, 3.2 and 6.3).

import { createHash } from "node:crypto";
import type { ProviderRequest, TransportInvocation } from "./contract.ts";
import { INVOCATION_HEAD, PROVIDER_REQUEST, TRANSPORT_INVOCATION } from "./documents.ts";
import { encode } from "./encode.ts";

export function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

/** Of the canonical encoding; undefined: the request is not valid. */
export function providerRequestDigest(request: ProviderRequest): Buffer | undefined {
  const bytes = encode(PROVIDER_REQUEST, request);
  return bytes === undefined ? undefined : sha256(bytes);
}

/**
 * The same of the request in an invocation, out of the invocation's canonical bytes: the request stands last there, so it
 * need not be encoded once more. Undefined: these are not its bytes.
 */
export function requestDigestWithin(bytes: Uint8Array, invocation: TransportInvocation): Buffer | undefined {
  const { request: _, ...head } = invocation;
  const before = encode(INVOCATION_HEAD, head);
  return before === undefined ? undefined : sha256(bytes.subarray(before.length + REQUEST_KEY_BYTES));
}

/** The name `request`, and the byte before it. */
const REQUEST_KEY_BYTES = 8;

/** Of the canonical encoding; undefined: the invocation is not valid. */
export function invocationDigest(invocation: TransportInvocation): Buffer | undefined {
  const bytes = encode(TRANSPORT_INVOCATION, invocation);
  return bytes === undefined ? undefined : sha256(bytes);
}

/** Under which the record of a caller's request is kept. Lengths go before the texts, so no two pairs meet. */
export function replayKey(caller: string, requestId: string): Buffer {
  return sha256(Buffer.concat([counted(caller), counted(requestId)]));
}

/** A replay key as a name in a map. */
export function keyName(key: Buffer): string {
  return key.toString("latin1");
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(bytes.length));
  return Buffer.concat([length, bytes]);
}
