// Bytes and values for the fuzzer, all out of one seed: bodies of the vectors, changed byte-wise and by
// their structure, and values that an untyped caller may hand to the encoder.

import type { Envelope } from "../../src/wire/message.ts";

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** mulberry32: an integer from 0 to `below` - 1. */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) % below;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)]!;
  }
}

const NAMES =
  "v id final msg kind body session call tool arguments status approval expires content class untrusted truncated message reason code detail".split(
    " ",
  );
const WORDS =
  "tool_request tool_response error pending_approval result failed denied public internal confidential restricted no_grant grant_expired taint_too_high denied_by_grant approval_refused approval_expired bad_frame bad_version bad_message __proto__ constructor a".split(
    " ",
  );
const STRINGS = [...NAMES, ...WORDS].map((name) => `"${name}"`);
const OTHERS = [
  ...["0", "1", "-0", "-1", "01", "1.0", "1e0", "2", "4294967295", "4294967296", "9007199254740993"],
  ...["18446744073709551615", "18446744073709551616", "999999999999999", "1000000000000000"],
  ...["true", "false", "null", "[]", "{}", '""', '"\\u0061"', '"\\u0076"', '"\\ud800"', '"\\udc00\\ud800"'],
  ...['"\\ud83d\\ude00"', '"\\u001f"', '"\\u001F"', '"\\u000a"', '"\\n"', '"\\/"', '"é😀"', '"\u2028"'],
  ...[",", ":", "{", "}", "[", "]", " ", "\n\t\r", "\u0000", "\ufeff", "\\", '"', "\\u00", "\\u0000", "\v"],
];
const RAW = [
  "80",
  "c0af",
  "c080",
  "e08080",
  "eda080",
  "f4908080",
  "f0808080",
  "ff",
  "efbbbf",
  "c3",
  "f09f98",
];

function raw(random: Random): Buffer {
  return Buffer.from(random.pick(RAW), "hex");
}

function token(random: Random): Buffer {
  if (random.below(8) === 0) return raw(random);
  return Buffer.from(random.pick(random.below(2) === 0 ? STRINGS : OTHERS));
}

function replaced(body: Buffer, start: number, end: number, by: Buffer): Buffer {
  return Buffer.concat([body.subarray(0, start), by, body.subarray(end)]);
}

const TOKEN = /"(?:[^"\\]|\\.){0,300}"|[{}[\],:]|[^"{}[\],:\s]+/g;

/** Where a token of the body stands; the body need not be JSON. */
function tokenSpan(body: Buffer, random: Random): readonly [number, number] {
  const spans = [...body.toString("latin1").matchAll(TOKEN)];
  if (spans.length === 0) return [0, body.length];
  const { index, 0: text } = random.pick(spans);
  return [index, index + text.length];
}

type Mutation = (body: Buffer, random: Random, corpus: readonly Buffer[]) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  function flipBit(body, random) {
    const changed = Buffer.from(body);
    if (changed.length > 0) changed[random.below(changed.length)]! ^= 1 << random.below(8);
    return changed;
  },
  function insertToken(body, random) {
    const at = random.below(body.length + 1);
    return replaced(body, at, at, token(random));
  },
  function replaceToken(body, random) {
    const [start, end] = tokenSpan(body, random);
    return replaced(body, start, end, token(random));
  },
  function dropToken(body, random) {
    const [start, end] = tokenSpan(body, random);
    return replaced(body, start, end, Buffer.alloc(0));
  },
  function repeatSpan(body, random) {
    const [start] = tokenSpan(body, random);
    const [, end] = tokenSpan(body, random);
    const span = body.subarray(Math.min(start, end), Math.max(start, end));
    return replaced(body, end, end, Buffer.concat([Buffer.from(random.pick(["", ","])), span]));
  },
  function addMember(body, random) {
    const [, end] = tokenSpan(body, random);
    const member = Buffer.concat([Buffer.from(`,${random.pick(STRINGS)}:`), token(random)]);
    return replaced(body, end, end, member);
  },
  function escapeCharacter(body, random) {
    const at = random.below(Math.max(1, body.length));
    const code = (body[at] ?? 0x61).toString(16).padStart(4, "0");
    return replaced(body, at, at + 1, Buffer.from(`\\u${random.below(2) ? code : code.toUpperCase()}`));
  },
  function spaceOut(body, random) {
    const [start] = tokenSpan(body, random);
    return replaced(body, start, start, Buffer.from(random.pick([" ", "\n", "\r", "\t", "  ", "\f"])));
  },
  /** A long run in the middle of a token, with something odd in it or not: what is read by words. */
  function stretch(body, random) {
    const [start, end] = tokenSpan(body, random);
    const at = start + random.below(Math.max(1, end - start));
    const run = Buffer.alloc(random.below(600), random.pick(["a", "é", "\\n", "~", "\u007f"]));
    const odd = run.length > 0 && random.below(2) ? random.below(run.length) : run.length;
    return replaced(body, at, at, replaced(run, odd, odd, random.below(3) ? Buffer.alloc(0) : token(random)));
  },
  function crossOver(body, random, corpus) {
    const other = random.pick(corpus);
    const [, end] = tokenSpan(body, random);
    const [start] = tokenSpan(other, random);
    return Buffer.concat([body.subarray(0, end), other.subarray(start)]);
  },
  function cut(body, random) {
    return body.subarray(0, random.below(body.length + 1));
  },
];

