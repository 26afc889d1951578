// A replay record as bytes, without its frame, of which it has the length and the digest. Versioned, and with a
// checksum. Invariant: bytes that are not exactly what was encoded under that key are no record; one whose frame
// is another is told by `holdsFrame`.

import { replayKey, sha256 } from "./digest.ts";
import { DIGEST_BYTES, IDENTITY_BYTES_MAX } from "./limits.ts";
import type { ReplayHead, ReplayRecord } from "./replay.ts";

const VERSION = 1;
const STATE = { active: 1, completed: 2 } as const;
/** Where what begins. */
const AT = {
  version: 0,
  state: 1,
  key: 2,
  invocation: 34,
  expires: 66,
  frameBytes: 74,
  frame: 78,
  callerBytes: 110,
  idBytes: 112,
  texts: 114,
} as const;

/** A record, and what it says of its frame. */
export interface StoredRecord extends ReplayRecord {
  /** 0 of an active one. */
  readonly frameBytes: number;
  readonly frameSha256: Buffer;
}

/** `frame` makes it a completed one. */
export function encodeRecord(head: ReplayHead, frame: Buffer | undefined): Buffer {
  const caller = Buffer.from(head.caller);
  const id = Buffer.from(head.requestId);
  const bytes = Buffer.alloc(AT.texts + caller.length + id.length + DIGEST_BYTES);
  bytes[AT.version] = VERSION;
  bytes[AT.state] = frame === undefined ? STATE.active : STATE.completed;
  bytes.set(head.keySha256, AT.key);
  bytes.set(head.invocationSha256, AT.invocation);
  bytes.writeBigUInt64BE(BigInt(head.expiresAtUnixMs), AT.expires);
  bytes.writeUInt32BE(frame?.length ?? 0, AT.frameBytes);
  if (frame !== undefined) bytes.set(sha256(frame), AT.frame);
  bytes.writeUInt16BE(caller.length, AT.callerBytes);
  bytes.writeUInt16BE(id.length, AT.idBytes);
  bytes.set(caller, AT.texts);
  bytes.set(id, AT.texts + caller.length);
  bytes.set(sha256(bytes.subarray(0, -DIGEST_BYTES)), bytes.length - DIGEST_BYTES);
  return bytes;
}

/** Undefined: it is no record of that key. */
export function decodeRecord(key: Buffer, bytes: Buffer): StoredRecord | undefined {
  if (bytes.length < AT.texts + DIGEST_BYTES || bytes[AT.version] !== VERSION) return undefined;
  if (!checksumOf(bytes).equals(sha256(bytes.subarray(0, -DIGEST_BYTES)))) return undefined;
  const state = stateOf(bytes);
  const callerBytes = bytes.readUInt16BE(AT.callerBytes);
  const idBytes = bytes.readUInt16BE(AT.idBytes);
  if (callerBytes > IDENTITY_BYTES_MAX || idBytes > IDENTITY_BYTES_MAX) return undefined;
  if (state === undefined || bytes.length !== AT.texts + callerBytes + idBytes + DIGEST_BYTES)
    return undefined;
  const caller = bytes.toString("utf8", AT.texts, AT.texts + callerBytes);
  const requestId = bytes.toString("utf8", AT.texts + callerBytes, bytes.length - DIGEST_BYTES);
  if (!replayKey(caller, requestId).equals(key)) return undefined;
  return { state, caller, requestId, ...numbersOf(bytes) };
}

/** The last bytes of a record that was encoded: its digest, which tells it from every other. */
export function checksumOf(record: Buffer): Buffer {
  return record.subarray(record.length - DIGEST_BYTES);
}

/** Whether these bytes are the frame of a completed record. */
export function holdsFrame(record: StoredRecord, frame: Buffer | undefined): boolean {
  return frame?.length === record.frameBytes && sha256(frame).equals(record.frameSha256);
}

function stateOf(bytes: Buffer): ReplayRecord["state"] | undefined {
  if (bytes[AT.state] === STATE.active) return "active";
  return bytes[AT.state] === STATE.completed ? "completed" : undefined;
}

function numbersOf(bytes: Buffer) {
  return {
    keySha256: bytes.subarray(AT.key, AT.invocation),
    invocationSha256: bytes.subarray(AT.invocation, AT.expires),
    expiresAtUnixMs: Number(bytes.readBigUInt64BE(AT.expires)),
    frameBytes: bytes.readUInt32BE(AT.frameBytes),
    frameSha256: bytes.subarray(AT.frame, AT.callerBytes),
  };
}
