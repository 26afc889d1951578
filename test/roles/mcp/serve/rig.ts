// A broker's daemon with a provider that does what the test says and a person who approves, and a front before it: in this
// process, with time of the test's own, or as the real program. Clients are the official library's.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { type Caller, connect } from "../../../../src/client/caller.ts";
import { type Effects, REAL_EFFECTS } from "../../../../src/client/effects.ts";
import type { Handler, Request } from "../../../../src/client/jobs.ts";
import { type Provider, provide, type ToolDefinition } from "../../../../src/client/provider.ts";
import { type RunningHttp, serveOverHttp } from "../../../../src/roles/mcp/serve/http_front.ts";
import { LineTransport } from "../../../../src/roles/mcp/serve/lines.ts";
import { type RunningFront, serveOverStdio } from "../../../../src/roles/mcp/serve/stdio_front.ts";
import type { ToolResponse } from "../../../../src/wire/message.ts";
import { callgate, Daemon, onCleanUp, Place } from "../../../daemon/daemon.ts";

const ALL = 'taint_max = "restricted"\ntaint_untrusted = true\n';

/** `grants`: more of them, in place of those that let everything through. */
export function configOf(grants = GRANTS): string {
  return `
allow_same_user = true
[daemon]
sockets = "run"
state = "state"
[roles.agent]
anyone = true
[roles.operator]
anyone = true
operator = true
[roles.files]
anyone = true
provides = ["srv."]
class_max = "restricted"
[tools.echo]
role = "files"
effect = "read"
description = "Says it again."
[tools.write]
role = "files"
effect = "write"
description = "Writes it down."
[tools.secret]
role = "files"
effect = "read"
description = "Nobody's."
[[grants]]
id = "operates"
role = "operator"
tools = ["callgate.*"]
effect = "allow"
${ALL}
[[grants]]
id = "announces"
role = "files"
tools = ["callgate.tools.announce"]
effect = "allow"
${ALL}
[[grants]]
id = "front"
role = "agent"
tools = ["callgate.tools.list", "callgate.calls.why", "callgate.calls.cancel"]
effect = "allow"
${ALL}
${grants}`;
}

export function grant(id: string, effect: "allow" | "ask" | "deny", tool: string, more = ""): string {
  return `[[grants]]\nid = "${id}"\nrole = "agent"\ntools = ["${tool}"]\neffect = "${effect}"\n${effect === "deny" ? "" : ALL}${more}\n`;
}

const GRANTS =
  grant("reads", "allow", "echo") + grant("writes", "ask", "write") + grant("served", "allow", "srv.*");

/** A provider's side of the calls: each waits until the test answers, unless the test said how all are. */
export class Served {
  readonly jobs: Request[] = [];
  answer: ((job: Request) => ReturnType<Handler>) | undefined;
  #waiting: { readonly count: number; readonly go: () => void }[] = [];

  readonly handle: Handler = (job) => {
    this.jobs.push(job);
    for (const one of this.#waiting.splice(0)) {
      if (this.jobs.length >= one.count) one.go();
      else this.#waiting.push(one);
    }
    if (this.answer === undefined) return new Promise<never>(() => undefined);
    return this.answer(job);
  };

