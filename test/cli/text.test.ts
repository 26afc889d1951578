import { describe, expect, it } from "vitest";
import { localTime, moment, secondsOf, span } from "../../src/base/time_text.ts";
import { jsonLine } from "../../src/cli/terminal.ts";
import { labelledLines, textTable } from "../../src/cli/text_table.ts";
import { userText } from "../../src/cli/users.ts";

describe("lengths of time", () => {
  it.each([
    [-5, "0 s"],
    [999, "0 s"],
    [59_999, "59 s"],
    [60_000, "1 min"],
    [90_000, "1 min 30 s"],
    [899_999, "14 min"],
    [3_600_000, "1 h"],
    [7_500_000, "2 h 5 min"],
    [273_600_000, "3 d 4 h"],
  ])("%i ms are shown as %s, never as more than is left", (ms, text) => {
    expect(span(ms)).toBe(text);
  });

  it.each([
    ["90", 90],
    ["90s", 90],
    ["15m", 900],
    ["1h", 3600],
    ["7d", 604_800],
  ])("%s is read", (text, seconds) => {
    expect(secondsOf(text)).toBe(seconds);
  });

  it.each(["", "0", "0h", "-1h", "1.5h", "1w", "1h30m", "h", " 1h", "1e3", "9999999999"])(
    "%s is refused",
    (text) => {
      expect(secondsOf(text)).toBeUndefined();
    },
  );
});

describe("a moment", () => {
  it("is shown in local time with its offset, so that it names one moment only", () => {
    for (const ms of [0, 1_796_040_000_123, 1_750_000_000_000])
      expect(Date.parse(localTime(ms))).toBe(Math.floor(ms / 1000) * 1000);
    expect(localTime(0)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/);
  });

  it("says how far it is away", () => {
    expect(moment(0, 90_000)).toMatch(/ \(1 min 30 s ago\)$/);
    expect(moment(90_000, 0)).toMatch(/ \(in 1 min 30 s\)$/);
  });

  it("beyond what a date can be is a number", () => {
    expect(localTime(9e15)).toBe("9000000000000000");
  });
});

describe("a table", () => {
  it("has its columns below each other and no spaces at the end", () => {
    expect(
      textTable(
        ["A", "BBB"],
        [
          ["aaaa", "b"],
          ["a", ""],
        ],
      ),
    ).toBe("A     BBB\naaaa  b\na\n");
  });

  it("escapes its cells, and keeps each on its line", () => {
    const table = textTable(["A", "B"], [["x\ny\u001b[2J", "\u202e"]]);
    expect(table.split("\n")).toHaveLength(3);
    expect(table).toContain("x\\ny\\u{1b}[2J  \\u{202e}");
    expect(labelledLines([["name", "a\n\u001b"]])).toBe("name  a\\n\\u{1b}\n");
  });
});

describe("a line of JSON for programs", () => {
  it("means the same and shows nothing that a terminal obeys", () => {
    const value = { a: "\u202e\u009b\u{e0001}é😀\u001b", b: "\\u{202e}" };
    const line = jsonLine(JSON.stringify(value));
    expect(JSON.parse(line)).toEqual(value);
    expect(line).toMatch(/^[\x20-\x7eé😀]+\n$/u);
  });
});

describe("a user", () => {
  const listing = () =>
    "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nodd\u202e:x:7::\n:x:8:\n";

  it("is shown with name and number, or with the number where there is no name", () => {
    expect(userText(1000, listing)).toBe("alice (uid 1000)");
    expect(userText(100, listing)).toBe("uid 100");
    expect(userText(8, listing)).toBe("uid 8");
    expect(userText(null, listing)).toBe("user unknown (the kernel did not say)");
  });

  it("has a name that is escaped", () => {
    expect(userText(7, listing)).toBe("odd\\u{202e} (uid 7)");
  });
});