const BODY_BYTES_MAX = 16_384;

/** A body of the corpus after some changes, at any alignment within its memory. */
export function mutatedBody(random: Random, corpus: readonly Buffer[]): Buffer {
  let body = random.pick(corpus);
  for (let left = random.below(5); left > 0; left -= 1) body = random.pick(MUTATIONS)(body, random, corpus);
  const skew = random.below(8);
  const size = Math.min(body.length, BODY_BYTES_MAX);
  const memory = Buffer.alloc(skew + size + random.below(8), random.pick([0x61, 0x22, 0x5c]));
  body.copy(memory, skew, 0, size);
  return memory.subarray(skew, skew + size);
}

/** Some frames back to back, now and then with a wrong length or a cut end. */
export function mutatedStream(random: Random, corpus: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  for (let left = 1 + random.below(4); left > 0; left -= 1) {
    const body = random.below(2) ? random.pick(corpus) : mutatedBody(random, corpus);
    const header = Buffer.alloc(4);
    const lengths = [0, body.length + 1, 1_048_576, 1_048_577, 0xffff_ffff];
    header.writeUInt32BE(random.below(12) === 0 ? random.pick(lengths) : body.length);
    parts.push(header, body);
  }
  const stream = Buffer.concat(parts);
  return random.below(3) === 0 ? stream.subarray(0, random.below(stream.length + 1)) : stream;
}

const ODD_VALUES: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => Number.NaN,
  () => -1,
  () => 1.5,
  () => 2 ** 32,
  () => -1n,
  () => 2n ** 64n,
  () => 2n ** 64n - 1n,
  () => "\ud800",
  () => "x\udc00",
  () => '","x":"',
  () => ["mm"],
  () => new String("mm"),
  () => ({ toString: () => '","x":"' }),
  () => ({ isWellFormed: () => true, toJSON: () => 7 }),
  () => Symbol("x"),
  () => () => "mm",
  () => new Proxy({}, { get: () => thrown() }),
  () => Object.create(null) as unknown,
  () => Buffer.from("mm"),
  () => "__proto__",
  () => new Date(0),
  () => true,
];

function thrown(): never {
  throw new TypeError("a getter throws");
}

type Members = Record<string, unknown>;

/** A decoded envelope, changed in one or two members to something that the types do not allow. */
export function mutatedValue(random: Random, { msg, ...head }: Envelope): unknown {
  const body: Members = { ...msg.body };
  const message: Members = { kind: msg.kind, body };
  const envelope: Members = { ...head, msg: message };
  for (let left = 1 + random.below(2); left > 0; left -= 1)
    spoil(random, random.pick([envelope, message, body]));
  return random.below(50) === 0 ? random.pick(ODD_VALUES)() : envelope;
}

function spoil(random: Random, members: Members): void {
  const name = random.pick([...Object.keys(members), "extra"]);
  const way = random.below(8);
  if (way === 0) delete members[name];
  const shape = way === 1 ? { get: thrown } : { value: random.pick(ODD_VALUES)(), writable: true };
  if (way > 0) Object.defineProperty(members, name, { ...shape, configurable: true, enumerable: true });
}
