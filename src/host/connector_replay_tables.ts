// Where the connector's store has what: records, their frames apart from them, and a summary that every batch ends with.
// Records lie by expiry, which grows as time does: what is written together lies together, so a batch touches few
// pages, and what may be pruned lies in front. Invariant: the summary tells of all records together, so one that went
// missing, or came, is found.

import { sha256 } from "../connector/digest.ts";
import type { KeyRange } from "../store/engine.ts";

/** Never renumbered: a store on disk has them. None is a table of the broker's store. */
const TABLE = { meta: 64, records: 65, frames: 66 } as const;
const KEY_BYTES = 32;
const DIGEST_BYTES = 32;
const VERSION = 1;

export const SUMMARY_KEY = Buffer.concat([Buffer.from([TABLE.meta]), Buffer.from("replay summary")]);
export const ALL_RECORDS = wholeTable(TABLE.records);
/** Whatever is in the store. */
export const EVERYTHING: Range = { from: Buffer.from([0]), to: Buffer.from([0xff]) };

type Range = Pick<KeyRange, "from" | "to">;

/** Where a record lies. */
export interface Place {
  /** As `replayKey` makes it. */
  readonly key: Buffer;
  readonly expiresAtMs: number;
}

export function recordKey(place: Place): Buffer {
  return placed(TABLE.records, place);
}

export function frameKey(place: Place): Buffer {
  return placed(TABLE.frames, place);
}

/** The place that a record's key tells. */
export function placeOf(storeKey: Buffer): Place {
  return {
    key: storeKey.subarray(storeKey.length - KEY_BYTES),
    expiresAtMs: Number(storeKey.readBigUInt64BE(1)),
  };
}

/** The records that expire before that time. */
export function recordsBelow(unixMs: number): Range {
  const to = placed(TABLE.records, { expiresAtMs: Math.max(0, unixMs), key: Buffer.alloc(0) });
  return { from: ALL_RECORDS.from, to };
}

function placed(table: number, { expiresAtMs, key }: Place): Buffer {
  return Buffer.concat([Buffer.from([table]), u64(expiresAtMs), key]);
}

/** Of all records together. */
export interface Summary {
  readonly records: number;
  /** Their checksums, added without carry, so that the order says nothing. 32 bytes. */
  readonly digest: Buffer;
  readonly forgottenUpToMs: number;
}

export const NO_RECORDS: Summary = { records: 0, digest: Buffer.alloc(DIGEST_BYTES), forgottenUpToMs: 0 };

const SUMMARY_BYTES = 1 + 8 + DIGEST_BYTES + 8;

export function encodeSummary({ records, digest, forgottenUpToMs }: Summary): Buffer {
  const said = Buffer.concat([Buffer.from([VERSION]), u64(records), digest, u64(forgottenUpToMs)]);
  return Buffer.concat([said, sha256(said)]);
}

/** `newer`: a later program has written it. Undefined: it is damaged. */
export function decodeSummary(bytes: Buffer): Summary | "newer" | undefined {
  const said = bytes.subarray(0, -DIGEST_BYTES);
  if (bytes.length < DIGEST_BYTES || !sha256(said).equals(bytes.subarray(-DIGEST_BYTES))) return undefined;
  if (said[0] !== VERSION) return (said[0] ?? 0) > VERSION ? "newer" : undefined;
  if (said.length !== SUMMARY_BYTES) return undefined;
  return {
    records: Number(said.readBigUInt64BE(1)),
    digest: Buffer.from(said.subarray(9, 9 + DIGEST_BYTES)),
    forgottenUpToMs: Number(said.readBigUInt64BE(9 + DIGEST_BYTES)),
  };
}

export function added(a: Buffer, b: Buffer): Buffer {
  return Buffer.from(a.map((byte, i) => byte ^ (b[i] ?? 0)));
}

function wholeTable(table: number): Range {
  return { from: Buffer.from([table]), to: Buffer.from([table + 1]) };
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
