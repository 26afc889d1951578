import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FAIL_CODES } from "../../src/base/faults.ts";
import { DATA_CLASSES } from "../../src/base/labels.ts";
import { CallArchive } from "../../src/store/archive.ts";
import type { CallRecord } from "../../src/store/records.ts";

const text = fc.string({ unit: "binary", maxLength: 40 }).filter((one) => one.isWellFormed());

const records: fc.Arbitrary<CallRecord> = fc
  .record({
    session: fc.constantFrom("a", "b", "session-c"),
    call: fc.oneof(fc.bigInt(0n, 20n), fc.bigInt(0n, 18_446_744_073_709_551_615n)),
    tool: text,
    arguments: text,
    uid: fc.option(fc.nat({ max: 0xffff_ffff }), { nil: undefined }),
    messages: fc.array(
      fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.constantFrom(8191, 8192, 20_000).map((n) => new Uint8Array(n).fill(n % 251)),
      ),
      { maxLength: 3 },
    ),
    class: fc.constantFrom(...DATA_CLASSES),
    untrusted: fc.boolean(),
    endedAtMs: fc.nat(),
    askedAtMs: fc.nat(),
    durable: fc.boolean(),
    equal: fc.option(fc.constant("e".repeat(64)), { nil: undefined }),
    status: fc.constantFrom("result" as const, "failed" as const, "denied" as const),
    code: fc.option(fc.constantFrom(...FAIL_CODES), { nil: undefined }),
  })
  .map(({ session, call, messages, class: dataClass, untrusted, ...rest }) => ({
    ...rest,
    key: { role: "agent", session, call },
    state: "ended" as const,
    messages: messages.map((bytes) => Buffer.from(bytes)),
    labels: { class: dataClass, untrusted },
  }));

function record(call: bigint, endedAtMs: number, contentBytes = 10): CallRecord {
  return {
    key: { role: "agent", session: "s", call },
    tool: "t",
    arguments: "{}",
    uid: 1,
    durable: true,
    equal: undefined,
    askedAtMs: 0,
    state: "ended",
    status: "result",
    code: undefined,
    messages: [Buffer.alloc(contentBytes, Number(call % 251n))],
    labels: { class: "internal", untrusted: false },
    endedAtMs,
  };
}

/** Messages as text: equality of long buffers, element by element, takes seconds. */
function written(found: CallRecord | undefined) {
  return { ...found, messages: found?.messages.map((message) => message.toString("latin1")) };
}

