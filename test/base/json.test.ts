import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isJsonObject,
  type Json,
  type JsonLimits,
  jsonText,
  jsonTextInOrder,
  parseJson,
  parseJsonObject,
} from "../../src/base/json.ts";
import { ARGUMENTS_LIMITS } from "../../src/base/limits.ts";

const LIMITS: JsonLimits = ARGUMENTS_LIMITS;

function parsed(text: string): Json {
  const result = parseJson(text, LIMITS);
  if (!result.ok) throw new Error(`${result.fault.message} at ${result.fault.offset}`);
  return result.value;
}

function faultOf(
  text: string,
  limits: Partial<JsonLimits> = {},
): { message: string; offset: number } | undefined {
  const result = parseJson(text, { ...LIMITS, ...limits });
  return result.ok ? undefined : result.fault;
}

/** What JSON.parse would have given. */
function asPlain(value: Json): unknown {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map(asPlain);
  const entries = [...value].map(([name, member]): [string, unknown] => [name, asPlain(member)]);
  return Object.fromEntries(entries);
}

function parsePlain(text: string): { ok: true; value: unknown } | { ok: false } {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch {
    return { ok: false };
  }
}

describe("what is accepted", () => {
  it.each<[string, Json]>([
    ["null", null],
    [" \t\r\n true ", true],
    ["false", false],
    ['""', ""],
    ['"\\u0041\\n\\/\\\\\\""', 'A\n/\\"'],
    ['"\\ud83d\\ude00"', "😀"],
    ['"😀"', "😀"],
    ['"\u007f\u2028"', "\u007f\u2028"],
    ["[]", []],
    ["[1,[2],{}]", [1n, [2n], new Map()]],
    [
      '{"b":1,"a":[null]}',
      new Map<string, Json>([
        ["b", 1n],
        ["a", [null]],
      ]),
    ],
  ])("reads %j", (text, value) => {
    expect(parsed(text)).toStrictEqual(value);
  });

  it.each<[string, number | bigint]>([
    ["0", 0n],
    ["-0", 0n],
    ["-7", -7n],
    ["9007199254740993", 9_007_199_254_740_993n],
    ["18446744073709551616", 18_446_744_073_709_551_616n],
    ["-123456789012345678901234567890", -123_456_789_012_345_678_901_234_567_890n],
    ["1.0", 1],
    ["-0.0", -0],
    ["1e2", 100],
    ["1E+2", 100],
    ["25e-1", 2.5],
    ["1e-999", 0],
  ])("reads the number %s exactly and of its kind", (text, value) => {
    expect(parsed(text)).toBe(value);
  });

  it("keeps members in the order in which they came", () => {
    const value = parsed('{"z":1,"a":2,"m":3}');
    expect(isJsonObject(value) ? [...value.keys()] : []).toStrictEqual(["z", "a", "m"]);
  });

  it("takes names of the prototype for plain data", () => {
    const value = parsed('{"__proto__":{"x":1},"constructor":2,"toString":3}');
    expect(isJsonObject(value) && value.get("__proto__")).toStrictEqual(new Map([["x", 1n]]));
    expect(isJsonObject(value) && value.get("hasOwnProperty")).toBe(undefined);
  });
});

