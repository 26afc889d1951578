// The paths of the bench of MCP to one and the same server: directly, through callgate, and through the gateways that people
// use. A path is whatever must run for it, and how a client then reaches it. Processes are ended by their own ids.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { connect } from "../src/client/caller.ts";
import type { Reach } from "./mcp_wires.ts";

export interface Path {
  readonly name: string;
  /** A program of others': where it does not run it is left out. */
  readonly mayFail?: boolean;
  /** Runs what it needs, and has `use` make its calls. */
  with<T>(use: (reach: Reach) => Promise<T>): Promise<T>;
}

const SERVER = [process.execPath, fileURLToPath(new URL("mcp_server.mjs", import.meta.url))] as const;

export function directPath(): Path {
  return { name: "direct, stdio", with: (use) => use({ command: SERVER }) };
}

export interface GateOptions {
  /** For the name of the path. */
  readonly about: string;
  /** The compiled command: `dist/bin/callgate.js`. */
  readonly program: string;
  /** Everything of it is below; another for each path. */
  readonly directory: string;
  readonly record: "durable" | "memory";
  readonly over: "stdio" | "http";
}

const ALL = 'effect = "allow"\ntaint_max = "restricted"\ntaint_untrusted = true\n';
const config = (record: string) => `
allow_same_user = true
[daemon]
sockets = "run"
state = "state"
[roles.agent]
anyone = true
[roles.agent.limits]
calls_per_second = 1000000
[roles.operator]
anyone = true
operator = true
[roles.server]
anyone = true
connections = 1
provides = ["mcp."]
[tools."mcp.echo"]
role = "server"
effect = "read"
record = "${record}"
[[grants]]
id = "announces"
role = "server"
tools = ["callgate.tools.announce"]
${ALL}
[[grants]]
id = "operates"
role = "operator"
tools = ["callgate.*"]
${ALL}
[[grants]]
id = "uses"
role = "agent"
tools = ["mcp.*", "callgate.tools.list"]
${ALL}`;

/** Client, `mcp serve`, the broker, `mcp provide`, the server. */
export function gatePath(options: GateOptions): Path {
  return {
    name: options.about,
    with: async (use) => {
      const gate = new Gate(options);
      try {
        return await use(await gate.open());
      } finally {
        await gate.close();
      }
    },
  };
}

class Gate {
  readonly #options: GateOptions;
  readonly #started: ChildProcess[] = [];

  constructor(options: GateOptions) {
    this.#options = options;
  }

