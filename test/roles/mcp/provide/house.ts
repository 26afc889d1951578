// A broker, an MCP server behind it and the role between them; an agent and an operator. The broker and the server are
// processes of their own, the role is one too where a test says so.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, watch } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Caller, connect } from "../../../../src/client/caller.ts";
import { REAL_EFFECTS } from "../../../../src/client/effects.ts";
import {
  type McpProvider,
  type McpProviderOptions,
  provideMcp,
} from "../../../../src/roles/mcp/provide/mcp_provider.ts";
import { commandSource } from "../../../../src/roles/mcp/provide/server_source.ts";
import type { ToolResponse } from "../../../../src/wire/message.ts";
import { callgate, Daemon, onCleanUp, Place } from "../../../daemon/daemon.ts";
import { type Found, processesWith } from "./processes.ts";

export const ROUGH = fileURLToPath(new URL("rough_server.mjs", import.meta.url));

export const MODERN = fileURLToPath(new URL("modern_server.mjs", import.meta.url));

/** The program of an npm package. */
export function program(name: string): string {
  return fileURLToPath(new URL(`../../../../node_modules/${name}/dist/index.js`, import.meta.url));
}

const grant = (id: string, role: string, tools: string) => `
[[grants]]
id = "${id}"
role = "${role}"
tools = ${tools}
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;

const ROUGH_TOOLS =
  "echo die large flood progress wait wrong_id garbage fail ask_back change odd env exact".split(" ");

/** `named`: tools that the config names, which are in service as soon as they are announced. */
export function houseConfig(named: readonly string[] = ROUGH_TOOLS): string {
  const tools = named.map(
    (name) => `
[tools."mcp.${name}"]
role = "server"
effect = "read"
max_result_bytes = 16777216
on_oversize = "fail"
timeout = "60s"
`,
  );
  return `
