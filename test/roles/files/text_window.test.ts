import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LOOK_BEHIND_BYTES, textWindow } from "../../../src/roles/files/text_window.ts";

/** As read_file asks for it. */
function windowOf(file: Buffer, offset: number, limit: number) {
  const start = Math.max(0, offset - LOOK_BEHIND_BYTES);
  const from = offset - start;
  return textWindow(file.subarray(start, start + from + limit + 1), from, limit);
}

const textWithoutNul = fc.string({ unit: "binary", maxLength: 80 }).map((text) => text.replaceAll("\0", "·"));

describe("windows onto a text", () => {
  it("that follow each other give every character exactly once, wherever they are cut", () => {
    fc.assert(
      fc.property(textWithoutNul, fc.integer({ min: 4, max: 9 }), (text, limit) => {
        const file = Buffer.from(text);
        let together = "";
        let truncated = true;
        for (let offset = 0; truncated; offset += limit) {
          const window = windowOf(file, offset, limit);
          if (!window.ok) throw new Error(window.fault);
          expect(Buffer.byteLength(window.value.text)).toBeLessThanOrEqual(limit + LOOK_BEHIND_BYTES);
          together += window.value.text;
          truncated = window.value.truncated;
        }
        expect(together).toBe(text);
      }),
    );
  });

  it("end before a character that they would cut, and say that there is more", () => {
    expect(windowOf(Buffer.from("abc€"), 0, 5)).toEqual({
      ok: true,
      value: { text: "abc", truncated: true },
    });
    expect(windowOf(Buffer.from("abc€"), 0, 6)).toEqual({
      ok: true,
      value: { text: "abc€", truncated: false },
    });
    expect(windowOf(Buffer.from("abc€"), 5, 4)).toEqual({ ok: true, value: { text: "€", truncated: false } });
  });

  it("at the very end are empty, and past it a fault", () => {
    expect(windowOf(Buffer.from("abcd"), 4, 4)).toEqual({ ok: true, value: { text: "", truncated: false } });
    expect(windowOf(Buffer.from("abcd"), 5, 4)).toEqual({ ok: false, fault: "past_end" });
    expect(windowOf(Buffer.from("abcd"), 5000, 4)).toEqual({ ok: false, fault: "past_end" });
  });

  it("keep a byte order mark", () => {
    expect(windowOf(Buffer.from("\ufeffa"), 0, 9)).toEqual({
      ok: true,
      value: { text: "\ufeffa", truncated: false },
    });
  });

  it.each([
    ["a stray continuation byte", [0x61, 0x80, 0x61]],
    ["only continuation bytes", [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80]],
    ["an overlong slash", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["above U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
    ["a character that the file's end cuts", [0x61, 0xe2, 0x82]],
  ])("never show %s as U+FFFD: it is not UTF-8", (_what, bytes) => {
    expect(windowOf(Buffer.from(bytes), 0, 64)).toEqual({ ok: false, fault: "not_utf8" });
  });

  it("with a NUL are binary", () => {
    expect(windowOf(Buffer.from("a\0b"), 0, 64)).toEqual({ ok: false, fault: "binary" });
  });
});
