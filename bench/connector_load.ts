// Callers of a connector: each takes one turn after the other over a socket of its own. Prints one JSON line: turns per
// second, p50 and p99 in milliseconds. node bench/connector_load.ts PORT CALLERS TURNS PAYLOAD_BYTES NAME

import { ConnectorClient } from "../src/connector/client.ts";
import { callerConfig, FRAME_BYTES_MAX, turnOf } from "./connector_turn.ts";

const [port = "", callers = "16", turns = "1000", payloadBytes = "4096", name = "r"] = process.argv.slice(2);
const total = Number(turns);
const latencies = new Float64Array(total);
let begun = 0;
let done = 0;
let wrong = 0;

async function caller(number: number): Promise<void> {
  const { caller_runtime_id: id, connection_secret: secret } = callerConfig(number);
  const client = new ConnectorClient({
    host: "127.0.0.1",
    port: Number(port),
    secret,
    maxFrameBytes: FRAME_BYTES_MAX,
  });
  while (begun < total) {
    const requestId = `${name}-${begun}`;
    begun += 1;
    const invocation = turnOf(id, requestId, Number(payloadBytes));
    const startedAt = performance.now();
    const { disposition } = await client.execute(invocation);
    latencies[done] = performance.now() - startedAt;
    done += 1;
    if (!("Transported" in disposition && "Completed" in disposition.Transported.receipt.outcome)) wrong += 1;
  }
}

const startedAt = performance.now();
await Promise.all(Array.from({ length: Number(callers) }, (_, i) => caller(i)));
const seconds = (performance.now() - startedAt) / 1000;
const sorted = latencies.sort();
const at = (share: number) => sorted[Math.min(total - 1, Math.floor(total * share))] ?? 0;
process.stdout.write(`${JSON.stringify({ rate: total / seconds, p50: at(0.5), p99: at(0.99), wrong })}\n`);
