// What can be wrong with a chain of audit records, each in one sentence for people.

export type FindingKind =
  /** A record's text or hash is not what was written. */
  | "altered"
  | "missing"
  | "reordered"
  | "doubled"
  /** The last record is not whole: a write that a crash cut off, or a cut file. */
  | "torn"
  /** The hash holds, but the number is not the next. */
  | "wrong_seq"
  /** The chain does not begin with its first record, and no record accounts for what is gone. */
  | "missing_start"
  /** The chain ends before the record that the store's notes, or a checkpoint, name. */
  | "cut_tail"
  /** The last record is not the one that the store's notes name. */
  | "head_differs"
  /** The record of the checkpoint's number has another hash: the chain was written anew. */
  | "checkpoint_differs"
  /** The checkpoint's record was removed by retention: nothing can be said about it. */
  | "checkpoint_removed";

export interface Finding {
  readonly kind: FindingKind;
  /** The first record concerned. */
  readonly seq: bigint;
  /** What is wrong, and with which records. */
  readonly sentence: string;
}

export function altered(seq: bigint): Finding {
  return finding("altered", seq, `Record ${seq} has been altered: its hash does not match its text.`);
}

/** `next`: the first that is there after the gap. */
export function missing(seq: bigint, next: bigint): Finding {
  const which = next - seq === 1n ? `Record ${seq} is` : `Records ${seq} to ${next - 1n} are`;
  return finding("missing", seq, `${which} missing: record ${next} follows record ${seq - 1n}.`);
}

export function reordered(seq: bigint, before: bigint): Finding {
  return finding("reordered", seq, `Record ${seq} is out of order: record ${before} comes before it.`);
}

export function doubled(seq: bigint): Finding {
  return finding("doubled", seq, `Record ${seq} is there twice.`);
}

export function torn(seq: bigint): Finding {
  return finding("torn", seq, `The last record, ${seq}, is torn: only the beginning of it is there.`);
}

/** `got` undefined: it has none. */
export function wrongSeq(seq: bigint, got: bigint | undefined): Finding {
  const has = got === undefined ? "no number" : `the number ${got}`;
  return finding("wrong_seq", seq, `The record after ${seq - 1n} has ${has} instead of ${seq}.`);
}

export function missingStart(first: bigint): Finding {
  return finding(
    "missing_start",
    1n,
    `The records before ${first} are missing, and no record says that retention removed them.`,
  );
}

export function cutTail(last: bigint, named: bigint, by: "store" | "checkpoint"): Finding {
  const who = by === "store" ? "the store's notes name" : "the checkpoint names";
  const where = last === 0n ? "There are no records" : `The records end at ${last}`;
  return finding("cut_tail", last + 1n, `${where}, but ${who} record ${named}: the end was cut off.`);
}

export function headDiffers(last: bigint, named: bigint): Finding {
  const sentence = `The last record, ${last}, is not the one that the store's notes name (${named}).`;
  return finding("head_differs", last, sentence);
}

export function checkpointDiffers(seq: bigint): Finding {
  const sentence = `Record ${seq} is not the one that the checkpoint names: the chain was written anew.`;
  return finding("checkpoint_differs", seq, sentence);
}

export function checkpointRemoved(seq: bigint): Finding {
  const sentence = `Record ${seq}, which the checkpoint names, was removed by retention; take a newer checkpoint.`;
  return finding("checkpoint_removed", seq, sentence);
}

function finding(kind: FindingKind, seq: bigint, sentence: string): Finding {
  return { kind, seq, sentence };
}
