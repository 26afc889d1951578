// `npm run bench`: callgate beside a raw relay in one run, as ratios. Two client processes (callers and
// provider) drive either; the runs alternate and the medians are compared, since machines are noisy.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { benchConnector, CONNECTOR_NAME } from "./connector.ts";
import { benchDurable, DURABLE_NAME } from "./durable.ts";
import { benchMcp, MCP_NAME } from "./mcp.ts";
import {
  drive,
  type Load,
  type Measured,
  measureRelay,
  median,
  ready,
  startDaemon,
  stop,
  writeConfig,
} from "./processes.ts";

interface Scenario extends Load {
  readonly name: string;
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

/** With calls kept in memory: what the disk costs is a scenario of its own. */
async function measureCallgate(directory: string, load: Load): Promise<Measured> {
  const daemon = startDaemon(await writeConfig(directory, "memory"));
  try {
    await ready(daemon, /daemon\.ready/);
    return await drive(join(directory, "sockets"), load);
  } finally {
    await stop(daemon);
    await rm(join(directory, "state"), { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const directory = await mkdtemp(join(process.env["BENCH_DIR"] ?? tmpdir(), "callgate-bench-"));
  const only = process.argv[2] ?? "";
  try {
    for (const scenario of SCENARIOS.filter(({ name }) => name.includes(only))) {
      const relay: Measured[] = [];
      const callgate: Measured[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        relay.push(await measureRelay(directory, scenario));
        callgate.push(await measureCallgate(directory, scenario));
      }
      report(scenario, relay, callgate);
    }
    if (DURABLE_NAME.includes(only)) await benchDurable(directory, ROUNDS);
    if (CONNECTOR_NAME.includes(only)) await benchConnector(directory, ROUNDS);
    if (MCP_NAME.includes(only)) await benchMcp(directory, ROUNDS);
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
