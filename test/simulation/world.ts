// The broker in memory and the model, side by side: each step is done to both, and every answer that the
// broker gives is held against the one that the model expects. Seeded: the same seed, the same journal.

import { expect } from "vitest";
import { verifyStored } from "../../src/store/audit_walk.ts";
import { Rig } from "../broker/rig.ts";
import type { Reply, RigPeer, Served } from "../broker/rig_peer.ts";
import { type Random, randomOf } from "../seeded.ts";
import { type Asked, type Call, Model } from "./model.ts";
import { CALLERS, type Caller, TIMEOUT_MS, TOML, TOOLS, type Tool, UNTRUSTED } from "./policies.ts";

interface Tracked {
  readonly asked: Asked;
  readonly reply: Reply;
  readonly peer: RigPeer;
  readonly what: string;
}

interface Requested {
  readonly role: Caller;
  readonly tool: Tool;
  readonly session: string;
  readonly call: bigint;
  readonly args: string;
}

interface Listed {
  readonly approval: string;
  readonly role: string;
  readonly session: string;
  readonly call: string;
}

const SESSIONS = 2;
const CALL_IDS = 40;
const AMOUNTS = 3;

export class World {
  readonly journal: string[] = [];
  readonly counts: Record<string, number> = {};
  readonly #rig: Rig;
  readonly #model: Model;
  readonly #random: Random;
  readonly #callers = new Map<Caller, RigPeer>();
  #operator!: RigPeer;
  #provider: RigPeer | undefined;
  #tracked: Tracked[] = [];

  static async of(seed: number): Promise<World> {
    const rig = await Rig.of(TOML.open);
    return new World(rig, randomOf(seed));
  }

  private constructor(rig: Rig, random: Random) {
    this.#rig = rig;
    this.#random = random;
    this.#model = new Model(rig.clock.nowMs(), TIMEOUT_MS);
    this.#connect();
  }

