// `npx tsx bench/start.ts [CONFIG]`: how long the compiled daemon takes from spawn to ready, and what it holds at
// rest. Medians of seven; wants `npm run build` first.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROUNDS = 7;
const AIM_MS = 300;
const AIM_MB = 90;
const BIN = fileURLToPath(new URL("../dist/bin/callgate.js", import.meta.url));

const PLAIN = `
[daemon]
sockets = "run"
state = "state"
[roles.agent]
anyone = true
`;
const CONDITION = `
[tools.read_file]
role = "agent"
schema = { type = "object", properties = { path = { type = "string" } }, additionalProperties = false }
[[grants]]
id = "reads"
role = "agent"
tools = ["read_file"]
effect = "allow"
when = 'under(args.path, "/srv")'
taint_max = "internal"
taint_untrusted = false
`;

async function ready(child: ChildProcess): Promise<void> {
  if (child.stdout === null) throw new Error("the daemon's output is not read");
  for await (const line of createInterface({ input: child.stdout }))
    if (line.includes('"daemon.ready"')) return;
  throw new Error("the daemon ended before it was ready; is it built?");
}

function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/** Time on a processor, which other work on the machine does not lengthen. */
function processorMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

interface Started {
  readonly ms: number;
  readonly processorMs: number;
  readonly mb: number;
}

async function start(config: string): Promise<Started> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [BIN, "serve", "--config", config], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await ready(child);
  const ms = performance.now() - startedAt;
  const pid = child.pid ?? 0;
  const held = { processorMs: processorMs(pid), mb: residentMb(pid) };
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
  return { ms, ...held };
}

function median(of: readonly number[]): number {
  return [...of].sort((a, b) => a - b)[Math.floor(of.length / 2)] ?? 0;
}

async function measure(name: string, config: string): Promise<void> {
  const rounds: Started[] = [];
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await start(config));
  const of = (value: (one: Started) => number) => Math.round(median(rounds.map(value)));
  const [ms, mb, busy] = [of((one) => one.ms), of((one) => one.mb), of((one) => one.processorMs)];
  process.stdout.write(
    `${name.padEnd(22)} ready after ${ms} ms (aim ${AIM_MS}; main thread ${busy} ms)   ${mb} MB at rest (aim ${AIM_MB})\n`,
  );
}

/** What the runtime takes by itself: tells a slow machine from a slow daemon. */
async function nodeAlone(): Promise<void> {
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const startedAt = performance.now();
    await once(spawn(process.execPath, ["-e", "0"], { stdio: "ignore" }), "exit");
    rounds.push(performance.now() - startedAt);
  }
  process.stdout.write(`${"node -e 0".padEnd(22)} ends after ${Math.round(median(rounds))} ms\n`);
}

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "callgate-start-"));
  const config = join(directory, "callgate.toml");
  try {
    await nodeAlone();
    writeFileSync(config, PLAIN);
    await measure("no condition", config);
    writeFileSync(config, PLAIN + CONDITION);
    await measure("one condition", config);
    const given = process.argv[2];
    if (given !== undefined) await measure(given, given);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

await main();
