import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchingLines, nameMatches } from "../../../src/roles/files/pattern.ts";

/** A glob the slow way. */
function slowGlob(pattern: readonly string[], name: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return name.length === 0;
  if (first === "*") return slowGlob(rest, name) || (name.length > 0 && slowGlob(pattern, name.slice(1)));
  return name.length > 0 && (first === "?" || first === name[0]) && slowGlob(rest, name.slice(1));
}

function linesOf(text: string, needle: string, max = 100, chars = 1000) {
  return matchingLines(Buffer.from(text), Buffer.from(needle), max, chars);
}

describe("a name pattern", () => {
  it("without wildcards is found anywhere in the name", () => {
    expect(nameMatches("port", "report.txt")).toBe(true);
    expect(nameMatches("Port", "report.txt")).toBe(false);
  });

  it("with wildcards is the whole name, as the slow definition has it", () => {
    const letters = fc.array(fc.constantFrom("a", "b", "*", "?", "😀"), { maxLength: 8 });
    fc.assert(
      fc.property(letters, letters, (pattern, name) => {
        fc.pre(pattern.some((one) => one === "*" || one === "?"));
        expect(nameMatches(pattern.join(""), name.join(""))).toBe(slowGlob(pattern, name));
      }),
    );
  });

  it("of many stars does not make a search hang", () => {
    expect(nameMatches(`${"*a".repeat(120)}*b`, "a".repeat(255))).toBe(false);
  });
});

describe("lines with a content", () => {
  it("are the lines in which it begins, each once, numbered from 1", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom("x", "é", "y"), maxLength: 6 })), (lines) => {
        const expected = lines.flatMap((text, at) => (text.includes("xé") ? [{ line: at + 1, text }] : []));
        expect(linesOf(lines.join("\n"), "xé").lines).toEqual(expected);
      }),
    );
  });

  it("may hold a content of several lines", () => {
    expect(linesOf("one\ntwo\nthree", "two\nth").lines).toEqual([{ line: 2, text: "two" }]);
  });

  it("that are long are shown around what was found, cut between characters", () => {
    const { lines } = linesOf(`${"é".repeat(500)}needle${"é".repeat(500)}`, "needle", 10, 40);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.text).toMatch(/^é+needleé+$/);
    expect(Buffer.byteLength(lines[0]?.text ?? "")).toBeLessThanOrEqual(41);
  });

  it("stop at the bound and say so", () => {
    expect(linesOf("a\na\na", "a", 2)).toEqual({
      lines: [
        { line: 1, text: "a" },
        { line: 2, text: "a" },
      ],
      more: true,
    });
    expect(linesOf("a\na", "a", 2).more).toBe(false);
  });
});
