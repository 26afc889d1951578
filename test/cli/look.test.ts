import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { secondsOf } from "../../src/base/time_text.ts";
import { inOptionWords } from "../../src/cli/option_words.ts";
import { coloured, type Look, PLAIN, plain, takesColours, toneOf } from "../../src/cli/paint.ts";
import { Progress } from "../../src/cli/progress.ts";
import { type Column, fitted, labelledLines, textTable } from "../../src/cli/text_table.ts";
import { cutTo, mostColumns, usualColumns } from "../../src/cli/text_width.ts";
import { Desk, NOW_MS } from "./desk.ts";

// How things look on a terminal: colours, widths, progress.

const at = (columns: number, paint = plain): Look => ({ paint, columns });
const lines = (text: string) => text.split("\n").slice(0, -1);
/** All that may steer a terminal in what we print. */
const withoutColours = (text: string) => text.replaceAll(/\u001b\[[0-9;]*m/g, "");

describe("colours", () => {
  it.each([
    [{}, true, true],
    [{}, false, false],
    [{ NO_COLOR: "1" }, true, false],
    [{ NO_COLOR: "" }, true, true],
    [{ TERM: "dumb" }, true, false],
    [{ FORCE_COLOR: "1" }, false, true],
    [{ FORCE_COLOR: "0" }, true, false],
    [{ FORCE_COLOR: "false" }, true, false],
    [{ FORCE_COLOR: "1", NO_COLOR: "1" }, false, true],
    [{ FORCE_COLOR: "", NO_COLOR: "1" }, true, false],
  ])("with %j on a terminal (%s) are there: %s", (env, isTerminal, are) => {
    expect(takesColours(env, isTerminal)).toBe(are);
  });

  it("come after a cell was escaped, so that none comes from a peer's text", () => {
    const hostile = "\u001b[32mallowed\u001b[0m";
    const table = textTable(["A", "B"], [[hostile, { text: hostile, tone: "bad" }]], at(80, coloured));
    expect(withoutColours(table)).toBe(textTable(["A", "B"], [[hostile, hostile]], at(80)));
    expect(table).toContain("\u001b[1;31m\\u{1b}[32mallowed\\u{1b}[0m\u001b[0m");
    expect(labelledLines([["n", hostile]], at(80, coloured))).not.toContain("\u001b[32m");
  });

  it("are of the broker's own words only", () => {
    expect(toneOf("failed unavailable")).toBe("bad");
    expect(toneOf("pending")).toBe("waiting");
    expect(toneOf("constructor")).toBeUndefined();
    expect(toneOf("")).toBeUndefined();
  });

  it("take no width, and go on behind the mark of a line that is broken", () => {
    const text = `${coloured("bad", "x".repeat(30))}\n`;
    const [first = "", second = ""] = fitted(text, 24).split("\n");
    expect(first).toBe(`\u001b[1;31m${"x".repeat(24)}\u001b[0m`);
    expect(second).toBe(`  ┆ \u001b[1;31m${"x".repeat(6)}\u001b[0m`);
    expect(fitted(`${coloured("bad", "x".repeat(24))}\n`, 24)).toBe(`${coloured("bad", "x".repeat(24))}\n`);
  });
});

describe("a long line on a terminal", () => {
  it("is broken between words where that is possible, each further piece marked", () => {
    expect(fitted("one two three four five six", 20)).toBe("one two three four \n  ┆ five six");
    expect(fitted(`${"x".repeat(25)} y`, 20)).toBe(`${"x".repeat(20)}\n  ┆ ${"x".repeat(5)} y`);
  });

  it("loses nothing and never fills more than the width, whatever is in it", () => {
    const words = fc.array(fc.string({ unit: "grapheme", maxLength: 30 }), { maxLength: 12 });
    fc.assert(
      fc.property(words, fc.integer({ min: 20, max: 90 }), (parts, columns) => {
        const line = parts.join(" ").replaceAll(/[\n\u001b┆]/g, "_");
        const shown = fitted(coloured("bad", line), columns);
        for (const one of shown.split("\n")) expect(mostColumns(one)).toBeLessThanOrEqual(columns);
        expect(withoutColours(shown).replaceAll("\n  ┆ ", "")).toBe(line);
      }),
    );
  });
});

describe("a table on a terminal", () => {
  const COLUMNS: readonly Column[] = [
    { name: "ID", whole: true },
    { name: "TOOL" },
    { name: "PID", yields: 1 },
    { name: "USER", yields: 2 },
    { name: "LAST" },
  ];
  const ROWS = [
    ["123456789012345678", "a.tool.with.quite.a.long.name", "4711", "somebody", "destination=".repeat(12)],
    ["1", "t", "1", "me", "-"],
  ];

  it("is as it is where there is room, or no terminal", () => {
    expect(textTable(COLUMNS, ROWS, at(400))).toBe(textTable(COLUMNS, ROWS, PLAIN));
  });

  it("cuts the widest columns first, and never one that must be whole", () => {
    const table = textTable(COLUMNS, ROWS, at(80));
    expect(table).toContain("123456789012345678  a.tool.with.");
    expect(table).toContain("4711");
    expect(table).toContain("…");
    for (const line of lines(table)) expect(mostColumns(line)).toBeLessThanOrEqual(80);
  });

  it("leaves out what yields, the highest first, and names it", () => {
    const table = textTable(COLUMNS, ROWS, at(46));
    expect(lines(table)[0]).toMatch(/^ID +TOOL +LAST$/);
    expect(table).toContain("(no room for PID, USER: --json has all)");
    expect(lines(textTable(COLUMNS, ROWS, at(50)))[0]).toMatch(/^ID +TOOL +PID +LAST$/);
  });

  it("fits any width that it can, whatever its cells are, on one line each", () => {
    const cell = fc.oneof(fc.string({ unit: "grapheme", maxLength: 90 }), fc.string({ maxLength: 90 }));
    const row = fc.tuple(cell, cell, cell);
    fc.assert(
      fc.property(fc.array(row, { maxLength: 8 }), fc.integer({ min: 40, max: 200 }), (rows, columns) => {
        const table = textTable(["A", "B", "C"], rows, at(columns));
        expect(lines(table)).toHaveLength(rows.length + 1);
        for (const line of lines(table)) {
          expect(usualColumns(line)).toBeLessThanOrEqual(columns);
          expect(line).toBe(line.trimEnd());
        }
      }),
      { examples: [[[["", "", " "]], 40]] },
    );
  });

  it("aligns what stands behind wide and combining characters", () => {
    const rows = [
      ["東京", "x"],
      ["e\u0301a", "x"],
      ["😀", "x"],
      ["ab", "x"],
    ];
    const [, ...cells] = lines(textTable(["TEXT", "Y"], rows, PLAIN));
    expect(new Set(cells.map((line) => usualColumns(line.slice(0, line.indexOf("x")))))).toEqual(
      new Set([6]),
    );
  });
});

describe("a text that is cut", () => {
  it("takes at most its columns, and ends in no half escape", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 2, max: 40 }), (text, columns) => {
        expect(mostColumns(cutTo(text, columns))).toBeLessThanOrEqual(Math.max(columns, 2));
      }),
    );
    expect(cutTo("ab\\u{202e}cd", 9)).toBe("ab…");
    expect(cutTo("東京都", 6)).toBe("東京都");
    expect(cutTo("東京都", 5)).toBe("東…");
  });
});

