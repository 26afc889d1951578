import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FRAME_BYTES_WORKABLE, FrameIntake, withLength } from "../../src/connector/frame.ts";

/** Everything at once after the pieces, with what each take said. */
function taken(pieces: readonly Uint8Array[], frameBytesMax: number) {
  const intake = new FrameIntake(frameBytesMax);
  return pieces.map((piece) => intake.take(Buffer.from(piece)));
}

function header(length: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(length);
  return bytes;
}

describe("a reader of one frame", () => {
  it("gives the same frame however the stream is cut, and takes no notice of what follows", () => {
    const bodies = fc.uint8Array({ minLength: 1, maxLength: 5000 });
    const rest = fc.uint8Array({ maxLength: 50 });
    const cuts = fc.array(fc.nat(5060), { maxLength: 30 });
    fc.assert(
      fc.property(bodies, rest, cuts, (body, behind, places) => {
        const stream = Buffer.concat([withLength(body), behind]);
        const at = [0, ...places.map((place) => Math.min(place, stream.length)), stream.length];
        at.sort((a, b) => a - b);
        const intakes = taken(
          at.slice(1).map((end, i) => stream.subarray(at[i], end)),
          5000,
        );
        const last = intakes.at(-1);
        expect(last?.state === "whole" && last.frame.equals(body)).toBe(true);
        expect(intakes.some(({ state }) => state === "bad_length")).toBe(false);
      }),
    );
  });

  it("gives a frame that comes byte by byte", () => {
    const body = Buffer.from(Array.from({ length: 3000 }, (_, i) => i & 255));
    const intakes = taken(
      [...withLength(body)].map((byte) => Uint8Array.of(byte)),
      3000,
    );
    expect(intakes.filter(({ state }) => state !== "partial")).toEqual([{ state: "whole", frame: body }]);
  });

  it.each([
    ["zero", 0, 100],
    ["one above the bound", 101, 100],
    ["all that four bytes hold", 0xffff_ffff, 100],
  ])(
    "refuses a length of %s before any of the body is there, and takes nothing after it",
    (_, length, most) => {
      const bad = { state: "bad_length", declaredBytes: length };
      expect(taken([header(length), Buffer.alloc(50)], most)).toEqual([bad, bad]);
    },
  );

  it("takes a length at the bound", () => {
    expect(taken([header(100), Buffer.alloc(100)], 100)[1]?.state).toBe("whole");
  });

  it("keeps no more than twice what has arrived, whatever length was declared", () => {
    const intake = new FrameIntake(2 ** 32 - 1);
    const before = process.memoryUsage().arrayBuffers;
    intake.take(header(FRAME_BYTES_WORKABLE));
    intake.take(Buffer.alloc(2000));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000);
  });

  it("takes no frame that can't be worked on, even below its bound", () => {
    expect(taken([header(FRAME_BYTES_WORKABLE + 1)], 2 ** 32 - 1)[0]?.state).toBe("bad_length");
  });

  it("knows whether anything has come", () => {
    const intake = new FrameIntake(100);
    expect(intake.hasBegun).toBe(false);
    intake.take(Buffer.alloc(0));
    expect(intake.hasBegun).toBe(false);
    intake.take(Buffer.alloc(1));
    expect(intake.hasBegun).toBe(true);
  });
});
