import fc from "fast-check";
import { describe, expect, it } from "vitest";
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

  it("keeps its room while as many go as come", () => {
    const index = new CallIndex();
    for (let id = 0n; id < 100_000n; id += 1n) {
      index.put(id, Number(id));
      if (id >= 10n) index.take(id - 10n);
    }
    expect([index.size, index.find(99_995n), index.find(99_989n)]).toEqual([10, 99_995, undefined]);
  });
});
