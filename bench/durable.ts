// What it costs that nothing is lost: durable calls beside those kept in memory, the raw relay, and what the
// same disk makes of the same bytes, in one run. Rounds alternate and medians are compared.

import { readFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { transformSync } from "esbuild";
import type { Observed } from "./observed.ts";
import {
  drive,
  type Load,
  type Measured,
  measureRelay,
  median,
  outputOf,
  ready,
  startDaemon,
  startProgram,
  stop,
  writeConfig,
} from "./processes.ts";

export const DURABLE_NAME = "durable, 1 connection, 64 in flight";
const IN_FLIGHT = 64;
const LOAD: Load = { connections: 1, depth: IN_FLIGHT, calls: 60_000, contentBytes: 200 };
/** Of what the disk makes of the same bytes. */
const AIM = 0.5;
const DELAY_MAX_MS = 20;
const IDLE_MS = 10_000;
/** What a daemon still does after it is ready: the collector tidies up once. */
const SETTLED_MS = 15_000;
const TICKS_PER_SECOND = 100;

const IN_MEMORY: Readonly<Record<number, string>> = { 16914836: "tmpfs", 2240043254: "ramfs" };
const NAMED: Readonly<Record<number, string>> = {
  61267: "ext4",
  1481003842: "xfs",
  2435016766: "btrfs",
  2035054128: "overlay",
};

/** The kind of file system; a flush to memory measures nothing. */
export function diskOf(directory: string): string {
  const { type } = statfsSync(directory);
  const inMemory = IN_MEMORY[type];
  if (inMemory !== undefined)
    throw new Error(`${directory} is on ${inMemory}, where a flush costs nothing: set BENCH_DIR to a disk`);
  return NAMED[type] ?? `a file system of type 0x${type.toString(16)}`;
}

const OBSERVED = `data:text/javascript,${encodeURIComponent(
  transformSync(readFileSync(new URL("observed.ts", import.meta.url), "utf8"), { loader: "ts" }).code,
)}`;

interface DaemonRun extends Measured, Observed {
  /** Processor time of the thread that runs the event loop, and of all others (the store's, the collector's), in microseconds a call. */
  readonly loopMicros: number;
  readonly otherMicros: number;
}

async function measureDaemon(directory: string, record: "durable" | "memory"): Promise<DaemonRun> {
  const report = join(directory, "report.json");
  const config = await writeConfig(directory, record);
  const profile = process.env["BENCH_PROFILE"];
  const profiling = profile === undefined ? [] : ["--cpu-prof", "--cpu-prof-dir", profile];
  const daemon = startDaemon(config, ["--import", OBSERVED, ...profiling], { BENCH_REPORT: report });
  try {
    await ready(daemon, /daemon\.ready/);
    const pid = daemon.pid!;
    let before = { loopMs: 0, allMs: 0 };
    const measured = await drive(join(directory, "sockets"), LOAD, () => {
      daemon.kill("SIGUSR2");
      before = spent(pid);
    });
    const after = spent(pid);
    await stop(daemon, "SIGTERM");
    const loopMs = after.loopMs - before.loopMs;
    const micros = (ms: number) => (ms * 1000) / LOAD.calls;
    return {
      ...measured,
      ...(JSON.parse(readFileSync(report, "utf8")) as Observed),
      loopMicros: micros(loopMs),
      otherMicros: micros(after.allMs - before.allMs - loopMs),
    };
  } finally {
    await stop(daemon);
    rmSync(join(directory, "state"), { recursive: true, force: true });
  }
}

async function measureDisk(directory: string, bytesPerCall: number): Promise<Measured> {
  const file = join(directory, "raw");
  const child = startProgram("disk.ts", [file, IN_FLIGHT, LOAD.calls, Math.round(bytesPerCall)]);
  return JSON.parse(await outputOf(child)) as Measured;
}

/** Processor time of a daemon that nobody asks anything, in milliseconds. */
async function measureIdle(directory: string): Promise<number> {
  const daemon = startDaemon(await writeConfig(directory, "durable"));
  try {
    await ready(daemon, /daemon\.ready/);
    await passed(SETTLED_MS);
    const before = processorMs(`${daemon.pid}`);
    await passed(IDLE_MS);
    return processorMs(`${daemon.pid}`) - before;
  } finally {
    await stop(daemon, "SIGTERM");
    rmSync(join(directory, "state"), { recursive: true, force: true });
  }
}

function passed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function spent(pid: number): { readonly loopMs: number; readonly allMs: number } {
  return { loopMs: processorMs(`${pid}/task/${pid}`), allMs: processorMs(`${pid}`) };
}

/** Of a process or a thread. */
export function processorMs(of: string): number {
  const fields = readFileSync(`/proc/${of}/stat`, "utf8").split(") ")[1]!.split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}

interface Round {
  readonly relay: Measured;
  readonly memory: DaemonRun;
  readonly durable: DaemonRun;
  readonly disk: Measured;
}

export async function benchDurable(directory: string, rounds: number): Promise<void> {
  const disk = diskOf(directory);
  const all: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const relay = await measureRelay(directory, LOAD);
    const memory = await measureDaemon(directory, "memory");
    const durable = await measureDaemon(directory, "durable");
    const bytes = durable.batchBytes / LOAD.calls;
    all.push({ relay, memory, durable, disk: await measureDisk(directory, bytes) });
  }
  report(disk, all);
  process.stdout.write(
    `  at rest: ${await measureIdle(directory)} ms of processor time in ${IDLE_MS / 1000} s\n\n`,
  );
}

