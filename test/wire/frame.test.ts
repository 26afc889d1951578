import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { decodeBody, encodeMessage } from "../../src/wire/envelope.ts";
import { FrameFault } from "../../src/wire/fault.ts";
import { decodeFrame, encodeFrame, FrameReader, FrameWriter } from "../../src/wire/frame.ts";
import type { Envelope } from "../../src/wire/message.ts";
import { envelope, message, u64 } from "./arbitraries.ts";
import { checkStream, readPieces, splitAt } from "./fuzz_checks.ts";

const FRAME_BYTES_MAX = 1_048_576;

function failed(message: string, id = 7n): Envelope {
  return { v: 1, id, final: true, msg: { kind: "tool_response", body: { status: "failed", message } } };
}

function header(length: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(length);
  return bytes;
}

/** An envelope whose body has exactly this many bytes. */
function ofBodyBytes(bodyBytes: number): Envelope {
  const empty = encodeFrame(failed("")).length - 4;
  return failed("a".repeat(bodyBytes - empty));
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe("a reader", () => {
  it("finds the same frames and the same fault however the stream is cut", () => {
    const part = fc.oneof(
      { weight: 6, arbitrary: envelope.map((value) => encodeFrame(value)) },
      fc.constantFrom(header(0), header(FRAME_BYTES_MAX + 1), header(0xffff_ffff), header(9), Buffer.of(0)),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), fc.array(fc.nat(), { maxLength: 9 }), (parts, cuts) => {
        expect(checkStream(Buffer.concat(parts), cuts)).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  it("finds three frames sent byte by byte, and cut in two at every point", () => {
    const stream = Buffer.concat(
      [failed("one"), failed("é😀"), failed("")].map((value) => encodeFrame(value)),
    );
    const whole = readPieces([stream]);
    expect(whole[0]).toHaveLength(3);
    expect(readPieces([...stream].map((byte) => Buffer.of(byte)))).toEqual(whole);
    for (let cut = 0; cut <= stream.length; cut += 1) expect(checkStream(stream, [cut])).toBeUndefined();
  });

  it("finds two frames and a half in one write, and the rest in the next", () => {
    const frames = [failed("one"), failed("two"), failed("three")].map((value) => encodeFrame(value));
    const stream = Buffer.concat(frames);
    const reader = new FrameReader();
    reader.push(stream.subarray(0, stream.length - 9));
    expect([reader.next(), reader.next(), reader.next()]).toEqual([
      frames[0]!.subarray(4),
      frames[1]!.subarray(4),
      undefined,
    ]);
    reader.push(stream.subarray(stream.length - 9));
    expect(decodeBody(reader.next()!)).toEqual(failed("three"));
    expect(reader.end().outcome).toBe("closed");
  });

  it("finds what is left of a chunk when another is pushed too early", () => {
    const stream = encodeFrame(failed("one"));
    const reader = new FrameReader();
    for (const byte of stream) reader.push(Buffer.of(byte));
    expect(reader.next()).toEqual(stream.subarray(4));
  });

  it.each([1, 2, 3])("tells a stream that ends after %s bytes of a header from a clean end", (bytes) => {
    expect(readPieces([])[1]).toBe("closed");
    expect(readPieces([header(9).subarray(0, bytes)])[1]).toBe("io");
  });

  it("tells an end inside a body", () => {
    expect(readPieces([header(2), Buffer.from("{")])[1]).toBe("io");
  });

  it("goes on refusing once it has refused", () => {
    const reader = new FrameReader();
    reader.push(Buffer.concat([header(0), encodeFrame(failed("one"))]));
    for (let i = 0; i < 3; i += 1) expect(() => reader.next()).toThrow(FrameFault);
  });

  it("takes a body of exactly the maximum, and refuses one byte more by the header alone", () => {
    const frame = encodeFrame(ofBodyBytes(FRAME_BYTES_MAX));
    expect(decodeFrame(frame)?.frameBytes).toBe(FRAME_BYTES_MAX + 4);
    const [body] = readPieces(splitAt(frame, [1, 70_000, 999_999]))[0];
    expect(body?.equals(frame.subarray(4))).toBe(true);
    expect(readPieces([header(FRAME_BYTES_MAX + 1)])).toEqual([[], "too_large", FRAME_BYTES_MAX + 1]);
    expect(readPieces([header(0xffff_ffff)])).toEqual([[], "too_large", 0xffff_ffff]);
  });

  it("never hands out bytes that it later writes over", () => {
    const frames = Array.from({ length: 50 }, (_, i) => encodeFrame(failed("x".repeat(i * 97))));
    const stream = Buffer.concat(frames);
    const cuts = Array.from({ length: 400 }, (_, i) => i * 331);
    const bodies = readPieces(splitAt(stream, cuts))[0];
    expect(bodies).toHaveLength(frames.length);
    expect(bodies.filter((body, i) => !body.equals(frames[i]!.subarray(4)))).toEqual([]);
  });
});

describe("memory for a body that was declared", () => {
  /** Bytes of every buffer that was allocated while a reader took these pieces. */
  function allocatedBytes(pieces: readonly Buffer[]): number {
    const slow = vi.spyOn(Buffer, "allocUnsafeSlow");
    const others = [vi.spyOn(Buffer, "alloc"), vi.spyOn(Buffer, "allocUnsafe"), vi.spyOn(Buffer, "concat")];
    const reader = new FrameReader();
    for (const piece of pieces) {
      reader.push(piece);
      reader.next();
    }
    for (const other of others) expect(other).not.toHaveBeenCalled();
    return slow.mock.calls.reduce((sum, [size]) => sum + size, 0);
  }

  it("is not taken for a length and then nothing", () => {
    expect(allocatedBytes([header(FRAME_BYTES_MAX)])).toBeLessThanOrEqual(1024);
  });

  it("is none at all for a length that is refused", () => {
    const slow = vi.spyOn(Buffer, "allocUnsafeSlow");
    const reader = new FrameReader();
    reader.push(header(0xffff_ffff));
    expect(() => reader.next()).toThrow(FrameFault);
    expect(slow).not.toHaveBeenCalled();
  });

  it.each([1, 100, 5000])("grows with what has arrived, in pieces of %s bytes", (size) => {
    const pieces = [header(FRAME_BYTES_MAX), ...Array.from({ length: 60 }, () => Buffer.alloc(size))];
    const arrived = 4 + 60 * size;
    expect(allocatedBytes(pieces)).toBeLessThanOrEqual(1024 + 4 * arrived);
  });

  it("ends with the frame: what is held is told and let go", () => {
    const reader = new FrameReader();
    reader.push(header(10));
    expect([reader.next(), reader.heldBytes]).toEqual([undefined, 4]);
    reader.push(Buffer.alloc(9));
    expect([reader.next(), reader.heldBytes]).toEqual([undefined, 13]);
    reader.push(Buffer.alloc(1));
    expect([reader.next()?.length, reader.heldBytes]).toEqual([10, 0]);
  });
});

describe("a writer", () => {
  it("writes what encodeFrame writes, back to back, and never over what was taken", () => {
    const frame = fc.record({ id: u64, final: fc.boolean(), msg: message, take: fc.boolean() });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 40 }), (frames) => {
        const writer = new FrameWriter();
        const taken: Buffer[] = [];
        for (const { id, final, msg, take } of frames) {
          writer.append(id, final, encodeMessage(msg));
          if (take) taken.push(...writer.take());
        }
        taken.push(...writer.take());
        expect(writer.take()).toEqual([]);
        const told = frames.map(({ id, final, msg }) => encodeFrame({ v: 1, id, final, msg }));
        expect(Buffer.concat(taken).equals(Buffer.concat(told))).toBe(true);
      }),
    );
  });

  it("appends nothing where a body is a byte too large, and goes on", () => {
    const writer = new FrameWriter();
    writer.append(7n, true, encodeMessage(failed("one").msg));
    const pending = writer.pendingBytes;
    const over = encodeMessage(ofBodyBytes(FRAME_BYTES_MAX).msg);
    expect(() => writer.append(77n, true, over)).toThrow("(1048577)");
    expect(writer.pendingBytes).toBe(pending);
    writer.append(7n, true, over);
    expect(Buffer.concat(writer.take())).toHaveLength(pending + FRAME_BYTES_MAX + 4);
  });

  it("refuses an id or a `final` of another type and appends nothing", () => {
    const writer = new FrameWriter();
    const bytes = encodeMessage(failed("one").msg);
    for (const [id, final] of [
      [7, true],
      [-1n, true],
      [2n ** 64n, true],
      [7n, 1],
    ] as [bigint, boolean][])
      expect(() => writer.append(id, final, bytes)).toThrow(FrameFault);
    expect(writer.take()).toEqual([]);
  });
});
