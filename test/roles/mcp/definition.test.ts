import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isToolName } from "../../../src/base/ids.ts";
import {
  announcedTool,
  brokerToolName,
  clientTool,
  clientToolName,
  isToolPrefix,
  mcpNotesOf,
} from "../../../src/roles/mcp/definition.ts";

const FOR_MODELS = /^[a-zA-Z0-9_-]{1,64}$/;

describe("the broker's name of a tool", () => {
  it("is the server's, where that is one of the broker's already", () => {
    expect(brokerToolName("fs.", "read_file")).toBe("fs.read_file");
    expect(brokerToolName("", "get-sum")).toBe("get-sum");
  });

  it("ends in a digest where it had to be changed, and is still to be recognised", () => {
    expect(brokerToolName("x.", "getTinyImage")).toMatch(/^x\.get_tiny_image_[0-9a-f]{12}$/);
    expect(brokerToolName("x.", "ファイル")).toMatch(/^x\.tool_[0-9a-f]{12}$/);
    expect(brokerToolName("x.", `a${"b".repeat(200)}`)).toMatch(/^x\.ab+_[0-9a-f]{12}$/);
  });

  it("that looks as if it had been changed is changed too", () => {
    const mapped = brokerToolName("x.", "Read");
    expect(brokerToolName("x.", mapped.slice(2))).not.toBe(mapped);
  });

  it("is in the grammar, fits models, begins with the prefix, and is never that of another tool", () => {
    const names = fc.uniqueArray(
      fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom("Read", "read", "READ", "r.e", "r/e")),
      {
        minLength: 2,
      },
    );
    const prefixes = fc.constantFrom("", "fs.", "a_", "long-prefix.of.many-words.");
    fc.assert(
      fc.property(prefixes, names, (prefix, some) => {
        const mapped = some.map((name) => brokerToolName(prefix, name));
        expect(mapped.every((name) => isToolName(name) && name.startsWith(prefix))).toBe(true);
        expect(mapped.every((name) => FOR_MODELS.test(clientToolName(name)))).toBe(true);
        expect(new Set(mapped).size).toBe(some.length);
        expect(new Set(mapped.map(clientToolName)).size).toBe(some.length);
      }),
    );
  });

  it("has a prefix of the grammar that leaves room", () => {
    for (const good of ["", "fs.", "fs_", "a.b.", "a-"]) expect(isToolPrefix(good)).toBe(true);
    for (const bad of [".", "Fs.", "fs..", "f s.", "é.", "1.", `${"a".repeat(40)}.`])
      expect(isToolPrefix(bad)).toBe(false);
  });
});

describe("a client's name of a tool", () => {
  it("has two underscores for a dot", () => {
    expect(clientToolName("fs.read_file")).toBe("fs__read_file");
    expect(clientToolName("read_file")).toBe("read_file");
  });

  it("is never that of another of the broker's tools", () => {
    const name = fc
      .array(fc.constantFrom(..."ab0_-.".split("")), { minLength: 1, maxLength: 80 })
      .map((letters) => letters.join(""))
      .filter(isToolName);
    const near = fc.constantFrom(
      "a.b",
      "a__b",
      "a_.b",
      "a._b",
      "a___b",
      "a.__b",
      "a-0123456789ab",
      "a.b-0123456789ab",
    );
    fc.assert(
      fc.property(fc.uniqueArray(fc.oneof(name, near), { minLength: 2 }), (names) => {
        const mapped = names.map(clientToolName);
        expect(mapped.every((one) => FOR_MODELS.test(one))).toBe(true);
        expect(new Set(mapped).size).toBe(names.length);
      }),
    );
  });
});

const TOOL = {
  name: "Read",
  title: "Read a file",
  description: "Reads.",
  inputSchema: { type: "object", properties: { p: { type: "string" } } },
  outputSchema: { type: "object" },
  annotations: { readOnlyHint: true },
  icons: [{ src: "data:," }],
  _meta: { "a/b": 1 },
} as const;

describe("a definition", () => {
  it("gives a client back what the server listed, but for the name", () => {
    const announced = JSON.parse(JSON.stringify(announcedTool(TOOL, "fs."))) as ReturnType<
      typeof announcedTool
    >;
    expect(clientTool(announced)).toEqual({ ...TOOL, name: clientToolName(announced.name) });
    expect(mcpNotesOf(announced)?.name).toBe("Read");
  });

  it("does so also without a schema for the broker, and with a description that is too long for it", () => {
    const long = { ...TOOL, description: `${"é".repeat(9000)}\u{1f600}` };
    const announced = announcedTool(long, "fs.", false);
    expect(announced).not.toHaveProperty("schema");
    expect(announced.description.length).toBeLessThanOrEqual(8192);
    expect(clientTool(announced)).toEqual({ ...long, name: clientToolName(announced.name) });
  });

  it("of another provider's tool is shown without anything of MCP's", () => {
    const plain = {
      name: "stat",
      description: "About a file.",
      schema: { properties: {} },
      annotations: { mcp: { v: 2, name: "x" } },
    };
    expect(clientTool(plain)).toEqual({
      name: "stat",
      description: "About a file.",
      inputSchema: { type: "object", properties: {} },
    });
    expect(clientTool({ name: "a", description: null, schema: null })).toEqual({
      name: "a",
      inputSchema: { type: "object" },
    });
  });

  it("takes no notes of the wrong shape", () => {
    for (const mcp of [undefined, null, [], "x", {}, { v: 1 }, { v: "1", name: "x" }, { v: 1, name: 5 }])
      expect(mcpNotesOf({ annotations: { mcp } })).toBeUndefined();
    const odd = { v: 1, name: "x", title: 5, outputSchema: [], annotations: "a", icons: {}, _meta: null };
    expect(mcpNotesOf({ annotations: { mcp: odd } })).toEqual({ v: 1, name: "x" });
  });
});
