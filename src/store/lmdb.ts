// The engine on disk: LMDB, read here and written by a thread of its own, so that a flush never holds up
// the event loop. One transaction a batch; the buffers of batches are used again.
// Invariant: a read sees every batch that was called back before.

import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { fault, ok, type Result } from "../base/faults.ts";
import type { Engine, EngineFault, Entry, KeyRange } from "./engine.ts";
import { type Environment, lmdbCode, openEnvironment, STATE_FILE } from "./lmdb_environment.ts";
import { lengthenCut, unfitFile } from "./lmdb_file.ts";
import type { BatchAnswer, BatchRequest, WorkerData } from "./lmdb_messages.ts";
import { WriteBatch } from "./write_batch.ts";

const BUFFER_BYTES = 1_048_576;
/** Buffers that wait to be used again: one is written while the next fills. */
const SPARE_BUFFERS_MAX = 3;
/** A buffer that one large batch has made larger is let go. */
const SPARE_BYTES_MAX = 4 * BUFFER_BYTES;

const REMEDY = "put a backup in its place with `callgate restore`, or move it away to begin anew.";

/** What keeps this process's batches apart from other processes' openings of the file. */
export interface OpeningGate {
  /** Calls `then` once nobody else is there, and keeps everybody out until `leave`. */
  enter(then: () => void): void;
  leave(): void;
}

export interface LmdbOptions {
  /** Exists and is the daemon's alone. */
  readonly directory: string;
  /** The writing thread is gone, and with it what it was writing: nothing more can be promised. */
  readonly crashed: (error: Error) => void;
  /** What its owner can do where the file is damaged: the end of a sentence. Default: the broker's. */
  readonly remedy?: string;
  /** Entered by whoever opens this; left once it is open. Default: no other process opens the file. */
  readonly gate?: OpeningGate;
}

const NO_GATE: OpeningGate = { enter: (then) => then(), leave: () => undefined };

export class LmdbEngine implements Engine {
  readonly #environment: Environment;
  readonly #worker: Worker;
  readonly #path: string;
  readonly #gate: OpeningGate;
  readonly #spare: ArrayBuffer[] = [];
  #writing:
    | { readonly batch: WriteBatch; readonly done: (fault: EngineFault | undefined) => void }
    | undefined;
  #idle: (() => void) | undefined;

  /** The fault is a sentence for the owner. */
  static async open(options: LmdbOptions): Promise<Result<LmdbEngine>> {
    const { gate = NO_GATE } = options;
    try {
      return await LmdbEngine.#open(options, gate);
    } finally {
      gate.leave();
    }
  }

