// Verifying an audit without a broker: an export, a state directory or a backup. Loaded only by the
// commands that do so.

import { open } from "node:fs/promises";
import { readExportLine } from "../store/audit_chain.ts";
import { AuditVerifier, type Verified } from "../store/audit_verify.ts";
import type { AuditHead } from "../store/port.ts";
import { verifyEngine, withStored } from "./stored_state.ts";
import { errnoCode } from "./trusted_paths.ts";

/** As the broker's own tool answers, numbers of records as decimal strings. */
export interface AuditVerdict {
  readonly ok: boolean;
  readonly records: number;
  readonly first_seq: string;
  readonly last_seq: string;
  readonly finding: { readonly kind: string; readonly seq: string; readonly sentence: string } | null;
}

/** `checkpoint`: SEQ:HASH. A string says why nothing could be verified, in a sentence for people. */
export async function verifyFile(path: string, checkpoint?: string): Promise<AuditVerdict | string> {
  const verifier = new AuditVerifier({ begins: undefined, checkpoint: headOf(checkpoint) });
  let lines = 0n;
  try {
    const file = await open(path);
    // Read to its end it closes itself.
    for await (const line of file.readLines({ encoding: "latin1" })) {
      lines += 1n;
      verifier.add(readExportLine(lines, line));
    }
  } catch (error) {
    return `the export ${JSON.stringify(path)} can't be read (${errnoCode(error)}).`;
  }
  if (lines === 0n) return `the export ${JSON.stringify(path)} is empty: there is nothing to verify.`;
  return verdictOf(verifier.end(undefined));
}

/** A state directory, or a backup's file; a daemon may be using it. */
export async function verifyState(path: string, checkpoint?: string): Promise<AuditVerdict | string> {
  const verified = await withStored(path, (engine) => verifyEngine(engine, headOf(checkpoint)));
  return verified.ok ? verdictOf(verified.value) : verified.fault;
}

function headOf(checkpoint: string | undefined): AuditHead | undefined {
  const [seq, hash] = checkpoint?.split(":") ?? [];
  return seq === undefined || hash === undefined ? undefined : { seq: BigInt(seq), hash };
}

function verdictOf({ records, firstSeq, lastSeq, finding }: Verified): AuditVerdict {
  return {
    ok: finding === undefined,
    records,
    first_seq: firstSeq.toString(),
    last_seq: lastSeq.toString(),
    finding: finding === undefined ? null : { ...finding, seq: finding.seq.toString() },
  };
}
