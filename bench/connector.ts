// What a sealed, durable turn costs when the provider costs nothing: 16 callers over real sockets beside what the same disk
// makes of the same bytes; the share of crypto and codec in it; and the strict decoder beside a lax one.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { decode as decodeLax } from "@msgpack/msgpack";
import { decodeRequestFrame, encodeRequestFrame, encodeResponseFrame } from "../src/connector/carriage.ts";
import type { TransportResult } from "../src/connector/contract.ts";
import { decode } from "../src/connector/decode.ts";
import { requestDigestWithin, sha256 } from "../src/connector/digest.ts";
import {
  PROVIDER_REQUEST,
  TRANSPORT_ENVELOPE,
  TRANSPORT_INVOCATION,
  TRANSPORT_RESULT,
} from "../src/connector/documents.ts";
import { encode } from "../src/connector/encode.ts";
import { open, seal } from "../src/connector/envelope.ts";
import { echo, POOL_BYTES, turnOf } from "./connector_turn.ts";
import { diskOf, processorMs } from "./durable.ts";
import { type Measured, median, outputOf, startProgram, stop } from "./processes.ts";

export const CONNECTOR_NAME = "connector, 16 callers, durable turns of 4 KiB";
const CALLERS = 16;
const TURNS = 8000;
const WARM_TURNS = 2000;
const PAYLOAD_BYTES = 4096;
const DOCUMENT_BYTES = 1_048_576;
const CODEC_AIM = 0.15;
const DECODE_AIM = 3;

interface Turns extends Measured {
  readonly batches: number;
  readonly bytes: number;
  /** Processor time of the connector, in microseconds a turn. */
  readonly micros: number;
}

interface Round {
  readonly turns: Turns;
  readonly disk: Measured;
}

export async function benchConnector(directory: string, rounds: number): Promise<void> {
  const disk = diskOf(directory);
  const all: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const turns = await measureTurns(join(directory, "connector"));
    const bytes = Math.round(turns.bytes / TURNS);
    const args = [join(directory, "raw"), CALLERS, TURNS, bytes] as const;
    all.push({ turns, disk: JSON.parse(await outputOf(startProgram("disk.ts", args))) as Measured });
  }
  report(disk, all);
}

async function measureTurns(directory: string): Promise<Turns> {
  const daemon = startProgram("connector_daemon.ts", [directory, CALLERS, PAYLOAD_BYTES]);
  const lines: string[] = [];
  const told = createInterface({ input: daemon.stdout! }).on("line", (line) => lines.push(line));
  try {
    await once(told, "line");
    const port = (lines[0] ?? "").replace("ready ", "");
    await load(port, WARM_TURNS, "warm");
    daemon.kill("SIGUSR2");
    const before = processorMs(`${daemon.pid}`);
    const measured = await load(port, TURNS, "turn");
    const micros = ((processorMs(`${daemon.pid}`) - before) * 1000) / TURNS;
    const line = once(told, "line");
    await stop(daemon, "SIGTERM");
    await line;
    return { ...measured, ...(JSON.parse(lines[1] ?? "") as { batches: number; bytes: number }), micros };
  } finally {
    await stop(daemon);
    await rm(directory, { recursive: true, force: true });
  }
}

async function load(port: string, turns: number, name: string): Promise<Measured> {
  const child = startProgram("connector_load.ts", [port, CALLERS, turns, PAYLOAD_BYTES, name]);
  return JSON.parse(await outputOf(child)) as Measured;
}

/** What crypto and codec do for one turn, by itself: from the request's frame to the invocation, from the result to the reply's. */
function codecMicros(): number {
  Buffer.poolSize = POOL_BYTES;
  const key = randomBytes(32);
  const invocation = turnOf("caller-0", "request-0", PAYLOAD_BYTES);
  const bytes = encode(TRANSPORT_INVOCATION, invocation) ?? Buffer.alloc(0);
  const sealing = { key, caller: "caller-0", requestId: "request-0" } as const;
  const asked = seal({ ...sealing, kind: "Invocation", nonce: randomBytes(12) }, bytes);
  const frame = encodeRequestFrame("request-0", asked);
  const result = resultOf(echo(PAYLOAD_BYTES));
  return microsOf(() => {
    const envelope = decode(TRANSPORT_ENVELOPE, decodeRequestFrame(frame)?.envelope ?? frame);
    const plaintext = (envelope && open(envelope, key)) ?? frame;
    const read = decode(TRANSPORT_INVOCATION, plaintext);
    if (read === undefined) throw new Error("the bench's own invocation is not valid");
    requestDigestWithin(plaintext, read);
    sha256(plaintext);
    const answer = encode(TRANSPORT_RESULT, result) ?? Buffer.alloc(0);
    if (decode(TRANSPORT_RESULT, answer) === undefined)
      throw new Error("the bench's own result is not valid");
    encodeResponseFrame(
      "request-0",
      "accepted",
      seal({ ...sealing, kind: "Result", nonce: randomBytes(12) }, answer),
    );
  });
}

