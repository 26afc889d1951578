import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PROVIDER_REQUEST, TRANSPORT_RESULT } from "../../src/connector/documents.ts";
import { encode } from "../../src/connector/encode.ts";
import { explainValue } from "../../src/connector/explain_value.ts";

const REQUEST = {
  schema_id: "gamecult.model.provider_request.v3",
  request_id: "r",
  conversation_id: "c",
  model: "m",
  instructions: "i",
  input: [
    { UserText: { text: "t" } },
    { ReasoningState: { provider: "p", model: "m", opaque: Buffer.from([1]) } },
    { ToolCall: { call_id: "1", name: "n", arguments: "{}" } },
  ],
  reasoning_effort: null,
  output_format_name: "f",
  tools: [{ name: "n", description: "d", parameters_json: "{}" }],
  tool_choice: "auto",
  parallel_tool_calls: true,
  output_schema_json: "{}",
  max_output_tokens: 1,
};

/** Anything that may stand in a wrong place. */
const OTHER = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    undefined,
    "",
    " x",
    "x".repeat(300),
    -1,
    0,
    1.5,
    2 ** 60,
    true,
    [],
    {},
    "\ud800",
  ),
  fc.constantFrom<unknown>(
    "[]",
    { UserText: {} },
    { a: 1 },
    Buffer.alloc(0),
    new Uint8Array(3),
    ["x"],
    "required",
  ),
);

/** The value with another one somewhere in it. */
function changed(value: unknown): fc.Arbitrary<unknown> {
  if (value instanceof Uint8Array) return OTHER;
  if (Array.isArray(value) && value.length > 0)
    return fc.nat(value.length - 1).chain((at) =>
      fc.oneof(
        OTHER,
        changed(value[at]).map((one) => value.with(at, one)),
      ),
    );
  if (typeof value !== "object" || value === null || Array.isArray(value)) return OTHER;
  const names = Object.keys(value);
  const inside = fc
    .constantFrom(...names)
    .chain((name) =>
      changed((value as Record<string, unknown>)[name]).map((one) => ({ ...value, [name]: one })),
    );
  const without = fc
    .constantFrom(...names)
    .map((name) => Object.fromEntries(Object.entries(value).filter(([other]) => other !== name)));
  return fc.oneof(inside, inside, inside, without, fc.constant({ ...value, more: 1 }));
}

describe("why a value is no document", () => {
  it("is told of exactly those that can't be encoded", () => {
    expect(explainValue(PROVIDER_REQUEST, REQUEST)).toBeUndefined();
    let invalid = 0;
    fc.assert(
      fc.property(changed(REQUEST), (value) => {
        const encoded = encode(PROVIDER_REQUEST, value);
        const why = explainValue(PROVIDER_REQUEST, value);
        expect({ value, valid: encoded !== undefined }).toEqual({ value, valid: why === undefined });
        if (why !== undefined) invalid += 1;
      }),
      { numRuns: 3000 },
    );
    expect(invalid).toBeGreaterThan(1000);
  });

  it.each([
    [
      { ...REQUEST, model: 1 },
      "model must be a text (1 to 256 bytes, no control character, no space at an edge)",
    ],
    [{ ...REQUEST, input: [{ UserText: {} }] }, "input[0].UserText.text is missing"],
    [{ ...REQUEST, max_output_tokens: 0 }, "max_output_tokens must be a whole number from 1 to 4294967295"],
    [{ ...REQUEST, tool_choice: "all" }, "tool_choice must be auto or required"],
    [{ ...REQUEST, parallel_tool_calls: 1 }, "parallel_tool_calls must be true or false"],
    [
      { ...REQUEST, output_format_name: null },
      "output_format_name is null exactly where output_schema_json is",
    ],
    [{ ...REQUEST, schema_id: "x" }, 'schema_id must be "gamecult.model.provider_request.v3"'],
    [null, "it must be an object"],
  ])("names the place and the rule (case %#)", (value, why) => {
    expect(explainValue(PROVIDER_REQUEST, value)).toBe(why);
  });

  it("quotes nothing of the value", () => {
    const value = { CANARY: { CANARY: "CANARY" } };
    for (const shape of [PROVIDER_REQUEST, TRANSPORT_RESULT]) {
      expect(explainValue(shape as typeof PROVIDER_REQUEST, value)).not.toContain("CANARY");
    }
    expect(explainValue(PROVIDER_REQUEST, { ...REQUEST, input: [value] })).not.toContain("CANARY");
  });
});
