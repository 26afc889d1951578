// One store in memory that several brokers serve in turn: what a kill -9 and a new start leave of the first.
// Each life has its own clock (none of its timers outlive it) and its own way to the store, which the crash cuts.

import { createHash } from "node:crypto";
import { Broker, type BrokerEffects } from "../../src/broker/broker.ts";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import type { PeerCredentials } from "../../src/session/peer.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import { NOW_MS } from "../host/config_fixture.ts";
import { FakeClock } from "./fake_clock.ts";
import { HeldStore } from "./held_store.ts";
import { type LogLine, policyOf, REPLAY_FOR_MS } from "./rig.ts";
import { type Reply, RigPeer } from "./rig_peer.ts";
import { socketPair } from "./socket_pair.ts";

const UIDS: Readonly<Record<string, number>> = {
  agent: 1001,
  other: 1004,
  operator: 1002,
  files: 1003,
  mail: 1004,
  frontend: 1005,
};

interface Life {
  readonly clock: FakeClock;
  readonly store: HeldStore;
  readonly broker: Broker;
  readonly log: LogLine[];
}

export class Lives {
  readonly #memory: MemoryStore;
  #life: Life | undefined;
  #peers: RigPeer[] = [];
  #calls = 1000n;
  #random = 0;
  #nowMs = NOW_MS;

  private constructor() {
    const time = { nowMs: () => this.#nowMs, after: () => () => undefined, afterInput: () => undefined };
    this.#memory = new MemoryStore(time, { replayForMs: REPLAY_FOR_MS, storedBytesMax: () => 67_108_864 });
  }

  static async begin(toml: string): Promise<Lives> {
    const lives = new Lives();
    await lives.#start(toml);
    return lives;
  }

  async #start(toml: string): Promise<void> {
    const clock = new FakeClock(this.#nowMs);
    const store = new HeldStore(this.#memory);
    const log: LogLine[] = [];
    const effects: BrokerEffects = {
      clock,
      store,
      log: (level, event, fields) => void log.push({ level, event, fields }),
      random: (bytes) => (++this.#random).toString(16).padStart(bytes * 2, "0"),
      digest: (text) => createHash("sha256").update(text).digest("hex"),
      frameTimeoutMs: 30_000,
      replayForMs: REPLAY_FOR_MS,
      checkpointEveryMs: 3_600_000,
      loadConditions: loadConditionCompiler,
      requestReload: async () => undefined,
    };
    this.#life = { clock, store, log, broker: await Broker.create(await policyOf(toml), effects) };
  }

  get #now(): Life {
    if (this.#life === undefined) throw new Error("no broker lives");
    return this.#life;
  }

  get store(): HeldStore {
    return this.#now.store;
  }

  get clock(): FakeClock {
    return this.#now.clock;
  }

  get broker(): Broker {
    return this.#now.broker;
  }

  get log(): readonly LogLine[] {
    return this.#now.log;
  }

  get kept(): MemoryStore {
    return this.#memory;
  }

  peer(role: string, peer: Partial<PeerCredentials> = {}): RigPeer {
    const [ours, theirs] = socketPair();
    const uid = UIDS[role] ?? 1999;
    const rigPeer = new RigPeer(theirs, () => ++this.#calls);
    this.#peers.push(rigPeer);
    this.#now.broker.accept(role, ours, { pid: 77, uid, gid: uid, groups: [], ...peer });
    return rigPeer;
  }

  async ask(peer: RigPeer, tool: string, args: object = {}, session = "s", call?: bigint): Promise<Reply> {
    const reply = peer.ask(tool, args, call === undefined ? { session } : { session, call });
    await this.settle();
    return reply;
  }

  async settle(): Promise<void> {
    const { clock } = this.#now;
    for (let quiet = 0; quiet < 4; quiet += 1) {
      const before = this.#activity();
      await new Promise((turned) => setImmediate(turned));
      if (clock.runAfterInput() || this.#activity() !== before) quiet = 0;
    }
  }

  #activity(): number {
    const { log, store } = this.#now;
    return this.#peers.reduce((sum, peer) => sum + peer.received, 0) + log.length + store.written.length;
  }

  async pass(ms: number): Promise<void> {
    await this.settle();
    const untilMs = this.#now.clock.nowMs() + ms;
    while (this.#now.clock.step(untilMs)) await this.settle();
    this.#nowMs = Math.max(this.#nowMs, untilMs);
    await this.settle();
  }

  async reloadWith(toml: string): Promise<void> {
    this.#now.broker.reload(await policyOf(toml));
    await this.settle();
  }

  /** kill -9: nothing of this life reaches the store or a peer any more. Another begins a second later. */
  async restart(toml: string): Promise<void> {
    this.store.mode = "held";
    for (const peer of this.#peers) peer.reset();
    this.#peers = [];
    this.#nowMs = Math.max(this.#nowMs, this.#now.clock.nowMs()) + 1000;
    await this.#start(toml);
  }
}
