import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FOLDED, membersOf, notAscii, shownJson, UNFOLDED } from "../../src/base/json_text.ts";

const whole = (text: string) => shownJson(text, UNFOLDED).lines.join("\n");

/** What a terminal obeys or hides. */
const HIDDEN = /(?!\n)(?:\p{C}|\p{Zl}|\p{Zp}|\p{Default_Ignorable_Code_Point})/u;

describe("JSON text for a person", () => {
  it("shows every number as it was written", () => {
    const text = '{"a":9007199254740993,"b":1.0,"c":1e2,"d":-0.0,"e":100000000000000000000000000000001}';
    expect(whole(text)).toBe(
      '{\n  "a": 9007199254740993,\n  "b": 1.0,\n  "c": 1e2,\n  "d": -0.0,\n  "e": 100000000000000000000000000000001\n}',
    );
  });

  it("shows a string that was written in escapes as what it means, and odd characters marked", () => {
    expect(whole('{"\\u0070ath":"\\u002fetc\\u002Fpasswd"}')).toBe('{\n  "path": "/etc/passwd"\n}');
    expect(whole('["a\u202eb","\\u200b","\u2028","\\u001b[2J","\u009b1m"]')).toBe(
      '[\n  "a\\u{202e}b",\n  "\\u{200b}",\n  "\\u{2028}",\n  "\\u001b[2J",\n  "\\u{9b}1m"\n]',
    );
  });

  it("tells a marked character from a text that looks like the mark", () => {
    expect(whole('"\\\\u{202e}"')).toBe('"\\\\u{202e}"');
    expect(whole('"\u202e"')).toBe('"\\u{202e}"');
  });

  it("folds a long string in its middle, says how much it hides, and keeps beginning and end", () => {
    const { lines, folded } = shownJson(JSON.stringify({ a: `START${"x".repeat(5000)}END` }), FOLDED);
    expect(folded).toBe(true);
    expect(lines[1]).toMatch(/^ {2}"a": "STARTx{155}" … 4,768 characters hidden … "x{77}END"$/);
  });

  it("a string can't pretend to be a fold: it stands in quotes", () => {
    expect(whole('{"a":"x\\" … 9 characters hidden … \\"y"}')).toContain(
      '"x\\" … 9 characters hidden … \\"y"',
    );
  });

  it("never cuts a character in two", () => {
    for (const before of ["", "x"]) {
      const { lines } = shownJson(JSON.stringify(`${before}${"😀".repeat(500)}`), FOLDED);
      expect(lines.join("")).not.toMatch(/\\u|\p{Surrogate}/u);
    }
  });

  it("hides lines beyond the bound, and says how many", () => {
    const { lines, folded } = shownJson(JSON.stringify(Array.from({ length: 1000 }, () => 1)), FOLDED);
    expect(folded).toBe(true);
    expect(lines).toHaveLength(FOLDED.lines + 1);
    expect(lines.at(-1)).toBe("… 922 more lines hidden");
  });

  it("means the same as the text and shows nothing that a terminal obeys, whatever the value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(3), (value, spaces) => {
        const text = whole(JSON.stringify(value, undefined, spaces));
        expect(text).not.toMatch(HIDDEN);
        const unmarked = text.replace(/(?<=(?:^|[^\\])(?:\\\\)*)\\u\{([0-9a-f]+)\}/g, (_, hex: string) =>
          String.fromCodePoint(Number.parseInt(hex, 16)),
        );
        expect(JSON.parse(unmarked)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("takes a text that is no JSON without failing, and escapes it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(whole(text)).not.toMatch(HIDDEN);
      }),
    );
  });
});

describe("the members of an object's text", () => {
  it("are its own, with their values as they were written", () => {
    const text = ' { "a" : [1, {"b":2.0}] , "\\u0062" : "x,}" , "c":{ } , "__proto__": 1e400 } ';
    expect([...membersOf(text)]).toEqual([
      ["a", '[1,{"b":2.0}]'],
      ["b", '"x,}"'],
      ["c", "{}"],
      ["__proto__", "1e400"],
    ]);
    expect([...membersOf("{}")]).toEqual([]);
  });

  it("are those that a parser finds", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const text = JSON.stringify(value);
        const parsed = Object.entries(JSON.parse(text) as object);
        const found = [...membersOf(text)].map(([name, member]) => [name, JSON.parse(member)]);
        expect(new Map(found as [string, unknown][])).toEqual(new Map(parsed));
      }),
    );
  });
});

describe("letters that are not what they look like", () => {
  it("are named with their number", () => {
    expect(notAscii("bob@ex\u0430mple.org")).toBe("\u0430 U+0430");
    expect(notAscii("a\u200bb\u202e")).toBe("\\u{200b} U+200B, \\u{202e} U+202E");
    expect(notAscii("/srv/plain file.txt")).toBeUndefined();
  });
});
