import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseToml, type TomlNode, type TomlTable } from "../../src/host/config_toml.ts";

function faultLines(text: string): readonly string[] {
  return parseToml(text).faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

function parsed(text: string): TomlTable {
  const { root, faults } = parseToml(text);
  expect(faults).toEqual([]);
  return root!;
}

/** The tree without positions, tables as arrays of pairs, so that no key can hide behind a prototype. */
function plain(node: TomlNode): unknown {
  if (node.kind === "table") return [...node.entries].map(([key, entry]) => [key, plain(entry.value)]);
  if (node.kind === "array") return node.items.map(plain);
  return node.kind === "local_time" ? node.kind : node.value;
}

describe("the tree", () => {
  it("holds dotted keys, inline tables, sub-tables and lists of tables in one shape", () => {
    const dotted = plain(parsed("a.b.c = 1\na.b.d = 2"));
    expect(plain(parsed("[a.b]\nc = 1\nd = 2"))).toEqual(dotted);
    expect(plain(parsed("a = { b = { c = 1, d = 2 } }"))).toEqual(dotted);
    expect(plain(parsed('[a]\n"b".c = 1\nb."d" = 2'))).toEqual(dotted);
    expect(plain(parsed("[[g]]\nx = 1\n[g.sub]\ny = 2\n[[g]]\nx = 3"))).toEqual(
      plain(parsed("g = [{ x = 1, sub = { y = 2 } }, { x = 3 }]")),
    );
  });

  it("keeps keys named like an object's own machinery as plain keys", () => {
    expect(plain(parsed("__proto__.constructor = 1\n[toString]\nhasOwnProperty = 2"))).toEqual([
      ["__proto__", [["constructor", 1]]],
      ["toString", [["hasOwnProperty", 2]]],
    ]);
  });

  it("knows where each key and value stands, also behind multi-line texts, CRLF and wide letters", () => {
    const root = parsed("a = '''\nx\ny'''\r\nb = '\u{1f600}\u{e9}' # z\r\n[t]\n  c  =  [ 1,\n 2 ]");
    expect(root.entries.get("a")?.value.at).toEqual({ line: 1, column: 5 });
    expect(root.entries.get("b")?.keyAt).toEqual({ line: 4, column: 1 });
    const table = root.entries.get("t")?.value as TomlTable;
    expect(table.at).toEqual({ line: 5, column: 2 });
    expect(table.entries.get("c")?.keyAt).toEqual({ line: 6, column: 3 });
    const items = table.entries.get("c")?.value;
    expect(items?.kind === "array" && items.items.map((item) => item.at)).toEqual([
      { line: 6, column: 11 },
      { line: 7, column: 2 },
    ]);
  });

  it("tells an instant from a date or time that does not say where", () => {
    expect(plain(parsed("a = 2027-01-01T00:00:00+02:00\nb = 2027-01-01T00:00:00\nc = 2027-01-01"))).toEqual([
      ["a", Date.UTC(2026, 11, 31, 22)],
      ["b", "local_time"],
      ["c", "local_time"],
    ]);
  });

  it("refuses integers that a number cannot hold exactly, and keeps the last that it can", () => {
    expect(plain(parsed("a = 9007199254740991\nb = -9007199254740991\nc = 0xff"))).toEqual([
      ["a", 9007199254740991],
      ["b", -9007199254740991],
      ["c", 255],
    ]);
    for (const big of ["9007199254740992", "9007199254740993", "-9007199254740992", "99999999999999999999"]) {
      expect(faultLines(`ok = 1\na = ${big}`)).toEqual([
        "2:5 an integer must lie between -9007199254740991 and 9007199254740991",
      ]);
    }
  });
});

describe("duplicate keys", () => {
  it("are all reported, the rest of the file is still read, and the first one stands", () => {
    const text = 'a = 1\na = 2\nb = { c = 1, c = 2, d = 3, "d" = 4 }\n[t]\nx = 1\n[t]\ny = 2\n[u]\nz = 1';
    const { root, faults } = parseToml(text);
    expect(faults.map(({ line, column }) => `${line}:${column}`).sort()).toEqual([
      "2:1",
      "3:14",
      "3:28",
      "6:2",
    ]);
    expect(plain(root!)).toEqual([
      ["a", 1],
      [
        "b",
        [
          ["c", 1],
          ["d", 3],
        ],
      ],
      ["t", [["x", 1]]],
      ["u", [["z", 1]]],
    ]);
  });

  it("leave the columns of what stands behind them on the line right", () => {
    const { root } = parseToml("a = { b = 1, b = 2, c = 3 }");
    const table = root?.entries.get("a")?.value as TomlTable;
    expect(table.entries.get("c")?.keyAt).toEqual({ line: 1, column: 21 });
  });

  it.each([
    ["a value and a table", "a = 1\n[a]\nb = 1", "2:2"],
    ["a table and a list of tables", "[a]\nb = 1\n[[a]]\nb = 2", "3:3"],
    ["a list of values and a list of tables", "a = [1]\n[[a]]\nb = 1", "2:3"],
    ["an inline table that is extended later", "a = { b = 1 }\n[a.c]\nd = 1", "2:2"],
    ["a dotted key through a value", "a = 1\na.b = 2", "2:1"],
    ["a table that dotted keys have made", "a.b = 1\n[a]\nc = 2", "2:2"],
    ["the same key in two spellings", "\"a\" = 1\n'a' = 2", "2:1"],
    ["the same key, once with an escape", 'a = 1\n"\\u0061" = 2', "2:1"],
  ])("are found between %s", (_, text, at) => {
    expect(faultLines(text).map((line) => line.split(" ")[0])).toEqual([at]);
  });

  it("do not go on for ever", () => {
    const faults = faultLines("a = 1\n".repeat(300));
    expect(faults.length).toBe(101);
  });
});

describe("text that is no TOML", () => {
  it.each([
    [
      "mode = 0600",
      '1:8 not valid TOML: a number must not begin with 0; a file mode is text in quotes, such as "0600"',
    ],
    [
      "timeout = 10s",
      '1:13 not valid TOML: something follows the value; one setting a line, and text and durations in quotes ("10s")',
    ],
    [
      "a = allow",
      '1:5 not valid TOML: unexpected character; text values stand in quotes ("..."), true and false in lower case',
    ],
    ['a = "x\nb = 1', "1:7 not valid TOML: the text is not closed; end it with the quote that it began with"],
    ["a = [1, 2\n3 = 4", "2:1 not valid TOML: a comma is missing between two values, or the closing bracket"],
    ["[roles", "1:7 not valid TOML: the table's name is not closed; write [name] or [[name]]"],
    ["a\nb = 1", "2:1 not valid TOML: name, = and value must be on one line"],
    [
      "a = 2027-02-30T00:00:00Z",
      "1:14 not valid TOML: there is no such date; write it as 2027-01-31T00:00:00Z",
    ],
    [
      'a = "\\d"',
      "1:7 not valid TOML: no such escape in \"...\"; double the backslash, or use '...' which knows no escapes",
    ],
  ])("%j is refused with its place and what would be right", (text, expected) => {
    expect(faultLines(text)).toEqual([expected]);
    expect(parseToml(text).root).toBeUndefined();
  });

  it("is a fault, not a crash, where it nests by the thousands or holds a huge text", () => {
    for (const text of [
      `a = ${"[".repeat(50_000)}`,
      `a = ${"[".repeat(2000)}${"]".repeat(2000)}`,
      `a = ${"{ b = ".repeat(2000)}1${" }".repeat(2000)}`,
      `${"a.".repeat(5000)}a = 1`,
      `[${"a.".repeat(5000)}a]`,
      `a = "${"x".repeat(500_000)}"`,
    ]) {
      expect(faultLines(text).length).toBe(1);
    }
  });

  it("is always a fault with a place within the text, whatever it is", () => {
    const piece = fc.oneof(
      fc.constantFrom("[", "]", "[[", "]]", "{", "}", "=", ".", ",", "\n", "\r\n", '"', "'", "'''", "#"),
      fc.constantFrom(
        "a",
        "b",
        "a.b",
        "1",
        "0x1",
        "1.5",
        "true",
        "nan",
        "2027-01-01",
        "T00:00:00Z",
        "\\u00",
        " ",
      ),
      fc.string({ unit: "binary", maxLength: 4 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join("");
        const { root, faults } = parseToml(text);
        expect(root !== undefined || faults.length > 0).toBe(true);
        for (const { line, column } of faults) {
          expect(line).toBeGreaterThan(0);
          expect(line).toBeLessThanOrEqual(text.split("\n").length);
          expect(column).toBeGreaterThan(0);
        }
      }),
      { numRuns: 500 },
    );
  });
});