allow_same_user = true
[roles.agent]
anyone = true
[roles.operator]
anyone = true
operator = true
[roles.server]
anyone = true
connections = 1
provides = ["mcp."]
${tools.join("")}
${grant("announce", "server", '["callgate.tools.announce"]')}
${grant("use", "agent", '["mcp.*", "callgate.tools.list", "callgate.calls.cancel"]')}
${grant("operate", "operator", '["callgate.*"]')}`;
}

export interface Asked {
  readonly name: string;
  readonly description: string | null;
  readonly in_service: boolean;
  readonly schema: unknown;
  readonly annotations?: unknown;
}

export interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Descriptors that it inherits. */
  readonly passed?: readonly number[];
  /** Instead of the role's. */
  readonly socket?: string;
  readonly uid?: number;
}

export class House {
  readonly broker: Daemon;
  readonly agent: Caller;
  readonly operator: Caller;
  /** The role's log. */
  readonly said: string[] = [];
  #waiting: (() => void)[] = [];

  private constructor(broker: Daemon, agent: Caller, operator: Caller) {
    this.broker = broker;
    this.agent = agent;
    this.operator = operator;
  }

  static async build(config = houseConfig()): Promise<House> {
    const [head = "", ...rest] = config.split("\n[roles.agent]");
    // A key of the config's own stands before its first table.
    const place = new Place("");
    place.write(["", ...rest].join("\n[roles.agent]"));
    const { readFileSync: read, writeFileSync: write } = await import("node:fs");
    write(place.config, `${head.trim()}\n${read(place.config, "utf8")}`);
    const broker = await Daemon.start(place);
    const agent = await connect({ to: { path: broker.socket("agent") } });
    const operator = await connect({ to: { path: broker.socket("operator") } });
    onCleanUp(() => Promise.all([agent.close(), operator.close()]));
    return new House(broker, agent, operator);
  }

  get directory(): string {
    return this.broker.place.directory;
  }

  get notes(): string {
    return join(this.directory, "notes");
  }

  /** The role within this process, over a server that runs as a child. */
  async provide(
    args: readonly string[] = [ROUGH, "--notes", this.notes],
    options: Partial<McpProviderOptions> = {},
  ): Promise<McpProvider> {
    const command = { command: process.execPath, args, env: { PATH: process.env["PATH"] ?? "" } };
    const provided = await provideMcp({
      to: { path: this.broker.socket("server") },
      source: (effects) => commandSource(command, effects),
      ...{ prefix: "mcp.", version: "0", concurrency: 64, uncheckedSchemas: false },
      ...{ idleMs: 30_000, totalMs: 60_000, startMs: 10_000 },
      say: (line) => this.#heard(line),
      // A start again comes soon.
      effects: { after: (ms, run) => REAL_EFFECTS.after(ms / 20, run) },
      ...options,
    });
    if (!provided.ok) throw new Error(provided.fault);
    onCleanUp(() => provided.value.close());
    return provided.value;
  }

  /** `callgate mcp provide` as a process. */
  run(words: readonly string[], { env = {}, passed = [], socket, uid }: RunOptions = {}): ChildProcess {
    const to = socket ?? this.broker.socket("server");
    const args = ["mcp", "provide", "--socket", to, "--prefix", "mcp.", ...words];
    const child = spawn(process.execPath, [callgate(), ...args], {
      stdio: ["ignore", "ignore", "pipe", ...passed],
      env: { ...process.env, NODE_OPTIONS: "", ...env },
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    onCleanUp(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    });
    createInterface({ input: child.stderr! }).on("line", (line) => this.#heard(line));
    return child;
  }

  #heard(line: string): void {
    this.said.push(line);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** The first line of the role's log at or after `from` that matches, come or to come; its place. */
  async hears(pattern: RegExp, from = 0): Promise<number> {
    for (;;) {
      const at = this.said.findIndex((line, index) => index >= from && pattern.test(line));
      if (at >= 0) return at;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  async call(tool: string, args: string | Readonly<Record<string, unknown>> = {}): Promise<ToolResponse> {
    return this.agent.call(`mcp.${tool}`, args).final;
  }

  /** What the server gave; the call must have a result. */
  async result(tool: string, args: string | Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    const answer = await this.call(tool, args);
    if (answer.status !== "result") throw new Error(JSON.stringify(answer, (_, one) => String(one)));
    return JSON.parse(answer.content);
  }

  /** The text of a result's first block. */
  async text(tool: string, args: string | Readonly<Record<string, unknown>> = {}): Promise<string> {
    const { content } = (await this.result(tool, args)) as { readonly content: readonly { text: string }[] };
    return content[0]?.text ?? "";
  }

  async tools(who: Caller = this.agent): Promise<readonly Asked[]> {
    const answer = await who.call("callgate.tools.list", { prefix: "mcp." }).final;
    if (answer.status !== "result") throw new Error(answer.status);
    return (JSON.parse(answer.content) as { readonly tools: readonly Asked[] }).tools;
  }

  async accept(tool: string): Promise<void> {
    const shown = await this.operator.call("callgate.tools.diff", { tool }).final;
    if (shown.status !== "result") throw new Error(shown.status);
    const { announced, pinned } = JSON.parse(shown.content) as Readonly<
      Record<string, { digest: string } | null>
    >;
    const digest = (announced ?? pinned)?.digest;
    const accepted = await this.operator.call("callgate.tools.accept", { tool, digest }).final;
    if (accepted.status !== "result") throw new Error(JSON.stringify(accepted, (_, one) => String(one)));
  }

  /** Processes that the rough server started and its own, as far as they are there. */
  serverProcesses(): readonly Found[] {
    const isTheirs = ({ words }: Found) => words[0] === process.execPath && !words.includes("provide");
    return processesWith(this.notes).filter(isTheirs);
  }

  noted(): readonly string[] {
    return existsSync(this.notes) ? readFileSync(this.notes, "utf8").split("\n").slice(0, -1) : [];
  }

  /** Resolves when the server has noted a line that matches, with it. */
  async notesLine(pattern: RegExp): Promise<string> {
    const watcher = watch(this.directory);
    try {
      for (;;) {
        const found = this.noted().find((line) => pattern.test(line));
        if (found !== undefined) return found;
        await once(watcher, "change");
      }
    } finally {
      watcher.close();
    }
  }
}
