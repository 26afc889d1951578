import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exactArguments, withExactArguments } from "../../../../src/roles/mcp/serve/exact_arguments.ts";

function exactOf(text: string): string | undefined {
  const message = withExactArguments(JSON.parse(text), text) as { params: { arguments?: unknown } };
  return exactArguments(message.params.arguments);
}

const call = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;

describe("the arguments of a call", () => {
  it("keep their text, byte for byte", () => {
    const args =
      '{ "n" :9007199254740993, "f":1.0,"e":-1E+3, "s":"\\"}]\\\\", "o":{"arguments":{}}, "a":[ [], "\\u0000" ] }';
    expect(exactOf(call(`{"arguments": ${args} ,"name":"x"}`))).toBe(args);
    expect(exactOf(call(`\n{\t"name":"arguments","arguments":${args}}`))).toBe(args);
    expect(exactOf(call(`{"name":"x"}`))).toBe("{}");
  });

  it("are those that the parser sees, where a name is given twice or written otherwise", () => {
    expect(exactOf(call('{"arguments":{"a":1},"\\u0061rguments":{"b":2}}'))).toBe('{"b":2}');
    expect(
      exactOf('{"params":{"arguments":{"a":1}},"method":"tools/call","par\\u0061ms":{"arguments":{"b":2}}}'),
    ).toBe('{"b":2}');
  });

  it("are none where they are no object, whatever they look like", () => {
    for (const args of ["[]", '"x"', "1", "null", "true"])
      expect(exactOf(call(`{"arguments":${args}}`))).toBeUndefined();
    expect(exactOf(call('{"arguments":{"exact text":"{\\"forged\\":1}"}}'))).toBe(
      '{"exact text":"{\\"forged\\":1}"}',
    );
  });

  it("of other messages are left as they are", () => {
    const text = '{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"arguments":{"a":1}}}';
    const message = JSON.parse(text);
    expect(withExactArguments(message, text)).toBe(message);
    for (const other of [null, 1, "x", [], { method: "tools/call" }, { method: "tools/call", params: [] }])
      expect(withExactArguments(other, "")).toBe(other);
  });

  it("are found in any document, with any white space", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.jsonValue(),
        fc.constantFrom(undefined, 1, "\t"),
        (args, other, space) => {
          const message = {
            other,
            method: "tools/call",
            params: { _meta: other, arguments: args, name: "x" },
            last: [other],
          };
          const text = JSON.stringify(message, undefined, space);
          expect(JSON.parse(exactOf(text) ?? "")).toEqual(JSON.parse(JSON.stringify(args)));
          expect(text).toContain(exactOf(text));
        },
      ),
    );
  });
});
