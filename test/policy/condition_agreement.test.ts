// Where an expression has a value at all, it is the one that the CEL library's own evaluator gives.

import { run } from "@bufbuild/cel";
import fc from "fast-check";
import { expect, it } from "vitest";
import { isJsonObject, type Json, jsonTextInOrder } from "../../src/base/json.ts";
import { verdictOf } from "./condition_fixture.ts";

const ARGS = new Map<string, Json>([
  ["i", 7n],
  ["j", -3n],
  ["d", 2.5],
  ["s", "abc"],
  ["t", "b"],
  ["yes", true],
  ["no", false],
  ["is", [1n, 2n, 3n]],
  ["ss", ["a", "b"]],
  ["none", []],
  ["m", new Map<string, Json>([["k", 1n]])],
]);

/** What a loop compares with. */
const limit = fc.constantFrom("1", "2", "args.i - 5", "args.j");

const { int, double, text, bool } = fc.letrec<{ int: string; double: string; text: string; bool: string }>(
  (tie) => ({
    int: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom("args.i", "args.j", "args.m.k", "args.is[1]", "0", "5", "size(args.ss)"),
      fc
        .tuple(tie("int"), fc.constantFrom("+", "-", "*", "/", "%"), tie("int"))
        .map(([a, o, b]) => `(${a} ${o} ${b})`),
      fc.tuple(tie("bool"), tie("int"), tie("int")).map(([c, a, b]) => `(${c} ? ${a} : ${b})`),
      tie("text").map((s) => `size(${s})`),
    ),
    double: fc.oneof(fc.constantFrom("args.d", "0.5", "-1.5"), fc.constant("(args.d * 2.0)")),
    text: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom("args.s", "args.t", "'a'", "''", "args.ss[0]"),
      fc.tuple(tie("text"), tie("text")).map(([a, b]) => `(${a} + ${b})`),
      tie("int").map((i) => `string(${i})`),
    ),
    bool: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom("args.yes", "args.no", "true", "has(args.i)", "has(args.absent)", "('k' in args.m)"),
      fc.tuple(tie("bool"), fc.constantFrom("&&", "||"), tie("bool")).map(([a, o, b]) => `(${a} ${o} ${b})`),
      tie("bool").map((b) => `!${b}`),
      comparison(tie("int"), tie("int")),
      comparison(tie("int"), tie("double")),
      comparison(tie("text"), tie("text")),
      fc.tuple(tie("int"), tie("int")).map(([a, b]) => `(${a} in [${b}, 1, 2])`),
      fc
        .tuple(tie("text"), fc.constantFrom("startsWith", "endsWith", "contains"), tie("text"))
        .map(([a, f, b]) => `${a}.${f}(${b})`),
      fc
        .tuple(tie("text"), fc.constantFrom("^a", "b$", "^[a-c]+$", "x|"))
        .map(([a, p]) => `${a}.matches('${p}')`),
      fc
        .tuple(fc.constantFrom("args.is", "args.none"), fc.constantFrom("all", "exists", "exists_one"), limit)
        .map(([l, f, i]) => `${l}.${f}(x, x > ${i})`),
      fc
        .tuple(fc.constantFrom("args.is", "args.none"), limit)
        .map(([l, i]) => `(${l}.filter(x, x > ${i}).map(x, x + 1) == [3, 4])`),
    ),
  }),
);

function comparison(left: fc.Arbitrary<string>, right: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(left, fc.constantFrom("==", "!=", "<", "<=", ">", ">="), right)
    .map(([a, operator, b]) => `(${a} ${operator} ${b})`);
}

it("agrees with the library on every expression that evaluates without an error", () => {
  const seen = { match: 0, no_match: 0, error: 0 };
  fc.assert(
    fc.property(fc.oneof(bool, comparison(int, double), comparison(text, text)), (source) => {
      fc.pre(source.length < 2000);
      const mine = verdictOf(source, jsonTextInOrder(ARGS)).kind;
      const theirs: unknown = run(source, { args: ARGS });
      seen[mine]++;
      if (mine === "error") expect(source).toMatch(/[/%*]/);
      else expect(theirs).toBe(mine === "match");
    }),
    { numRuns: 500 },
  );
  expect(Math.min(seen.match, seen.no_match)).toBeGreaterThan(50);
  expect(isJsonObject(ARGS)).toBe(true);
});
