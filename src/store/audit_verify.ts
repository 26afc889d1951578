// Whether a chain of audit records holds, record by record, and if not, exactly what is wrong first. Pure
// and incremental: lines go in as they are read, in slices of the caller's choice. Who owns the store can
// write all of the chain anew; only a checkpoint that is kept elsewhere shows that.
// Invariant: after the first thing that is wrong nothing more is taken for right.

import { chainHash, EMPTY_HEAD, isWholeWithout } from "./audit_chain.ts";
import {
  altered,
  checkpointDiffers,
  checkpointRemoved,
  cutTail,
  doubled,
  type Finding,
  headDiffers,
  missing,
  missingStart,
  reordered,
  torn,
  wrongSeq,
} from "./audit_findings.ts";
import type { AuditHead, AuditLine } from "./port.ts";

export interface Verified {
  readonly records: number;
  /** 0 where there is none. */
  readonly firstSeq: bigint;
  readonly lastSeq: bigint;
  /** undefined: the chain holds. */
  readonly finding: Finding | undefined;
}

export interface VerifyBounds {
  /** What the store's notes say was removed from the beginning; `undefined`: nobody says where it begins. */
  readonly begins: AuditHead | undefined;
  /** Kept elsewhere: the chain must have that record. */
  readonly checkpoint: AuditHead | undefined;
}

const BEGIN = /^\{"seq":"([1-9][0-9]{0,19})","at_ms":[0-9]+,"kind":"([a-z_]+)"/;
const REMOVAL = /,"last_seq":"([1-9][0-9]{0,19})","before":"[0-9a-f]{64}","hash":"([0-9a-f]{64})",/;
const SEQ_TEXT = /^\{"seq":"[0-9]*"/;

/** A number above the next one: missing or out of order, as comes out when all is read. */
interface Gap {
  /** The number that should have come. */
  readonly expected: bigint;
  readonly got: bigint;
}

export class AuditVerifier {
  readonly #checkpoint: AuditHead | undefined;
  readonly #begins: AuditHead | undefined;
  #records = 0;
  #first: AuditLine | undefined;
  #last: AuditHead;
  /** What the last record of a removal says is gone: the end of that stretch. */
  #removal: AuditHead | undefined;
  #finding: Finding | undefined;
  /** A piece of a record: torn if nothing follows, else altered. */
  #piece: bigint | undefined;
  #gap: Gap | undefined;
  #checkpointHash: string | undefined;

  constructor({ begins, checkpoint }: VerifyBounds) {
    this.#begins = begins;
    this.#checkpoint = checkpoint;
    this.#last = begins ?? EMPTY_HEAD;
  }

  /** The next line as it is stored. Its place among the others counts, not the number it is given with. */
  add(line: AuditLine): void {
    if (this.#gap !== undefined) this.#lookFor(this.#gap, line);
    else if (this.#piece !== undefined) this.#find(altered(this.#piece));
    else if (this.#finding === undefined) this.#judge(line);
  }

  /** Whether more lines tell nothing more. */
  get settled(): boolean {
    return this.#finding !== undefined;
  }

  /** All is read. `head`: where the store's notes say that the chain ends; undefined: nobody says. */
  end(head: AuditHead | undefined): Verified {
    if (this.#gap !== undefined) this.#find(missing(this.#gap.expected, this.#gap.got));
    if (this.#piece !== undefined) this.#find(torn(this.#piece));
    this.#judgeStart();
    if (head !== undefined) this.#judgeHead(head);
    this.#judgeCheckpoint();
    const firstSeq = this.#first === undefined ? 0n : seqOf(this.#first);
    return { records: this.#records, firstSeq, lastSeq: this.#last.seq, finding: this.#finding };
  }

  #judge(line: AuditLine): void {
    const begin = BEGIN.exec(line.text);
    const seq = begin?.[1] === undefined ? undefined : BigInt(begin[1]);
    const expected = this.#last.seq + 1n;
    const holds = line.hash !== "" && chainHash(this.#last.hash, line.text) === line.hash;
    if (holds && seq === expected) return this.#take(line, seq, begin?.[2]);
    if (holds) return this.#find(wrongSeq(expected, seq));
    if (seq === undefined || seq === expected || this.#isRenumbered(line, expected))
      return this.#suspect(line, expected);
    if (this.#first === undefined && this.#begins === undefined) return this.#take(line, seq, begin?.[2]);
    if (seq > expected) this.#gap = { expected, got: seq };
    else if (this.#first !== undefined && seq < seqOf(this.#first))
      this.#find(reordered(seq, seqOf(this.#first)));
    else this.#find(doubled(seq));
  }

  #take(line: AuditLine, seq: bigint, kind: string | undefined): void {
    this.#first ??= line;
    this.#records += 1;
    this.#last = { seq, hash: line.hash };
    if (seq === this.#checkpoint?.seq) this.#checkpointHash = line.hash;
    if (kind === "removed") this.#removal = readRemoval(line.text) ?? this.#removal;
  }

  #suspect(line: AuditLine, seq: bigint): void {
    if (line.hash !== "" || isWholeWithout(line)) this.#find(altered(seq));
    else this.#piece = seq;
  }

  /** Only its number was altered: with the right one the hash holds. */
  #isRenumbered({ text, hash }: AuditLine, expected: bigint): boolean {
    return chainHash(this.#last.hash, text.replace(SEQ_TEXT, `{"seq":"${expected}"`)) === hash;
  }

  #lookFor({ expected, got }: Gap, line: AuditLine): void {
    if (seqOf(line) === expected) this.#find(reordered(expected, got));
  }

  /** What is not there at the beginning must be accounted for by a record that is. */
  #judgeStart(): void {
    if (this.#first === undefined || this.#finding !== undefined) return;
    const seq = seqOf(this.#first);
    if (seq === 1n) return;
    const removal = this.#removal;
    if (removal?.seq !== seq - 1n) return this.#find(missingStart(seq));
    if (chainHash(removal.hash, this.#first.text) !== this.#first.hash) this.#find(altered(seq));
  }

  #judgeHead(head: AuditHead): void {
    const { seq, hash } = this.#last;
    if (head.seq > seq) this.#find(cutTail(seq, head.seq, "store"));
    else if (head.seq < seq || head.hash !== hash) this.#find(headDiffers(seq, head.seq));
  }

  #judgeCheckpoint(): void {
    const checkpoint = this.#checkpoint;
    if (checkpoint === undefined || checkpoint.seq === 0n) return;
    const { seq, hash } = checkpoint;
    if (seq > this.#last.seq) return this.#find(cutTail(this.#last.seq, seq, "checkpoint"));
    const found = this.#removal?.seq === seq ? this.#removal.hash : this.#checkpointHash;
    if (found === undefined) this.#find(checkpointRemoved(seq));
    else if (found !== hash) this.#find(checkpointDiffers(seq));
  }

  /** The first one stays. */
  #find(finding: Finding): void {
    this.#finding ??= finding;
  }
}

/** 0: it has none. */
function seqOf({ text }: AuditLine): bigint {
  return BigInt(BEGIN.exec(text)?.[1] ?? 0);
}

/** undefined: its text says no such thing, though its hash may hold. */
function readRemoval(text: string): AuditHead | undefined {
  const [, seq, hash] = REMOVAL.exec(text) ?? [];
  return seq === undefined || hash === undefined ? undefined : { seq: BigInt(seq), hash };
}