function resultOf({ events, outcome }: ReturnType<typeof echo>): TransportResult {
  const ids = { request_id: "request-0", caller_runtime_id: "caller-0" };
  const digest = Buffer.alloc(32, 1);
  const receipt = {
    schema_id: "gamecult.model.transport_receipt.v3",
    ...ids,
    native_request_sha256: digest,
    provider_request_sha256: digest,
    model: "echo",
    transport: "echo_v1",
    outcome,
  } as const;
  const numbered = events.map((payload, sequence) => ({ sequence, payload }));
  return {
    schema_id: "gamecult.model.transport_result.v3",
    ...ids,
    disposition: { Transported: { events: numbered, receipt } },
  };
}

/** How much longer the strict decoder takes than a lax one for a transcript of 1 MiB in items of so many bytes. */
function decodeRatio(itemBytes: number): number {
  const { request } = turnOf("caller-0", "request-0", PAYLOAD_BYTES);
  const text = "Grüße aus der Küche, ".repeat(Math.ceil(itemBytes / 24)).slice(0, itemBytes);
  const input = Array.from({ length: Math.floor(DOCUMENT_BYTES / itemBytes) }, () => ({
    UserText: { text },
  }));
  const bytes = encode(PROVIDER_REQUEST, { ...request, input });
  if (bytes === undefined) throw new Error("the bench's own request is not valid");
  const strict = () => decode(PROVIDER_REQUEST, bytes);
  const lax = () => decodeLax(bytes);
  return median(Array.from({ length: 5 }, () => microsOf(strict, 100) / microsOf(lax, 100)));
}

function microsOf(work: () => unknown, times = 3000): number {
  for (let i = 0; i < times; i += 1) work();
  const startedAt = performance.now();
  for (let i = 0; i < times; i += 1) work();
  return ((performance.now() - startedAt) * 1000) / times;
}

function report(disk: string, rounds: readonly Round[]): void {
  const of = (which: keyof Round, what: "rate" | "p50" | "p99") =>
    median(rounds.map((round) => round[which][what]));
  const line = (name: string, which: keyof Round) =>
    `  ${name.padEnd(24)} ${Math.round(of(which, "rate")).toLocaleString("en").padStart(9)} turns/s   p50 ${of(which, "p50").toFixed(2)} ms   p99 ${of(which, "p99").toFixed(2)} ms\n`;
  const turns = (what: "batches" | "bytes" | "micros") => median(rounds.map((round) => round.turns[what]));
  const codec = codecMicros();
  const wrong = rounds.reduce((sum, round) => sum + round.turns.wrong, 0);
  process.stdout.write(
    `${CONNECTOR_NAME} (state on ${disk})\n` +
      line("write + fdatasync alone", "disk") +
      line("connector", "turns") +
      `  ratio to the disk ${(of("turns", "rate") / of("disk", "rate")).toFixed(2)}; ${(TURNS / turns("batches")).toFixed(1)} turns a batch, ${Math.round(turns("bytes") / TURNS)} bytes a turn\n` +
      `  processor time a turn ${Math.round(turns("micros"))} µs; crypto and codec by themselves ${Math.round(codec)} µs: ${(codec / turns("micros")).toFixed(2)} of it (aim ${CODEC_AIM})\n` +
      `  decode of 1 MiB, times @msgpack/msgpack's: items of 64 bytes ${decodeRatio(64).toFixed(2)}, of 4 KiB ${decodeRatio(4096).toFixed(2)}, one text ${decodeRatio(DOCUMENT_BYTES).toFixed(2)} (aim ${DECODE_AIM})\n` +
      (wrong > 0 ? `  ${wrong} turns were not completed!\n` : "") +
      "\n",
  );
}