  /** Resolves when so many calls have come. */
  async came(count: number): Promise<void> {
    if (this.jobs.length >= count) return;
    await new Promise<void>((go) => this.#waiting.push({ count, go }));
  }
}

export const HOLD_MS = 55_000;
export const TOKEN = "t".repeat(43);

/** Joins a client to a front over HTTP. */
export async function overHttp(client: Client, { url }: Pick<RunningHttp, "url">): Promise<Client> {
  const requestInit = { headers: { Authorization: `Bearer ${TOKEN}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  onCleanUp(() => client.close());
  return client;
}

function placeOf(config: string): Place {
  const place = new Place("");
  writeFileSync(place.config, config, { mode: 0o644 });
  return place;
}

export class Scene {
  daemon: Daemon;
  readonly served = new Served();

  private constructor(daemon: Daemon) {
    this.daemon = daemon;
  }

  static async open(config = configOf(), announce?: readonly ToolDefinition[]): Promise<Scene> {
    const scene = new Scene(await Daemon.start(placeOf(config)));
    await scene.provide(announce);
    return scene;
  }

  /** The broker dies at once; `reopen` starts it again. */
  async die(): Promise<void> {
    await this.daemon.kill();
  }

  async reopen(): Promise<void> {
    this.daemon = await Daemon.start(this.daemon.place);
    await this.daemon.event("peer.connected", ({ role }) => role === "files");
  }

  async provide(announce?: readonly ToolDefinition[]): Promise<Provider> {
    const provider = await provide({ to: this.way("files"), handle: this.served.handle, announce });
    onCleanUp(() => provider.close({ drainMs: 0 }));
    return provider;
  }

  way(role: string): { readonly path: string } {
    return { path: this.daemon.socket(role) };
  }

  async caller(role: string): Promise<Caller> {
    const caller = await connect({ to: this.way(role) });
    onCleanUp(() => caller.close());
    return caller;
  }

  async ask(role: string, tool: string, args: object): Promise<ToolResponse> {
    const caller = await connect({ to: this.way(role) });
    const answer = await caller.call(tool, { ...args }).final;
    await caller.close();
    return answer;
  }

  /** An operator looks at what was announced, and takes it. */
  async accept(tool: string): Promise<void> {
    const diff = await this.ask("operator", "callgate.tools.diff", { tool });
    if (diff.status !== "result") throw new Error(JSON.stringify(diff));
    const { announced, pinned } = JSON.parse(diff.content) as Record<string, { digest: string } | null>;
    const { digest } = announced ?? pinned!;
    const done = await this.ask("operator", "callgate.tools.accept", { tool, digest });
    if (done.status !== "result") throw new Error(JSON.stringify(done));
  }

  /** Resolves when no connection of that role is left. */
  async untilGone(role: string): Promise<void> {
    for (;;) {
      const status = await this.ask("operator", "callgate.status", {});
      if (status.status !== "result") throw new Error(JSON.stringify(status));
      const { roles } = JSON.parse(status.content) as { roles: { role: string; connections: number }[] };
      if (roles.find((one) => one.role === role)?.connections === 0) return;
    }
  }

  /** The config, for the next reload. */
  rewrite(config: string): void {
    writeFileSync(this.daemon.place.config, config, { mode: 0o644 });
  }

  /** The question that waits. */
  async question(): Promise<Waiting> {
    for (;;) {
      const waiting = await this.#waiting();
      if (waiting !== undefined) return waiting;
    }
  }

  /** Resolves when none waits. */
  async noQuestion(): Promise<void> {
    while ((await this.#waiting()) !== undefined);
  }

  async #waiting(): Promise<Waiting | undefined> {
    const answer = await this.ask("operator", "callgate.approvals.list", {});
    if (answer.status !== "result") throw new Error(JSON.stringify(answer));
    const { approvals } = JSON.parse(answer.content) as { approvals: Waiting[] };
    return approvals.find(({ state }) => state === "pending");
  }

  async decide(how: "approve" | "refuse"): Promise<void> {
    const { approval } = await this.question();
    const shown = await this.ask("operator", "callgate.approvals.show", { approval });
    if (shown.status !== "result") throw new Error(JSON.stringify(shown));
    const { digest } = JSON.parse(shown.content) as { digest: string };
    const done = await this.ask("operator", `callgate.approvals.${how}`, { approval, digest });
    if (done.status !== "result") throw new Error(JSON.stringify(done));
  }

  /** Calls of the agent's tools at the broker, newest first. */
  async calls(): Promise<
    readonly {
      readonly tool: string;
      readonly session: string;
      readonly call: string;
      readonly status: string | null;
    }[]
  > {
    const answer = await this.ask("operator", "callgate.calls.list", { role: "agent" });
    if (answer.status !== "result") throw new Error(JSON.stringify(answer));
    return JSON.parse(answer.content).calls;
  }

  /** A front in this process, and a client before it. */
  async front(options: FrontSettings = {}): Promise<Fronted> {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const { holdMs = HOLD_MS, effects } = options;
    const started = await serveOverStdio({
      ...{ to: this.way("agent"), version: "0", holdMs, effects, input, output },
      say: () => undefined,
    });
    if (!started.ok) throw new Error(started.fault);
    onCleanUp(() => started.value.close());
    return { front: started.value, input, output, client: (client) => joinClient(client, output, input) };
  }

  /** A front over HTTP in this process. */
  async http(options: FrontSettings = {}): Promise<RunningHttp> {
    const tokenFile = join(this.daemon.place.directory, "mcp.token");
    writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
    const { holdMs = HOLD_MS, effects } = options;
    const started = await serveOverHttp({
      ...{ to: this.way("agent"), version: "0", holdMs, effects, tokenFile },
      listen: { address: "127.0.0.1", port: 0 },
      say: () => undefined,
    });
    if (!started.ok) throw new Error(started.fault);
    onCleanUp(() => started.value.close());
    return started.value;
  }

  /** The real program, and a client that has started it. */
  async program(client: Client, words: readonly string[] = []): Promise<StdioClientTransport> {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [callgate(), "mcp", "serve", "--socket", this.daemon.socket("agent"), ...words],
      stderr: "pipe",
    });
    await client.connect(transport);
    onCleanUp(() => client.close());
    return transport;
  }
}

interface Waiting {
  readonly approval: string;
  readonly state: string;
  readonly session: string;
}

export interface FrontSettings {
  readonly holdMs?: number;
  readonly effects?: Effects;
}

export interface Fronted {
  readonly front: RunningFront;
  readonly input: PassThrough;
  readonly output: PassThrough;
  client(client: Client): Promise<Client>;
}

async function joinClient(client: Client, input: PassThrough, output: PassThrough): Promise<Client> {
  await client.connect(new LineTransport(input, output));
  return client;
}

export function oldClient(options: ClientOptions = {}): Client {
  return new Client({ name: "old", version: "0" }, { ...options, versionNegotiation: { mode: "legacy" } });
}

export function newClient(options: ClientOptions = {}): Client {
  return new Client({ name: "new", version: "0" }, { ...options, versionNegotiation: { mode: "auto" } });
}

/** Timers of the front's that run when the test says so; calls and connections take real time. */
export class ManualTime {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly ms: number; readonly atMs: number; readonly run: () => void }>();

  readonly effects: Effects = {
    ...REAL_EFFECTS,
    monotonicMs: () => this.#nowMs,
    after: (ms, run) => {
      const timer = { ms, atMs: this.#nowMs + ms, run };
      this.#timers.add(timer);
      return () => this.#timers.delete(timer);
    },
  };

  get waiting(): number {
    return this.#timers.size;
  }

  /** Resolves when somebody waits for that long, and lets it pass. */
  async passed(ms: number): Promise<void> {
    while (![...this.#timers].some((timer) => timer.ms === ms))
      await new Promise((turned) => setImmediate(turned));
    this.pass(ms);
  }

  pass(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const next = [...this.#timers].sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
    }
    this.#nowMs = untilMs;
  }
}

export function textOf(result: unknown): string {
  const { content } = result as { readonly content: readonly { readonly text?: string }[] };
  return content.map(({ text }) => text ?? "").join("\n");
}