  async open(): Promise<Reach> {
    const { directory, record, over } = this.#options;
    const file = join(directory, "callgate.toml");
    await mkdir(directory, { recursive: true });
    await writeFile(file, config(record));
    await this.#start(this.#command("broker", ["serve", "--config", file]), /daemon\.ready/);
    const provide = ["mcp", "provide", ...this.#socket("server"), "--prefix", "mcp.", "--", ...SERVER];
    await this.#start(this.#command("provide", provide), /in service: 1 of 1/);
    await acceptEcho(this.#path("operator"));
    const serve = ["mcp", "serve", ...this.#socket("agent")];
    if (over === "stdio") return { command: this.#command("serve", serve) };
    const http = [...serve, "--http", "127.0.0.1:0", "--token-file", await tokenIn(directory)];
    const [, url = ""] = await this.#start(this.#command("serve", http), /serving MCP at (\S+)/);
    return { url, headers: { Authorization: `Bearer ${TOKEN}` } };
  }

  async close(): Promise<void> {
    for (const child of this.#started.reverse()) await end(child);
    await rm(this.#options.directory, { recursive: true, force: true });
  }

  #path(role: string): string {
    return join(this.#options.directory, "run", `${role}.sock`);
  }

  #socket(role: string): readonly string[] {
    return ["--socket", this.#path(role)];
  }

  /** `BENCH_PROFILE=DIRECTORY` leaves a profile of each program there. */
  #command(which: string, args: readonly string[]): readonly string[] {
    const profiles = process.env["BENCH_PROFILE"];
    const profiling = profiles === undefined ? [] : ["--cpu-prof", "--cpu-prof-dir", join(profiles, which)];
    return [process.execPath, ...profiling, this.#options.program, ...args];
  }

  async #start(command: readonly string[], line: RegExp): Promise<RegExpExecArray> {
    const child = startGroup(command);
    this.#started.push(child);
    return said(child, line);
  }
}

const TOKEN = "b".repeat(43);

async function tokenIn(directory: string): Promise<string> {
  const path = join(directory, "token");
  await writeFile(path, `${TOKEN}\n`, { mode: 0o600 });
  await chmod(path, 0o600);
  return path;
}

/** A client is told what the tool is once an operator has looked at it. */
async function acceptEcho(path: string): Promise<void> {
  const operator = await connect({ to: { path } });
  const ask = async (what: string, args: object) => {
    const answer = await operator.call(`callgate.tools.${what}`, JSON.stringify(args)).final;
    if (answer.status !== "result") throw new Error(`callgate.tools.${what}: ${answer.status}`);
    return JSON.parse(answer.content) as { readonly pinned: { readonly digest: string } };
  };
  const tool = "mcp.echo";
  const { pinned } = await ask("diff", { tool });
  await ask("accept", { tool, digest: pinned.digest });
  await operator.close();
}

const GATEWAYS = {
  "mcp-proxy": { version: "6.7.19", program: "dist/bin/mcp-proxy.mjs" },
  supergateway: { version: "4.0.0", program: "dist/index.js" },
} as const;

type Gateway = keyof typeof GATEWAYS;

export const GATEWAY_NAMES = Object.keys(GATEWAYS) as readonly Gateway[];

/** Puts the gateways into the directory; the fault is a sentence. They are no dependencies of ours, and run no scripts. */
export function installGateways(directory: string): string | undefined {
  const packages = GATEWAY_NAMES.map((name) => `${name}@${GATEWAYS[name].version}`);
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", directory, ...packages];
  try {
    execFileSync("npm", args, { stdio: "ignore" });
    return undefined;
  } catch {
    return `${packages.join(" and ")} can't be installed here: they are left out`;
  }
}

/** Over Streamable HTTP, with sessions, as they are without options but those. */
export function gatewayPath(name: Gateway, directory: string): Path {
  const { version, program } = GATEWAYS[name];
  const file = join(directory, "node_modules", name, program);
  return {
    name: `${name} ${version}, http`,
    mayFail: true,
    with: async (use) => {
      const port = await freePort();
      const child = startGroup([process.execPath, file, ...gatewayArguments(name, port)]);
      try {
        await listens(child, port);
        return await use({ url: `http://127.0.0.1:${port}/mcp`, headers: {} });
      } finally {
        await end(child);
      }
    },
  };
}

function gatewayArguments(name: Gateway, port: number): readonly string[] {
  if (name === "mcp-proxy")
    return ["--host", "127.0.0.1", "--port", `${port}`, "--server", "stream", "--", ...SERVER];
  const quiet = ["--logLevel", "none"]; // a line for every message would be a cost of its own
  return [
    "--stdio",
    SERVER.join(" "),
    "--outputTransport",
    "streamableHttp",
    "--stateful",
    "--port",
    `${port}`,
    ...quiet,
  ];
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

const TRY_EVERY_MS = 50;

/** Resolves when it takes connections. */
async function listens(child: ChildProcess, port: number): Promise<void> {
  for (const stream of [child.stdout, child.stderr]) stream?.resume();
  while (child.exitCode === null) {
    const answered = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
    if (answered) return;
    await new Promise((resolve) => setTimeout(resolve, TRY_EVERY_MS));
  }
  throw new Error("a gateway ended early");
}

/** In a group of its own, so that what it starts ends with it. */
function startGroup([command = "", ...args]: readonly string[]): ChildProcess {
  return spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
}

const SHOWN_LINES = 3;

/** The first line that matches; what it says is read on, or it would have to wait for us. */
function said(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  const last: string[] = [];
  return new Promise((resolve, reject) => {
    child.once("exit", () => reject(new Error(`a process of the bench ended early: ${last.join(" / ")}`)));
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        const found = pattern.exec(line);
        if (found !== null) resolve(found);
        last.push(line);
        if (last.length > SHOWN_LINES) last.shift();
      });
    }
  });
}

const GRACE_MS = 5000;

async function end(child: ChildProcess): Promise<void> {
  const exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
  if (exited === undefined) return;
  child.kill("SIGTERM");
  const late = setTimeout(() => signalGroup(child), GRACE_MS);
  await exited;
  clearTimeout(late);
  signalGroup(child);
}

function signalGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // nobody is left in it
  }
}