function report(disk: string, rounds: readonly Round[]): void {
  const of = (which: keyof Round, what: "rate" | "p50" | "p99") =>
    median(rounds.map((round) => round[which][what]));
  const line = (name: string, which: keyof Round) =>
    `  ${name.padEnd(24)} ${Math.round(of(which, "rate")).toLocaleString("en").padStart(9)} calls/s   p50 ${of(which, "p50").toFixed(2)} ms   p99 ${of(which, "p99").toFixed(2)} ms\n`;
  const micros = (which: "memory" | "durable") =>
    (["loopMicros", "otherMicros"] as const)
      .map((what) => Math.round(median(rounds.map((round) => round[which][what]))))
      .join(" + ");
  const durable = (what: keyof Observed) => median(rounds.map((round) => round.durable[what]));
  const perCall = durable("batchBytes") / LOAD.calls;
  const perBatch = LOAD.calls / durable("batches");
  const added = (what: "p50" | "p99") => (of("durable", what) - of("relay", what)).toFixed(2);
  const ratio = of("durable", "rate") / of("disk", "rate");
  const worst = Math.max(...rounds.map((round) => round.durable.delayMax));
  const wrong = rounds.reduce((sum, round) => sum + round.durable.wrong + round.memory.wrong, 0);
  process.stdout.write(
    `${DURABLE_NAME} (state on ${disk})\n` +
      line("write + fdatasync alone", "disk") +
      line("raw relay, no disk", "relay") +
      line('callgate, record="memory"', "memory") +
      line("callgate, durable", "durable") +
      `  ratio to the disk ${ratio.toFixed(2)} (aim ${AIM}); added to the relay: p50 ${added("p50")} ms, p99 ${added("p99")} ms\n` +
      `  ${Math.round(perCall)} bytes a call in two records and the audit's; ${perBatch.toFixed(0)} calls a batch\n` +
      `  processor time a call, event loop + other threads: durable ${micros("durable")} µs, memory ${micros("memory")} µs\n` +
      `  event loop held up: p99 ${durable("delayP99").toFixed(1)} ms, at most ${worst.toFixed(1)} ms (aim ${DELAY_MAX_MS})\n` +
      (wrong > 0 ? `  ${wrong} calls did not give a result!\n` : ""),
  );
}
