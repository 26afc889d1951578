// The client of one path of the bench of MCP: a session, then calls of its echo tool, so many in flight for so many
// seconds, each with a text of its own that must come back. All paths are warmed up by the same number of calls: in their first
// thousands programs take ten times as long. Prints `warm`, and then one JSON line a depth: what was measured.
// node bench/mcp_load.ts REACH SECONDS DEPTH...

import { openWire, type Reach } from "./mcp_wires.ts";
import type { Measured } from "./processes.ts";

export interface MeasuredCalls extends Measured {
  readonly calls: number;
}

const [reach = "", seconds = "1", ...depths] = process.argv.slice(2);
const WARM_CALLS = Number(process.env["BENCH_WARM"] ?? 6000);
const WARM_DEPTH = 16;
const PROTOCOL = "2025-11-25";

const waiting = new Map<number, (answer: string) => void>();
let lastId = 0;

const wire = openWire(JSON.parse(reach) as Reach, (message) => {
  const id = Number(/"id":(\d+)[,}]/.exec(message)?.[1]);
  const done = waiting.get(id);
  waiting.delete(id);
  done?.(message);
});

function ask(method: string, params: string): Promise<string> {
  lastId += 1;
  const id = lastId;
  return new Promise((done) => {
    waiting.set(id, done);
    wire.send(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`);
  });
}

async function begin(): Promise<string> {
  await ask(
    "initialize",
    `{"protocolVersion":"${PROTOCOL}","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`,
  );
  wire.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  const listed = await ask("tools/list", "{}");
  const name = /"name":"([\w.-]*echo)"/.exec(listed)?.[1];
  if (name === undefined) throw new Error(`there is no echo tool in ${listed.slice(0, 300)}`);
  return name;
}

/** Whether the result is the one that was asked for. */
async function call(tool: string): Promise<boolean> {
  const text = `text number ${lastId} of the bench`;
  const answer = await ask("tools/call", `{"name":"${tool}","arguments":{"text":"${text}"}}`);
  return answer.includes(`"${text}"`) && !answer.includes('"isError":true');
}

function inFlight(depth: number, caller: () => Promise<void>): Promise<unknown> {
  return Promise.all(Array.from({ length: depth }, caller));
}

async function warm(tool: string): Promise<void> {
  let left = WARM_CALLS;
  await inFlight(WARM_DEPTH, async () => {
    for (; left > 0; left -= 1) await call(tool);
  });
}

async function measure(tool: string, depth: number, forSeconds: number): Promise<MeasuredCalls> {
  const latencies: number[] = [];
  let wrong = 0;
  const startedAt = performance.now();
  const untilMs = startedAt + forSeconds * 1000;
  await inFlight(depth, async () => {
    for (let at = performance.now(); at < untilMs; at = performance.now()) {
      if (!(await call(tool))) wrong += 1;
      latencies.push(performance.now() - at);
    }
  });
  const tookSeconds = (performance.now() - startedAt) / 1000;
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  const calls = sorted.length;
  return { rate: calls / tookSeconds, p50: at(0.5), p99: at(0.99), wrong, calls };
}

const tool = await begin();
await warm(tool);
process.stdout.write("warm\n");
for (const depth of depths.map(Number))
  process.stdout.write(`${JSON.stringify(await measure(tool, depth, Number(seconds)))}\n`);
wire.close();
process.exit(0);
