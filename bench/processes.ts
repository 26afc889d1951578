// The processes of the bench: callgate or the raw relay in the middle, callers and a provider beside it.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** What the callers of one run saw. */
export interface Measured {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  readonly wrong: number;
}

export interface Load {
  readonly connections: number;
  readonly depth: number;
  readonly calls: number;
  readonly contentBytes: number;
}

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const TSX = ["--import", "tsx"];
/** Call ids of what is measured are above those of warming up. */
const MEASURED_FROM = 10_000_000;
const WARM_CALLS_MAX = 20_000;

/** `record`: of the tool that is called. The state directory is `DIRECTORY/state`. */
export async function writeConfig(directory: string, record: "durable" | "memory"): Promise<string> {
  const path = join(directory, `${record}.toml`);
  await writeFile(path, `${CONFIG}\n[tools.read_file]\nrecord = "${record}"\n${TOOL}`);
  return path;
}

const CONFIG = `
[daemon]
sockets = "sockets"
state = "state"
[roles.agent]
anyone = true
connections = 128
[roles.agent.limits]
calls_per_second = 1000000
[roles.files]
anyone = true
[[grants]]
id = "reads"
role = "agent"
tools = ["read_file"]
effect = "allow"
taint_max = "confidential"
taint_untrusted = false
`;
const TOOL = `
role = "files"
effect = "read"
class = "internal"
untrusted = false
schema = { type = "object", properties = { path = { type = "string" } }, required = ["path"], additionalProperties = false }
`;

export function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  return spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
}

export function startProgram(
  name: string,
  args: readonly (string | number)[],
  env: NodeJS.ProcessEnv = {},
): ChildProcess {
  return start([...TSX, here(name), ...args.map(String)], env);
}

/** The daemon, compiled where it was; `node`: before its script. */
export function startDaemon(config: string, node: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const compiled = here("../dist/bin/callgate.js");
  const program = existsSync(compiled) ? [compiled] : [...TSX, here("../bin/callgate.ts")];
  return start([...node, ...program, "serve", "--config", config], env);
}

export async function ready(child: ChildProcess, line: RegExp): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.once("exit", () => reject(new Error("a process of the bench ended early")));
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on("line", (text) => line.test(text) && resolve());
  });
}

export async function stop(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}

/** Warms up, tells so, and measures; whatever is in the middle is ready and listens in `sockets`. */
export async function drive(
  sockets: string,
  load: Load,
  warm: () => void = () => undefined,
): Promise<Measured> {
  const provider = startProgram("provider.ts", [join(sockets, "files.sock"), load.contentBytes]);
  try {
    await ready(provider, /^ready/);
    await callers(sockets, load, Math.min(load.calls / 4, WARM_CALLS_MAX), 0);
    warm();
    return await callers(sockets, load, load.calls, MEASURED_FROM);
  } finally {
    await stop(provider);
  }
}

async function callers(
  sockets: string,
  { connections, depth }: Load,
  calls: number,
  first: number,
): Promise<Measured> {
  const child = startProgram("load.ts", [join(sockets, "agent.sock"), connections, depth, calls, first]);
  return JSON.parse(await outputOf(child)) as Measured;
}

/** All that it prints until it ends. */
export async function outputOf(child: ChildProcess): Promise<string> {
  let out = "";
  child.stdout?.on("data", (chunk) => {
    out += String(chunk);
  });
  await once(child, "close");
  return out;
}

/** One run against a raw relay that is started for it. */
export async function measureRelay(directory: string, load: Load): Promise<Measured> {
  const relay = startProgram("relay.ts", [directory]);
  try {
    await ready(relay, /^ready/);
    return await drive(directory, load);
  } finally {
    await stop(relay);
    await rm(join(directory, "files.sock"), { force: true });
    await rm(join(directory, "agent.sock"), { force: true });
  }
}

export function median(of: readonly number[]): number {
  const sorted = [...of].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
