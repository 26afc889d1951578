import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { U64_MAX } from "../../../src/base/ids.ts";
import { isId } from "../../../src/connector/text_rules.ts";
import { expiriesOf, gridStepOf, requestIdOf } from "../../../src/roles/model/turn_request.ts";

const SESSION = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$/);
const CALL = fc.bigInt({ min: 0n, max: U64_MAX });

function idOf(session: string, call: bigint): string {
  const id = requestIdOf(session, call);
  if (!id.ok) throw new Error(id.fault);
  return id.value;
}

describe("a request id", () => {
  it("is an id, and gives session and call back, so that no two calls share one", () => {
    fc.assert(
      fc.property(SESSION, CALL, (session, call) => {
        const id = idOf(session, call);
        expect(isId(id)).toBe(true);
        const [, digits, rest] = /^callgate\/([0-9]+)\/(.*)$/.exec(id) ?? [];
        expect([digits, rest]).toEqual([call.toString(), session]);
      }),
    );
  });

  it("is another where a session looks like the end of another call's id", () => {
    const ids = [idOf("1/a", 2n), idOf("a", 21n), idOf("a", 2n), idOf("2/1/a", 2n), idOf("2/a", 1n)];
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("of the longest session and call fits", () => {
    expect(requestIdOf("s".repeat(128), U64_MAX).ok).toBe(true);
    expect(requestIdOf("s".repeat(300), 1n).ok).toBe(false);
  });
});

describe("expiries", () => {
  const NOW = fc.integer({ min: 2 ** 32, max: 2 ** 42 });
  const HORIZON = fc.integer({ min: 1000, max: 31 * 86_400_000 });

  it("lie ahead of now, and within the horizon", () => {
    fc.assert(
      fc.property(NOW, HORIZON, (nowMs, horizonMs) => {
        const [newest = 0] = expiriesOf(nowMs, gridStepOf(horizonMs), 0);
        expect(newest).toBeGreaterThan(nowMs + gridStepOf(horizonMs) - 1);
        expect(newest).toBeLessThanOrEqual(nowMs + horizonMs);
      }),
    );
  });

  it("of a retry hold that of the first attempt, however long ago within the look-back, and few others", () => {
    fc.assert(
      fc.property(NOW, HORIZON, fc.integer({ min: 0, max: 86_400_000 }), (firstMs, horizonMs, agoMs) => {
        const step = gridStepOf(horizonMs);
        const [first] = expiriesOf(firstMs, step, 0);
        const tried = [...expiriesOf(firstMs + agoMs, step, 86_400_000)];
        expect(tried).toContain(first);
        expect(tried.indexOf(first!)).toBeLessThanOrEqual(Math.ceil(agoMs / step));
        expect(tried.length).toBeLessThanOrEqual(Math.ceil(86_400_000 / step) + 1);
      }),
    );
  });
});
