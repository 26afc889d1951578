// `npm run fuzz [-- --seconds N --seed S]`: changes the vectors' bodies, streams and values at random and
// holds the codec to its promises (test/wire/fuzz_checks.ts). Exit status 0 after N seconds (600) without a
// finding; 1 with one: the promise, the round's seed and the smallest input found that breaks it; 2 on
// wrong usage. `--seed` with a round's seed begins with that round.

import { readFileSync } from "node:fs";
import { inspect, parseArgs } from "node:util";
import { parseRow, rowBytes } from "../src/cli/wire_rows.ts";
import type { Envelope } from "../src/wire/message.ts";
import { checkBody, checkStream, checkValue, type Finding } from "./wire/fuzz_checks.ts";
import { mutatedBody, mutatedStream, mutatedValue, Random } from "./wire/mutations.ts";
import { slowDecode } from "./wire/slow_decoder.ts";

const CORPUS_BODY_BYTES_MAX = 4096;
const PROGRESS_MS = 10_000;

/** Bodies of the vectors that are whole, valid or not. */
function loadCorpus(): Buffer[] {
  const text = readFileSync(new URL("../fixtures/wire/decode.jsonl", import.meta.url), "utf8");
  const bodies: Buffer[] = [];
  for (const line of text.trimEnd().split("\n")) {
    const stream = rowBytes(parseRow(line));
    if (stream.length < 5 || stream.length > CORPUS_BODY_BYTES_MAX) continue;
    bodies.push(stream.subarray(4, 4 + stream.readUInt32BE(0)));
  }
  return bodies;
}

/** A finding, or what a check threw, which is one as well. */
function guarded(check: () => Finding): Finding {
  try {
    return check();
  } catch (error) {
    return `nothing but a FrameFault is thrown: ${inspect(error).slice(0, 300)}`;
  }
}

interface Found {
  readonly promise: string;
  readonly input: string;
}

function fuzzRound(
  random: Random,
  corpus: readonly Buffer[],
  values: readonly Envelope[],
): Found | undefined {
  const kind = random.below(8);
  if (kind === 0) {
    const value = mutatedValue(random, random.pick(values));
    const promise = guarded(() => checkValue(value));
    return promise === undefined ? undefined : { promise, input: inspect(value, { depth: 6 }) };
  }
  if (kind === 1) {
    const cuts = Array.from({ length: random.below(12) }, () => random.below(100_000));
    return found(mutatedStream(random, corpus), (stream) => checkStream(stream, cuts));
  }
  return found(mutatedBody(random, corpus), checkBody);
}

function found(input: Buffer, check: (input: Buffer) => Finding): Found | undefined {
  const promise = guarded(() => check(input));
  if (promise === undefined) return undefined;
  const smallest = minimised(input, (smaller) => guarded(() => check(smaller)) !== undefined);
  return { promise, input: smallest.toString("hex") };
}

/** Leaves out ever smaller pieces for as long as the input stays a finding. */
function minimised(input: Buffer, isFinding: (smaller: Buffer) => boolean): Buffer {
  let smallest = input;
  for (let size = Math.ceil(input.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < smallest.length; ) {
      const smaller = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)]);
      if (isFinding(smaller)) smallest = smaller;
      else at += size;
    }
  }
  return smallest;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function fuzz(seconds: number, seed: number): number {
  const corpus = loadCorpus();
  const values = corpus.map(slowDecode).filter((value) => typeof value !== "string");
  const startMs = performance.now();
  let nextProgressMs = PROGRESS_MS;
  say(`seed ${seed}, ${corpus.length} bodies, ${values.length} of them valid, ${seconds} s`);
  for (let round = 0; ; round += 1) {
    const roundSeed = (seed + round) >>> 0;
    const finding = fuzzRound(new Random(roundSeed), corpus, values);
    if (finding !== undefined) {
      say(`broken: ${finding.promise}\nseed: ${roundSeed}\ninput: ${finding.input}`);
      return 1;
    }
    const elapsedMs = performance.now() - startMs;
    if (elapsedMs >= nextProgressMs) {
      say(`${Math.round(elapsedMs / 1000)} s: ${round + 1} rounds`);
      nextProgressMs = elapsedMs + PROGRESS_MS;
    }
    if (elapsedMs >= seconds * 1000) {
      say(`${round + 1} rounds, nothing found`);
      return 0;
    }
  }
}

interface Wish {
  readonly seconds: number;
  readonly seed: number;
}

function parseWish(): Wish | undefined {
  try {
    const { values } = parseArgs({ options: { seconds: { type: "string" }, seed: { type: "string" } } });
    const seconds = Number(values.seconds ?? 600);
    const seed = Number(values.seed ?? Date.now() % 2 ** 32);
    return seconds >= 0 && Number.isInteger(seed) ? { seconds, seed } : undefined;
  } catch {
    return undefined;
  }
}

function main(): number {
  const wish = parseWish();
  if (wish !== undefined) return fuzz(wish.seconds, wish.seed);
  process.stderr.write("usage: npm run fuzz [-- --seconds N --seed S]\n");
  return 2;
}

process.exitCode = main();
