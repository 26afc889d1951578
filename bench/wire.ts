// How fast the codec is beside JSON.parse and JSON.stringify of the same bytes, in one run of one
// process: ratios, since absolute times say more about the machine. Above 1: the codec is faster.
// The two are not equals: the built-ins check neither names nor types nor duplicates nor UTF-8.

import { pathToFileURL } from "node:url";
import { decodeBody, decodeEnvelope, encodeMessage } from "../src/wire/envelope.ts";
import { encodeFrame, FrameWriter } from "../src/wire/frame.ts";
import type { Envelope, Message } from "../src/wire/message.ts";

export interface Ratio {
  readonly name: string;
  /** Nanoseconds for one. */
  readonly codecNs: number;
  readonly builtinNs: number;
  readonly ratio: number;
}

const ROUNDS = 5;
let sink: unknown;

/** The best of some rounds, of equal length and taken by turns, so that a busy machine harms both alike. */
function compare(name: string, roundMs: number, codec: () => unknown, builtin: () => unknown): Ratio {
  let codecNs = Number.POSITIVE_INFINITY;
  let builtinNs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    codecNs = Math.min(codecNs, nanoseconds(codec, roundMs));
    builtinNs = Math.min(builtinNs, nanoseconds(builtin, roundMs));
  }
  return { name, codecNs, builtinNs, ratio: builtinNs / codecNs };
}

function nanoseconds(run: () => unknown, roundMs: number): number {
  const startMs = performance.now();
  let runs = 0;
  let elapsedMs = 0;
  while (elapsedMs < roundMs) {
    for (let i = 0; i < 32; i += 1) sink = run();
    runs += 32;
    elapsedMs = performance.now() - startMs;
  }
  return (elapsedMs * 1e6) / runs;
}

const REQUEST: Message = {
  kind: "tool_request",
  body: {
    session: "mm-thread-42",
    call: 1_764_500_000_000_123n,
    tool: "read_file",
    arguments: '{"path":"/srv/data/reports/2031/quarterly-figures.csv","offset":0}',
  },
};

function result(content: string): Message {
  return {
    kind: "tool_response",
    body: { status: "result", content, class: "internal", untrusted: true, truncated: false },
  };
}

const LINE = "The quick brown fox jumps over the lazy dog, and then it goes home to sleep.";

/** The texts that a result may be made of: what a codec is good at depends on them. */
const MESSAGES: readonly (readonly [string, Message])[] = [
  ["200 B request", REQUEST],
  ["64 KiB plain result", result(LINE.repeat(862))],
  ["64 KiB result of text lines", result(`${LINE}\n`.repeat(851))],
  ["64 KiB result of JSON text", result('{"name":"a","n":1},'.repeat(2850))],
  ["64 KiB result in Japanese", result("吾輩は猫である。名前はまだ無い。".repeat(1365))],
];

/** Every comparison, one after the other. `roundMs` is the length of one of ten rounds. */
export function compareAll(roundMs: number): Ratio[] {
  return MESSAGES.flatMap(([name, msg]) => compareMessage(name, { v: 1, id: 7n, final: true, msg }, roundMs));
}

function compareMessage(name: string, envelope: Envelope, roundMs: number): Ratio[] {
  const body = encodeFrame(envelope).subarray(4);
  const plain: unknown = JSON.parse(body.toString());
  const passedOn = decodeEnvelope(body).msg;
  const parse = () => JSON.parse(body.toString());
  const stringify = () => Buffer.from(JSON.stringify(plain));
  return [
    compare(`decodeEnvelope, ${name}`, roundMs, () => decodeEnvelope(body), parse),
    compare(`decodeBody, ${name}`, roundMs, () => decodeBody(body), parse),
    compare(`encodeFrame, ${name}`, roundMs, () => encodeFrame(envelope), stringify),
    compare(`pass on, ${name}`, roundMs, () => framed(encodeMessage(passedOn)), stringify),
  ];
}

const writer = new FrameWriter();

function framed(message: Buffer): readonly Buffer[] {
  writer.append(7n, true, message);
  return writer.take();
}

function main(): void {
  for (const { name, codecNs, builtinNs, ratio } of compareAll(60)) {
    const numbers = `${codecNs.toFixed(0).padStart(9)} ns ${builtinNs.toFixed(0).padStart(9)} ns`;
    process.stdout.write(`${name.padEnd(46)}${numbers}  ${ratio.toFixed(2)}\n`);
  }
  void sink;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main();
