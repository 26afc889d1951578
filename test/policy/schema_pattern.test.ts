import { RE2JS } from "@bufbuild/re2";
import * as fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { loadPatternCompiler, type PatternCompiler, type StepMeter } from "../../src/policy/pattern.ts";
import { translatePattern } from "../../src/policy/schema_pattern.ts";
import { checkOf, faultsOf } from "./schema_given.ts";

let compile: PatternCompiler;
beforeAll(async () => {
  compile = await loadPatternCompiler();
});

class Counter implements StepMeter {
  visits = 0;
  readonly #most: number;

  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  visit(visits: number): boolean {
    this.visits += visits;
    return this.visits <= this.#most;
  }
}

function matches(source: string, text: string, meter: StepMeter = new Counter()): boolean {
  const translated = translatePattern(source);
  if (!translated.ok) throw new Error(`${source}: ${translated.fault}`);
  const pattern = compile(translated.value.expression);
  if (!pattern.ok) throw new Error(`${source}: ${pattern.fault}`);
  return pattern.value.matches(text, meter);
}

describe("a pattern means what ECMA-262 says", () => {
  const texts = [
    "",
    "a",
    "b",
    "ab",
    "a\nb",
    "\r",
    "\u2028",
    "\u00a0",
    "\ufeff",
    "\v",
    "é",
    "λ",
    "\u{1f600}",
    "_",
    "-",
    "]",
    "^",
    "1",
    "\u0661",
    " a ",
    "\b",
    "K",
    "\u212a",
    "[:alpha:]",
    "\0",
    "/",
  ];
  test.each([
    ".",
    "^.$",
    "\\s",
    "^\\S$",
    "^[\\s]$",
    "^[\\S]$",
    "^[^\\s]$",
    "^[^\\S\\d]$",
    "^\\w$",
    "\\W",
    "^[\\W_]$",
    "\\d",
    "^\\D+$",
    "\\ba\\b",
    "\\Bb",
    "^[[:alpha:]",
    "^[]",
    "^[^]$",
    "[\\b]",
    "^[a-]$",
    "^[-a]$",
    "^[\\]\\^]$",
    "^\\u{1f600}$",
    "^\\ud83d\\ude00$",
    "^[\\u{1f600}-\\u{1f64f}]$",
    "^\u{1f600}$",
    "^\\x61|\\cH|\\0$",
    "^\\/$",
    "^\\p{L}$",
    "^\\p{Letter}$",
    "^\\P{Lu}$",
    "^[\\p{Ll}\\p{Nd}]$",
    "^\\p{Script=Greek}$",
    "^\\p{ASCII}$",
    "^\\P{ASCII}$",
    "^\\p{gc=Decimal_Number}$",
    "^(?:a|b)+?$",
    "^(?<first>a)(b)?$",
    "^a{0}$",
    "^a{1,2}b{1,}$",
    "^|b$",
    "(|a)b",
    "$^",
    "a$|^b",
    "(?:)",
    "(a*)*b",
    "(?:\\b|-)+a",
  ])("%s", (source) => {
    const native = new RegExp(source, "u");
    for (const text of texts) {
      expect(matches(source, text), JSON.stringify(text)).toBe(native.test(text));
    }
  });

  const atom = fc.constantFrom(
    "a",
    "b",
    ".",
    "\\w",
    "\\s",
    "[ab]",
    "[^a]",
    "\\d",
    "(?:a|b1)",
    "(ab)",
    "\\u{1f600}",
    "[\\W1]",
  );
  const quantifier = fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}?", "{2,}");
  const piece = fc.oneof(
    fc.constantFrom("^", "$", "\\b", "\\B"),
    fc.tuple(atom, quantifier).map((both) => both.join("")),
  );
  const sequence = fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join(""));
  const grouped = fc.tuple(sequence, sequence, quantifier).map(([a, b, many]) => `${a}(?:${b}|${a})${many}`);
  const anyPattern = fc.oneof(
    sequence,
    grouped,
    fc.tuple(sequence, grouped).map((both) => both.join("|")),
  );
  const anyText = fc
    .array(fc.constantFrom("a", "b", "1", " ", "\n", "\u{1f600}", "_"), { maxLength: 8 })
    .map((characters) => characters.join(""));

  test("of any pattern and text", () => {
    fc.assert(
      fc.property(anyPattern, fc.array(anyText, { minLength: 1, maxLength: 6 }), (source, texts) => {
        const native = new RegExp(source, "u");
        // V8 finds \\B between the halves of a surrogate pair, where ECMA-262 has no position.
        const agreed = source.includes("\\B") ? texts.filter((text) => !text.includes("\u{1f600}")) : texts;
        for (const text of agreed) expect(matches(source, text)).toBe(native.test(text));
      }),
      { numRuns: 400 },
    );
  });

  test("the simulation agrees with the library's own matcher, whose instruction numbers it relies on", () => {
    fc.assert(
      fc.property(anyPattern, anyText, (source, text) => {
        const translated = translatePattern(source);
        expect(translated.ok && RE2JS.compile(translated.value.expression).test(text)).toBe(
          matches(source, text),
        );
      }),
      { numRuns: 200 },
    );
  });
});

