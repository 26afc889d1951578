// One disk that several brokers serve in turn, each over the durable store and with the clock that it makes
// of a wall clock that somebody may have set meanwhile. For what has to hold over a kill -9 or a clean end.

import { createHash } from "node:crypto";
import { Broker } from "../../src/broker/broker.ts";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import { DurableStore } from "../../src/store/durable.ts";
import { NOW_MS } from "../host/config_fixture.ts";
import { FakeDisk, FakeEngine, fakeReserve } from "../store/fake_engine.ts";
import { FakeClock } from "./fake_clock.ts";
import { policyOf, REPLAY_FOR_MS } from "./rig.ts";
import { RigPeer } from "./rig_peer.ts";
import { socketPair } from "./socket_pair.ts";

const UIDS: Readonly<Record<string, number>> = {
  agent: 1001,
  operator: 1002,
  files: 1003,
  mail: 1004,
  frontend: 1005,
};

interface Life {
  readonly clock: FakeClock;
  readonly engine: FakeEngine;
  readonly store: DurableStore;
  readonly broker: Broker;
}

export class DurableLives {
  readonly disk = new FakeDisk();
  readonly #toml: string;
  #life: Life | undefined;
  #peers: RigPeer[] = [];
  #calls = 1000n;
  #random = 0;
  #logged = 0;

  private constructor(toml: string) {
    this.#toml = toml;
  }

  static async begin(toml: string): Promise<DurableLives> {
    const lives = new DurableLives(toml);
    await lives.#start(NOW_MS);
    return lives;
  }

  get clock(): FakeClock {
    return this.#now.clock;
  }

  get store(): DurableStore {
    return this.#now.store;
  }

  get engine(): FakeEngine {
    return this.#now.engine;
  }

  get #now(): Life {
    if (this.#life === undefined) throw new Error("no broker lives");
    return this.#life;
  }

  async #start(wallMs: number): Promise<void> {
    const engine = new FakeEngine(this.disk);
    let clock: FakeClock | undefined;
    const log = () => {
      this.#logged += 1;
    };
    const opened = await DurableStore.open({
      engine,
      reserve: fakeReserve(this.disk),
      clock: (floorMs) => {
        clock = new FakeClock(wallMs, floorMs);
        return clock;
      },
      log,
      random: (bytes) => Buffer.alloc(bytes, 7),
      replayForMs: REPLAY_FOR_MS,
      storedBytesMax: () => 67_108_864,
      auditBounds: () => ({ keepForMs: 365 * 86_400_000, bytesMax: 1_073_741_824 }),
    });
    if (!opened.ok || clock === undefined) throw new Error(opened.ok ? "no clock" : opened.fault);
    const broker = await Broker.create(await policyOf(this.#toml), {
      clock,
      store: opened.value,
      log,
      random: (bytes) => (++this.#random).toString(16).padStart(bytes * 2, "0"),
      digest: (text) => createHash("sha256").update(text).digest("hex"),
      frameTimeoutMs: 30_000,
      replayForMs: REPLAY_FOR_MS,
      loadConditions: loadConditionCompiler,
      requestReload: async () => undefined,
    });
    this.#life = { clock, engine, store: opened.value, broker };
  }

  peer(role: string): RigPeer {
    const [ours, theirs] = socketPair();
    const uid = UIDS[role] ?? 1999;
    const peer = new RigPeer(theirs, () => ++this.#calls);
    this.#peers.push(peer);
    this.#now.broker.accept(role, ours, { pid: 77, uid, gid: uid, groups: [] });
    return peer;
  }

  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 4; quiet += 1) {
      const before = this.#activity();
      await new Promise((turned) => setImmediate(turned));
      if (this.clock.runAfterInput() || this.#activity() !== before) quiet = 0;
    }
  }

  #activity(): number {
    const received = this.#peers.reduce((sum, peer) => sum + peer.received, 0);
    return received + this.#logged + this.#now.engine.batches;
  }

  async pass(ms: number): Promise<void> {
    await this.settle();
    const untilMs = this.clock.nowMs() + ms;
    while (this.clock.step(untilMs)) await this.settle();
    await this.settle();
  }

  /** kill -9; another begins, before which somebody may have set the wall clock. */
  async restart(setByMs = 0): Promise<void> {
    this.#now.engine.die();
    await this.#begin(setByMs);
  }

  /** The same after a clean end. */
  async stopAndStart(setByMs = 0): Promise<void> {
    const { broker, store } = this.#now;
    await broker.drain(1000);
    broker.close();
    await store.close();
    await this.#begin(setByMs);
  }

  async #begin(setByMs: number): Promise<void> {
    const { wallMs } = this.clock;
    for (const peer of this.#peers) peer.reset();
    this.#peers = [];
    await this.#start(wallMs + setByMs);
  }
}
