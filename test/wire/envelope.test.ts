import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeBody, decodeEnvelope, encodeMessage } from "../../src/wire/envelope.ts";
import { FrameFault } from "../../src/wire/fault.ts";
import { encodeFrame } from "../../src/wire/frame.ts";
import { scanString, stringToken } from "../../src/wire/json_string.ts";
import type { Envelope, Message } from "../../src/wire/message.ts";
import { envelope, message, text } from "./arbitraries.ts";
import { attempt, checkBody, checkValue } from "./fuzz_checks.ts";
import { mutatedBody, mutatedValue, Random } from "./mutations.ts";

const EXAMPLE: Envelope = {
  v: 1,
  id: 7n,
  final: true,
  msg: {
    kind: "tool_request",
    body: { session: "mm-thread-42", call: 3n, tool: "read_file", arguments: "{}" },
  },
};
const RESULT = {
  status: "result",
  content: "x",
  class: "public",
  untrusted: true,
  truncated: false,
} as const;

function bodyOf(value: Envelope): Buffer {
  return encodeFrame(value).subarray(4);
}

function outcomeOf(body: string | Buffer): unknown {
  const decoded = attempt(() => decodeBody(Buffer.from(body)));
  return typeof decoded === "string" ? decoded : "ok";
}

/** What encoding a value gives that the types forbid. */
function encodeOutcome(value: unknown): unknown {
  return attempt(() => encodeFrame(value as Envelope));
}

describe("decoding and encoding an envelope", () => {
  it("are inverse for every envelope", () => {
    fc.assert(
      fc.property(envelope, (value) => {
        expect(decodeBody(bodyOf(value))).toEqual(value);
      }),
    );
  });

  it("agree with the slow decoder, and are a fixpoint, on changed bodies at any alignment", () => {
    fc.assert(
      fc.property(fc.nat(), fc.array(envelope, { minLength: 2, maxLength: 4 }), (seed, values) => {
        expect(checkBody(mutatedBody(new Random(seed), values.map(bodyOf)))).toBeUndefined();
      }),
      { numRuns: 2000 },
    );
  });

  it("agree with the slow decoder on arbitrary bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(checkBody(Buffer.from(bytes))).toBeUndefined();
      }),
    );
  });

  it("tell ids beyond 2^53 apart", () => {
    for (const id of [9_007_199_254_740_992n, 9_007_199_254_740_993n, 2n ** 64n - 1n])
      expect(decodeBody(bodyOf({ ...EXAMPLE, id })).id).toBe(id);
  });

  it("give a message the same bytes whether its long text was decoded or not", () => {
    fc.assert(
      fc.property(envelope, (value) => {
        const undecoded = decodeEnvelope(bodyOf(value)).msg;
        expect(encodeMessage(undecoded)).toEqual(encodeMessage(value.msg));
      }),
    );
  });
});

describe("what a decoder must refuse", () => {
  const body = bodyOf(EXAMPLE).toString();

  it.each([
    ["a member twice", body.replace('"v":1', '"v":1,"v":1')],
    ["a member twice, once with escapes", body.replace('"v":1', '"v":1,"\\u0076":1')],
    ["a byte order mark", `\ufeff${body}`],
    ["a NUL behind the object", `${body}\0`],
    ["a NUL before it", `\0${body}`],
    ["another value behind it", `${body}{}`],
    ["a vertical tab as white space", body.replace("{", "{\v")],
    ["a no-break space", body.replace("{", "{\u00a0")],
    ["a comma before the end", body.replace("}}}", ",}}}")],
    ["minus nought", body.replace('"id":7', '"id":-0')],
    ["a fraction", body.replace('"id":7', '"id":7.0')],
    ["an exponent", body.replace('"id":7', '"id":7e0')],
    ["a leading nought", body.replace('"id":7', '"id":07')],
    ["a plus sign", body.replace('"id":7', '"id":+7')],
    ["one more than the u64 range", body.replace('"id":7', '"id":18446744073709551616')],
    ["a v beyond u32", body.replace('"v":1', '"v":4294967296')],
    ["a v of another number beside another fault", body.replace('"v":1', '"v":2').replace("true", "1")],
    ["a raw control in a string", body.replace("read", "re\u0001d")],
    ["a lone high surrogate", body.replace("read", "\\ud800")],
    ["a lone low surrogate", body.replace("read", "\\udc00")],
    ["surrogates the wrong way round", body.replace("read", "\\udc00\\ud800")],
    ["an array for the envelope", `[1,7,true,${body.slice(body.indexOf('{"kind"'))}`],
    ["a prototype's name as a kind", body.replace("tool_request", "constructor")],
    ["a member called __proto__", body.replace('"v":1', '"__proto__":{},"v":1')],
  ])("%s", (_, broken) => {
    expect(outcomeOf(broken)).toBe("json");
  });

  it.each(["c080", "c0af", "e08080", "eda080", "f08080af", "f4908080", "80", "ff", "c3", "efbf"])(
    "the bytes %s in a string, even deep in a long one",
    (hex) => {
      for (const before of [0, 1, 2, 3, 500]) {
        const [head, tail] = bodyOf({ ...EXAMPLE })
          .toString()
          .split("read_file");
        const run = Buffer.alloc(before, "a");
        expect(
          outcomeOf(Buffer.concat([Buffer.from(head!), run, Buffer.from(hex, "hex"), Buffer.from(tail!)])),
        ).toBe("json");
      }
    },
  );

  it("every control in a long string, at every alignment, and no other ASCII character", () => {
    for (let byte = 0; byte < 0x80; byte += 1) {
      for (let skew = 0; skew < 8; skew += 1) {
        const token = Buffer.from(
          `"${"a".repeat(300 + skew)}${String.fromCharCode(byte)}${"a".repeat(300)}"`,
        );
        const scanned = attempt(() => scanString(token, 0, token.length));
        const refused = byte < 0x20 || byte === 0x5c;
        expect(typeof scanned === "string").toBe(refused);
        if (typeof scanned !== "string" && byte !== 0x22) expect(scanned.tokenBytes).toBe(token.length);
        if (typeof scanned !== "string" && byte === 0x22) expect(scanned.tokenBytes).toBe(302 + skew);
      }
    }
  });

  it("nothing that is nested deeply makes it overflow or hang", () => {
    for (const deep of ["[".repeat(1_048_576), '{"v":'.repeat(200_000), '{"msg":'.repeat(149_796)])
      expect(outcomeOf(deep)).toBe("json");
  });
});

