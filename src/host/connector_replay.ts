// The connector's store of turns, on the broker's engine and journal: what is written together waits for one flush.
// Its directory is a connector's own. On a full disk no new turn is let in, and what is kept back there lets those
// that run end. Invariant: as the port says (connector/replay.ts); every record was found whole when it was opened.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import type { Clock, Log } from "../base/ports.ts";
import type { ReplayHead, ReplayRecord, ReplayStore } from "../connector/replay.ts";
import { checksumOf, decodeRecord, encodeRecord, holdsFrame } from "../connector/replay_record.ts";
import type { Engine } from "../store/engine.ts";
import { Journal, type Ledger, type Reserve } from "../store/journal.ts";
import { LmdbEngine } from "../store/lmdb.ts";
import { STATE_FILE } from "../store/lmdb_environment.ts";
import { unfitFile } from "../store/lmdb_file.ts";
import { brokenStructure } from "../store/lmdb_structure.ts";
import { checkReplay, REPLAY_REMEDY } from "./connector_replay_check.ts";
import {
  added,
  encodeSummary,
  expiriesBelow,
  expiryKey,
  frameKey,
  NO_RECORDS,
  recordKey,
  replayKeyOf,
  SUMMARY_KEY,
  type Summary,
} from "./connector_replay_tables.ts";
import type { Libc } from "./libc.ts";
import { reserveFile } from "./reserve_file.ts";
import { openStateDirectory } from "./state_dir.ts";
import { errnoCode } from "./trusted_paths.ts";

export interface ReplayStoreOptions {
  /** Of this store alone; made where it is not there, in a directory that is. */
  readonly directory: string;
  readonly libc: Libc | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Locks the directory, opens what is in it and checks all of it. The fault is a sentence for the owner. */
export async function openReplayStore(options: ReplayStoreOptions): Promise<Result<ReplayStore>> {
  const { directory, libc } = options;
  const locked = openStateDirectory(directory, libc);
  if (!locked.ok) return fault(locked.fault);
  const { release } = locked.value;
  const engine = await openEngine(directory);
  if (!engine.ok) {
    release();
    return fault(`${JSON.stringify(directory)}: ${engine.fault}`);
  }
  const store = await DurableReplay.open({
    engine: engine.value,
    reserve: reserveFile(directory),
    clock: options.clock,
    log: options.log,
    released: release,
  });
  if (store.ok) return store;
  await engine.value.close();
  release();
  return fault(`${JSON.stringify(directory)}: ${store.fault}`);
}

/** Looks at its file first: the engine ends the process where that is damaged, and says nothing. */
async function openEngine(directory: string): Promise<Result<LmdbEngine>> {
  const path = join(directory, STATE_FILE);
  try {
    const broken = existsSync(path) && unfitFile(path) === undefined ? brokenStructure(path) : undefined;
    if (broken !== undefined) return fault(`it is damaged (${broken}): ${REPLAY_REMEDY}`);
  } catch (error) {
    return fault(`it can't be read (${errnoCode(error)}).`);
  }
  return LmdbEngine.open({ directory, crashed, remedy: REPLAY_REMEDY });
}

/** Nothing can be promised any more: the process ends, and the service manager starts another. */
function crashed(error: Error): never {
  throw error;
}

interface Put {
  readonly key: Buffer;
  readonly record: Buffer;
  /** In the expiry's key. */
  readonly expiresAtMs: number;
  readonly frame: Buffer | undefined;
  /** What stands in its place now. */
  readonly before: Buffer | undefined;
}

interface Forget {
  readonly key: Buffer;
  readonly forget: ReplayRecord;
  readonly before: Buffer;
}

type Change = Put | Forget;

export interface DurableReplayOptions {
  readonly engine: Engine;
  readonly reserve: Reserve;
  readonly clock: Clock;
  readonly log: Log;
  /** The engine is closed. */
  readonly released: () => void;
}

export class DurableReplay implements ReplayStore {
  readonly #engine: Engine;
  readonly #journal: Journal<Change, Change>;
  readonly #released: () => void;
  /** As it is on disk, and as the batch that is being written will leave it. */
  #summary: Summary;
  #sealed: Summary = NO_RECORDS;
  /** Keys of which a change is being written. */
  readonly #changing = new Set<string>();

  /** The fault is a sentence that goes on from the store's name. The engine stays open then. */
  static async open(options: DurableReplayOptions): Promise<Result<DurableReplay>> {
    const { engine, reserve, log } = options;
    const startedAtMs = performance.now();
    const summary = readable(() => checkReplay(engine));
    if (!summary.ok) return summary;
    const store = new DurableReplay(summary.value, options, await reserve.hold());
    log("info", "connector.store_opened", {
      ms: Math.round(performance.now() - startedAtMs),
      records: summary.value.records,
      bytes: engine.usedBytes(),
    });
    return ok(store);
  }

  private constructor(summary: Summary, options: DurableReplayOptions, held: boolean) {
    const { engine, reserve, clock, log, released } = options;
    this.#engine = engine;
    this.#summary = summary;
    this.#released = released;
    this.#journal = new Journal({ engine, ledger: this.#ledger(), reserve, clock, log }, held);
  }

  get forgottenUpToMs(): number {
    return this.#summary.forgottenUpToMs;
  }