describe("the archive of ended calls", () => {
  it("gives back exactly what it was given, and nothing for another name", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(records, { selector: ({ key }) => `${key.session} ${key.call}`, maxLength: 30 }),
        (kept) => {
          const archive = new CallArchive("agent");
          for (const one of kept) archive.append(one);
          for (const one of kept)
            expect(written(archive.find(one.key.session, one.key.call))).toEqual(written(one));
          expect(archive.find("nobody", 1n)).toBeUndefined();
        },
      ),
    );
  });

  it("lets the oldest go by bytes, and counts down to nothing", () => {
    const archive = new CallArchive("agent");
    const gone: bigint[] = [];
    for (let call = 1n; call <= 5000n; call += 1n) archive.append(record(call, Number(call), 1000));
    const { bytes } = archive;
    archive.prune(bytes / 2, 0, (_, call) => gone.push(call));
    expect(archive.bytes).toBeLessThanOrEqual(bytes / 2);
    expect(gone).toEqual(Array.from({ length: gone.length }, (_, i) => BigInt(i + 1)));
    expect(gone.length).toBeGreaterThan(2400);
    expect(archive.find("s", gone.at(-1) ?? 0n)).toBeUndefined();
    for (let call = BigInt(gone.length) + 1n; call <= 5000n; call += 97n)
      expect(archive.find("s", call)).toEqual(record(call, Number(call), 1000));
    archive.prune(0, 0, () => undefined);
    expect(archive.bytes).toBe(0);
  });

  it("lets go by age what ended too long ago, and no more", () => {
    const archive = new CallArchive("agent");
    for (let call = 1n; call <= 10n; call += 1n) archive.append(record(call, Number(call)));
    const gone: bigint[] = [];
    archive.prune(Number.MAX_SAFE_INTEGER, 5, (_, call) => gone.push(call));
    expect(gone).toEqual([1n, 2n, 3n, 4n]);
    expect(archive.find("s", 5n)).toEqual(record(5n, 5));
  });

  it("holds a record larger than a segment among small ones", () => {
    const archive = new CallArchive("agent");
    const large = record(2n, 2, 3_000_000);
    for (const one of [record(1n, 1), large, record(3n, 3)]) archive.append(one);
    expect(archive.find("s", 2n)?.messages[0]?.equals(large.messages[0] ?? Buffer.alloc(0))).toBe(true);
    expect(archive.find("s", 3n)).toEqual(record(3n, 3));
  });

  it("never loses the call that comes after a record larger than a segment, which would then run twice", () => {
    const archive = new CallArchive("agent");
    const parts = Array.from({ length: 200 }, () => Buffer.alloc(8191, 7));
    const kept = [
      {
        ...record(1n, 1),
        arguments: "x".repeat(1_040_000),
        messages: [Buffer.alloc(8000), Buffer.alloc(8000)],
      },
      record(2n, 2),
      { ...record(3n, 3), arguments: "x".repeat(400_000), messages: parts },
      ...Array.from({ length: 50 }, (_, i) => record(BigInt(i) + 4n, i + 4, 1000)),
    ];
    for (const one of kept) archive.append(one);
    for (const one of kept) expect(written(archive.find("s", one.key.call))).toEqual(written(one));
    archive.prune(archive.bytes - 1, 0, () => undefined);
    archive.append(record(100n, 100));
    for (const one of kept.slice(1)) expect(written(archive.find("s", one.key.call))).toEqual(written(one));
    expect(archive.find("s", 100n)).toEqual(record(100n, 100));
  });

  it("finds what a list finds, while segments of all sizes fill, empty and serve again", () => {
    const sizes = fc.constantFrom(10, 10, 9000, 300_000, 700_000, 1_047_000, 1_200_000);
    const step = fc.record({ args: sizes, parts: fc.nat({ max: 30 }), keep: fc.constantFrom(0, 0.3, 1, 1) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const archive = new CallArchive("agent");
        const kept: CallRecord[] = [];
        for (const [i, { args, parts, keep }] of steps.entries()) {
          const messages = Array.from({ length: parts }, () => Buffer.alloc(8000, i));
          const one = { ...record(BigInt(i), i), arguments: String(i % 10).repeat(args), messages };
          archive.append(one);
          kept.push(one);
          archive.prune(archive.bytes * keep, 0, (_, call) => expect(kept.shift()?.key.call).toBe(call));
          expect(archive.find("s", kept[0]?.key.call ?? 0n)?.arguments).toBe(kept[0]?.arguments);
        }
        for (let i = 0; i < steps.length; i += 1) {
          const found = archive.find("s", BigInt(i));
          const expected = kept.find(({ key }) => key.call === BigInt(i));
          expect(found === undefined).toBe(expected === undefined);
          if (expected !== undefined) expect(written(found)).toEqual(written(expected));
        }
      }),
      { numRuns: 40 },
    );
  });

  it("what was found stays as it was when more is appended and pruned", () => {
    const archive = new CallArchive("agent");
    archive.append(record(1n, 1, 500));
    const found = archive.find("s", 1n);
    for (let call = 2n; call < 5000n; call += 1n) archive.append(record(call, 2, 500));
    archive.prune(10_000, 0, () => undefined);
    expect(found).toEqual(record(1n, 1, 500));
  });
});
