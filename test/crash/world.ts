// A daemon that can be killed at a numbered point and started again on what it left, with a provider that
// counts what runs, and everybody else who takes part in a call.

import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { transformSync } from "esbuild";
import { expect } from "vitest";
import type { ToolResponse } from "../../src/wire/message.ts";
import { words } from "../broker/rig_peer.ts";
import { Daemon, Place } from "../daemon/daemon.ts";
import { type Answer, CrashPeer, type Served } from "./peer.ts";
import type { Order, Passed } from "./points.ts";

/** Everybody here is the same user: the tests of who may do what are elsewhere. */
const CONFIG = `
allow_same_user = true
[daemon]
sockets = "run"
state = "state"
drain_timeout = "5s"
[roles.agent]
anyone = true
sessions = "opened"
taint_scope = "session"
[roles.agent.limits]
questions_per_hour = 1000000
[roles.frontend]
anyone = true
[roles.tools]
anyone = true
[roles.operator]
anyone = true
operator = true
${tool("run", "write")}
${tool("quick", "write", 'timeout = "200ms"')}
${tool("secret", "read", 'class = "confidential"\nuntrusted = true')}
${tool("asked", "write")}
${tool("fleeting", "write")}
${tool("forbidden", "read")}
${grant("agent-runs", "agent", "allow", '"run", "quick", "secret", "callgate.calls.cancel"')}
${grant("agent-asks", "agent", "ask", '"asked"', 'refuse_for = "1s"')}
${grant("agent-asks-shortly", "agent", "ask", '"fleeting"', 'approval_ttl = "1s"')}
${grant("frontend-opens", "frontend", "allow", '"callgate.sessions.open"')}
${grant("operator-operates", "operator", "allow", '"callgate.*"')}
`;

function tool(name: string, effect: string, more = 'class = "public"\nuntrusted = false'): string {
  const floor = more.includes("untrusted") ? "" : 'class = "public"\nuntrusted = false\n';
  return `[tools.${name}]\nrole = "tools"\neffect = "${effect}"\nstore = false\n${floor}${more}\n`;
}

function grant(id: string, role: string, effect: string, tools: string, more = ""): string {
  return `[[grants]]\nid = "${id}"\nrole = "${role}"\ntools = [${tools}]\neffect = "${effect}"\ntaint_max = "restricted"\ntaint_untrusted = true\n${more}\n`;
}

const PRELOAD = `data:text/javascript,${encodeURIComponent(
  transformSync(readFileSync(join(import.meta.dirname, "points.ts"), "utf8"), { loader: "ts" }).code,
)}`;

const trusted = (content: string): ToolResponse => ({
  status: "result",
  content,
  class: "public",
  untrusted: false,
  truncated: false,
});

/** An answer in short words; what is none is nothing. */
export function wordsOf(answer: Answer | undefined): string {
  return answer === undefined ? "nothing" : words({ kind: "tool_response", body: answer.body });
}

/** The content of a built-in's answer. */
export function shown(answer: Answer): Readonly<Record<string, unknown>> {
  if (answer.body.status !== "result") throw new Error(`no result but ${wordsOf(answer)}`);
  return JSON.parse(answer.body.content) as Record<string, unknown>;
}

export class World {
  readonly place: Place;
  daemon: Daemon;
  agent!: CrashPeer;
  frontend!: CrashPeer;
  operator!: CrashPeer;
  /** How often each call reached the provider, by session and call. */
  readonly runs = new Map<string, number>();
  /** An armed daemon's store says that all is written and writes nothing. */
  lies = false;
  #given: (() => void)[] = [];
  #nextCall = 0n;

  static async start(): Promise<World> {
    const place = new Place("");
    writeFileSync(place.config, CONFIG, { mode: 0o644 });
    const world = new World(place, await startDaemon(place));
    await world.#connect();
    return world;
  }

  private constructor(place: Place, daemon: Daemon) {
    this.place = place;
    this.daemon = daemon;
  }

