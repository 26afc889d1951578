import { describe, expect, it } from "vitest";
import { isJsonObjectText } from "../../src/connector/json_check.ts";
import { randomOf } from "../seeded.ts";

/** What a parser says, and how deep it is. */
function parses(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

const TEXTS = [
  '{"a":[1,-0,0.5,-1.25e+10,1E-2,true,false,null,"x",{},[],{"b":{"c":[[]]}}]}',
  ' \t\r\n{ "a" : [ 1 , 2 ] , "a" : "\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD800" }\n ',
  '{"":""}',
  "{}",
];

describe("a text of a JSON object", () => {
  it("is what JSON.parse takes for one", () => {
    for (const text of TEXTS) {
      expect(parses(text)).toBe(true);
      expect(isJsonObjectText(text, 64), text).toBe(true);
    }
  });

  it("is nothing that JSON.parse refuses, and nothing else than an object", () => {
    const refused =
      '|[]|1|null|"a"|{|}|{}}|{},|{}{}|{"a"}|{"a":}|{"a":1,}|{,}|{a:1}|{"a":01}|{"a":.5}|{"a":1.}|{"a":+1}|{"a":-}|{"a":1e}|{"a":0x1}|{"a":NaN}|{"a":tru}|{"a":nul}|{"a":"\\x"}|{"a":"\\u12g4"}|{"a":"\\u123|{"a":"\\|{"a":"b|{"a":"\t"}|{"a":"\n"}|\ufeff{}|\u00a0{}|{}\u2028|{"a":[1,]}|{"a":[,1]}|{"a":[1 2]}|{"a":{]}|{\'a\':1}|{"a":1 /**/}|{"a":--1}|{"a":1e+}';
    for (const text of refused.split("|")) {
      expect(parses(text), text).toBe(false);
      expect(isJsonObjectText(text, 64), text).toBe(false);
    }
  });

  it("is the same to both wherever a text is changed", () => {
    const random = randomOf(20261130);
    const odd = ["", ...'{}[]:,"\\ -+.eE019aunft/\n\t\u0000\u007fé\ud800\ufeff'];
    let taken = 0;
    for (let i = 0; i < 40_000; i++) {
      const text = TEXTS[random(TEXTS.length)] ?? "";
      const at = random(text.length + 1);
      const changed = text.slice(0, at) + odd[random(odd.length)] + text.slice(at + random(3));
      const expected = parses(changed);
      if (expected) taken++;
      if (isJsonObjectText(changed, 64) !== expected) expect(changed).toBe(`${expected}`);
    }
    expect(taken).toBeGreaterThan(1000);
  });

  it("has a depth, which its texts do not add to", () => {
    const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}"[{[{"${"]".repeat(depth - 1)}}`;
    expect(isJsonObjectText(nested(64), 64)).toBe(true);
    expect(isJsonObjectText(nested(65), 64)).toBe(false);
    const wide = `{"a":[${"[[]],".repeat(1000)}{}]}`;
    expect(isJsonObjectText(wide, 4)).toBe(true);
    expect(isJsonObjectText(wide, 3)).toBe(false);
  });

  it("costs no memory that its writer chooses: of millions of objects none is made", () => {
    const before = process.memoryUsage().heapUsed;
    expect(isJsonObjectText(`{"a":[${"{},".repeat(4_000_000)}0]}`, 64)).toBe(true);
    // The text itself has 12 MB; parsed it would have more than 200.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100_000_000);
  });
});
