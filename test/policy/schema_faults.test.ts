import { describe, expect, test } from "vitest";
import { compileArgumentsSchema } from "../../src/policy/schema.ts";
import { faultsOf, json, jsonOf } from "./schema_given.ts";

describe("a schema is refused, with the place and the kind of fault", () => {
  test.each([
    ['{"propertees":{}}', ["keyword /propertees"]],
    ['{"properties":{"a":{"typ":"string"}}}', ["keyword /properties/a/typ"]],
    ['{"Type":"object"}', ["keyword /Type"]],
    ['{"type":"strng"}', ["value /type"]],
    ['{"properties":{"a/b~":{"type":[]}}}', ["value /properties/a~1b~0/type"]],
    ['{"required":"a"}', ["value /required"]],
    ['{"properties":[]}', ["value /properties"]],
    ['{"additionalProperties":"no"}', ["value /additionalProperties"]],
    ['{"allOf":[]}', ["value /allOf"]],
    ['{"properties":{"a":{"enum":[]}}}', ["value /properties/a/enum"]],
    ['{"minProperties":-1}', ["value /minProperties"]],
    ['{"minProperties":1.5}', ["value /minProperties"]],
    ['{"properties":{"a":{"multipleOf":0}}}', ["value /properties/a/multipleOf"]],
    ['{"properties":{"a":{"maximum":"9"}}}', ["value /properties/a/maximum"]],
    ['{"properties":{"a":{"items":[{}]}}}', ["value /properties/a/items"]],
    ['{"properties":{"a":{"nullable":true}}}', ["unsupported /properties/a/nullable"]],
    ['{"dependencies":{}}', ["unsupported /dependencies"]],
    ['{"$dynamicRef":"#a"}', ["unsupported /$dynamicRef"]],
    ['{"properties":{"a":{"$id":"urn:a"}}}', ["unsupported /properties/a/$id"]],
    ['{"$ref":"https://example.org/s.json"}', ["reference /$ref"]],
    ['{"$ref":"other.json#/a"}', ["reference /$ref"]],
    ['{"$ref":"#/$defs/none"}', ["reference /$ref"]],
    ['{"$ref":"#none"}', ["reference /$ref"]],
    ['{"$ref":"#/required","required":[]}', ["reference /$ref"]],
    ['{"$ref":"#/x-a","x-a":{}}', ["reference /$ref"]],
    ['{"$ref":"#/default","default":{}}', ["reference /$ref"]],
    ['{"$ref":"#/%zz"}', ["reference /$ref"]],
    ['{"$ref":"#"}', ["reference "]],
    ['{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}', ["value /$defs/b/$anchor"]],
    ['{"$schema":"http://json-schema.org/draft-04/schema#"}', ["dialect /$schema"]],
    [
      '{"properties":{"a":{"$schema":"https://json-schema.org/draft/2020-12/schema"}}}',
      ["dialect /properties/a/$schema"],
    ],
    ['{"type":"string"}', ["root "]],
    ["false", ["root "]],
    ['{"enum":[1,"a"]}', ["root "]],
    ['{"allOf":[{"type":["array","null"]}]}', ["root "]],
    ['{"$ref":"#/$defs/s","$defs":{"s":{"const":1}}}', ["root "]],
    ["[]", ["root "]],
    ["null", ["root "]],
  ])("%s", async (schema, faults) => {
    expect(await faultsOf(schema)).toEqual(faults);
  });

  test("all of them at once", async () => {
    const schema =
      '{"tpye":1,"properties":{"a":{"$ref":"#/no"},"b":{"pattern":"(?=a)"},"c":{"minLength":"1"}}}';
    expect(new Set(await faultsOf(schema))).toEqual(
      new Set([
        "keyword /tpye",
        "reference /properties/a/$ref",
        "pattern /properties/b/pattern",
        "value /properties/c/minLength",
      ]),
    );
  });

  test("a misspelt keyword is told the right one", async () => {
    const result = await compileArgumentsSchema(json('{"aditionalProperties":false}'));
    expect(!result.ok && result.fault[0]?.message).toMatch(/perhaps additionalProperties was meant/);
  });

  test("what only describes, and x- keywords, are let be", async () => {
    const schema = `{"title":1,"description":null,"default":[],"examples":{},"deprecated":true,"readOnly":true,
      "writeOnly":false,"$comment":"c","format":"f","contentEncoding":"e","contentMediaType":"m","x-order":{"type":7}}`;
    expect(await faultsOf(schema)).toEqual([]);
  });
});

