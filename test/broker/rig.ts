// The whole broker in memory: config as TOML, time and commits by hand, peers over stream pairs with
// the real codec. `end` is the last line of every test: nothing may be held, run or logged that must not.

import { createHash } from "node:crypto";
import { expect } from "vitest";
import { ROLE_LIMITS_DEFAULT } from "../../src/base/limits.ts";
import type { Clock, LogFields, LogLevel } from "../../src/base/ports.ts";
import { Broker } from "../../src/broker/broker.ts";
import { compileConfig } from "../../src/host/config.ts";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import type { Policy } from "../../src/policy/policy.ts";
import { compileArgumentsSchema } from "../../src/policy/schema.ts";
import type { PeerCredentials } from "../../src/session/peer.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import type { Store } from "../../src/store/port.ts";
import { fakePorts, NOW_MS } from "../host/config_fixture.ts";
import { FakeClock } from "./fake_clock.ts";
import { HeldStore } from "./held_store.ts";
import { RigPeer } from "./rig_peer.ts";
import { socketPair } from "./socket_pair.ts";

export const FRAME_TIMEOUT_MS = 30_000;
export const REPLAY_FOR_MS = 86_400_000;

/** Users of the roles in the tests' configs, as the fixture of the config tests names them. */
const UIDS: Readonly<Record<string, number>> = {
  agent: 1001,
  other: 1001,
  operator: 1002,
  files: 1003,
  mail: 1004,
  frontend: 1005,
};

export interface LogLine {
  readonly level: LogLevel;
  readonly event: string;
  readonly fields: LogFields;
}

export async function policyOf(toml: string): Promise<Policy> {
  const ports = fakePorts({
    loadConditions: loadConditionCompiler,
    compileSchema: compileArgumentsSchema,
  });
  const read = await compileConfig(toml, "/etc/callgate/callgate.toml", ports);
  if (!read.ok) throw new Error(`the test's config is wrong: ${JSON.stringify(read.fault)}`);
  return read.value.config.policy;
}

/** What a broker is given for as long as its process lives: afterwards nothing of it reaches anything. */
class Life implements Clock {
  alive = true;
  readonly #clock: FakeClock;
  readonly #stops = new Set<() => void>();

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  end(): void {
    this.alive = false;
    for (const stop of this.#stops) stop();
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  after(ms: number, task: () => void): () => void {
    if (!this.alive) return () => undefined;
    const stop = this.#clock.after(ms, () => {
      this.#stops.delete(stop);
      task();
    });
    this.#stops.add(stop);
    return () => {
      this.#stops.delete(stop);
      stop();
    };
  }

  afterInput(task: () => void): void {
    this.#clock.afterInput(() => {
      if (this.alive) task();
    });
  }

  /** The store as this process sees it. */
  store(store: HeldStore): Store {
    const life = this;
    return {
      commit(changes, done, reserved) {
        if (life.alive) store.commit(changes, (fault) => life.alive && done(fault), reserved);
      },
      get condition() {
        return store.condition;
      },
      get audit() {
        return store.audit;
      },
      findCall: (key) => store.findCall(key),
      calls: () => store.calls(),
      open: () => store.open(),
      ended: (wanted) => store.ended(wanted),
      watermark: (role, session) => store.watermark(role, session),
      findDecision: (key) => store.findDecision(key),
      load: () => store.load(),
    };
  }
}

export class Rig {
  readonly clock: FakeClock;
  readonly store: HeldStore;
  readonly log: LogLine[] = [];
  #life: Life;
  #broker: Broker | undefined;
  #peers: RigPeer[] = [];
  #calls = 1000n;
  #random = 0;
  /** What the host says to a reload that is asked for over the wire. */
  readonly reload: { answer: () => Promise<string | undefined> } = { answer: async () => undefined };

  private constructor() {
    this.clock = new FakeClock(NOW_MS);
    this.#life = new Life(this.clock);
    const memory = new MemoryStore(this.clock, {
      replayForMs: REPLAY_FOR_MS,
      storedBytesMax: (role) => {
        const { limits } = this.#broker?.policy.roles.get(role) ?? { limits: ROLE_LIMITS_DEFAULT };
        return limits.stored_bytes;
      },
    });
    this.store = new HeldStore(memory);
  }

