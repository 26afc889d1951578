import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type KeptCall, KeptCalls } from "../../src/store/kept_calls.ts";

function kept(place: number, session: string): KeptCall {
  const call = BigInt(place);
  return {
    session,
    call,
    outcome: place * 2 + 1,
    intent: place * 2,
    parts: place % 3,
    charged: 100 + (place % 7),
    endedAtMs: place,
  };
}

describe("the places of ended calls", () => {
  it("are found by session and call, from the oldest that is left on, and charged until they go", () => {
    const sizes = fc.record({ added: fc.nat({ max: 9000 }), taken: fc.nat({ max: 9000 }) });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 5 }), ({ added, taken }, sessions) => {
        const calls = new KeptCalls();
        const all = Array.from({ length: added }, (_, place) => kept(place, `s${place % sessions}`));
        for (const one of all) calls.add(one);
        for (let i = 0; i < taken; i += 1) calls.takeOldest();
        const left = all.slice(taken);
        expect([calls.size, calls.charged]).toEqual([
          left.length,
          left.reduce((sum, one) => sum + one.charged, 0),
        ]);
        expect([calls.oldest(0), calls.oldest(left.length)]).toEqual([left[0], undefined]);
        for (const one of [...all.slice(0, 3), ...all.slice(-3), ...left.slice(0, 3)])
          expect(calls.find(one.session, one.call)).toEqual(left.includes(one) ? one : undefined);
        expect(calls.find("nobody", 1n)).toBeUndefined();
      }),
      { numRuns: 30 },
    );
  });
});