describe("what is refused", () => {
  it.each([
    ["", 0],
    [" ", 1],
    ["nul", 0],
    ["True", 0],
    ["undefined", 0],
    ["NaN", 0],
    ["Infinity", 0],
    ["-", 0],
    ["+1", 0],
    [".5", 0],
    ["01", 0],
    ["-01", 1],
    ["1.", 1],
    ["1.e1", 1],
    ["1e", 1],
    ["1e+", 1],
    ["0x10", 1],
    ["1_0", 1],
    ["[", 1],
    ["[1", 2],
    ["[1,]", 3],
    ["[,1]", 1],
    ["[1 2]", 3],
    ["]", 0],
    ["{", 1],
    ['{"a"}', 4],
    ['{"a":}', 5],
    ['{"a":1,}', 7],
    ["{a:1}", 1],
    ["{'a':1}", 1],
    ['{"a":1 "b":2}', 7],
    ["{1:2}", 1],
    ['"', 1],
    ['"a', 2],
    ['"\\', 1],
    ['"\\x41"', 1],
    ['"\\u12"', 1],
    ['"\\u12g4"', 1],
    ['"\n"', 1],
    ['"\u0000"', 1],
    ['"\u001f"', 1],
    ["'a'", 0],
    ["1 1", 2],
    ["{} {}", 3],
    ["null,", 4],
    ["/**/1", 0],
    ["1//", 1],
    ["\ufeff1", 0],
    ["\u00a01", 0],
    ["1\u0000", 1],
    ["1\u000b", 1],
    ["1e999", 0],
    ["-1e999", 0],
  ])("refuses %j and says where", (text, offset) => {
    expect(faultOf(text)?.offset).toBe(offset);
  });

  it.each([
    '"\ud800"',
    '"\udc00"',
    '"\ud800\ud800"',
    '"\udc00\ud800"',
    '"x\ud83d',
    '"\\ud800"',
    '"\\udc00"',
    '"\\ud800\\u0041"',
    '"\\udc00\\ud800"',
    '"\ud83d\\ude00"',
    '"\\ud83d\ude00"',
    '{"\\ud800":1}',
  ])("refuses the lone surrogate in %j", (text) => {
    expect(faultOf(text)?.message).toMatch(/surrogate|does not end/);
  });

  it.each([
    ["the same", '{"a":1,"a":2}'],
    ["with an escape", '{"a":1,"\\u0061":2}'],
    ["the empty name", '{"":1,"":2}'],
    ["in capitals", '{"path":"/ok","PATH":"/etc/shadow"}'],
    ["in capitals, first", '{"PATH":"/etc/shadow","path":"/ok"}'],
    ["with other names between", '{"Path":1,"x":2,"Y":3,"path":4}'],
    ["wide letters", '{"path":1,"ｐａｔｈ":2}'],
    ["the Kelvin sign", '{"key":1,"\u212aey":2}'],
    ["the long s", '{"class":1,"cla\u017fs":2}'],
    ["sharp s", '{"strasse":1,"stra\u00dfe":2}'],
    ["capital sharp s", '{"stra\u00dfe":1,"STRA\u1e9eE":2}'],
    ["a ligature", '{"file":1,"\ufb01le":2}'],
    ["final sigma", '{"\u03b1\u03c2":1,"\u03b1\u03c3":2}'],
    ["composed and not", '{"\u00e9":1,"e\u0301":2}'],
    ["dotless i", '{"id":1,"\u0131d":2}'],
    ["a soft hyphen within", '{"path":1,"pa\u00adth":2}'],
    ["a zero-width joiner within", '{"path":1,"pa\u200dth":2}'],
    ["a joiner between a letter and its accent", '{"\u00e9":1,"e\u200d\u0301":2}'],
    ["deep inside", '[[{"x":{"a":1,"A":2}}]]'],
  ])("refuses a member given twice: %s", (_, text) => {
    expect(faultOf(text)?.message).toBe("a member's name is given twice");
  });

  it("takes the same name in different objects for no repetition", () => {
    expect(faultOf('{"a":{"a":1},"b":[{"a":1},{"A":1}]}')).toBe(undefined);
  });

  it("never quotes the text", () => {
    for (const text of ['{"secret-name":1,"secret-name":2}', '{"a":secret}', '"secret'])
      expect(faultOf(text)?.message).not.toContain("secret");
  });

  it("wants an object for arguments", () => {
    expect(parseJsonObject("[]", LIMITS)).toStrictEqual({
      ok: false,
      fault: { message: "one JSON object is expected", offset: 0 },
    });
    expect(parseJsonObject("{", LIMITS).ok).toBe(false);
    expect(parseJsonObject(" {} ", LIMITS)).toStrictEqual({ ok: true, value: new Map() });
  });
});

describe("bounds", () => {
  it("a stack does not overflow on 100,000 nested arrays, objects or both, whatever depth is allowed", () => {
    for (const unit of ["[", '{"a":', '[{"a":'])
      for (const depth of [64, 1_000_000])
        expect(faultOf(unit.repeat(100_000), { depth, nodes: 10_000_000 })?.message).toBe(
          "too deeply nested",
        );
  });

  it("counts nesting exactly", () => {
    expect(faultOf(`${"[".repeat(3)}${"]".repeat(3)}`, { depth: 3 })).toBe(undefined);
    expect(faultOf(`${"[".repeat(4)}${"]".repeat(4)}`, { depth: 3 })?.offset).toBe(3);
    expect(faultOf("1", { depth: 0 })).toBe(undefined);
  });

  it("counts values and names", () => {
    expect(faultOf('{"a":[1,2]}', { nodes: 5 })).toBe(undefined);
    expect(faultOf('{"a":[1,2]}', { nodes: 4 })?.message).toBe("too many values");
  });

  it("counts the digits of integers, and converts none that has too many", () => {
    expect(faultOf("-123", { integerDigits: 3 })).toBe(undefined);
    expect(faultOf("1234", { integerDigits: 3 })?.message).toBe("an integer has too many digits");
    expect(faultOf("9".repeat(1_000_000))?.message).toBe("an integer has too many digits");
  });

  it("takes linear time over many names, also where they need folding", () => {
    const text = `{${Array.from({ length: 30_000 }, (_, index) => `"Nameß${index}":0`).join(",")}}`;
    const before = performance.now();
    expect(faultOf(text)).toBe(undefined);
    expect(performance.now() - before).toBeLessThan(2000);
  });

  it("does not let names that fold to many times their length hold up the broker", () => {
    const one = "\ufdfa".repeat(330_000);
    const many = Array.from({ length: 5_000 }, (_, index) => `"${"\ufdfa".repeat(56)}${index}":0`);
    const before = process.cpuUsage().user;
    expect(faultOf(`{"${one}":0}`)?.message).toBe("the members' names cost too much to compare");
    expect(faultOf(`{${many.join(",")}}`)?.message).toBe("the members' names cost too much to compare");
    expect((process.cpuUsage().user - before) / 1000).toBeLessThan(300);
    expect(faultOf(`{${many.slice(0, 500).join(",")}}`)).toBe(undefined);
  });

  it("reads a string of a megabyte that is all escapes", () => {
    expect(parsed(`"${"\\n".repeat(500_000)}"`)).toBe("\n".repeat(500_000));
  });
});

