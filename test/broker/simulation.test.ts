// Many callers, providers, retries, cancels, reloads and lost connections at random, with slow and
// failing commits, beside a small model that knows what each answer may be.

import { describe, expect, it } from "vitest";
import { randomOf } from "../seeded.ts";
import { allow, BASIC } from "./configs.ts";
import { policyOf, Rig } from "./rig.ts";
import type { Reply, RigPeer, Served } from "./rig_peer.ts";

const WORLD = `${BASIC}[roles.other]\nusers = ["agent"]\n${allow("other-uses", "other", '["free", "read", "callgate.calls.cancel"]')}`;
const FEWER = WORLD.replace('"free", "callgate.*"', '"callgate.*"');

interface Asked {
  readonly who: string;
  readonly name: string;
  readonly args: string;
  readonly reply: Reply;
  readonly peer: RigPeer;
}

/** What is known of the world outside: who was asked what, and what ran how often. */
class Model {
  readonly asked: Asked[] = [];
  readonly runs = new Map<string, number>();
  readonly argsOf = new Map<string, string>();

  ran(request: Served): void {
    const name = `${request.body.session} ${request.body.call}`;
    this.runs.set(name, (this.runs.get(name) ?? 0) + 1);
    this.argsOf.set(name, request.body.arguments);
  }

  /** What is wrong with an answer, if anything. */
  wrong({ who, name, args, reply, peer }: Asked): string | undefined {
    const at = `${who} ${name} ${args}`;
    if (reply.finals > 1) return `${at}: answered ${reply.finals} times`;
    if (reply.finals === 0) return peer.ended || peer.gone ? undefined : `${at}: never answered`;
    const { end } = reply;
    if (end.startsWith("result")) {
      const content = reply.seen.map((seen) => seen.split(" ").at(-1)).join("");
      if (content !== `CANARY-${who}-${name.replace(" ", "-")}12`)
        return `${at}: crossed or lost: ${content}`;
      if (this.runs.get(`${who}:${name}`) !== 1) return `${at}: ran ${this.runs.get(`${who}:${name}`)} times`;
      if (this.argsOf.get(`${who}:${name}`) !== args) return `${at}: ran with other arguments`;
      return undefined;
    }
    const known =
      /^(?:denied no_grant|failed (?:cancelled|conflict|no_provider|provider_lost|timeout|unavailable|outcome_unknown|provider)|error internal)$/;
    return known.test(end) ? undefined : `${at}: ${end}`;
  }
}

class World {
  readonly rig: Rig;
  readonly model = new Model();
  readonly #random: (below: number) => number;
  readonly callers: RigPeer[] = [];
  readonly providers: RigPeer[] = [];

  constructor(rig: Rig, seed: number) {
    this.rig = rig;
    this.#random = randomOf(seed);
    for (let i = 0; i < 3; i += 1) this.connect();
    this.provide();
  }

  roleOf(at: number): string {
    return at % 2 === 0 ? "agent" : "other";
  }

  connect(): void {
    this.callers.push(this.rig.peer(this.roleOf(this.callers.length)));
  }

  provide(): void {
    const peer = this.rig.peer("files");
    peer.serve = (request) => {
      if (request.body.tool.startsWith("callgate.")) return;
      this.model.ran(request);
      peer.requests.push(request);
    };
    this.providers.push(peer);
  }

  ask(): void {
    const at = this.#random(this.callers.length);
    const peer = this.callers[at] as RigPeer;
    const session = `s${this.#random(3)}`;
    const call = BigInt(this.#random(60) + 1);
    const args = `{"CANARY":${this.#random(4) === 0 ? 1 : 0}}`;
    const reply = peer.ask("free", args, { session, call });
    this.model.asked.push({ who: this.roleOf(at), name: `${session} ${call}`, args, reply, peer });
  }

  answer(): void {
    const peer = this.providers[this.#random(this.providers.length)] as RigPeer;
    if (peer.requests.length === 0) return;
    const [request] = peer.requests.splice(this.#random(peer.requests.length), 1);
    if (request === undefined) return;
    const [role, session] = request.body.session.split(":");
    const choice = this.#random(12);
    if (choice === 0) return request.fail("CANARY-failure");
    if (choice === 1) return request.answer({ status: "denied", reason: "no_grant" });
    request.part(`CANARY-${role}-${session}-${request.body.call}`);
    request.part("1");
    request.result("2");
  }

  async step(): Promise<void> {
    const choice = this.#random(100);
    if (choice < 45) this.ask();
    else if (choice < 80) this.answer();
    else if (choice < 84) this.store();
    else if (choice < 88) this.cancel();
    else if (choice < 90) this.lose();
    else if (choice < 92) this.rig.broker.reload(await policyOf(choice % 2 === 0 ? FEWER : WORLD));
    else if (choice < 94) await this.rig.pass(this.#random(20_000));
    else await this.rig.settle();
  }

  store(): void {
    const { store } = this.rig;
    const choice = this.#random(8);
    if (choice === 0) store.mode = "held";
    else if (choice === 1) store.refuse(this.#random(3));
    else if (choice === 2) store.release(this.#random(5));
    else if (choice === 3 && store.waiting === 0) store.mode = "full";
    else {
      store.mode = "at_once";
      store.release();
    }
  }

  cancel(): void {
    const at = this.#random(this.callers.length);
    this.callers[at]?.ask("callgate.calls.cancel", {
      session: `s${this.#random(3)}`,
      call: String(this.#random(60) + 1),
    });
  }

  lose(): void {
    const peers = this.#random(2) === 0 ? this.callers : this.providers;
    const at = this.#random(peers.length);
    const peer = peers[at] as RigPeer;
    if (this.#random(2) === 0) peer.reset();
    else peer.halfClose();
    if (peers === this.callers) peers[at] = this.rig.peer(this.roleOf(at));
    else this.provide();
  }
}

describe("a random world", () => {
  it.each(Array.from({ length: 12 }, (_, seed) => seed))(
    "loses, crosses and repeats no answer (seed %i)",
    async (seed) => {
      const rig = await Rig.of(WORLD);
      const world = new World(rig, seed * 7919 + 1);
      for (let i = 0; i < 400; i += 1) await world.step();
      rig.store.mode = "at_once";
      await rig.releaseAll();
      await rig.pass(3_600_000);
      const { model } = world;
      expect(model.asked.map((asked) => model.wrong(asked)).filter((wrong) => wrong !== undefined)).toEqual(
        [],
      );
      expect([...model.runs.values()].filter((runs) => runs > 1)).toEqual([]);
      expect(model.asked.filter(({ reply }) => reply.end.startsWith("result")).length).toBeGreaterThan(10);
      await rig.end();
    },
  );
});