  /** Never used before; time-ordered, as clients choose them. */
  nextCall(): bigint {
    this.#nextCall += 1n;
    return this.#nextCall;
  }

  /** A built-in's answer to an operator, under an id of its own. */
  async operate(name: string, args: object): Promise<Readonly<Record<string, unknown>>> {
    return shown(await this.operator.ask(`callgate.${name}`, args, "operating", this.nextCall()).final);
  }

  runsOf(session: string, call: bigint): number {
    return this.runs.get(`agent:${session} ${call}`) ?? 0;
  }

  /** Resolves when the provider was given the call. */
  async given(session: string, call: bigint): Promise<void> {
    while (this.runsOf(session, call) === 0) await new Promise<void>((resolve) => this.#given.push(resolve));
  }

  /** From now on the daemon dies at the `at`-th point; Infinity: never, and they are counted. */
  async arm(at: number): Promise<void> {
    await this.#order({ armAt: Number.isFinite(at) ? at : 0, lies: this.lies });
  }

  /** How many points it has passed since; undefined: it died. */
  async disarm(): Promise<number | undefined> {
    return (await this.#order("disarm"))?.passed;
  }

  /** Whatever became of it, it is dead then, and another one runs on what it left; one before that dies while it starts. */
  async restart(startDiesAt?: number): Promise<void> {
    await this.daemon.kill();
    for (const peer of [this.agent, this.frontend, this.operator]) peer.close();
    if (startDiesAt !== undefined) {
      const dying = await startDaemon(this.place, { CRASH_AT: String(startDiesAt) });
      await dying.kill();
    }
    this.daemon = await startDaemon(this.place);
    await this.#connect();
  }

  /** Nothing ran twice, and the audit is whole. */
  async check(): Promise<void> {
    expect([...this.runs].filter(([, runs]) => runs > 1)).toEqual([]);
    expect(await this.operate("audit.verify", {})).toMatchObject({ ok: true, finding: null });
  }

  async #order(order: Order): Promise<Passed | undefined> {
    const { child } = this.daemon;
    const answered = once(child, "message").then(([told]) => told as Passed);
    if (child.connected) child.send(order, () => undefined); // it may be dying just now
    return Promise.race([answered, this.daemon.ended.then(() => undefined)]);
  }

  async #connect(): Promise<void> {
    const provided = this.#provide();
    const peers = ["agent", "frontend", "operator"].map((role) => CrashPeer.connect(this.place.socket(role)));
    await provided;
    [this.agent, this.frontend, this.operator] = (await Promise.all(peers)) as [
      CrashPeer,
      CrashPeer,
      CrashPeer,
    ];
    // The broker knows the provider's connection once it has taken one of later date.
    await this.operate("status", {});
  }

  async #provide(): Promise<void> {
    await CrashPeer.connect(this.place.socket("tools"), (peer, served) => this.#serve(peer, served));
  }

  #serve(peer: CrashPeer, { id, request }: Served): void {
    const name = `${request.session} ${request.call}`;
    this.runs.set(name, (this.runs.get(name) ?? 0) + 1);
    for (const given of this.#given.splice(0)) given();
    const { does } = JSON.parse(request.arguments) as { does: string };
    if (does === "fail")
      peer.answer(id, { status: "failed", message: "the disk of the provider is on fire" });
    else if (does === "vanish") {
      peer.close();
      void this.#provide().catch(() => undefined);
    } else if (does !== "nothing") {
      if (does === "parts") for (const part of ["one ", "two "]) peer.answer(id, trusted(part), false);
      peer.answer(id, trusted("three"));
    }
  }
}

/** Ready, or dead where it was to die. */
async function startDaemon(place: Place, env: NodeJS.ProcessEnv = {}): Promise<Daemon> {
  const node = ["--import", PRELOAD];
  const daemon = await Daemon.start(place, {
    node,
    env,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    ready: false,
  });
  const ready = daemon.event("daemon.ready");
  if ("CRASH_AT" in env) await Promise.race([ready.catch(() => undefined), daemon.ended]);
  else await ready;
  return daemon;
}
