import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { CallIndex } from "../../src/store/call_index.ts";

const call = fc.oneof(fc.bigInt(0n, 40n), fc.bigInt(0n, 18_446_744_073_709_551_615n));

describe("the index of a session's calls", () => {
  it("finds what a map finds, in whatever order calls come and go", () => {
    const step = fc.record({ call, take: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const index = new CallIndex();
        const slow = new Map<bigint, number>();
        for (const [place, { call: id, take }] of steps.entries()) {
          if (take) {
            index.take(id);
            slow.delete(id);
          } else if (!slow.has(id)) {
            index.put(id, place);
            slow.set(id, place);
          }
          expect(index.find(id)).toBe(slow.get(id));
          expect(index.size).toBe(slow.size);
        }
        for (const { call: id } of steps) expect(index.find(id)).toBe(slow.get(id));
      }),
    );
  });

  it("finds what a map finds over many blocks, also where ids come backwards or from both ends", () => {
    const orders: ReadonlyArray<(i: number) => number> = [
      (i) => i,
      (i) => 5000 - i,
      (i) => (i % 2 === 0 ? i : 10_000 - i),
      (i) => (i * 2711) % 5003,
    ];
    for (const order of orders) {
      const index = new CallIndex();
      for (let i = 0; i < 5000; i += 1) index.put(BigInt(order(i)), i);
      for (let i = 0; i < 5000; i += 3) index.take(BigInt(order(i)));
      for (let i = 0; i < 5000; i += 3) if (i % 2 === 0) index.put(BigInt(order(i)), i + 1);
      for (let i = 0; i < 5000; i += 1) {
        const expected = i % 3 !== 0 ? i : i % 2 === 0 ? i + 1 : undefined;
        expect(index.find(BigInt(order(i)))).toBe(expected);
      }
      for (let i = 0; i < 5000; i += 1) index.take(BigInt(order(i)));
      expect(index.size).toBe(0);
    }
  });

  it("is not stalled by an agent that counts its ids down", () => {
    const moved = vi.spyOn(BigUint64Array.prototype, "copyWithin");
    const index = new CallIndex();
    for (let id = 20_000n; id > 0n; id -= 1n) index.put(id, Number(id));
    const most = Math.max(...moved.mock.calls.map(([, from, end]) => (end ?? 0) - from));
    moved.mockRestore();
    expect(most).toBeLessThanOrEqual(256);
    expect(index.find(1n)).toBe(1);
  });

  it("keeps its room while as many go as come", () => {
    const index = new CallIndex();
    for (let id = 0n; id < 100_000n; id += 1n) {
      index.put(id, Number(id));
      if (id >= 10n) index.take(id - 10n);
    }
    expect([index.size, index.find(99_995n), index.find(99_989n)]).toEqual([10, 99_995, undefined]);
  });
});