  #connect(): void {
    for (const role of CALLERS) this.#callers.set(role, this.#rig.peer(role));
    this.#operator = this.#rig.peer("operator");
    this.#provider = this.#rig.peer("files");
    this.#model.providers = 1;
  }

  async step(): Promise<void> {
    const choice = this.#random(100);
    if (choice < 42) await this.#ask();
    else if (choice < 66) await this.#answer();
    else if (choice < 74) await this.#approve();
    else if (choice < 79) await this.#refuse();
    else if (choice < 83) await this.#cancel();
    else if (choice < 86) await this.#loseProvider();
    else if (choice < 88) await this.#loseCaller();
    else if (choice < 90) await this.#reload();
    else if (choice < 96) await this.#pass();
    else await this.#crash();
    this.#compare();
  }

  #note(what: string): void {
    this.journal.push(what);
    const kind = what.split(" ")[0] ?? "";
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
  }

  /** A request at random: mostly new, sometimes one that was asked before, sometimes with other bytes. */
  #request(): Requested {
    const role = CALLERS[this.#random(CALLERS.length)] ?? "agent";
    const tool = TOOLS[this.#random(TOOLS.length)] ?? "free";
    const session = `s${this.#random(SESSIONS)}`;
    const call = BigInt(this.#random(CALL_IDS) + 1);
    const amount = this.#random(AMOUNTS);
    const args = this.#random(8) === 0 ? `{"CANARY": ${amount}}` : `{"CANARY":${amount}}`;
    return { role, tool, session, call, args };
  }

  #send({ role, tool, session, call, args }: Requested): [Reply, RigPeer, string] {
    const peer = this.#callers.get(role) as RigPeer;
    const what = `ask ${role}:${session} ${call} ${tool} ${args}`;
    this.#note(what);
    return [peer.ask(tool, args, { session, call }), peer, what];
  }

  async #ask(): Promise<void> {
    const request = this.#request();
    const [reply, peer, what] = this.#send(request);
    await this.#rig.settle();
    const { role, session, call, tool, args } = request;
    const asked = this.#model.ask(role, session, call, tool, args);
    this.#tracked.push({ asked, reply, peer, what });
  }

  /** What the provider was asked and has not answered; what ended meanwhile is out of its hands. */
  #served(): readonly [Served, Call][] {
    const requests = this.#provider?.requests ?? [];
    const running = new Map(this.#model.running.map((call) => [call.name, call]));
    const served: [Served, Call][] = [];
    for (const request of requests) {
      const call = running.get(`${request.body.session} ${request.body.call}`);
      if (call !== undefined) served.push([request, call]);
    }
    return served;
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from.length === 0 ? undefined : from[this.#random(from.length)];
  }

  /** Lets the provider answer one call; the words that its askers must hear. */
  #reply(): [Call, string] | undefined {
    const picked = this.#pick(this.#served());
    if (picked === undefined) return undefined;
    const [request, call] = picked;
    this.#provider?.requests.splice(this.#provider.requests.indexOf(request), 1);
    expect(request.body.arguments).toBe(call.args);
    if (this.#random(9) === 0) {
      this.#note(`fail ${call.name}`);
      request.fail("CANARY-failure");
      return [call, "failed provider"];
    }
    this.#note(`answer ${call.name}`);
    const content = `CANARY-${call.role}-${call.session}-${call.call}`;
    request.result(content);
    return [call, `result public${UNTRUSTED.has(call.tool) ? " untrusted" : ""} ${content}`];
  }

  async #answer(): Promise<void> {
    const replied = this.#reply();
    if (replied === undefined) return;
    await this.#rig.settle();
    this.#model.answered(...replied);
  }

  /** The open questions as the operator sees them are those of the model. */
  async #questions(): Promise<readonly Listed[]> {
    const listed = this.#operator.ask("callgate.approvals.list", {});
    await this.#rig.settle();
    const { approvals } = listed.json as { approvals: readonly Listed[] };
    const names = approvals.map(({ role, session, call }) => `${role}:${session} ${call}`);
    expect(names.sort()).toEqual(this.#model.open.map(({ name }) => name).sort());
    return approvals;
  }

  async #question(): Promise<[Listed, Call] | undefined> {
    const listed = this.#pick(await this.#questions());
    const call = this.#model.open.find(
      ({ name }) => name === `${listed?.role}:${listed?.session} ${listed?.call}`,
    );
    return listed === undefined || call === undefined ? undefined : [listed, call];
  }

  async #digest(approval: string): Promise<unknown> {
    const shown = this.#operator.ask("callgate.approvals.show", { approval });
    await this.#rig.settle();
    return shown.json["digest"];
  }

  async #approve(): Promise<void> {
    const question = await this.#question();
    if (question === undefined) return;
    const [{ approval }, call] = question;
    this.#note(`approve ${call.name}`);
    const digest = await this.#digest(approval);
    const told = this.#operator.ask("callgate.approvals.approve", { approval, digest });
    await this.#rig.settle();
    expect(told.end.split(" {")[0]).toMatch(this.#model.approve(call));
  }

  async #refuse(): Promise<void> {
    const question = await this.#question();
    if (question === undefined) return;
    const [{ approval }, call] = question;
    this.#note(`refuse ${call.name}`);
    const told = this.#operator.ask("callgate.approvals.refuse", { approval });
    await this.#rig.settle();
    expect(told.end).toMatch(this.#model.refuse(call));
  }

  async #cancel(): Promise<void> {
    const { role, session, call } = this.#request();
    const name = `${role}:${session} ${call}`;
    this.#note(`cancel ${name}`);
    const told = this.#callers.get(role)?.ask("callgate.calls.cancel", { session, call: String(call) });
    await this.#rig.settle();
    expect(String(told?.json["cancelled"])).toBe(this.#model.cancel(name));
  }

  async #loseProvider(): Promise<void> {
    if (this.#provider === undefined) {
      this.#note("provider");
      this.#provider = this.#rig.peer("files");
      this.#model.providers = 1;
      return this.#rig.settle();
    }
    this.#note("lose");
    this.#provider.reset();
    this.#provider = undefined;
    await this.#rig.settle();
    this.#model.providers = 0;
    this.#model.lost(this.#model.running.filter((call) => !this.#follows(call)));
  }

  #follows(call: Call): boolean {
    return this.#model.running.some((one) => one.followers.includes(call));
  }

  async #loseCaller(): Promise<void> {
    const role = CALLERS[this.#random(CALLERS.length)] ?? "agent";
    this.#note(`gone ${role}`);
    const peer = this.#callers.get(role);
    peer?.reset();
    await this.#rig.settle();
    this.#model.gone(new Set(this.#tracked.filter((one) => one.peer === peer).map(({ asked }) => asked)));
    this.#tracked = this.#tracked.filter((one) => one.peer !== peer);
    this.#callers.set(role, this.#rig.peer(role));
  }

  async #reload(): Promise<void> {
    this.#model.policy = this.#model.policy === "open" ? "strict" : "open";
    this.#note(`reload ${this.#model.policy}`);
    await this.#rig.reloadWith(TOML[this.#model.policy]);
  }

  async #pass(): Promise<void> {
    const ms = this.#random(10) === 0 ? 3_600_000 : this.#random(200_000);
    this.#note(`pass ${ms}`);
    await this.#rig.pass(ms);
    this.#model.pass(ms);
  }

  /** kill -9, at rest or with something not written yet: what was not written never was. */
  async #crash(): Promise<void> {
    const { store } = this.#rig;
    const choice = this.#random(4);
    const written = this.#random(2);
    this.#note(`crash ${choice} ${written}`);
    store.mode = "held";
    if (choice === 1) await this.#crashAsking(written);
    if (choice === 2) await this.#crashAnswering(written);
    if (choice === 3) await this.#crashApproving(written);
    this.#compare();
    this.#tracked = [];
    await this.#rig.restart(TOML[this.#model.policy]);
    this.#model.crash();
    this.#connect();
    await this.#rig.settle();
    await this.#questions();
  }

  async #crashAsking(written: number): Promise<void> {
    const request = this.#request();
    const [reply, peer, what] = this.#send(request);
    await this.#rig.settle();
    if (written === 0) return;
    await this.#rig.releaseAll();
    const { role, session, call, tool, args } = request;
    this.#tracked.push({ asked: this.#model.ask(role, session, call, tool, args), reply, peer, what });
  }

  async #crashAnswering(written: number): Promise<void> {
    const replied = this.#reply();
    if (replied === undefined) return;
    await this.#rig.settle();
    if (written === 0) return;
    await this.#rig.releaseAll();
    this.#model.answered(...replied);
  }

  async #crashApproving(written: number): Promise<void> {
    this.#rig.store.mode = "at_once";
    const question = await this.#question();
    if (question === undefined) return;
    const [{ approval }, call] = question;
    const digest = await this.#digest(approval);
    this.#rig.store.mode = "held";
    this.#note(`approve ${call.name}`);
    this.#operator.ask("callgate.approvals.approve", { approval, digest });
    await this.#rig.settle();
    this.#rig.store.release(1); // the approve call's own intent, and nothing of what it decides
    await this.#rig.settle();
    if (written === 0) return;
    await this.#rig.releaseAll();
    this.#model.approve(call);
  }

  #compare(): void {
    const wrong: string[] = [];
    const open: Tracked[] = [];
    for (const one of this.#tracked) {
      const seen = one.reply.seen.join(", ");
      const expected = one.asked.expected.join(", ");
      if (seen !== expected) wrong.push(`${one.what}: heard [${seen}], expected [${expected}]`);
      if (one.reply.finals === 0) open.push(one);
      else this.#note(`heard ${one.what}: ${seen}`);
    }
    this.#tracked = open;
    if (wrong.length > 0)
      throw new Error(`${wrong.join("\n")}\nafter\n${this.journal.slice(-30).join("\n")}`);
  }

  async end(): Promise<void> {
    this.#note(`head ${this.#rig.store.audit.head().hash}`);
    const { audit } = this.#rig.store;
    const verified = await verifyStored(audit, {
      checkpoint: audit.head(),
      pause: async () => undefined,
      alone: true,
    });
    expect(verified.finding).toBeUndefined();
    await this.#rig.end();
  }
}