  static async of(toml: string): Promise<Rig> {
    const rig = new Rig();
    await rig.#start(await policyOf(toml));
    return rig;
  }

  get broker(): Broker {
    if (this.#broker === undefined) throw new Error("no broker runs");
    return this.#broker;
  }

  /**
   * As after kill -9: what was not released is lost with every connection, and a new broker begins on
   * what the store has, under the same policy or another.
   */
  async restart(toml?: string): Promise<void> {
    const policy = toml === undefined ? this.broker.policy : await policyOf(toml);
    this.#life.end();
    for (const peer of this.#peers) peer.vanish();
    this.#peers = [];
    this.store.restart();
    this.#life = new Life(this.clock);
    await this.#start(policy);
  }

  async #start(policy: Policy): Promise<void> {
    const life = this.#life;
    this.#broker = await Broker.create(policy, {
      clock: life,
      store: life.store(this.store),
      log: (level, event, fields) => {
        if (life.alive) this.log.push({ level, event, fields });
      },
      random: (bytes) => (++this.#random).toString(16).padStart(bytes * 2, "0"),
      digest: (text) => createHash("sha256").update(text).digest("hex"),
      frameTimeoutMs: FRAME_TIMEOUT_MS,
      replayForMs: REPLAY_FOR_MS,
      loadConditions: loadConditionCompiler,
      requestReload: () => this.reload.answer(),
    });
  }

  /** A connection as that role, by its usual user or another. */
  peer(role: string, peer: Partial<PeerCredentials> | undefined = {}): RigPeer {
    const [ours, theirs] = socketPair();
    const uid = UIDS[role] ?? 1999;
    const credentials = { pid: 77, uid, gid: uid, groups: [], ...peer };
    const rigPeer = new RigPeer(theirs, () => ++this.#calls);
    this.#peers.push(rigPeer);
    this.broker.accept(role, ours, peer === undefined ? undefined : credentials);
    return rigPeer;
  }

  /** Lets everything happen that needs no time and no commit that is held. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 4; quiet += 1) {
      const before = this.#activity();
      await new Promise((turned) => setImmediate(turned));
      if (this.clock.runAfterInput() || this.#activity() !== before) quiet = 0;
    }
  }

  /** Lets time pass, with everything that is due in it. */
  async pass(ms: number): Promise<void> {
    await this.settle();
    const untilMs = this.clock.nowMs() + ms;
    while (this.clock.step(untilMs)) await this.settle();
    await this.settle();
  }

  /** Writes what is held, and what comes of that, until nothing waits. */
  async releaseAll(): Promise<void> {
    await this.settle();
    while (this.store.waiting > 0) {
      this.store.release();
      await this.settle();
    }
  }

  async reloadWith(toml: string): Promise<void> {
    this.broker.reload(await policyOf(toml));
    await this.settle();
  }

  events(event: string): readonly LogLine[] {
    return this.log.filter((line) => line.event === event);
  }

  #activity(): number {
    const received = this.#peers.reduce((sum, peer) => sum + peer.received, 0);
    return received + this.log.length + this.store.written.length;
  }

  /** Everybody leaves; then nothing is held and nothing runs, and the log held no word of anybody's. */
  async end(): Promise<void> {
    this.store.mode = "at_once";
    await this.releaseAll();
    for (const peer of this.#peers) {
      peer.resume();
      peer.vanish();
    }
    await this.settle();
    await this.pass(3_600_000);
    expect(this.broker.runningCalls).toBe(0);
    for (const { role, ...held } of this.broker.holdings()) {
      const nothing = { connections: 0, calls_in_flight: 0, queued_bytes_in: 0, queued_bytes_out: 0 };
      expect({ role, ...held }).toEqual({ role, ...nothing });
    }
    expect(this.clock.timers).toBe(0);
    expect(this.log.filter((line) => /CANARY|SECRET/i.test(JSON.stringify(line)))).toEqual([]);
  }
}

/** Runs a test with a broker of that config, and looks after it whether everything was given back. */
export async function withRig(toml: string, test: (rig: Rig) => Promise<void>): Promise<void> {
  const rig = await Rig.of(toml);
  await test(rig);
  await rig.end();
}