  find(key: Buffer): ReplayRecord | "damaged" | undefined {
    const bytes = this.#read(recordKey(key));
    if (bytes === undefined || bytes === "damaged") return bytes;
    return decodeRecord(key, bytes) ?? "damaged";
  }

  frame(key: Buffer): Buffer | undefined {
    const bytes = this.#read(recordKey(key));
    const frame = this.#read(frameKey(key));
    if (!Buffer.isBuffer(bytes) || !Buffer.isBuffer(frame)) return undefined;
    const record = decodeRecord(key, bytes);
    return record !== undefined && holdsFrame(record, frame) ? frame : undefined;
  }

  /** Nothing new while the disk takes nothing, or can't keep up. */
  async activate(key: Buffer, head: ReplayHead): Promise<boolean> {
    if (this.#journal.condition !== "ok" || this.#read(recordKey(key)) !== undefined) return false;
    return this.#put(key, head, undefined, undefined);
  }

  /** May use the space that is kept back: the turn has run. */
  async complete(key: Buffer, head: ReplayHead, frame: Buffer): Promise<boolean> {
    const before = this.#read(recordKey(key));
    if (!Buffer.isBuffer(before)) return false;
    return this.#put(key, head, frame, before);
  }

  expiringBefore(unixMs: number, limit: number): readonly Buffer[] {
    try {
      return this.#engine.keys({ ...expiriesBelow(unixMs), limit }).map(replayKeyOf);
    } catch {
      return [];
    }
  }

  /** Makes room, so it may use what is kept back. */
  async forget(keys: readonly Buffer[]): Promise<number> {
    const changes: Forget[] = [];
    for (const key of keys) {
      const before = this.#read(recordKey(key));
      const forget = Buffer.isBuffer(before) ? decodeRecord(key, before) : undefined;
      if (Buffer.isBuffer(before) && forget !== undefined) changes.push({ key, forget, before });
    }
    if (changes.length === 0) return 0;
    return (await this.#commit(changes, true)) ? changes.length : 0;
  }

  async close(): Promise<void> {
    await this.#journal.close();
    await this.#engine.close();
    this.#released();
  }

  #read(storeKey: Buffer): Buffer | "damaged" | undefined {
    try {
      return this.#engine.get(storeKey);
    } catch {
      return "damaged";
    }
  }

  #put(key: Buffer, head: ReplayHead, frame: Buffer | undefined, before: Buffer | undefined) {
    const record = encodeRecord(head, frame);
    const change: Put = { key, record, expiresAtMs: head.expiresAtUnixMs, frame, before };
    return this.#commit([change], frame !== undefined);
  }

  #commit(changes: readonly Change[], reserved: boolean): Promise<boolean> {
    const names = changes.map(({ key }) => key.toString("latin1"));
    if (names.some((name) => this.#changing.has(name))) return Promise.resolve(false);
    for (const name of names) this.#changing.add(name);
    return new Promise((resolve) => {
      const done = (refused: unknown) => {
        for (const name of names) this.#changing.delete(name);
        resolve(refused === undefined);
      };
      this.#journal.commit(changes, done, true, reserved);
    });
  }

  /** What is noted of a change is the change: the summary is made of all that a batch holds. */
  #ledger(): Ledger<Change, Change> {
    return {
      encode: (changes, batch) => {
        for (const change of changes) encodeChange(change, batch);
        return changes;
      },
      seal: (batch, changes) => {
        this.#sealed = changes.reduce(summaryAfter, this.#summary);
        batch.put(SUMMARY_KEY, encodeSummary(this.#sealed));
      },
      sealed: (written) => {
        if (written) this.#summary = this.#sealed;
      },
      apply: () => undefined,
      drop: () => undefined,
    };
  }
}

const NOTHING = Buffer.alloc(1);

function encodeChange(change: Change, batch: ReturnType<Engine["batch"]>): void {
  const { key } = change;
  if ("forget" in change) {
    batch.delete(recordKey(key));
    batch.delete(expiryKey(change.forget.expiresAtUnixMs, key));
    if (change.forget.state === "completed") batch.delete(frameKey(key));
    return;
  }
  batch.put(recordKey(key), change.record);
  if (change.before === undefined) batch.put(expiryKey(change.expiresAtMs, key), NOTHING);
  if (change.frame !== undefined) batch.put(frameKey(key), change.frame);
}

function summaryAfter({ records, digest, forgottenUpToMs }: Summary, change: Change): Summary {
  const without = change.before === undefined ? digest : added(digest, checksumOf(change.before));
  if ("forget" in change) {
    const { expiresAtUnixMs } = change.forget;
    const forgotten = Math.max(forgottenUpToMs, expiresAtUnixMs);
    return { records: records - 1, digest: without, forgottenUpToMs: forgotten };
  }
  const withIt = added(without, checksumOf(change.record));
  return { records: change.before === undefined ? records + 1 : records, digest: withIt, forgottenUpToMs };
}

/** What the engine throws where its file is damaged, as a sentence. */
function readable<T>(check: () => Result<T>): Result<T> {
  try {
    return check();
  } catch {
    return fault(`it is damaged and can't be read: ${REPLAY_REMEDY}`);
  }
}
