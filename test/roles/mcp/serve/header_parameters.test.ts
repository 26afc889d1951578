import { describe, expect, it } from "vitest";
import { headerFault, headerParameters } from "../../../../src/roles/mcp/serve/header_parameters.ts";

const string = (header: string) => ({ type: "string", "x-mcp-header": header });

describe("the headers that a schema declares", () => {
  it("are found along chains of properties, at any depth", () => {
    const inner = { type: "object", properties: { tenant: string("Tenant") } };
    const schema = {
      type: "object",
      properties: { region: string("Region"), on: inner, plain: { type: "string" } },
    };
    expect(headerParameters(schema)).toEqual([
      { header: "Mcp-Param-Region", path: ["region"] },
      { header: "Mcp-Param-Tenant", path: ["on", "tenant"] },
    ]);
  });

  it("are none where the declaration is no header's name, of no simple type, or out of reach", () => {
    const odd = {
      spaced: string("a b"),
      empty: string(""),
      line: string("a\r\nX: y"),
      number: { type: "number", "x-mcp-header": "N" },
      list: { type: "array", items: string("I") },
    };
    expect(headerParameters({ type: "object", "x-mcp-header": "Root", properties: odd })).toEqual([]);
    expect(headerParameters({ properties: [string("A")] })).toEqual([]);
  });

  it("are looked for in no endless depth", () => {
    let schema: Record<string, unknown> = string("Deep");
    for (let i = 0; i < 5000; i += 1) schema = { type: "object", properties: { a: schema } };
    expect(headerParameters(schema)).toEqual([]);
  });
});

describe("a call whose headers and arguments", () => {
  const parameters = [{ header: "Mcp-Param-A", path: ["on", "a"] }];
  const fault = (held: string, header?: string) =>
    headerFault(
      parameters,
      `{"on":{"a":${held}}}`,
      new Headers(header === undefined ? {} : { "mcp-param-a": header }),
    );

  it.each([
    ['"x"', "x"],
    ['"x"', "=?base64?eA==?="],
    ['"世界"', "=?base64?5LiW55WM?="],
    ['"=?base64?eA=="', "=?base64?eA=="],
    ["42", "42"],
    ["42", "42.0"],
    ["9007199254740993", "9007199254740993"],
    ["true", "true"],
  ])("agree is let through: %s and %s", (held, header) => {
    expect(fault(held, header)).toBeUndefined();
  });

  it.each([
    ['"x"', "y", /is not what the arguments hold/],
    ['"42"', "42.0", /is not what/],
    ["9007199254740993", "9007199254740992", /is not what/],
    ["true", "True", /is not what/],
    ['"x"', undefined, /Mcp-Param-A is missing/],
    ['"Hello"', "=?base64?SGVsbG8?=", /canonical Base64/],
    ['"Hello"', "=?base64?SGVs!!!bG8=?=", /canonical Base64/],
    ['"x"', "=?base64?/w==?=", /canonical Base64/],
  ])("contradict each other is refused: %s and %s", (held, header, sentence) => {
    expect(fault(held, header)).toMatch(sentence);
  });

  it("need no header for what is not there, or null", () => {
    expect(fault("null")).toBeUndefined();
    expect(headerFault(parameters, "{}", new Headers())).toBeUndefined();
    expect(headerFault(parameters, '{"on":[]}', new Headers())).toBeUndefined();
  });

  it("are told apart without a word of either", () => {
    expect(fault('"secret one"', "secret two")).not.toMatch(/secret/);
  });
});
