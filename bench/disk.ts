// The limit of a durable store: what the disk makes of `write` and `fdatasync` alone. WRITERS writers have
// two records a call, each of which must be flushed before the next thing happens; what comes while a flush is under way
// goes with the next. Prints one JSON line: calls per second, p50 and p99 in milliseconds.
// node bench/disk.ts FILE WRITERS CALLS BYTES_PER_CALL

import { closeSync, fdatasync, openSync, rmSync, write } from "node:fs";
import { promisify } from "node:util";

const writing = promisify(write);
const flushing = promisify(fdatasync);
const [path = "", writers = "64", calls = "1000", bytes = "1000"] = process.argv.slice(2);
const total = Number(calls);
const record = Buffer.alloc(Math.ceil(Number(bytes) / 2), 0x5a);
const fd = openSync(path, "w", 0o600);
let gathered: (() => void)[] = [];
let idle = true;
let begun = 0;
let done = 0;
const latencies = new Float64Array(total);

function flushed(): Promise<void> {
  return new Promise((resolve) => {
    gathered.push(resolve);
    if (idle) void flushAll();
  });
}

async function flushAll(): Promise<void> {
  idle = false;
  await new Promise((resolve) => setImmediate(resolve));
  while (gathered.length > 0) {
    const batch = gathered;
    gathered = [];
    await writing(fd, Buffer.concat(batch.map(() => record)));
    await flushing(fd);
    for (const resolve of batch) resolve();
    await new Promise((resolve) => setImmediate(resolve));
  }
  idle = true;
}

async function writer(): Promise<void> {
  while (begun < total) {
    begun += 1;
    const startedAt = performance.now();
    await flushed(); // the intent
    await flushed(); // the outcome
    latencies[done] = performance.now() - startedAt;
    done += 1;
  }
}

const startedAt = performance.now();
await Promise.all(Array.from({ length: Number(writers) }, writer));
const seconds = (performance.now() - startedAt) / 1000;
const sorted = latencies.sort();
const at = (share: number) => sorted[Math.min(total - 1, Math.floor(total * share))] ?? 0;
closeSync(fd);
rmSync(path);
process.stdout.write(`${JSON.stringify({ rate: total / seconds, p50: at(0.5), p99: at(0.99), wrong: 0 })}\n`);