describe("another version", () => {
  it.each([0, 2, 4_294_967_295])("%s is told by its number where the rest is valid", (v) => {
    const fault = faultOf(() => decodeBody(bodyOf({ ...EXAMPLE, v })));
    expect(fault).toMatchObject({ outcome: "bad_version", detail: v });
  });
});

function faultOf(run: () => unknown): FrameFault {
  try {
    run();
  } catch (error) {
    if (error instanceof FrameFault) return error;
    throw error;
  }
  throw new Error("no fault");
}

describe("a JsonString", () => {
  it("is canonical exactly where its token is what the encoder writes", () => {
    const unit = fc.constantFrom(
      ...[
        "a",
        "\\n",
        "\\/",
        "\\u000a",
        "\\u001f",
        "\\u001F",
        "\\u0000",
        "\\u007f",
        "\\u0041",
        "\\b",
        "\\u0008",
      ],
      ...["\\ud83d\\ude00", "😀", "é", "\\u00e9", '\\"', "\\u0022", "\\\\", "/", "\\u000b", "\\u000B"],
    );
    fc.assert(
      fc.property(fc.string({ unit }), (inner) => {
        const token = Buffer.from(`"${inner}"`);
        const scanned = scanString(token, 0, token.length);
        expect(scanned.canonical).toBe(stringToken(scanned.text) === token.toString());
        expect(scanned.textBytes).toBe(Buffer.byteLength(scanned.text));
        expect(scanned.text).toBe(JSON.parse(token.toString()));
      }),
    );
  });

  it("gives back the text that was encoded", () => {
    fc.assert(
      fc.property(text, (any) => {
        const token = Buffer.from(stringToken(any));
        expect(scanString(token, 0, token.length)).toMatchObject({ text: any, canonical: true });
      }),
    );
  });
});

describe("an untyped caller of the encoder", () => {
  it.each([
    ["null", null],
    ["undefined", undefined],
    ["a number", 7],
    ["no message", { ...EXAMPLE, msg: undefined }],
    ["an unknown kind", { ...EXAMPLE, msg: { kind: "toString", body: {} } }],
    ["an unknown status", { ...EXAMPLE, msg: { kind: "tool_response", body: { status: "ok" } } }],
    ["a float as id", { ...EXAMPLE, id: 7 }],
    ["a `final` that is no boolean", { ...EXAMPLE, final: 1 }],
    ["a fraction as v", { ...EXAMPLE, v: 1.5 }],
    [
      "an inherited name as a class",
      { ...EXAMPLE, msg: { kind: "tool_response", body: { ...RESULT, class: "toString" } } },
    ],
  ])("is refused %s with a fault, not a TypeError", (_, value) => {
    expect(encodeOutcome(value)).toBe("json");
  });

  it("never has a label that is missing written as false", () => {
    for (const wrong of [undefined, 0, "", "true", null])
      expect(
        encodeOutcome({ ...EXAMPLE, msg: { kind: "tool_response", body: { ...RESULT, untrusted: wrong } } }),
      ).toBe("json");
  });

  it("can't put members into an envelope with an object that looks like a string", () => {
    for (const session of [["mm"], { toString: () => 'x","call":9,"tool":"y' }, new String("mm")]) {
      const body = { session, call: 3n, tool: "t", arguments: "{}" };
      expect(encodeOutcome({ ...EXAMPLE, msg: { kind: "tool_request", body } })).toBe("json");
    }
    const tool = { isWellFormed: () => true, toJSON: () => 7 };
    const body = { session: "mm", call: 3n, tool, arguments: "{}" };
    expect(encodeOutcome({ ...EXAMPLE, msg: { kind: "tool_request", body } })).toBe("json");
  });

  it("gets an envelope or one of two faults, whatever it hands over", () => {
    fc.assert(
      fc.property(fc.nat(), envelope, (seed, value) => {
        expect(checkValue(mutatedValue(new Random(seed), value))).toBeUndefined();
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(fc.anything({ withBigInt: true }), (any) => {
        expect(checkValue(any)).toBeUndefined();
      }),
    );
  });

  it("can't encode a lone surrogate", () => {
    const msg = { kind: "error", body: { code: "internal", detail: "\ud800" } } satisfies Message;
    expect(encodeOutcome({ ...EXAMPLE, msg })).toBe("json");
  });
});

describe("a fault", () => {
  it("never quotes what was decoded", () => {
    fc.assert(
      fc.property(message, (msg) => {
        const body = bodyOf({ ...EXAMPLE, msg })
          .toString()
          .replace('"v":1', '"v":1,"swordfish":1');
        expect(faultOf(() => decodeBody(Buffer.from(body))).message).toBe(
          "a frame's body is not exactly one valid envelope",
        );
      }),
    );
  });
});
