// Verifying the chain as a store has it, while the store goes on: in slices, each short enough that the
// event loop notices nothing, up to where the chain ended when it began.

import { EMPTY_HEAD } from "./audit_chain.ts";
import type { Verified } from "./audit_verify.ts";
import { AuditVerifier } from "./audit_verify.ts";
import type { AuditHead, AuditReader } from "./port.ts";

/** Records of one slice: a few milliseconds. */
export const SLICE_RECORDS = 512;
/** Retention may remove what is being read; then it is read again from the new beginning. */
const TRIES_MAX = 25;

export interface Walk {
  readonly checkpoint: AuditHead | undefined;
  /** Lets others run; called after each slice. */
  readonly pause: () => Promise<void>;
  /** Nobody writes meanwhile: nothing may stand behind the end of the chain either. */
  readonly alone: boolean;
}

export async function verifyStored(reader: AuditReader, walk: Walk): Promise<Verified> {
  for (let tries = 1; ; tries += 1) {
    const begins = removedUpTo(reader);
    const verified = await verifyOnce(reader, begins, walk);
    const undisturbed = removedUpTo(reader).seq === begins.seq;
    if (verified.finding === undefined || undisturbed || tries === TRIES_MAX) return verified;
  }
}

async function verifyOnce(reader: AuditReader, begins: AuditHead, walk: Walk): Promise<Verified> {
  const head = reader.head();
  const verifier = new AuditVerifier({ begins, checkpoint: walk.checkpoint });
  let seq = begins.seq + 1n;
  while (!verifier.settled && (walk.alone || seq <= head.seq)) {
    const lines = reader.lines(seq, SLICE_RECORDS);
    const last = lines.at(-1);
    if (last === undefined) break;
    for (const line of lines) {
      if (!walk.alone && line.seq > head.seq) break;
      verifier.add(line);
    }
    seq = last.seq + 1n;
    await walk.pause();
  }
  return verifier.end(head);
}

/** Where the removed beginning of the chain ended. */
function removedUpTo(reader: AuditReader): AuditHead {
  const first = reader.seals()[0];
  return first?.removed ? { seq: first.lastSeq, hash: first.hash } : EMPTY_HEAD;
}
