// `npm run bench`: callgate beside a raw relay in one run, as ratios. Two client processes (callers and
// provider) drive either; the runs alternate and the medians are compared, since machines are noisy.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

interface Scenario {
  readonly name: string;
  readonly connections: number;
  readonly depth: number;
  readonly calls: number;
  readonly contentBytes: number;
  /** Of the raw relay's calls per second: what is aimed at. */
  readonly aim?: number;
}

const SCENARIOS: readonly Scenario[] = [
  { name: "1 connection, 1 in flight", connections: 1, depth: 1, calls: 20_000, contentBytes: 64 },
  { name: "64 connections, 1 each", connections: 64, depth: 1, calls: 120_000, contentBytes: 64, aim: 0.5 },
  {
    name: "1 connection, 64 in flight",
    connections: 1,
    depth: 64,
    calls: 120_000,
    contentBytes: 64,
    aim: 0.3,
  },
  {
    name: "1 connection, 16 in flight, 64 KiB results",
    connections: 1,
    depth: 16,
    calls: 12_000,
    contentBytes: 65_536,
  },
];
const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);

interface Measured {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  readonly wrong: number;
}

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const TSX = ["--import", "tsx"];

const CONFIG = `
[daemon]
sockets = "sockets"
[roles.agent]
anyone = true
connections = 128
[roles.agent.limits]
calls_per_second = 1000000
[roles.files]
anyone = true
[tools.read_file]
role = "files"
effect = "read"
class = "internal"
untrusted = false
schema = { type = "object", properties = { path = { type = "string" } }, required = ["path"], additionalProperties = false }
[[grants]]
id = "reads"
role = "agent"
tools = ["read_file"]
effect = "allow"
taint_max = "confidential"
taint_untrusted = false
`;

async function ready(child: ChildProcess, line: RegExp): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.once("exit", () => reject(new Error("a process of the bench ended early")));
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on("line", (text) => line.test(text) && resolve());
  });
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** One run of one scenario against a relay or a broker that is started for it. */
async function measure(kind: "relay" | "callgate", scenario: Scenario, directory: string): Promise<Measured> {
  const compiled = here("../dist/bin/callgate.js");
  const broker = existsSync(compiled) ? [compiled] : [...TSX, here("../bin/callgate.ts")];
  const middle =
    kind === "relay"
      ? start([...TSX, here("relay.ts"), directory])
      : start([...broker, "serve", "--config", join(directory, "callgate.toml")]);
  const sockets = kind === "relay" ? directory : join(directory, "sockets");
  const children = [middle];
  try {
    await ready(middle, kind === "relay" ? /^ready/ : /daemon\.ready/);
    const provider = start([
      ...TSX,
      here("provider.ts"),
      join(sockets, "files.sock"),
      String(scenario.contentBytes),
    ]);
    children.push(provider);
    await ready(provider, /^ready/);
    await load(sockets, scenario, Math.min(scenario.calls / 4, 20_000), 0); // warm
    return await load(sockets, scenario, scenario.calls, 10_000_000);
  } finally {
    await Promise.all(children.map(stop));
    await rm(join(directory, "files.sock"), { force: true });
    await rm(join(directory, "agent.sock"), { force: true });
  }
}

async function load(
  sockets: string,
  { connections, depth }: Scenario,
  calls: number,
  first: number,
): Promise<Measured> {
  const args = [here("load.ts"), join(sockets, "agent.sock"), connections, depth, calls, first].map(String);
  const child = start([...TSX, ...args]);
  let out = "";
  child.stdout?.on("data", (chunk) => {
    out += String(chunk);
  });
  await once(child, "close");
  return JSON.parse(out) as Measured;
}

function median(of: readonly number[]): number {
  const sorted = [...of].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "callgate-bench-"));
  await writeFile(join(directory, "callgate.toml"), CONFIG);
  const only = process.argv[2];
  try {
    for (const scenario of SCENARIOS.filter(({ name }) => only === undefined || name.includes(only))) {
      const relay: Measured[] = [];
      const callgate: Measured[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        relay.push(await measure("relay", scenario, directory));
        callgate.push(await measure("callgate", scenario, directory));
      }
      report(scenario, relay, callgate);
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function report(scenario: Scenario, relay: readonly Measured[], callgate: readonly Measured[]): void {
  const rate = (all: readonly Measured[]) => median(all.map((one) => one.rate));
  const ratio = rate(callgate) / rate(relay);
  const wrong = callgate.reduce((sum, one) => sum + one.wrong, 0);
  const line = (name: string, all: readonly Measured[]) =>
    `  ${name.padEnd(9)} ${Math.round(rate(all)).toLocaleString("en").padStart(9)} calls/s   p50 ${median(all.map((one) => one.p50)).toFixed(3)} ms   p99 ${median(all.map((one) => one.p99)).toFixed(3)} ms`;
  const aim = scenario.aim === undefined ? "" : `   (aim ${scenario.aim})`;
  process.stdout.write(
    `${scenario.name}\n${line("raw relay", relay)}\n${line("callgate", callgate)}\n  ratio ${ratio.toFixed(2)}${aim}${wrong > 0 ? `   ${wrong} calls did not give a result!` : ""}\n\n`,
  );
}

await main();
