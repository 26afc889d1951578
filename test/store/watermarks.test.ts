import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WATERMARKS_KEPT, Watermarks } from "../../src/store/watermarks.ts";

describe("the watermarks of a role", () => {
  it("never let an id run again that was pruned once, whoever it was shared with since", () => {
    const pruned = fc.record({ session: fc.constantFrom("a", "b", "c", "d", "e"), call: fc.bigInt(0n, 50n) });
    fc.assert(
      fc.property(fc.array(pruned, { maxLength: 60 }), (all) => {
        const watermarks = new Watermarks(2);
        for (const { session, call } of all) watermarks.raise(session, call);
        for (const { session, call } of all) expect(watermarks.of(session)).toBeGreaterThanOrEqual(call);
      }),
    );
  });

  it("are bounded, though an agent names endless sessions: the oldest share one", () => {
    const watermarks = new Watermarks();
    for (let i = 0; i < WATERMARKS_KEPT + 4; i += 1) watermarks.raise(`s${i}`, BigInt(i));
    const own = Array.from({ length: WATERMARKS_KEPT + 4 }, (_, i) => watermarks.own(`s${i}`));
    expect(own.filter((one) => one !== undefined).length).toBe(WATERMARKS_KEPT);
    for (const i of [0, 1, 2, 60_000]) expect(watermarks.of(`s${i}`)).toBeGreaterThanOrEqual(BigInt(i));
  });

  it("hand on which session lost its own, once each", () => {
    const watermarks = new Watermarks(1);
    const gone: string[] = [];
    for (const session of ["a", "b", "a"]) watermarks.raise(session, 5n, (one) => gone.push(one));
    expect([gone, watermarks.own("a"), watermarks.own("b"), watermarks.shared]).toEqual([
      ["a", "b"],
      5n,
      undefined,
      5n,
    ]);
  });
});
