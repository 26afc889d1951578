// Putting a backup back in place of the store. What happened since the backup is forgotten, so the state
// begins a new epoch: every call id up to now is refused, questions that waited are void, and what was
// given at run time to let calls through is taken back, since it may have been used up or revoked.
// Invariants: nothing is put back that does not verify, or beside a daemon; until the very last step the
// state is the one before; and no call that may have run since the backup runs again.

import { randomBytes } from "node:crypto";
import { chmodSync, constants, linkSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { copyFile, truncate } from "node:fs/promises";
import { join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import { type AuditEvent, auditEvent, keyedDigest } from "../store/audit_event.ts";
import { auditEvents } from "../store/audit_events.ts";
import type { AuditBounds } from "../store/audit_segments.ts";
import type { Engine } from "../store/engine.ts";
import { LmdbEngine } from "../store/lmdb.ts";
import { STATE_FILE } from "../store/lmdb_environment.ts";
import type { LmdbSnapshot } from "../store/lmdb_snapshot.ts";
import { migrate, write } from "../store/migrations.ts";
import type { AuditHead, Stored } from "../store/port.ts";
import { type Change, HOST } from "../store/records.ts";
import { StoredAudit } from "../store/stored_audit.ts";
import { META, putEpochFloor, putTimeFloor, readTimeFloor } from "../store/stored_meta.ts";
import { encodeRecords, loadRecords } from "../store/stored_tables.ts";
import { flush } from "./backup.ts";
import { checkSeal } from "./backup_seal.ts";
import type { Libc } from "./libc.ts";
import { changesOfRestore } from "./restore_changes.ts";
import { openStateDirectory } from "./state_dir.ts";
import { LOCK_SUFFIX, verifyEngine, withStored } from "./stored_state.ts";
import { errnoCode } from "./trusted_paths.ts";

export interface RestoreOptions {
  readonly stateDir: string;
  readonly from: string;
  /** A state that is there already is kept aside; without it that is a reason to refuse. */
  readonly replace: boolean;
  readonly auditBounds: AuditBounds;
  readonly libc: Libc | undefined;
  readonly nowMs: number;
  /** Told what is begun. */
  readonly onStep?: ((step: string) => void) | undefined;
}

export interface Restored {
  /** Where the audit of the backup ended; the record of the restore follows it. */
  readonly head: AuditHead;
  /** Calls with an id up to it are refused from now on. */
  readonly floor: bigint;
  /** Where the state before is now; undefined: there was none. */
  readonly keptAside: string | undefined;
  /** That state was there and could not be read: what it alone knew is lost. */
  readonly unread: boolean;
  readonly voided: number;
  readonly closed: number;
  readonly takenBack: number;
}

/** The fault is a sentence for people; then the state is as it was. */
export async function restoreBackup(options: RestoreOptions): Promise<Result<Restored>> {
  const { stateDir, from, replace, libc } = options;
  const directory = openStateDirectory(stateDir, libc);
  if (!directory.ok) return fault(`the state directory: ${directory.fault}`);
  try {
    const present = isThere(join(stateDir, STATE_FILE));
    if (present && !replace)
      return fault(
        `there is a state in ${JSON.stringify(stateDir)} already: --replace keeps it aside and takes the backup in its place.`,
      );
    options.onStep?.("verifying the backup");
    const verified = await withStored(from, verifyBackup);
    if (!verified.ok) return fault(`nothing was restored: ${verified.fault}`);
    return await putBack(options, present, verified.value);
  } catch (error) {
    return fault(`the state directory ${JSON.stringify(stateDir)} can't be written (${errnoCode(error)}).`);
  } finally {
    rmSync(join(stateDir, RESTORING), { recursive: true, force: true });
    directory.value.release();
  }
}

/** Where the backup is made ready, beside the state that it will replace. */
const RESTORING = "restoring";

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

async function verifyBackup(engine: LmdbSnapshot): Promise<Result<AuditHead>> {
  const verified = await verifyEngine(engine, undefined);
  if (!verified.ok) return verified;
  const { finding } = verified.value;
  if (finding !== undefined) return fault(`the audit of the backup does not hold. ${finding.sentence}`);
  const audit = StoredAudit.load(engine, () => ({ keepForMs: 0, bytesMax: 0 }));
  return audit.ok ? ok(audit.value.reader.head()) : audit;
}

/** What a state knows that the one put in its place must know too. */
interface Knowledge {
  readonly stored: Stored;
  readonly timeFloorMs: number;
}

async function knowledgeOf(engine: Engine): Promise<Result<Knowledge>> {
  const stored = await loadRecords(engine);
  return stored.ok ? ok({ stored: stored.value, timeFloorMs: readTimeFloor(engine) }) : stored;
}

async function putBack(
  options: RestoreOptions,
  present: boolean,
  head: AuditHead,
): Promise<Result<Restored>> {
  const { stateDir, from, nowMs, onStep } = options;
  onStep?.("copying the backup");
  const replaced = present ? await withStored(stateDir, knowledgeOf) : undefined;
  const ready = join(stateDir, RESTORING);
  rmSync(ready, { recursive: true, force: true }); // of one that was broken off
  mkdirSync(ready, { mode: 0o700 });
  const file = join(ready, STATE_FILE);
  await copyFile(from, file, constants.COPYFILE_EXCL);
  chmodSync(file, 0o600);
  // Of the copy once more: the file may have been changed since it was verified.
  const sealed = await checkSeal(file);
  if (!sealed.ok) return fault(`nothing was restored: ${sealed.fault}`);
  await truncate(file, sealed.value);
  onStep?.("beginning a new epoch");
  const begun = await beginEpoch(options, ready, replaced?.ok ? replaced.value : undefined);
  if (!begun.ok) return fault(`nothing was restored: ${begun.fault}`);
  await flush(file);
  const keptAside = present ? keepAside(stateDir, nowMs) : undefined;
  rmSync(join(stateDir, `${STATE_FILE}${LOCK_SUFFIX}`), { force: true });
  renameSync(file, join(stateDir, STATE_FILE));
  await flush(stateDir);
  return ok({ head, keptAside, unread: replaced?.ok === false, ...begun.value });
}

/** The old state under a second name: the first is then taken by the new one in one step. */
function keepAside(stateDir: string, nowMs: number): string {
  const name = `replaced-${new Date(nowMs).toISOString().replaceAll(":", "-")}`;
  const aside = join(stateDir, name);
  mkdirSync(aside, { mode: 0o700 });
  linkSync(join(stateDir, STATE_FILE), join(aside, STATE_FILE));
  return aside;
}

type Begun = Pick<Restored, "floor" | "voided" | "closed" | "takenBack">;

/** Writes into the copy, in one transaction, what makes a new epoch of it. */
async function beginEpoch(
  options: RestoreOptions,
  directory: string,
  replaced: Knowledge | undefined,
): Promise<Result<Begun>> {
  const engine = await LmdbEngine.open({ directory, crashed });
  if (!engine.ok) return engine;
  try {
    const migrated = await migrate(engine.value, randomBytes);
    if (!migrated.ok) return migrated;
    return await writeEpoch(engine.value, options, replaced);
  } finally {
    await engine.value.close();
  }
}

function crashed(error: Error): never {
  throw error;
}

async function writeEpoch(
  engine: Engine,
  { nowMs, auditBounds }: RestoreOptions,
  replaced: Knowledge | undefined,
): Promise<Result<Begun>> {
  const backup = await knowledgeOf(engine);
  if (!backup.ok) return backup;
  const key = engine.get(META.digestKey);
  const audit = StoredAudit.load(engine, () => auditBounds);
  if (!audit.ok) return audit;
  if (key === undefined) return fault("it is damaged: its key for digests is gone.");
  const timeMs = Math.max(nowMs, backup.value.timeFloorMs, replaced?.timeFloorMs ?? 0);
  const floor = highestCallId(timeMs);
  const changes = changesOfRestore(backup.value.stored, replaced?.stored, timeMs);
  const begun: Begun = { floor, ...counts(changes) };
  const keyed = keyedDigest(key);
  const events = [restored(begun), ...changes.flatMap((change) => auditEvents(change, keyed))];
  const batch = engine.batch();
  for (const change of changes) encodeRecords(engine, change, batch);
  putEpochFloor(engine, batch, floor);
  putTimeFloor(batch, timeMs);
  audit.value.encode(events, timeMs, batch);
  const written = await write(engine, batch);
  return written === undefined ? ok(begun) : fault(`the copy can't be written (${written.code}).`);
}

/** Of all ids that clients choose up to that time: milliseconds above 20 bits of their own. */
function highestCallId(timeMs: number): bigint {
  return ((BigInt(Math.floor(timeMs)) + 1n) << 20n) - 1n;
}

function counts(changes: readonly Change[]): Omit<Begun, "floor"> {
  const count = (kind: Change["kind"]) => changes.filter((change) => change.kind === kind).length;
  return { voided: count("approval"), closed: count("session_closed"), takenBack: count("grant_gone") };
}

function restored({ floor, voided, closed, takenBack }: Begun): AuditEvent {
  return auditEvent("restored", {
    floor: floor.toString(),
    voided,
    closed,
    taken_back: takenBack,
    by: { role: HOST.role },
  });
}
