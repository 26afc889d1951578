// The connector's store of turns, on the broker's engine and journal: what is written together waits for one flush.
// Its directory is a connector's own. On a full disk no new turn is let in, and what is kept back there lets those
// that run end. Invariant: as the port says (connector/replay.ts); every record was found whole when it was opened.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import type { Clock, Log } from "../base/ports.ts";
import { keyName } from "../connector/digest.ts";
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
  frameKey,
  NO_RECORDS,
  type Place,
  placeOf,
  recordKey,
  recordsBelow,
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

interface Put extends Place {
  readonly record: Buffer;
  readonly frame: Buffer | undefined;
  /** What stands in its place now. */
  readonly before: Buffer | undefined;
}

interface Forget extends Place {
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
  /** Default `RECORDS_MAX`. */
  readonly recordsMax?: number | undefined;
}

/**
 * Of each some hundred bytes are in memory, and all are read at a start. Over it no new turn is let in until others are
 * forgotten: a caller that has turns as fast as it can must not end the process, nor leave a store that none can open.
 */
const RECORDS_MAX = 4_000_000;

export class DurableReplay implements ReplayStore {
  readonly #engine: Engine;
  readonly #journal: Journal<Change, Change>;
  readonly #released: () => void;
  /** As it is on disk, and as the batch that is being written will leave it. */
  #summary: Summary;
  #sealed: Summary = NO_RECORDS;
  /** When each record expires, and so where it lies. */
  readonly #expiries: Map<string, number>;
  /** Keys of which a change is being written. */
  readonly #changing = new Set<string>();
  readonly #recordsMax: number;
  readonly #log: Log;
  #full = false;

  /** The fault is a sentence that goes on from the store's name. The engine stays open then. */
  static async open(options: DurableReplayOptions): Promise<Result<DurableReplay>> {
    const { engine, reserve, log } = options;
    const startedAtMs = performance.now();
    const checked = readable(() => checkReplay(engine));
    if (!checked.ok) return checked;
    const { summary, expiries } = checked.value;
    const store = new DurableReplay(summary, expiries, options, await reserve.hold());
    log("info", "connector.store_opened", {
      ms: Math.round(performance.now() - startedAtMs),
      records: summary.records,
      bytes: engine.usedBytes(),
    });
    return ok(store);
  }

  private constructor(
    summary: Summary,
    expiries: Map<string, number>,
    options: DurableReplayOptions,
    held: boolean,
  ) {
    const { engine, reserve, clock, log, released } = options;
    this.#engine = engine;
    this.#summary = summary;
    this.#expiries = expiries;
    this.#released = released;
    this.#recordsMax = options.recordsMax ?? RECORDS_MAX;
    this.#log = log;
    this.#journal = new Journal({ engine, ledger: this.#ledger(), reserve, clock, log }, held);
  }

  get forgottenUpToMs(): number {
    return this.#summary.forgottenUpToMs;
  }

  find(key: Buffer): ReplayRecord | "damaged" | undefined {
    const place = this.#placeOf(key);
    if (place === undefined) return undefined;
    const bytes = this.#read(recordKey(place));
    const record = bytes === undefined ? undefined : decodeRecord(key, bytes);
    return record ?? "damaged";
  }

  frame(key: Buffer): Buffer | undefined {
    const place = this.#placeOf(key);
    const bytes = place && this.#read(recordKey(place));
    const frame = place && this.#read(frameKey(place));
    const record = bytes && decodeRecord(key, bytes);
    return record !== undefined && holdsFrame(record, frame) ? frame : undefined;
  }

  /** Nothing new while the disk takes nothing, or can't keep up. */
  async activate(key: Buffer, head: ReplayHead): Promise<boolean> {
    if (this.#journal.condition !== "ok" || this.#placeOf(key) !== undefined) return false;
    if (this.#isFull()) return false;
    return this.#put(key, head, undefined, undefined);
  }

  /** What is being written counts as if it were a new one. Told once. */
  #isFull(): boolean {
    const records = this.#expiries.size;
    const full = records + this.#changing.size >= this.#recordsMax;
    if (full && !this.#full) this.#log("error", "connector.store_full", { records });
    this.#full = full;
    return full;
  }

  /** May use the space that is kept back: the turn has run. */
  async complete(key: Buffer, head: ReplayHead, frame: Buffer): Promise<boolean> {
    const place = this.#placeOf(key);
    const before = place && this.#read(recordKey(place));
    if (before === undefined || place?.expiresAtMs !== head.expiresAtUnixMs) return false;
    return this.#put(key, head, frame, before);
  }

  expiringBefore(unixMs: number, limit: number): readonly Buffer[] {
    try {
      return this.#engine.keys({ ...recordsBelow(unixMs), limit }).map((storeKey) => placeOf(storeKey).key);
    } catch {
      return [];
    }
  }

  /** Makes room, so it may use what is kept back. */
  async forget(keys: readonly Buffer[]): Promise<number> {
    const changes = keys.flatMap((key) => this.#forgetting(key) ?? []);
    if (changes.length === 0) return 0;
    return (await this.#commit(changes, true)) ? changes.length : 0;
  }

  #forgetting(key: Buffer): Forget | undefined {
    const place = this.#placeOf(key);
    const before = place && this.#read(recordKey(place));
    const forget = before && decodeRecord(key, before);
    return place && before && forget && { ...place, forget, before };
  }

  #placeOf(key: Buffer): Place | undefined {
    const expiresAtMs = this.#expiries.get(keyName(key));
    return expiresAtMs === undefined ? undefined : { key, expiresAtMs };
  }

  async close(): Promise<void> {
    await this.#journal.close();
    await this.#engine.close();
    this.#released();
  }

  /** Undefined: it is not there, or can't be read, though it is known to be: damaged. */
  #read(storeKey: Buffer): Buffer | undefined {
    try {
      return this.#engine.get(storeKey);
    } catch {
      return undefined;
    }
  }

  #put(key: Buffer, head: ReplayHead, frame: Buffer | undefined, before: Buffer | undefined) {
    const record = encodeRecord(head, frame);
    const change: Put = { key, record, expiresAtMs: head.expiresAtUnixMs, frame, before };
    return this.#commit([change], frame !== undefined);
  }

  #commit(changes: readonly Change[], reserved: boolean): Promise<boolean> {
    const names = changes.map(({ key }) => keyName(key));
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

  #apply(change: Change): void {
    if ("forget" in change) this.#expiries.delete(keyName(change.key));
    else this.#expiries.set(keyName(change.key), change.expiresAtMs);
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
      apply: (changes) => {
        for (const change of changes) this.#apply(change);
      },
      drop: () => undefined,
    };
  }
}

function encodeChange(change: Change, batch: ReturnType<Engine["batch"]>): void {
  if ("forget" in change) {
    batch.delete(recordKey(change));
    if (change.forget.state === "completed") batch.delete(frameKey(change));
    return;
  }
  batch.put(recordKey(change), change.record);
  if (change.frame !== undefined) batch.put(frameKey(change), change.frame);
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
