// The seal around a document: AES-256-GCM whose associated data are the envelope's own first four fields (spec:
// connector, 4). Invariant: an envelope that was relabelled, moved to another request, reflected, or changed in one bit
// does not open, and nothing of its content is given out before its tag has verified.

import { createCipheriv, createDecipheriv } from "node:crypto";
import type { MessageKind, TransportEnvelope } from "./contract.ts";
import { ENVELOPE_HEAD, type EnvelopeHead, TRANSPORT_ENVELOPE } from "./documents.ts";
import { encode } from "./encode.ts";
import { TAG_BYTES } from "./limits.ts";

const CIPHER = "aes-256-gcm";
const TAG = { authTagLength: TAG_BYTES } as const;

/** More than nonce, names and lengths take beside the head and the ciphertext. */
const AROUND_BYTES = 64;

export interface Seal {
  /** 32 bytes (`connectionKey`). */
  readonly key: Uint8Array;
  /** An id. */
  readonly caller: string;
  /** Not empty; may be no id, since a refusal echoes it. */
  readonly requestId: string;
  readonly kind: MessageKind;
  /** 12 bytes that this key has never sealed with: from the system's secure generator. */
  readonly nonce: Uint8Array;
}

/** The canonical envelope around a canonical document. @throws TypeError for a seal or a content that no envelope can have */
export function seal({ key, caller, requestId, kind, nonce }: Seal, plaintext: Uint8Array): Buffer {
  const head = headOf(caller, requestId, kind);
  const data = encode(ENVELOPE_HEAD, head);
  if (data === undefined) throw new TypeError("an envelope can't have this caller, request id or kind");
  const cipher = createCipheriv(CIPHER, key, nonce, TAG).setAAD(data);
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  const bytes = data.length + ciphertext.length + AROUND_BYTES;
  const envelope = encode(TRANSPORT_ENVELOPE, { ...head, nonce, ciphertext }, bytes);
  if (envelope === undefined) throw new TypeError("an envelope can't have this nonce or nothing to seal");
  return envelope;
}

/** What was sealed; undefined where the tag does not verify. The work is the same for every envelope of that length. */
export function open(envelope: TransportEnvelope, key: Uint8Array): Buffer | undefined {
  const { caller_runtime_id, request_id, message_kind, nonce, ciphertext } = envelope;
  const data = encode(ENVELOPE_HEAD, headOf(caller_runtime_id, request_id, message_kind));
  if (data === undefined || ciphertext.length <= TAG_BYTES) return undefined;
  const tagAt = ciphertext.length - TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, key, nonce, TAG).setAAD(data);
  decipher.setAuthTag(ciphertext.subarray(tagAt));
  const plaintext = decipher.update(ciphertext.subarray(0, tagAt));
  try {
    decipher.final(); // empty for this mode: it only verifies
  } catch {
    return undefined;
  }
  return plaintext;
}

function headOf(caller: string, requestId: string, kind: MessageKind): EnvelopeHead {
  return {
    schema_id: "gamecult.model.transport_envelope.v3",
    caller_runtime_id: caller,
    request_id: requestId,
    message_kind: kind,
  };
}
