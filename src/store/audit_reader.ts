// Reading the audit chain as it is stored, a stretch at a time. Nothing here is verified, and nothing is
// changed; each look at the engine is one block, so no read stays open.

import { U64_MAX } from "../base/ids.ts";
import { readBlock } from "./audit_chain.ts";
import type { AuditState } from "./audit_segments.ts";
import type { AuditLine, AuditReader } from "./port.ts";

export interface StoredBlock {
  /** Its key: the number of its first record. */
  readonly firstSeq: bigint;
  readonly block: string;
}

/** What an engine gives of its blocks. */
export interface AuditBlocks {
  /** As it was last written. */
  state(): AuditState;
  /** The block with the greatest key up to `seq`. */
  blockUpTo(seq: bigint): StoredBlock | undefined;
  /** The block with the least key above `seq`. */
  blockAbove(seq: bigint): StoredBlock | undefined;
}

interface ReadLines {
  readonly firstSeq: bigint;
  readonly lines: readonly AuditLine[];
}

export function auditReader(source: AuditBlocks): AuditReader {
  /** The block that the last read ended in: a long one is read in slices, and taken apart once. */
  let begun: ReadLines | undefined;

  const take = (found: StoredBlock | undefined): ReadLines | undefined =>
    found && { firstSeq: found.firstSeq, lines: readBlock(found.firstSeq, found.block) };

  const blockWith = (seq: bigint): ReadLines | undefined => {
    if (begun !== undefined && holds(begun, seq)) return begun;
    const found = take(source.blockUpTo(seq));
    return found !== undefined && holds(found, seq) ? found : take(source.blockAbove(seq));
  };

  const blockEndingAt = (seq: bigint): ReadLines | undefined =>
    begun !== undefined && holds(begun, seq) ? begun : take(source.blockUpTo(seq));

  return {
    head: () => source.state().head,
    seals: () => source.state().seals,
    lines: (seq, linesMax) => {
      const lines: AuditLine[] = [];
      if (seq >= U64_MAX) return lines; // no record has such a number, and no key a greater one
      let block = blockWith(seq);
      begun = undefined;
      while (block !== undefined) {
        const { firstSeq } = block;
        const from = seq > firstSeq ? Number(seq - firstSeq) : 0;
        const taken = block.lines.slice(from, from + linesMax - lines.length);
        lines.push(...taken);
        if (lines.length >= linesMax) {
          if (from + taken.length < block.lines.length) begun = block;
          return lines;
        }
        block = take(source.blockAbove(firstSeq));
      }
      return lines;
    },
    linesBefore: (seq, linesMax) => {
      const lines: AuditLine[] = [];
      const last = seq - 1n;
      let block = last < 1n ? undefined : blockEndingAt(last);
      begun = undefined;
      while (block !== undefined) {
        const { firstSeq } = block;
        const older: AuditLine[] = block.lines.filter((line) => line.seq <= last);
        const taken = older.slice(Math.max(0, older.length - (linesMax - lines.length)));
        lines.push(...taken.reverse());
        if (lines.length >= linesMax) {
          if (taken.length < older.length) begun = block;
          return lines;
        }
        block = firstSeq < 1n ? undefined : take(source.blockUpTo(firstSeq - 1n));
      }
      return lines;
    },
  };
}

function holds({ firstSeq, lines }: ReadLines, seq: bigint): boolean {
  return seq >= firstSeq && seq < firstSeq + BigInt(lines.length);
}