describe("a circle that goes into no member is refused, one that does is not", () => {
  test.each([
    ['{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}', false],
    ['{"anyOf":[{"$ref":"#"},{}]}', false],
    ['{"not":{"$ref":"#"}}', false],
    ['{"if":{"$ref":"#"}}', false],
    ['{"dependentSchemas":{"a":{"$ref":"#"}}}', false],
    ['{"properties":{"a":{"$ref":"#"}}}', true],
    [
      '{"$ref":"#/$defs/a","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}',
      true,
    ],
  ])("%s: %s", async (schema, accepted) => {
    const faults = await faultsOf(schema);
    expect(faults.filter((one) => !one.startsWith("reference"))).toEqual([]);
    expect(faults.length === 0).toBe(accepted);
  });
});

describe("draft-07 and 2019-09 are read only where they mean the same", () => {
  const seven = "http://json-schema.org/draft-07/schema#";
  const nineteen = "https://json-schema.org/draft/2019-09/schema";
  test.each([
    [
      { $schema: seven, $ref: "#/definitions/a", minProperties: 1, definitions: { a: {} } },
      ["dialect /minProperties"],
    ],
    [{ $schema: seven, $ref: "#/definitions/a", description: "d", definitions: { a: {} } }, []],
    [{ $schema: seven, dependentRequired: {} }, ["dialect /dependentRequired"]],
    [{ $schema: seven, properties: { a: { prefixItems: [{}] } } }, ["dialect /properties/a/prefixItems"]],
    [
      { $schema: nineteen, properties: { a: { unevaluatedItems: false } } },
      ["dialect /properties/a/unevaluatedItems"],
    ],
    [{ $schema: nineteen, unevaluatedProperties: false, dependentRequired: {} }, []],
  ])("%j", async (schema, faults) => {
    expect(await faultsOf(schema)).toEqual(faults);
  });
});

describe("a schema is bounded", () => {
  test("in depth, without a stack overflow", async () => {
    let deep: unknown = {};
    for (let index = 0; index < 100; index++) deep = { not: deep };
    expect(await faultsOf(deep)).toEqual(["bound "]);
  });

  test("in values", async () => {
    expect(await faultsOf({ examples: Array.from({ length: 20_001 }, () => 1) })).toEqual(["bound "]);
  });

  test("in the values of an enum", async () => {
    expect(
      await faultsOf({ properties: { a: { enum: Array.from({ length: 1001 }, (_, index) => index) } } }),
    ).toEqual(["value /properties/a/enum"]);
  });

  test("in patterns, taken together", async () => {
    const sources = Array.from({ length: 30 }, (_, index) => `^a{${900 + index}}$`);
    const patternProperties = Object.fromEntries(sources.map((source) => [source, true]));
    expect(await faultsOf({ patternProperties })).toEqual([expect.stringMatching(/^bound /)]);
  });

  test("in the pointers that long names over many schemas would make", async () => {
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`a${index}`, true]));
    const schema = { properties: { ["n".repeat(100_000)]: { properties: many } } };
    expect(await faultsOf(schema)).toEqual(["bound "]);
  });

  test("but a long chain of references overflows no stack", async () => {
    const link = (index: number) => [`a${index}`, { $ref: `#/$defs/a${index + 1}` }] as const;
    const $defs = Object.fromEntries(Array.from({ length: 4000 }, (_, index) => link(index)));
    expect(await faultsOf({ $ref: "#/$defs/a0", $defs: { ...$defs, a4000: true } })).toEqual([]);
    expect(await faultsOf({ $ref: "#/$defs/a0", $defs: { ...$defs, a4000: { $ref: "#" } } })).toEqual([
      expect.stringMatching(/^reference /),
    ]);
  });

  test("and so is the list of its faults", async () => {
    const schema = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`unknown${index}`, 1]));
    const result = await compileArgumentsSchema(jsonOf(schema));
    expect(!result.ok && result.fault.length).toBe(100);
  });
});