describe("texts of a value", () => {
  it("makes one canonical text of all ways to write one call", () => {
    const texts = [
      '{"a":1,"b":[2.5,"x"]}',
      '{ "b" : [25e-1, "\\u0078"], "a" : 1.0 }',
      '{"a":10e-1,"b":[2.50,"x"]}',
    ];
    expect(new Set(texts.map((text) => jsonText(parsed(text))))).toStrictEqual(
      new Set(['{"a":1,"b":[2.5,"x"]}']),
    );
  });

  it.each([
    ["-0", "0"],
    ["-0.0", "0"],
    ["1.0", "1"],
    ["1e21", "1000000000000000000000"],
    ["1e-7", "1e-7"],
    ["0.1", "0.1"],
    ["9007199254740993", "9007199254740993"],
    ['"é\\u0001"', '"é\\u0001"'],
    ["{}", "{}"],
    ["[]", "[]"],
    ['{"":null}', '{"":null}'],
  ])("writes %s as %s", (text, canonical) => {
    expect(jsonText(parsed(text))).toBe(canonical);
  });

  it("tells different calls apart", () => {
    const texts = [
      "1",
      "2",
      '"1"',
      "[1]",
      "null",
      "true",
      "[]",
      "{}",
      '{"a":1}',
      '{"a":"1"}',
      "9007199254740992",
      "9007199254740993",
      "[1,2]",
      "[2,1]",
    ];
    expect(new Set(texts.map((text) => jsonText(parsed(text)))).size).toBe(texts.length);
  });

  it("writes plain text in order that keeps every number of its kind", () => {
    const text = '{"b":1.0,"a":-0.0,"c":1,"d":1e+21,"e":[2.5,{"z":null,"y":true}]}';
    expect(jsonTextInOrder(parsed(text))).toBe(text);
  });
});

describe("properties", () => {
  const json = fc.json({ maxDepth: 4, stringUnit: "binary" });

  it("gives the value that the engine's parser gives, and refuses only a repeated name", () => {
    fc.assert(
      fc.property(json, (text) => {
        const result = parseJson(text, LIMITS);
        if (result.ok) expect(normalZero(asPlain(result.value))).toEqual(normalZero(JSON.parse(text)));
        else expect(result.fault.message).toMatch(/given twice|surrogate/);
      }),
    );
  });

  it("accepts nothing that the engine's parser refuses, and gives the same where both accept", () => {
    const damaged = fc
      .tuple(json, fc.nat(), fc.nat(3), fc.constantFrom(...'{}[]",:\\/0-1.e+nt \n\u0000\u00a0a'))
      .map(([text, at, cut, piece]) => {
        const place = at % (text.length + 1);
        return text.slice(0, place) + piece + text.slice(place + cut);
      });
    fc.assert(
      fc.property(damaged, (text) => {
        const mine = parseJson(text, LIMITS);
        const engines = parsePlain(text);
        if (mine.ok)
          expect(engines.ok && [normalZero(engines.value)]).toEqual([normalZero(asPlain(mine.value))]);
        else if (engines.ok) expect(mine.fault.message).toMatch(/given twice|surrogate|too large/);
      }),
      { numRuns: 2000 },
    );
  });

  it("reads back both texts of a value", () => {
    fc.assert(
      fc.property(json, (text) => {
        const result = parseJson(text, LIMITS);
        fc.pre(result.ok);
        expect(parsed(jsonTextInOrder(result.value))).toStrictEqual(result.value);
        const again = parseJson(jsonText(result.value), { ...LIMITS, integerDigits: 309 });
        expect(again.ok && jsonText(again.value)).toBe(jsonText(result.value));
      }),
    );
  });
});

/** `-0` is an integer here, and integers have one zero. */
function normalZero(value: unknown): unknown {
  if (Object.is(value, -0)) return 0;
  if (Array.isArray(value)) return value.map(normalZero);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, member]): [string, unknown] => [
    name,
    normalZero(member),
  ]);
  return Object.fromEntries(entries);
}
