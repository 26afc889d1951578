import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newCallId } from "../../src/client/call_ids.ts";
import { joinParts, splitContent } from "../../src/client/parts.ts";
import type { ToolResult } from "../../src/wire/message.ts";

const TEXT = fc.string({
  unit: fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom("\0", '"', "\\", "\n", "/", "\u007f"),
  ),
  maxLength: 60,
});

describe("splitting content", () => {
  it("gives well-formed pieces that fit, and the text again when joined", () => {
    fc.assert(
      fc.property(TEXT, fc.integer({ min: 6, max: 40 }), (text, bytesMax) => {
        const pieces = splitContent(text, bytesMax);
        expect(pieces.join("")).toBe(text);
        expect(pieces.length === 1 || pieces.every((piece) => piece !== "")).toBe(true);
        for (const piece of pieces) {
          expect(piece.isWellFormed()).toBe(true);
          expect(Buffer.byteLength(JSON.stringify(piece)) - 2).toBeLessThanOrEqual(bytesMax);
        }
      }),
    );
  });
});

describe("joining parts", () => {
  it("gives labels that cover every part's, in whatever order they come", () => {
    const part = (content: string, labels: Partial<ToolResult>): ToolResult => ({
      ...{ status: "result", content, class: "public", untrusted: false, truncated: false },
      ...labels,
    });
    const parts = [
      part("a", { class: "restricted" }),
      part("b", { untrusted: true }),
      part("c", { class: "internal" }),
    ];
    const labels = { class: "restricted", untrusted: true, truncated: false };
    expect(joinParts(parts)).toMatchObject({ content: "abc", ...labels });
    expect(joinParts([...parts].reverse())).toMatchObject({ content: "cba", ...labels });
  });
});

describe("new call ids", () => {
  it("carry the time above 2^20, rise always, and do not follow a clock that goes back", () => {
    const farAheadMs = 8_000_000_000_000;
    let nowMs = farAheadMs;
    const effects = { epochMs: () => nowMs, random: () => 0.5 };
    const first = newCallId(effects);
    expect(first >> 20n).toBe(BigInt(farAheadMs));
    const ids = [first];
    for (const stepMs of [0, 0, 1, -5_000, 0, 10_000]) {
      nowMs += stepMs;
      ids.push(newCallId(effects));
    }
    for (let i = 1; i < ids.length; i += 1) expect(ids[i]! > ids[i - 1]!).toBe(true);
    expect(ids.at(-1)! >> 20n).toBe(BigInt(nowMs));
  });

  it("of two processes differ within one millisecond where chance does", () => {
    const epochMs = () => 9_000_000_000_000;
    const one = newCallId({ epochMs, random: () => 0.9 });
    expect(one & 0xfffffn).toBe(BigInt(Math.floor(0.9 * 2 ** 19)));
  });
});
