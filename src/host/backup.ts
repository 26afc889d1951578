// Taking a backup of the store: one file, the whole store as one transaction left it, while the daemon
// runs or not. Putting one back is restore.ts.
// Invariant: a backup is there whole and verified, or not at all, and only its owner can read it.

import { chmodSync, mkdirSync, rmSync, statSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import { STATE_FILE } from "../store/lmdb_environment.ts";
import type { LmdbSnapshot } from "../store/lmdb_snapshot.ts";
import type { AuditHead } from "../store/port.ts";
import { StoredAudit } from "../store/stored_audit.ts";
import { seal } from "./backup_seal.ts";
import { verifyEngine, withStored } from "./stored_state.ts";
import { errnoCode } from "./trusted_paths.ts";

export interface BackupTaken {
  readonly path: string;
  readonly bytes: number;
  readonly records: number;
  /** Where its audit ends: note it beside the backup. */
  readonly head: AuditHead;
}

/** Of whoever is at the store: its directory. */
export interface BackupOptions {
  readonly stateDir: string;
  /** Nothing is there yet; its directory is. */
  readonly to: string;
  /** Told what is begun. */
  readonly onStep?: ((step: string) => void) | undefined;
}

/** The fault is a sentence for people; then nothing is left behind. */
export async function takeBackup({ stateDir, to, onStep }: BackupOptions): Promise<Result<BackupTaken>> {
  if (statSync(to, { throwIfNoEntry: false }) !== undefined)
    return fault(`${JSON.stringify(to)} is there already: a backup overwrites nothing; choose another name.`);
  const partial = join(dirname(to), `.${basename(to)}.partial`);
  try {
    mkdirSync(partial, { mode: 0o700 });
  } catch (error) {
    return fault(partialSentence(partial, errnoCode(error)));
  }
  try {
    const file = join(partial, STATE_FILE);
    onStep?.("copying the state");
    const copied = await withStored(stateDir, (engine) => copy(engine, file));
    if (!copied.ok) return copied;
    chmodSync(file, 0o600);
    onStep?.("sealing the copy");
    await seal(file);
    onStep?.("verifying the copy");
    const verified = await withStored(file, verifyCopy);
    if (!verified.ok) return verified;
    await rename(file, to);
    await flush(dirname(to));
    return ok({ path: to, bytes: statSync(to).size, ...verified.value });
  } catch (error) {
    return fault(`the backup can't be written to ${JSON.stringify(to)} (${errnoCode(error)}).`);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

function partialSentence(partial: string, code: string): string {
  const path = JSON.stringify(partial);
  if (code === "EEXIST") return `another backup is being taken there, or one was broken off: remove ${path}.`;
  return `${path} can't be made (${code}): the directory must be there, and be yours to write.`;
}

async function copy(engine: LmdbSnapshot, file: string): Promise<Result<void>> {
  const copied = await engine.copyTo(file);
  return copied.ok ? copied : fault(`the store can't be copied (${copied.fault}).`);
}

/** A backup that does not hold would only be found out when it is needed. */
async function verifyCopy(engine: LmdbSnapshot): Promise<Result<{ records: number; head: AuditHead }>> {
  const verified = await verifyEngine(engine, undefined);
  if (!verified.ok) return verified;
  const { finding, records } = verified.value;
  if (finding !== undefined)
    return fault(`the audit does not hold, so no backup was taken. ${finding.sentence}`);
  const audit = StoredAudit.load(engine, () => ({ keepForMs: 0, bytesMax: 0 }));
  return audit.ok ? ok({ records, head: audit.value.reader.head() }) : audit;
}

/** What is in that file or directory is on disk when it resolves. @throws what the system throws */
export async function flush(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