describe("what has no linear-time reading, or no meaning, is refused", () => {
  test.each([
    ["(?=a)b", /lookaround/],
    ["(?!a)b", /lookaround/],
    ["(?<=a)b", /lookaround/],
    ["(?<!a)b", /lookaround/],
    ["(a)\\1", /backreference/],
    ["(?<n>a)\\k<n>", /backreference/],
    ["(?i:a)", /neither/],
    ["(?P<n>a)", /neither/],
    ["\\A", /escape/],
    ["\\a", /escape/],
    ["\\z", /escape/],
    ["\\Qa\\E", /escape/],
    ["\\01", /escape/],
    ["\\p{Emoji}", /Unicode property/],
    ["\\p{Script=Any}", /Unicode property/],
    ["\\p{Script=Lu}", /Unicode property/],
    ["\\pL", /escape/],
    ["\\ud83d", /Unicode character/],
    ["\\u{110000}", /Unicode character/],
    ["[a", /without its \]/],
    ["(a", /without its \)/],
    ["a)", /without its \(/],
    ["a**", /repeats a repetition/],
    ["a{2}{3}", /repeats a repetition/],
    ["*a", /repeats nothing/],
    ["^*", /repeats an assertion/],
    ["a{2,1}", /wrong way/],
    ["[b-a]", /wrong way/],
    ["[\\w-z]", /escape the -/],
    ["a{,2}", /must escape/],
    ["}", /must escape/],
    ["\\", /escape/],
    ["a{1001}", /1000 times/],
    ["(?:a{100}){100}", /atoms/],
    ["\\p{L}".repeat(150), /Unicode properties/],
    ["a".repeat(1025), /1024 characters/],
    [`${"(".repeat(65)}${")".repeat(65)}`, /64 groups/],
  ])("%s", (source, fault) => {
    const translated = translatePattern(source);
    expect(translated.ok ? "accepted" : translated.fault).toMatch(fault);
  });

  test("as a fault of its schema, in patternProperties too", async () => {
    expect(await faultsOf({ patternProperties: { "(?=a)": true } })).toEqual([
      "pattern /patternProperties/(?=a)",
    ]);
  });

  test("nothing that the library is handed makes it throw past its file", () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 30, unit: fc.constantFrom(..."\\()[]{}*+?|^$.-,:<>=!pLuxd01a\u{1f600}") }),
        (source) => {
          const translated = translatePattern(source);
          if (!translated.ok) return;
          expect(compile(translated.value.expression).ok).toBe(true);
          expect(() => new RegExp(source, "u")).not.toThrow(/stack/);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("a match costs what the text costs", () => {
  test.each(["(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*a){9}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])("%s", (source) => {
    const cost = (length: number) => {
      const counter = new Counter();
      matches(source, `${"a".repeat(length)}!`, counter);
      return counter.visits;
    };
    expect(cost(40)).toBeLessThan(4_000);
    expect(cost(4_000) / cost(400)).toBeLessThan(11);
  });

  test("and stops when whoever pays says stop", () => {
    const counter = new Counter(5_000);
    expect(matches("(a|b)*c", "a".repeat(1_000_000), counter)).toBe(false);
    expect(counter.visits).toBeLessThan(6_000);
  });

  test("so a text too long for its pattern is refused, under a not as well", async () => {
    const text = JSON.stringify("a".repeat(600_000));
    const costly = '{"pattern":"^(?:.*a){12}z$"}';
    expect(await checkOf(costly, text)).toMatch(/too costly/);
    expect(await checkOf(`{"not":${costly}}`, text)).toMatch(/too costly/);
  });

  test("while a whole argument of an ordinary pattern is not", async () => {
    expect(await checkOf('{"pattern":"^[a-z]+$"}', JSON.stringify("a".repeat(1_000_000)))).toBeUndefined();
  });
});
