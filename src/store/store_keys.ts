// Which table a key of the store belongs to, and how its parts stand in it: one byte for the table,
// then numbers big-endian or text, so that keys sort as what they mean.
// Invariant: keys of calls and audit blocks only ever grow, so that what is new is written in one place.

import { createHash } from "node:crypto";
import type { KeyRange } from "./engine.ts";

/** Never renumbered: a store on disk has them. */
export const TABLE = {
  meta: 1,
  intents: 2,
  outcomes: 3,
  parts: 4,
  watermarks: 5,
  /** Blocks of the audit by their first record's number. */
  auditBlocks: 6,
  auditSeals: 7,
  records: 16,
} as const;

export type TableNumber = (typeof TABLE)[keyof typeof TABLE];

/** Sequence numbers count entries of calls; they stay below 2^53. */
export function seqKey(table: TableNumber, seq: number): Buffer {
  const key = Buffer.allocUnsafe(9);
  key[0] = table;
  writeSeq(key, seq, 1);
  return key;
}

export function readSeq(key: Buffer, at = 1): number {
  return key.readUInt32BE(at) * 0x1_0000_0000 + key.readUInt32BE(at + 4);
}

/** Parts stand behind the number of their call's intent. */
export function partKey(intent: number, seq: number): Buffer {
  const key = Buffer.allocUnsafe(17);
  key[0] = TABLE.parts;
  writeSeq(key, intent, 1);
  writeSeq(key, seq, 9);
  return key;
}

function writeSeq(key: Buffer, seq: number, at: number): void {
  key.writeUInt32BE(Math.floor(seq / 0x1_0000_0000), at);
  key.writeUInt32BE(seq % 0x1_0000_0000, at + 4);
}

/** For numbers of 64 bits, as the audit has them. */
export function u64Key(table: TableNumber, value: bigint): Buffer {
  const key = Buffer.allocUnsafe(9);
  key[0] = table;
  key.writeBigUInt64BE(value, 1);
  return key;
}

/** Bytes of a text that stand in a key as they are. */
const TEXT_BYTES_MAX = 384;

/** A longer text is named by its digest, behind a byte that no text begins with. */
export function textKey(table: number, text: string): Buffer {
  const bytes = Buffer.byteLength(text);
  if (bytes <= TEXT_BYTES_MAX) return Buffer.concat([Buffer.from([table]), Buffer.from(text)]);
  return Buffer.concat([Buffer.from([table, 0xff]), createHash("sha256").update(text).digest()]);
}

export function wholeTable(table: number): Pick<KeyRange, "from" | "to"> {
  return { from: Buffer.from([table]), to: Buffer.from([table + 1]) };
}

export function partsOf(intent: number): Pick<KeyRange, "from" | "to"> {
  return { from: partKey(intent, 0), to: partKey(intent + 1, 0) };
}