  static async #open(
    { directory, crashed, remedy = REMEDY }: LmdbOptions,
    gate: OpeningGate,
  ): Promise<Result<LmdbEngine>> {
    const path = join(directory, STATE_FILE);
    let environment: Environment;
    try {
      const unfit = existsSync(path) ? unfitFile(path) : undefined;
      if (unfit !== undefined) return fault(`it is damaged, or no state of callgate's (${unfit}): ${remedy}`);
      if (existsSync(path)) lengthenCut(path);
      environment = openEnvironment(path);
    } catch (error) {
      return fault(`it can't be opened (${lmdbCode(error)}).`);
    }
    const worker = startWorker({ path });
    const failed = await started(worker);
    if (failed === undefined) return ok(new LmdbEngine(path, environment, worker, crashed, gate));
    await environment.close();
    return fault(`it can't be written: its thread did not start (${failed}).`);
  }

  private constructor(
    path: string,
    environment: Environment,
    worker: Worker,
    crashed: LmdbOptions["crashed"],
    gate: OpeningGate,
  ) {
    this.#path = path;
    this.#gate = gate;
    this.#environment = environment;
    this.#worker = worker;
    worker.on("message", (answer: BatchAnswer) => this.#answered(answer));
    worker.on("error", crashed);
    worker.on("exit", () => {
      if (this.#idle === undefined) crashed(new Error("the thread that writes the store has ended"));
    });
  }

  get(key: Uint8Array): Buffer | undefined {
    return this.#environment.getBinary(key);
  }

  range(range: KeyRange): readonly Entry[] {
    return entriesOf(this.#environment, range);
  }

  keys(range: KeyRange): readonly Buffer[] {
    return keysOf(this.#environment, range);
  }

  batch(): WriteBatch {
    return new WriteBatch(this.#spare.pop() ?? new ArrayBuffer(BUFFER_BYTES));
  }

  write(batch: WriteBatch, done: (fault: EngineFault | undefined) => void): void {
    if (this.#writing !== undefined) throw new Error("a batch is being written");
    this.#writing = { batch, done };
    const { buffer, length } = batch;
    this.#gate.enter(() => this.#worker.postMessage({ buffer, length } satisfies BatchRequest, [buffer]));
  }

  usedBytes(): number {
    try {
      return statSync(this.#path).blocks * 512;
    } catch {
      return 0;
    }
  }

  async close(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#worker.once("exit", () => resolve()));
    this.#idle = () => this.#gate.enter(() => this.#worker.postMessage("close" satisfies BatchRequest));
    if (this.#writing === undefined) this.#idle();
    await ended;
    await this.#environment.close();
    this.#gate.leave();
  }

  #answered(answer: BatchAnswer): void {
    if (answer === "ready") return;
    this.#gate.leave();
    const { buffer, fault: code } = answer;
    // What is read in this very turn must not be what the batch found.
    this.#environment.resetReadTxn();
    const writing = this.#writing;
    this.#writing = undefined;
    if (code === undefined) this.#keep(buffer);
    else writing?.batch.restore(buffer);
    writing?.done(code === undefined ? undefined : { code });
    if (this.#writing === undefined) this.#idle?.();
  }

  #keep(buffer: ArrayBuffer): void {
    if (this.#spare.length < SPARE_BUFFERS_MAX && buffer.byteLength <= SPARE_BYTES_MAX)
      this.#spare.push(buffer);
  }
}

/** The library hands out copies, of keys too. */
export function entriesOf(environment: Environment, range: KeyRange): readonly Entry[] {
  const entries: Entry[] = [];
  for (const { key, value } of environment.getRange(bounds(range)))
    entries.push({ key: asBuffer(key), value });
  return entries;
}

export function keysOf(environment: Environment, range: KeyRange): readonly Buffer[] {
  return [...environment.getKeys(bounds(range))].map(asBuffer);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function bounds({ from, to, reverse = false, limit }: KeyRange) {
  if (reverse) return { start: to, exclusiveStart: true, end: from, inclusiveEnd: true, reverse, limit };
  return { start: from, end: to, limit };
}

/** Resolves when the thread has opened the environment; otherwise with why it did not. */
function started(worker: Worker): Promise<string | undefined> {
  return new Promise((resolve) => {
    const failed = (error: unknown) => resolve(lmdbCode(error));
    const ended = () => resolve("ended");
    worker.once("error", failed);
    worker.once("exit", ended);
    worker.once("message", () => {
      worker.off("error", failed);
      worker.off("exit", ended);
      resolve(undefined);
    });
  });
}

/** Beside this file: compiled, bundled (an entry point of its own), or as source. */
function startWorker(workerData: WorkerData): Worker {
  if (!import.meta.url.endsWith(".ts"))
    return new Worker(new URL("./lmdb_worker.js", import.meta.url), { workerData, execArgv: [] });
  // From source the thread first needs the loader that whoever runs this has.
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx/package.json"));
  const loader = new URL("dist/esm/api/index.mjs", tsx).href;
  const program = new URL("./lmdb_worker.ts", import.meta.url).href;
  const source = `import(${JSON.stringify(loader)}).then(({ register }) => (register(), import(${JSON.stringify(program)})))`;
  return new Worker(source, { workerData, execArgv: [], eval: true });
}
