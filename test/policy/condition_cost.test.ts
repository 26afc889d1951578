// What a hostile caller can make a condition cost: always a verdict, in bounded time.

import { describe, expect, it } from "vitest";
import { kindOf } from "./condition_fixture.ts";

const MANY = Array.from({ length: 30_000 }, (_, index) => index);
const LONG = "x".repeat(300_000);

/** Of processor time: far above what the budget allows for, far below what no budget would cost. */
const MILLISECONDS_MAX = 1000;

function processorMilliseconds(): number {
  return process.cpuUsage().user / 1000;
}

function timed(source: string, args: unknown): string {
  const text = JSON.stringify(args);
  kindOf("has(args.a)", text);
  const before = processorMilliseconds();
  const kind = kindOf(source, text);
  expect(processorMilliseconds() - before).toBeLessThan(MILLISECONDS_MAX);
  return kind;
}

describe("a budget", () => {
  it.each<[string, string, unknown]>([
    ["a loop in a loop", "args.a.all(x, args.a.all(y, true))", { a: MANY }],
    ["`in` in a loop", "args.a.all(x, !(x in args.b))", { a: MANY, b: MANY.map((number) => number + 1e6) }],
    [
      "equal lengths in a loop",
      "args.a.exists(x, args.b == args.c)",
      { a: MANY, b: `${LONG}1`, c: `${LONG}2` },
    ],
    [
      "lists compared in a loop",
      "args.a.exists(x, args.a == args.b)",
      { a: MANY, b: [...MANY.slice(0, -1), -1] },
    ],
    ["a search in a loop", "args.a.exists(x, args.b.contains('xy'))", { a: MANY, b: LONG }],
    [
      "a search for what the caller gives",
      "args.b.contains(args.c)",
      { b: LONG, c: `y${"x".repeat(100_000)}` },
    ],
    ["a size in a loop", "args.a.exists(x, size(args.b) == 1)", { a: MANY, b: LONG }],
    [
      "a text that grows in a loop",
      "args.a.exists(x, (args.b + args.b).contains('y'))",
      { a: MANY, b: LONG },
    ],
    ["a pattern in a loop", "args.a.exists(x, args.b.matches('y$'))", { a: MANY, b: LONG }],
    ["a heavy pattern", "args.b.matches('(x+x+)+y$|(.?){100}z')", { b: LONG }],
    [
      "URLs in a loop",
      "args.a.exists(x, host_in(args.b, ['a.test']))",
      { a: MANY, b: `https://b.test/${"x".repeat(8000)}` },
    ],
    ["paths in a loop", "args.a.exists(x, under(args.b, '/a'))", { a: MANY, b: `/b/${"ü/".repeat(2000)}` }],
    [
      "a list of the caller's in a loop",
      "args.a.exists(x, host_in('https://b.test/', args.b))",
      { a: MANY, b: MANY.map((number) => `a${number}.test`) },
    ],
    [
      "a long name looked up in a loop",
      "args.a.all(x, args.m[args.k] == 1)",
      { a: MANY, k: LONG, m: { [LONG]: 1 } },
    ],
    [
      "maps of long names compared in a loop",
      "args.a.all(x, args.b == args.c)",
      { a: MANY, b: { [LONG]: 1 }, c: { [LONG]: 1 } },
    ],
    [
      "long numerals read in loops",
      "args.a.all(x, args.a.all(y, double(args.d) > 0.0))",
      { a: MANY, d: `${"7".repeat(300)}.${"7".repeat(300)}` },
    ],
    ["lists made in loops", "args.a.map(x, args.a.map(y, [x, y, x, y])).size() > 0", { a: MANY }],
  ])("ends %s with an error", (_, source, args) => {
    expect(timed(source, args)).toBe("error");
  });

  it("pays for a word that nearly fits everywhere in a request", () => {
    const args = JSON.stringify({ a: MANY, w: `${"a".repeat(511)}b${"a".repeat(512)}` });
    const before = processorMilliseconds();
    const source = "args.a.all(x, !in_request(args.w))";
    expect(kindOf(source, args, { request: "a".repeat(16_384) })).toBe("error");
    expect(kindOf(source, JSON.stringify({ a: MANY, w: "é".repeat(1024) }), { request: "pay" })).toBe(
      "error",
    );
    expect(processorMilliseconds() - before).toBeLessThan(MILLISECONDS_MAX);
  });

  it("is large enough for a long word in a long request", () => {
    const word = "w".repeat(1000);
    const request = `${"pay the bill ".repeat(1000)}${word}`;
    expect(kindOf("in_request(args.w)", JSON.stringify({ w: word }), { request })).toBe("match");
    const to = Array.from({ length: 80 }, (_, index) => `somebody${index}@mail.test`);
    const letter = `${to.join(" ")} ${"and so on ".repeat(1000)}`;
    expect(kindOf("args.to.all(x, in_request(x))", JSON.stringify({ to }), { request: letter })).toBe(
      "match",
    );
  });

  it("is large enough for what owners write over large arguments", () => {
    expect(timed("args.a.all(x, x < 30000)", { a: MANY })).toBe("match");
    expect(timed("args.b.contains('secret') || size(args.b) > 5", { b: LONG })).toBe("match");
    expect(timed("args.b.matches('^x+$')", { b: "x".repeat(50_000) })).toBe("match");
    expect(
      timed("args.a.all(u, host_in(u, ['*.test']))", {
        a: MANY.slice(0, 1000).map((number) => `https://h${number}.test/`),
      }),
    ).toBe("match");
  });

  it("is spent anew for every call", () => {
    for (let call = 0; call < 3; call++) {
      expect(timed("args.a.all(x, args.a.all(y, true))", { a: MANY })).toBe("error");
      expect(timed("args.a == 1", { a: 1 })).toBe("match");
    }
  });

  it("is hardly touched by a pattern that makes backtracking engines hang", () => {
    const args = JSON.stringify({ s: `${"a".repeat(40)}!` });
    kindOf("args.s.matches('(a+)+$')", args);
    const before = processorMilliseconds();
    for (let call = 0; call < 100; call++) expect(kindOf("args.s.matches('(a+)+$')", args)).toBe("no_match");
    expect(processorMilliseconds() - before).toBeLessThan(MILLISECONDS_MAX);
  });
});
