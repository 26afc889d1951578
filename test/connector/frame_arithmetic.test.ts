import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeRequestFrame, encodeResponseFrame } from "../../src/connector/carriage.ts";
import { seal } from "../../src/connector/envelope.ts";
import {
  frameBytesForPayload,
  payloadBytesForFrame,
  requestFrameBytes,
  responseFrameBytes,
} from "../../src/connector/frame_arithmetic.ts";
import { IDENTITY_BYTES_MAX, TAG_BYTES } from "../../src/connector/limits.ts";

// The contract's own formulas, in numbers without end.
const s = (n: bigint) => n + (n < 32n ? 1n : n < 256n ? 2n : n < 65_536n ? 3n : 5n);
const b = (n: bigint) => n + (n < 256n ? 2n : n < 65_536n ? 3n : 5n);
const needed = (n: bigint) => 477n + s(4n * ((647n + b(n) + 2n) / 3n));

const LARGEST = Number.MAX_SAFE_INTEGER;
const sizes = fc.oneof(
  fc.nat(2000),
  fc.nat(2 ** 31 - 1),
  fc.constantFrom(...[255, 256, 65_535, 65_536, 48_495, 48_500, 2 ** 32].flatMap((n) => [n - 1, n, n + 1])),
  fc.maxSafeInteger().map(Math.abs),
  fc.nat(5000).map((n) => LARGEST - n),
);

const KEY = Buffer.alloc(32, 1);
const NONCE = Buffer.alloc(12, 2);

function sealedEnvelope(
  requestId: string,
  caller: string,
  payloadBytes: number,
  kind: "Invocation" | "Result",
) {
  return seal({ key: KEY, nonce: NONCE, requestId, caller, kind }, Buffer.alloc(payloadBytes - TAG_BYTES, 3));
}

describe("frame arithmetic", () => {
  it("gives the sizes of real frames, for ids of any length and payloads about every width of a header", () => {
    const idSizes = fc.oneof(fc.integer({ min: 1, max: 256 }), fc.constantFrom(31, 32, 255, 256));
    const widths = fc.constantFrom(17, 255, 256, 257, 4096, 48_494, 48_600, 65_535, 65_536);
    const payloads = fc.oneof(widths, fc.integer({ min: 17, max: 70_000 }));
    fc.assert(
      fc.property(idSizes, idSizes, payloads, (i, c, n) => {
        const [requestId, caller] = ["r".repeat(i), "c".repeat(c)];
        const request = encodeRequestFrame(requestId, sealedEnvelope(requestId, caller, n, "Invocation"));
        expect(requestFrameBytes(i, c, n)).toBe(request.length);
        const envelope = sealedEnvelope(requestId, caller, n, "Result");
        const response = encodeResponseFrame(requestId, "accepted", envelope);
        expect(responseFrameBytes(i, c, n)).toBe(response.length);
        expect(encodeResponseFrame(requestId, "rejected", envelope)).toHaveLength(response.length);
      }),
      { numRuns: 300 },
    );
  });

  it("gives the size of an echo that is past the bound of an id", () => {
    const requestId = "r".repeat(70_000);
    const response = encodeResponseFrame(
      requestId,
      "rejected",
      sealedEnvelope(requestId, "c", 100, "Result"),
    );
    expect(responseFrameBytes(70_000, 1, 100)).toBe(response.length);
  });

  it("gives what the contract prints", () => {
    expect([0, 4096, 16_384, 65_536, 1_048_576].map(frameBytesForPayload)).toEqual([
      1348, 6808, 23_192, 88_734, 1_399_454,
    ]);
    expect([1347, 6808, 65_536, 1_048_576].map(payloadBytesForFrame)).toEqual([
      undefined,
      4096,
      48_142,
      785_417,
    ]);
  });

  it("is exact for every whole number that a number can be", () => {
    fc.assert(
      fc.property(sizes, (n) => {
        expect(BigInt(frameBytesForPayload(n))).toBe(needed(BigInt(n)));
      }),
      { numRuns: 2000 },
    );
  });

  it("finds the largest payload that fits, and none where none does", () => {
    fc.assert(
      fc.property(sizes, (frameBytes) => {
        const payload = payloadBytesForFrame(frameBytes);
        if (payload === undefined) expect(needed(0n)).toBeGreaterThan(BigInt(frameBytes));
        else {
          expect(needed(BigInt(payload))).toBeLessThanOrEqual(BigInt(frameBytes));
          expect(needed(BigInt(payload) + 1n)).toBeGreaterThan(BigInt(frameBytes));
        }
      }),
      { numRuns: 2000 },
    );
  });

  it("never falls as its argument grows", () => {
    for (let n = 0; n < 70_000; n++) {
      expect(frameBytesForPayload(n + 1)).toBeGreaterThanOrEqual(frameBytesForPayload(n));
      expect(payloadBytesForFrame(n + 1) ?? -1).toBeGreaterThanOrEqual(payloadBytesForFrame(n) ?? -1);
    }
  });

  it("takes the response as the larger direction, at the longest ids", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 256 }), fc.integer({ min: 1, max: 256 }), sizes, (i, c, n) => {
        fc.pre(n < 2 ** 50);
        expect(requestFrameBytes(i, c, n)).toBeLessThanOrEqual(frameBytesForPayload(n));
        expect(responseFrameBytes(i, c, n)).toBeLessThanOrEqual(frameBytesForPayload(n));
        expect(responseFrameBytes(i, c, n)).toBeGreaterThanOrEqual(requestFrameBytes(i, c, n));
      }),
    );
    expect(responseFrameBytes(IDENTITY_BYTES_MAX, IDENTITY_BYTES_MAX, 9)).toBe(frameBytesForPayload(9));
  });

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])("has no answer for %d", (size) => {
    expect(() => frameBytesForPayload(size)).toThrow(RangeError);
    expect(() => payloadBytesForFrame(size)).toThrow(RangeError);
    expect(() => requestFrameBytes(size, 1, 1)).toThrow(RangeError);
    expect(() => responseFrameBytes(1, size, 1)).toThrow(RangeError);
  });
});