class Clocked extends Desk {
  override readonly isTerminal = true;
  readonly showsProgress: boolean;
  now = NOW_MS;
  tick: () => void = () => undefined;
  stopped = false;

  constructor(showsProgress: boolean) {
    super();
    this.showsProgress = showsProgress;
  }

  override nowMs(): number {
    return this.now;
  }

  readonly ticking = (_: number, then: () => void) => {
    this.tick = then;
    return () => {
      this.stopped = true;
    };
  };
}

describe("progress", () => {
  const ERASE = "\r\u001b[2K";

  it("is one line, written over, and gone at the end", () => {
    const desk = new Clocked(true);
    const progress = new Progress(desk, "backup", { ticking: desk.ticking });
    progress.at("backup: copying");
    expect(desk.err_).toBe(""); // short work says nothing
    desk.now += 1000;
    desk.tick();
    expect(desk.err_).toBe(`${ERASE}backup: copying … 1 s`);
    desk.now += 50;
    progress.at("backup: sealing"); // too soon to be read
    desk.now += 60;
    progress.at("backup: verifying");
    progress.end();
    expect(desk.err_).toBe(`${ERASE}backup: copying … 1 s${ERASE}backup: verifying … 1 s${ERASE}`);
    expect([desk.stopped, desk.out_]).toEqual([true, ""]);
  });

  it("is nothing at all where standard error is no terminal, or the work shows itself", () => {
    for (const [shows, isQuiet] of [
      [false, false],
      [true, true],
    ] as const) {
      const desk = new Clocked(shows);
      const progress = new Progress(desk, "backup", { isQuiet, ticking: desk.ticking });
      desk.now += 5000;
      desk.tick();
      progress.at("more");
      progress.end();
      expect(desk.err_).toBe("");
    }
  });

  it("never takes a second line, which would stay behind", () => {
    const desk = new Clocked(true);
    const progress = new Progress(desk, "x".repeat(500), { ticking: desk.ticking });
    desk.now += 1000;
    desk.tick();
    expect(mostColumns(desk.err_.slice(ERASE.length))).toBeLessThan(80);
    progress.end();
  });
});

describe("what the broker says of an argument", () => {
  const OPTIONS = [
    { flags: "--expires <time>", about: "", parse: secondsOf },
    { flags: "--class <class>", about: "" },
    { flags: "--trusted", about: "" },
    { flags: "--of <session>", about: "" },
    { flags: "--digest <digest>", about: "" },
  ];

  it.each([
    ["`expires_in_seconds` must be a whole number.", "--expires (in seconds) must be a whole number."],
    ["add `taint_max` and `taint_untrusted`.", "add --class and --trusted or --untrusted."],
    ["`session` and `digest` are texts.", "--of and --digest are texts."],
    [
      "`max_calls` is not an option of it; `a b` neither.",
      "`max_calls` is not an option of it; `a b` neither.",
    ],
  ])("%j reads %j", (said, told) => {
    expect(inOptionWords(said, OPTIONS)).toBe(told);
  });
});
