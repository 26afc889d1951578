// What the way through callgate costs an MCP client: one server called directly, through callgate with its store on disk and
// without, and through the gateways that people use, in one run. Rounds alternate, medians are compared.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { diskOf, processorMs } from "./durable.ts";
import type { MeasuredCalls } from "./mcp_load.ts";
import { directPath, GATEWAY_NAMES, gatePath, gatewayPath, installGateways, type Path } from "./mcp_paths.ts";
import type { Reach } from "./mcp_wires.ts";
import { type Measured, median, outputOf, startProgram } from "./processes.ts";

export const MCP_NAME = "mcp, tools/call of an echo tool";
const DEPTHS = [1, 16] as const;
const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 3);
/** Two records a call and the audit's, of which half are written at a time; as `durable` counts them. */
const DISK_BYTES = 1370;
const DISK_CALLS = [2000, 20_000] as const;

interface Seen extends Measured {
  /** Processor time of all processes of the path, the client's and the server's among them, in microseconds a call. */
  readonly micros?: number;
}

/** What each path measured, for each depth. */
type Rounds = Map<string, (readonly Seen[])[]>;

export async function benchMcp(directory: string, rounds: number): Promise<void> {
  const disk = diskOf(directory);
  const paths = pathsIn(directory);
  const left = new Set<string>();
  const all: Rounds = new Map();
  const note = (name: string, measured: readonly Seen[]) =>
    all.set(name, [...(all.get(name) ?? []), measured]);
  for (let round = 0; round < rounds; round += 1) {
    note(DISK, await measureDisk(directory));
    for (const path of paths.filter(({ name }) => !left.has(name))) {
      const measured = await path.with(measure).catch((error: unknown) => failed(path, error));
      if (measured === undefined) left.add(path.name);
      else note(path.name, measured);
    }
  }
  report(disk, all);
}

function failed({ name, mayFail }: Path, error: unknown): undefined {
  if (mayFail !== true || !(error instanceof Error)) throw error;
  process.stdout.write(`${name} is left out: ${error.message}\n`);
}

const DISK = "write + fdatasync alone";
const DIRECT = directPath().name;
const STDIO = "callgate, stdio";
const HTTP = "callgate, http";

const COMPILED = fileURLToPath(new URL("../dist/bin/callgate.js", import.meta.url));

/** `BENCH_PROGRAM`, `BENCH_BESIDE`: the compiled command of this build, and of another one that is measured beside it. */
function pathsIn(directory: string): readonly Path[] {
  const { BENCH_PROGRAM: program = COMPILED, BENCH_BESIDE: beside } = process.env;
  if (!existsSync(program)) throw new Error("`npm run build` comes first: the compiled command is measured");
  const at = join(directory, "gate");
  const others = beside === undefined ? [] : gatesOf(beside, at, "beside: ");
  return [directPath(), ...gatesOf(program, at, ""), ...others, ...gatewaysIn(join(directory, "gateways"))];
}

function gatesOf(program: string, directory: string, prefix: string): readonly Path[] {
  const of = (name: string, over: "stdio" | "http", record: "durable" | "memory") =>
    gatePath({ about: `${prefix}${name}`, program, directory, record, over });
  return [
    of(STDIO, "stdio", "durable"),
    of(`${STDIO}, record="memory"`, "stdio", "memory"),
    of(HTTP, "http", "durable"),
    of(`${HTTP}, record="memory"`, "http", "memory"),
  ];
}

/** `BENCH_GATEWAYS`: a directory where they are installed already, or `no`. */
function gatewaysIn(directory: string): readonly Path[] {
  const { BENCH_GATEWAYS: installed = directory } = process.env;
  if (installed === "no") return [];
  const fault = installed === directory ? installGateways(directory) : undefined;
  if (fault === undefined) return GATEWAY_NAMES.map((name) => gatewayPath(name, installed));
  process.stdout.write(`${fault}\n`);
  return [];
}

async function measure(reach: Reach): Promise<readonly Seen[]> {
  const child = startProgram("mcp_load.ts", [JSON.stringify(reach), SECONDS, ...DEPTHS]);
  const seen: Seen[] = [];
  let before = 0;
  if (child.stdout === null) return seen;
  for await (const line of createInterface({ input: child.stdout })) {
    const spentMs = processorMsBelow(process.pid);
    if (line !== "warm") {
      const measured = JSON.parse(line) as MeasuredCalls;
      seen.push({ ...measured, micros: ((spentMs - before) * 1000) / measured.calls });
    }
    before = processorMsBelow(process.pid);
  }
  if (seen.length < DEPTHS.length) throw new Error("the client of the bench ended early");
  return seen;
}

/** Of all processes that this one has started, directly or not, and that are still there. */
function processorMsBelow(top: number): number {
  const below = new Set([`${top}`]);
  let sum = 0;
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  for (const pid of pids.sort((a, b) => Number(a) - Number(b))) {
    try {
      const parent = /\) . (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? "";
      if (!below.has(parent)) continue;
      below.add(pid); // pids grow here, so whoever started it has been seen
      sum += processorMs(pid);
    } catch {
      // it has ended
    }
  }
  return sum;
}

async function measureDisk(directory: string): Promise<readonly Measured[]> {
  const all: Measured[] = [];
  for (const [i, depth] of DEPTHS.entries()) {
    const args = [join(directory, "raw"), depth, DISK_CALLS[i] ?? 0, DISK_BYTES] as const;
    all.push(JSON.parse(await outputOf(startProgram("disk.ts", args))) as Measured);
  }
  return all;
}

type Figure = "rate" | "p50" | "p99" | "micros";
type Of = (name: string, what: Figure) => number;

function report(disk: string, all: Rounds): void {
  process.stdout.write(`${MCP_NAME} (state on ${disk})\n`);
  for (const [i, depth] of DEPTHS.entries()) {
    const of: Of = (name, what) => median((all.get(name) ?? []).map((round) => round[i]?.[what] ?? 0));
    process.stdout.write(`  ${depth} in flight\n`);
    for (const name of all.keys()) process.stdout.write(line(name, of));
  }
  process.stdout.write(`  aims: ${AIMS}\n`);
  const wrong = [...all.values()].flat(2).reduce((sum, one) => sum + one.wrong, 0);
  process.stdout.write(`${wrong > 0 ? `  ${wrong} calls did not come back right!\n` : ""}\n`);
}

const AIMS =
  "over stdio at most 0.4 ms added (p50, 1 in flight) and 10 times either gateway's calls/s; over HTTP twice theirs";

function line(name: string, of: Of): string {
  const rate = Math.round(of(name, "rate")).toLocaleString("en").padStart(7);
  const figures = `${rate} calls/s   p50 ${of(name, "p50").toFixed(3)} ms   p99 ${of(name, "p99").toFixed(2)} ms`;
  return `    ${name.padEnd(33)} ${figures}${name === DISK ? "" : beside(name, of)}\n`;
}

/** What a path adds to the direct one, and how many times a gateway's calls it makes. */
function beside(name: string, of: Of): string {
  const added = (of(name, "p50") - of(DIRECT, "p50")).toFixed(2);
  const times = GATEWAY_NAMES.map((gateway) => [gateway, of(gatewayPath(gateway, "").name, "rate")] as const)
    .filter(([, theirs]) => theirs > 0)
    .map(([gateway, theirs]) => `   ${(of(name, "rate") / theirs).toFixed(1)} x ${gateway}`);
  const micros = Math.round(of(name, "micros")).toLocaleString("en").padStart(5);
  return `   +${added} ms   ${micros} µs of processors${times.join("")}`;
}
