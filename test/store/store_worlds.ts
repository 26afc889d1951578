// A store of each kind in a world of its own: time by hand, a disk that outlives the process, commits
// as promises, and restarts.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLEAN } from "../../src/base/labels.ts";
import { DurableStore } from "../../src/store/durable.ts";
import type { Engine } from "../../src/store/engine.ts";
import { LmdbEngine } from "../../src/store/lmdb.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import type { Store, StoreFault } from "../../src/store/port.ts";
import type { CallRecord, Change, DecisionRecord } from "../../src/store/records.ts";
import { FakeClock } from "../broker/fake_clock.ts";
import { FakeDisk, FakeEngine, fakeReserve } from "./fake_engine.ts";

export const START_MS = 1_000_000;
export const REPLAY_FOR_MS = 60_000;

export interface LogLine {
  readonly level: string;
  readonly event: string;
}

/** What a store's life needs, whichever it is. */
export abstract class World {
  readonly clock = new FakeClock(START_MS);
  readonly log: LogLine[] = [];
  storedBytesMax = 1_000_000;

  abstract readonly store: Store;

  /** As after a clean end. */
  abstract restart(): Promise<void>;
  abstract end(): Promise<void>;

  /** Resolves when it is called back, which is when it was written wherever that is waited for. */
  commit(changes: readonly Change[], reserved = false): Promise<StoreFault | undefined> {
    return new Promise((resolve) => {
      this.store.commit(changes, resolve, reserved);
      this.clock.runAfterInput();
    });
  }

  /** Commits that must hold. */
  async write(...changes: readonly Change[]): Promise<void> {
    const fault = await this.commit(changes);
    if (fault !== undefined) throw new Error(fault.sentence);
  }

  /** Intent, parts and outcome of a call, each in a commit of its own. */
  async run(record: CallRecord, parts: readonly string[] = [], final = "final"): Promise<void> {
    await this.write(intentOf(record));
    for (const part of parts) await this.write({ kind: "message", record, message: Buffer.from(part) });
    await this.write(outcomeOf(record, final, this.clock.nowMs()));
  }

  pass(ms: number): void {
    const untilMs = this.clock.nowMs() + ms;
    while (this.clock.step(untilMs)) this.clock.runAfterInput();
  }
}

export class MemoryWorld extends World {
  readonly store = new MemoryStore(this.clock, {
    replayForMs: REPLAY_FOR_MS,
    storedBytesMax: () => this.storedBytesMax,
  });

  async restart(): Promise<void> {
    // It has no life beyond the process; what it was given is what a new broker is to find.
  }

  async end(): Promise<void> {
    // nothing is held
  }
}

export abstract class DurableWorld extends World {
  #store: DurableStore | undefined;

  get store(): DurableStore {
    if (this.#store === undefined) throw new Error("the store is not open");
    return this.#store;
  }

  protected abstract disk(): FakeDisk;
  protected abstract openEngine(): Promise<Engine>;

  async open(): Promise<void> {
    const opened = await this.tryOpen();
    if (!opened.ok) throw new Error(opened.fault);
    this.#store = opened.value;
  }

  async tryOpen() {
    return DurableStore.open({
      engine: await this.openEngine(),
      reserve: fakeReserve(this.disk()),
      clock: (floorMs) => {
        this.clock.step(Math.max(floorMs, this.clock.nowMs()));
        return this.clock;
      },
      log: (level, event) => void this.log.push({ level, event }),
      random: (bytes) => Buffer.alloc(bytes, 7),
      replayForMs: REPLAY_FOR_MS,
      storedBytesMax: () => this.storedBytesMax,
      auditBounds: () => ({ keepForMs: 86_400_000, bytesMax: 1_048_576 }),
    });
  }

  async restart(): Promise<void> {
    await this.store.close();
    await this.open();
  }

  async end(): Promise<void> {
    await this.store.close();
  }

  events(event: string): number {
    return this.log.filter((line) => line.event === event).length;
  }
}

export class FakeDiskWorld extends DurableWorld {
  engine = new FakeEngine();

  static async start(): Promise<FakeDiskWorld> {
    const world = new FakeDiskWorld();
    await world.open();
    return world;
  }

  protected disk(): FakeDisk {
    return this.engine.disk;
  }

  protected async openEngine(): Promise<Engine> {
    this.engine = new FakeEngine(this.engine.disk);
    return this.engine;
  }

  /** As after kill -9. */
  async crash(): Promise<void> {
    this.engine.die();
    await this.open();
  }
}

export class LmdbWorld extends DurableWorld {
  readonly #disk = new FakeDisk();
  readonly directory = mkdtempSync(join(tmpdir(), "callgate-store-"));

  static async start(): Promise<LmdbWorld> {
    const world = new LmdbWorld();
    await world.open();
    return world;
  }

  protected disk(): FakeDisk {
    return this.#disk;
  }

  protected async openEngine(): Promise<Engine> {
    const engine = await LmdbEngine.open({ directory: this.directory, crashed });
    if (!engine.ok) throw new Error(engine.fault);
    return engine.value;
  }

  override async end(): Promise<void> {
    await super.end();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

function crashed(error: Error): never {
  throw error;
}

export function recordOf(
  call: bigint,
  fields: Partial<CallRecord> & { session?: string; role?: string } = {},
): CallRecord {
  const { session = "s", role = "agent", ...rest } = fields;
  return {
    key: { role, session, call },
    tool: "write_file",
    arguments: `{"n":${call}}`,
    uid: 1001,
    durable: true,
    equal: undefined,
    askedAtMs: START_MS,
    state: "dispatched",
    status: undefined,
    code: undefined,
    messages: [],
    labels: CLEAN,
    endedAtMs: 0,
    ...rest,
  };
}

export function decisionOf(record: CallRecord, verdict: DecisionRecord["verdict"] = "allow"): DecisionRecord {
  const { key, tool } = record;
  const row = verdict === "deny" ? "none" : "allow";
  return {
    key,
    tool,
    atMs: START_MS,
    verdict,
    row,
    grant: "g",
    denied: undefined,
    reason: undefined,
    taint: CLEAN,
    condition: "none",
  };
}

export function intentOf(record: CallRecord): Change {
  return { kind: "intent", record, decision: decisionOf(record), provider: "files" };
}

export function outcomeOf(
  record: CallRecord,
  final: string,
  atMs: number,
  fields: { status?: "result" | "failed" | "denied" } = {},
): Change {
  const { status = "result" } = fields;
  const code = status === "failed" ? ("timeout" as const) : undefined;
  return { kind: "outcome", record, message: Buffer.from(final), status, code, atMs };
}

/** What a test compares: the values, with messages as text. */
export function shown(record: CallRecord | undefined) {
  return record && { ...record, messages: record.messages.map((message) => message.toString()) };
}
