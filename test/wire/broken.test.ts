import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { classifyBroken } from "../../src/wire/broken.ts";

function classify(body: string | Buffer): string {
  return classifyBroken(Buffer.from(body)).code;
}

describe("what a peer is told whose body did not decode", () => {
  it.each(["", "[", "[]", '"x"', "7", "null", "{", '{"v":2', '{"v":2} x', '{"v":2,}', '{"v":02}', "{'v':2}"])(
    "%s is no JSON object: bad_frame",
    (body) => {
      expect(classify(body)).toBe("bad_frame");
    },
  );

  it.each([
    '{"v":2]',
    '{"x":[1,]}',
    '{"x":[}',
    '{"x" 1}',
    '{"x":"\u0001"}',
    '{"x":"\\x"}',
    '{"x":tru}',
    '{"x":-}',
  ])("%s is broken within: bad_frame", (body) => {
    expect(classify(body)).toBe("bad_frame");
  });

  it("a byte order mark or what is no UTF-8 is bad_frame", () => {
    expect(classify('\ufeff{"v":2}')).toBe("bad_frame");
    expect(classify(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBe("bad_frame");
  });

  it.each(["0", "2", "-1", "-0", "1.5", "4294967296", "1e999", "18446744073709551616"])(
    "a version %s is named, whatever else is unknown",
    (v) => {
      const { code, detail } = classifyBroken(Buffer.from(`{"news":[{"v":1},[]],"v": ${v} ,"id":null}`));
      expect([code, detail]).toEqual(["bad_version", `version ${v} is not known here, only 1`]);
    },
  );

  it("a version written with an escape, or beside a lone surrogate, is a version", () => {
    expect(classify('{"\\u0076":2}')).toBe("bad_version");
    expect(classify('{"x":"\\ud800","v":2}')).toBe("bad_version");
  });

  it("a version of very many digits is not repeated", () => {
    const { code, detail } = classifyBroken(Buffer.from(`{"v":${"9".repeat(1_000_000)}}`));
    expect([code, detail]).toEqual(["bad_version", "the version is not known here, only 1"]);
  });

  it.each([
    "{}",
    '{"v":1}',
    '{"v":1.0}',
    '{"v":"2"}',
    '{"v":[2]}',
    '{"v":{"v":2}}',
    '{"v":null}',
    '{"x":{"v":2}}',
    '{"V":2}',
  ])("%s is of no other version: bad_message", (body) => {
    expect(classify(body)).toBe("bad_message");
  });

  it("an object with two versions names none", () => {
    for (const body of ['{"v":2,"v":1}', '{"v":1,"v":2}', '{"v":2,"\\u0076":2}', '{"v":"","v":2}'])
      expect(classify(body)).toBe("bad_message");
  });

  it("the deepest and the widest bodies of a frame's size neither overflow nor hang it", () => {
    const half = 524_000;
    expect(classify("[".repeat(1_048_576))).toBe("bad_frame");
    expect(classify('{"a":'.repeat(209_715))).toBe("bad_frame");
    expect(classify(`{"x":${"[".repeat(half)}${"]".repeat(half)},"v":2}`)).toBe("bad_version");
    expect(classify(`{${'"v":2,'.repeat(170_000)}"v":2}`)).toBe("bad_message");
  });

  it("is an object exactly where JSON.parse has one, and never more than a sentence", () => {
    const json = fc.json().map((text) => Buffer.from(text));
    const cut = fc.tuple(json, fc.nat()).map(([bytes, at]) => bytes.subarray(0, at % (bytes.length + 1)));
    fc.assert(
      fc.property(fc.oneof(json, cut), (body) => {
        const { code, detail } = classifyBroken(body);
        expect(code !== "bad_frame").toBe(isJsonObject(body.toString()));
        expect(detail.length).toBeLessThan(80);
      }),
    );
  });
});

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
