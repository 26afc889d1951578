// The message that carries an envelope in each direction (spec: connector, 5): its encoding is the frame. Invariant: a
// frame that is accepted is the only one for what is returned, down to the padding of its base64. Whether the
// envelope in it is one, and whose, is for others to see.

import type { Disposition } from "./contract.ts";
import { decode } from "./decode.ts";
import {
  OPERATION_REQUEST,
  OPERATION_RESPONSE,
  type OperationRequest,
  type OperationResponse,
} from "./documents.ts";
import { encode } from "./encode.ts";
import { OPERATION, SERVICE_ID } from "./limits.ts";

export type Status = OperationResponse["status"];

export interface CarriedRequest {
  readonly messageId: string;
  /** The canonical bytes of it, as they came. */
  readonly envelope: Buffer;
}

export interface CarriedResponse extends CarriedRequest {
  readonly status: Status;
}

/** @throws TypeError for an empty or ill-formed id, or an empty envelope */
export function encodeRequestFrame(messageId: string, envelope: Uint8Array): Buffer {
  const request: OperationRequest = {
    schemaVersion: "cultnet.operation_request.v0",
    ...addressed(messageId),
    ...enclosed(envelope),
  };
  return encoded(encode(OPERATION_REQUEST, request, expectedBytes(request)));
}

/** @throws TypeError for an empty or ill-formed id, or an empty envelope */
export function encodeResponseFrame(messageId: string, status: Status, envelope: Uint8Array): Buffer {
  const response: OperationResponse = {
    schemaVersion: "cultnet.operation_response.v0",
    ...addressed(messageId),
    status,
    ...enclosed(envelope),
  };
  return encoded(encode(OPERATION_RESPONSE, response, expectedBytes(response)));
}

/** Undefined: no valid request carriage. */
export function decodeRequestFrame(frame: Uint8Array): CarriedRequest | undefined {
  const request = decode(OPERATION_REQUEST, frame);
  if (request === undefined) return undefined;
  const envelope = fromBase64(request.payload);
  return envelope === undefined ? undefined : { messageId: request.messageId, envelope };
}

/** Undefined: no valid response carriage. */
export function decodeResponseFrame(frame: Uint8Array): CarriedResponse | undefined {
  const response = decode(OPERATION_RESPONSE, frame);
  if (response === undefined) return undefined;
  const { messageId, status, payload } = response;
  const envelope = fromBase64(payload);
  return envelope === undefined ? undefined : { messageId, status, envelope };
}

/** The status that repeats this disposition. A failed turn is accepted. */
export function statusOf(disposition: Disposition): Status {
  return "Transported" in disposition ? "accepted" : "rejected";
}

function addressed(messageId: string) {
  return { messageId, serviceId: SERVICE_ID, operation: OPERATION } as const;
}

function enclosed(envelope: Uint8Array) {
  return {
    payloadSchema: "gamecult.model.transport_envelope.v3",
    payloadEncoding: "messagepack-base64",
    payload: asBuffer(envelope).toString("base64"),
  } as const;
}

/** More than the fixed names and texts take. */
const AROUND_BYTES = 300;

function expectedBytes({ messageId, payload }: OperationRequest | OperationResponse): number {
  return messageId.length + payload.length + AROUND_BYTES;
}

function encoded(frame: Buffer | undefined): Buffer {
  if (frame === undefined) throw new TypeError("a carriage can't have this message id or no envelope");
  return frame;
}

/** Node's decoder skips what it doesn't know and takes a second alphabet; only what it would write itself is base64 here. */
function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
