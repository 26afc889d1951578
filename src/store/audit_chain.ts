// The chain of audit records: each line is a hash and the record's text, and the hash covers the line
// before. Pure. What the records tell, where blocks are kept and whether a chain holds is elsewhere.
// Anybody can compute it: SHA-256, in lower-case hex, over the hash before as text and the record's text.

import * as crypto from "node:crypto";
import type { AuditEvent } from "./audit_event.ts";
import type { AuditHead, AuditLine } from "./port.ts";

/** Before the first record. */
export const EMPTY_HEAD: AuditHead = { seq: 0n, hash: "0".repeat(64) };

/** Characters of a hash as text. */
const HASH_CHARS = 64;
const HASH = /^[0-9a-f]{64}$/;

/** Of the record that follows the one with the hash `before`. */
export function chainHash(before: string, text: string): string {
  return crypto.hash("sha256", before + text, "hex");
}

/** The lines of these events behind `head`, as one block, and where the chain then ends. */
export function sealBlock(
  head: AuditHead,
  events: readonly AuditEvent[],
  nowMs: number,
): { readonly block: string; readonly head: AuditHead } {
  let { seq, hash } = head;
  let block = "";
  for (const { members } of events) {
    seq += 1n;
    const text = `{"seq":"${seq}","at_ms":${nowMs},${members}}`;
    hash = chainHash(hash, text);
    block += `${hash} ${text}\n`;
  }
  return { block, head: { seq, hash } };
}

/**
 * Lines of a block as it was sealed, from its first record's number on. Nothing of them is verified. What is
 * no line, or the beginning of one, has an empty hash and all of itself as text.
 */
export function readBlock(firstSeq: bigint, block: string): AuditLine[] {
  const lines = block.split("\n");
  const rest = lines.pop() ?? "";
  const read = lines.map((line, index) => readLine(firstSeq + BigInt(index), line));
  if (rest !== "") read.push(readUnended(firstSeq + BigInt(read.length), rest));
  return read;
}

function readLine(seq: bigint, line: string): AuditLine {
  const hash = line.slice(0, HASH_CHARS);
  if (!HASH.test(hash) || line[HASH_CHARS] !== " ") return { seq, hash: "", text: line };
  return { seq, hash, text: line.slice(HASH_CHARS + 1) };
}

/** A last line without its end: whole but for the line feed, or a piece. */
function readUnended(seq: bigint, line: string): AuditLine {
  return isRecordText(line.slice(HASH_CHARS + 1)) ? readLine(seq, line) : { seq, hash: "", text: line };
}

/** Whether nothing is broken off; what it says is not looked at. */
function isRecordText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether a line that has no hash is a whole record all the same: then its hash was altered, not cut. */
export function isWholeWithout({ text }: AuditLine): boolean {
  return isRecordText(text.slice(HASH_CHARS + 1));
}

/** An export's line: one JSON object whose bytes behind `"record":`, up to the last brace, are the record's text. */
export function exportLine({ hash, text }: AuditLine): string {
  return `{"hash":"${hash}","record":${text}}`;
}

const EXPORTED = /^\{"hash":"([0-9a-f]{64})","record":(.*)\}$/;

/** The same line back. What is none has an empty hash and all of itself as text. */
export function readExportLine(seq: bigint, line: string): AuditLine {
  const [, hash, text] = EXPORTED.exec(line) ?? [];
  if (hash === undefined || text === undefined) return { seq, hash: "", text: line };
  return { seq, hash, text };
}
