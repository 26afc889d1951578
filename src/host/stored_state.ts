// Looking at a store without being its daemon: the file of a state directory or of a backup, opened for
// reading only, and whether its audit holds.

import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import type { Verified } from "../store/audit_verify.ts";
import { verifyStored } from "../store/audit_walk.ts";
import { STATE_FILE } from "../store/lmdb_environment.ts";
import { LmdbSnapshot } from "../store/lmdb_snapshot.ts";
import { SCHEMA } from "../store/migrations.ts";
import type { AuditHead } from "../store/port.ts";
import { StoredAudit } from "../store/stored_audit.ts";
import { readSchema } from "../store/stored_meta.ts";
import { checkSeal } from "./backup_seal.ts";
import { aloneIn } from "./directory_gate.ts";
import { loadLibc } from "./libc.ts";
import { errnoCode } from "./trusted_paths.ts";

/** What the engine makes beside a file that it opens, so that its readers are known to each other. */
export const LOCK_SUFFIX = "-lock";

/** The store's file: the one in that directory, or that file itself. The fault is a sentence. */
function storeFile(path: string): Result<string> {
  try {
    if (!statSync(path).isDirectory()) return ok(path);
    const file = join(path, STATE_FILE);
    const { uid } = statSync(file);
    // What the engine makes beside the file has to belong to the daemon, or it could not start any more.
    if (uid === process.geteuid?.()) return ok(file);
    return fault(`the store in ${JSON.stringify(path)} belongs to uid ${uid}: run this as that user.`);
  } catch (error) {
    return fault(`there is no store in ${JSON.stringify(path)} that can be read (${errnoCode(error)}).`);
  }
}

/**
 * Opens a state directory's store, or a backup, for as long as `work` takes. Of a state directory a daemon may be writing
 * meanwhile, but not while the store is opened and closed. The fault is a sentence.
 */
export async function withStored<T>(
  path: string,
  work: (engine: LmdbSnapshot) => Promise<Result<T>>,
): Promise<Result<T>> {
  const file = storeFile(path);
  if (!file.ok) return file;
  const isBackup = file.value === path;
  const sealed = isBackup ? await checkSeal(path) : ok(0);
  if (!sealed.ok) return sealed;
  const lock = `${path}${LOCK_SUFFIX}`;
  const hadLock = statSync(lock, { throwIfNoEntry: false }) !== undefined;
  const alone = <R>(step: () => R | Promise<R>) =>
    isBackup ? Promise.resolve(step()).then(ok) : loadLibc().then((libc) => aloneIn(path, libc, step));
  const opened = await alone(() => LmdbSnapshot.open(file.value));
  if (!opened.ok) return fault(`the store in ${JSON.stringify(path)} can't be opened: ${opened.fault}`);
  const engine = opened.value;
  if (!engine.ok) return fault(`the store in ${JSON.stringify(path)} can't be opened (${engine.fault}).`);
  try {
    const known = checkSchema(engine.value);
    return known.ok
      ? await work(engine.value)
      : fault(`the store in ${JSON.stringify(path)}: ${known.fault}`);
  } catch {
    return fault(`the store in ${JSON.stringify(path)} is damaged and can't be read to its end.`);
  } finally {
    const closed = await alone(() => engine.value.close());
    if (!closed.ok) await engine.value.close();
    if (isBackup && !hadLock) rmSync(lock, { force: true }); // it stays one file
  }
}

function checkSchema(engine: LmdbSnapshot): Result<void> {
  const found = readSchema(engine);
  if (found === undefined)
    return fault("it is damaged, or no store of callgate's: it has no schema version.");
  if (found <= SCHEMA.version) return ok(undefined);
  return fault(
    `a newer callgate has written it (schema ${found}; this one knows ${SCHEMA.version}): use that one.`,
  );
}

/** A daemon may be writing meanwhile; then only what was there at the beginning is looked at. */
export async function verifyEngine(
  engine: LmdbSnapshot,
  checkpoint: AuditHead | undefined,
): Promise<Result<Verified>> {
  for (let tries = 1; ; tries += 1) {
    const audit = StoredAudit.load(engine, noBounds);
    if (!audit.ok) return audit;
    const { reader } = audit.value;
    const verified = await verifyStored(reader, { checkpoint, pause: nextTurn, alone: tries === 1 });
    if (verified.finding === undefined || tries === TRIES_MAX) return ok(verified);
    const later = StoredAudit.load(engine, noBounds);
    if (later.ok && later.value.reader.head().seq === reader.head().seq) return ok(verified);
  }
}

const TRIES_MAX = 8;

/** Nothing is written, so nothing goes. */
function noBounds() {
  return { keepForMs: Number.POSITIVE_INFINITY, bytesMax: Number.POSITIVE_INFINITY };
}

/** A turn of the loop also lets the engine read what was written since. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
