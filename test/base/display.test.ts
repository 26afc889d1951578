import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { visible, visibleLine } from "../../src/base/display.ts";

describe("text of a peer's, as a person sees it", () => {
  it.each([
    ["an escape sequence", "a\u001b[2Jb", "a\\u{1b}[2Jb"],
    ["a carriage return", "ok\rno", "ok\\u{d}no"],
    ["a C1 control", "\u009b31m", "\\u{9b}31m"],
    ["a change of direction", "a\u202eb", "a\\u{202e}b"],
    ["a zero-width space", "a\u200bb", "a\\u{200b}b"],
    ["a line separator", "a\u2028b", "a\\u{2028}b"],
    ["a tag", "a\u{e0041}b", "a\\u{e0041}b"],
    ["a variation selector", "a\ufe0fb", "a\\u{fe0f}b"],
    ["a Hangul filler", "a\u3164b", "a\\u{3164}b"],
    ["half a character", "a\ud800b", "a\\u{d800}b"],
    ["plain words", "Größe 😀\n\tok", "Größe 😀\n\tok"],
  ])("shows %s as what it is", (_, text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  it("never holds anything but line feeds and tabs that could move the cursor", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(/[^\P{C}\n\t]/u.test(visible(text))).toBe(false);
      }),
    );
  });
});

describe("the same on one line", () => {
  it("has no line feed and no tab, and folds what is long", () => {
    expect(visibleLine("a\nb\tc")).toBe("a\\nb\\tc");
    expect(visibleLine("x".repeat(30), 20)).toBe(`${"x".repeat(20)}… (30 characters)`);
    expect(visibleLine("x".repeat(20), 20)).toBe("x".repeat(20));
  });

  it("cuts neither a character nor an escape in two", () => {
    expect(visibleLine(`${"x".repeat(9)}😀😀`, 10)).toBe(`${"x".repeat(9)}… (13 characters)`);
    expect(visibleLine(`${"x".repeat(8)}\u202e\u202e`, 12)).toBe(`${"x".repeat(8)}… (10 characters)`);
  });

  it("is bounded whatever it is given", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 300 }),
        fc.integer({ min: 1, max: 200 }),
        (text, max) => {
          const line = visibleLine(text, max);
          expect(line.length).toBeLessThanOrEqual(max + `… (${text.length} characters)`.length);
          expect(/[\n\r\t\u2028\u2029]/.test(line)).toBe(false);
          expect(line.isWellFormed()).toBe(true);
        },
      ),
    );
  });
});
