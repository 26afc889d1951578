import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../src/base/json.ts";
import { compileArgumentsSchema } from "../../src/policy/schema.ts";
import { compileSchema } from "../../src/policy/schema_compile.ts";
import { checkOf, compiled, json, jsonObject } from "./schema_given.ts";

const FILE = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "maxLength": 8},
    "mode": {"enum": ["read", "write"]},
    "n": {"type": "integer", "maximum": 10},
    "list": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}
  },
  "required": ["path"],
  "additionalProperties": false
}`;

async function wrong(schema: string, args: string) {
  return (await compiled(schema)).check(jsonObject(args));
}

describe("a mismatch says what a model can act on", () => {
  test.each([
    ['{"path":1}', "/path", '"/path" must be a string'],
    ['{"path":"p","n":11}', "/n", '"/n" must be at most 10'],
    ["{}", "", "required member path is missing"],
    ['{"path":"p","secret":1}', "", 'unknown member at "" (allowed: path, mode, n, list)'],
    ['{"path":"p","mode":"x"}', "/mode", '"/mode" must be one of: "read", "write"'],
    ['{"path":"longer than it"}', "/path", '"/path" must have at most 8 characters'],
    ['{"path":"p","list":[{"id":1},{"id":"s"}]}', "/list/1/id", '"/list/1/id" must be an integer'],
  ])("%s", async (args, pointer, message) => {
    expect(await wrong(FILE, args)).toEqual({ pointer, message });
  });

  test("nothing is said of what is right", async () => {
    expect(await wrong(FILE, '{"path":"p","mode":"read","n":10,"list":[{"id":1}]}')).toBeUndefined();
  });

  test("of alternatives the one that held furthest is told of", async () => {
    const schema = `{"properties":{"x":{"anyOf":[
      {"type":"string"},
      {"type":"object","properties":{"a":{"type":"integer"}}}]}}}`;
    expect(await wrong(schema, '{"x":{"a":"s"}}')).toEqual({
      pointer: "/x/a",
      message: 'none of the 2 alternatives matches (of the nearest: "/x/a" must be an integer)',
    });
  });
});

describe("neither a value nor an undeclared name reaches a message", () => {
  const schemas = [
    '{"additionalProperties":{"type":"integer"}}',
    '{"patternProperties":{"^TOP":{"maxLength":1}}}',
    '{"propertyNames":{"maxLength":2}}',
    '{"propertyNames":{"enum":["a"]}}',
    '{"unevaluatedProperties":false}',
    '{"unevaluatedProperties":{"type":"null"}}',
    '{"additionalProperties":{"enum":["a"]}}',
    '{"additionalProperties":{"anyOf":[{"const":1},{"type":"array"}]}}',
    '{"not":{}}',
    '{"maxProperties":0}',
    '{"additionalProperties":{"pattern":"^a$"}}',
    '{"allOf":[{"additionalProperties":false}]}',
  ];
  test.each(schemas)("%s", async (schema) => {
    const found = await wrong(schema, '{"TOPSECRETNAME":"TOPSECRETVALUE"}');
    expect(found).toBeDefined();
    expect(JSON.stringify(found)).not.toMatch(/TOPSECRET/);
  });

  test("a message stays short whatever the schema declares", async () => {
    const long = "n".repeat(50_000);
    const schema = { properties: { [long]: { const: long } }, required: [long], additionalProperties: false };
    const checked = await compiled(schema);
    for (const args of [{}, { [long]: 1 }, { other: 1 }]) {
      const found = checked.check(jsonObject(JSON.stringify(args)));
      expect(found?.message.length).toBeLessThan(700);
      expect(found?.pointer.length).toBeLessThan(300);
    }
  });

  test("an escape sequence in a declared name does not reach a terminal", async () => {
    const found = await wrong('{"required":["\\u001b[2J\\u202e"]}', "{}");
    expect(found?.message).toMatch(/^[ -~]*$/);
  });
});

describe("numbers are compared exactly", () => {
  test.each([
    ['{"maximum":9007199254740992}', "9007199254740993", false],
    ['{"maximum":9007199254740992}', "9007199254740992", true],
    ['{"exclusiveMinimum":18446744073709551615}', "18446744073709551616", true],
    ['{"minimum":0.5}', "1", true],
    ['{"maximum":1e300}', `1${"0".repeat(299)}`, true],
    ['{"const":9007199254740993}', "9007199254740992", false],
    ['{"const":9007199254740993}', "9007199254740993.0", false],
    ['{"const":1}', "1.0", true],
    ['{"const":1e2}', "100", true],
    ['{"const":0}', "-0.0", true],
    ['{"type":"integer"}', "1.0", true],
    ['{"type":"integer"}', "1.5", false],
    ['{"type":"integer"}', "1e300", true],
    ['{"multipleOf":3}', "9007199254740993", true],
    ['{"multipleOf":3}', "9007199254740992", false],
    ['{"multipleOf":0.01}', "19.99", true],
    ['{"multipleOf":0.01}', "19.999", false],
    ['{"multipleOf":5e-324}', "1e308", true],
    ['{"multipleOf":2.0}', "4", true],
    ['{"uniqueItems":true}', "[1,1.0]", false],
    ['{"uniqueItems":true}', "[9007199254740993,9007199254740992]", true],
    ['{"uniqueItems":true}', '[{"a":1,"b":2},{"b":2,"a":1}]', false],
    ['{"uniqueItems":true}', '[1,"1",true,null,[1],["1"]]', true],
    ['{"enum":[[1,{"a":2.0}]]}', '[1.0,{"a":2}]', true],
  ])("%s of %s: %s", async (schema, x, valid) => {
    expect((await checkOf(schema, x)) === undefined).toBe(valid);
  });
});

test("length is counted in characters, not in UTF-16 units", async () => {
  expect(await checkOf('{"maxLength":2,"minLength":2}', '"\\ud83d\\ude00\\ud83d\\ude00"')).toBeUndefined();
  expect(await checkOf('{"minLength":3}', '"\\ud83d\\ude00\\ud83d\\ude00"')).toBeDefined();
});

describe("names of a prototype are plain data", () => {
  test("a required __proto__, constructor or toString is not inherited", async () => {
    for (const name of ["__proto__", "constructor", "toString"]) {
      expect(await wrong(`{"required":["${name}"]}`, "{}")).toBeDefined();
      expect(await wrong(`{"required":["${name}"]}`, `{"${name}":1}`)).toBeUndefined();
      expect(await wrong(`{"properties":{"${name}":{"type":"string"}}}`, `{"${name}":1}`)).toBeDefined();
      expect(await wrong('{"additionalProperties":false}', `{"${name}":1}`)).toBeDefined();
    }
  });

  test("a keyword called constructor is unknown", async () => {
    expect((await compileArgumentsSchema(json('{"constructor":{}}'))).ok).toBe(false);
    expect((await compileArgumentsSchema(json('{"type":"constructor"}'))).ok).toBe(false);
  });
});

describe("closed is said only where unknown members are surely refused", () => {
  test.each([
    ['{"additionalProperties":false}', true],
    ['{"unevaluatedProperties":false}', true],
    ['{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}', true],
    ['{"allOf":[{"additionalProperties":false}]}', true],
    ['{"$ref":"#/$defs/a","$defs":{"a":{"additionalProperties":false}}}', true],
    ["{}", false],
    ["true", false],
    ['{"additionalProperties":{}}', false],
    ['{"additionalProperties":true}', false],
    ['{"anyOf":[{"additionalProperties":false},{}]}', false],
    ['{"properties":{"a":{"additionalProperties":false}}}', false],
    ['{"patternProperties":{"":true},"additionalProperties":false}', false],
    ['{"additionalProperties":{},"unevaluatedProperties":false}', false],
    ['{"anyOf":[{"additionalProperties":{}}],"unevaluatedProperties":false}', false],
    ['{"if":{"patternProperties":{"^x":true}},"unevaluatedProperties":false}', false],
    ['{"if":{"unevaluatedProperties":true},"unevaluatedProperties":false}', false],
    ['{"$ref":"#/$defs/a","unevaluatedProperties":false,"$defs":{"a":{"additionalProperties":{}}}}', false],
    ['{"dependentSchemas":{"a":{"additionalProperties":{}}},"unevaluatedProperties":false}', false],
  ])("%s: %s", async (schema, closed) => {
    expect((await compiled(schema)).closed).toBe(closed);
  });
});

describe("a check is bounded and fails closed", () => {
  const tree =
    '{"$ref":"#/$defs/t","$defs":{"t":{"oneOf":[{"properties":{"a":{"$ref":"#/$defs/t"}}},{"properties":{"a":{"$ref":"#/$defs/t"}}}]}}}';

  function nested(depth: number): JsonObject {
    let value: JsonObject = new Map();
    for (let level = 0; level < depth; level++) value = new Map<string, Json>([["a", value]]);
    return value;
  }

  test("two to the sixtieth ways through a recursive schema are not tried", async () => {
    const found = (await compiled(tree)).check(nested(60));
    expect(found).toEqual({ pointer: "", message: "the arguments are too costly to check" });
  });

  test("a not around what is too costly does not make it valid", async () => {
    const found = (await compiled(`{"not":${tree.replaceAll("#/$defs", "#/not/$defs")}}`)).check(nested(60));
    expect(found?.message).toMatch(/too costly/);
  });

  test.each<[string, (name: string) => string]>([
    ["declared", (name) => `{"properties":{"${name}":true}}`],
    ["required", (name) => `{"required":["${name}"]}`],
    ["dependent", (name) => `{"dependentSchemas":{"${name}":true}}`],
    ["dependently required", (name) => `{"dependentRequired":{"${name}":["${name}"]}}`],
    ["left over", () => '{"unevaluatedProperties":true}'],
  ])("a long name that is %s again and again does not hold up the broker", async (_, inner) => {
    const name = "k".repeat(400_000);
    const references = (to: string, count: number) => Array(count).fill(`{"$ref":"#/$defs/${to}"}`).join(",");
    const schema = `{"$defs":{"a":${inner(name)},"b":{"allOf":[${references("a", 2000)}]}},"allOf":[${references("b", 900)}]}`;
    const checked = await compiled(schema);
    const args = jsonObject(`{"${name}":1}`);
    const before = process.cpuUsage().user;
    expect(checked.check(args)?.message).toMatch(/too costly/);
    expect((process.cpuUsage().user - before) / 1000).toBeLessThan(400);
  });

  test("a schema whose seals all look at the same branches is compiled without a square", async () => {
    const branches = `{"allOf":[${Array(4000).fill("true").join(",")},{"patternProperties":{"a":true}}]}`;
    const sealed = Array(1400).fill('{"unevaluatedProperties":false,"$ref":"#/$defs/big"}').join(",");
    const before = process.cpuUsage().user;
    const checked = await compiled(`{"type":"object","$defs":{"big":${branches}},"allOf":[${sealed}]}`);
    expect((process.cpuUsage().user - before) / 1000).toBeLessThan(1500);
    expect(checked.closed).toBe(false);
  });

  test("a schema that goes deeper with the value overflows no stack", async () => {
    const checked = await compiled(
      '{"properties":{"a":{"$ref":"#"}},"additionalProperties":{"type":"integer"}}',
    );
    expect(checked.check(nested(64))).toBeUndefined();
    expect(checked.check(nested(20_000))?.message).toMatch(/too costly/);
  });

  test("deep equality overflows no stack", async () => {
    expect((await compiled('{"const":{"a":{}}}')).check(nested(5_000))?.message).toMatch(/too costly/);
  });

  test("as many values as the parser lets through are checked", async () => {
    const args = new Map([["x", Array.from({ length: 60_000 }, (_, index) => BigInt(index))]]);
    const schema =
      '{"properties":{"x":{"uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":59999}}}}';
    expect((await compiled(schema)).check(args)).toBeUndefined();
  });

  test("many equal items cost no square", async () => {
    const items = [...Array.from({ length: 50_000 }, (_, index) => [BigInt(index)]), [1n]];
    const found = (await compiled('{"properties":{"x":{"uniqueItems":true}}}')).check(
      new Map([["x", items]]),
    );
    expect(found?.message).toBe('"/x" must not have the same item twice');
  });

  test("every branch that a budget cuts off is a mismatch, never a pass", async () => {
    const schema = json(
      '{"properties":{"x":{"items":{"not":{"type":"string"}}}},"unevaluatedProperties":false}',
    );
    const args = jsonObject('{"x":[1,2,3,4,5,6,7,8]}');
    const messages: (string | undefined)[] = [];
    for (let steps = 0; steps < 200; steps++) {
      const result = await compileSchema(schema, "object", steps);
      messages.push(result.ok ? result.value.check(args)?.message : "refused");
    }
    const enough = messages.indexOf(undefined);
    expect(enough).toBeGreaterThan(20);
    expect(new Set(messages.slice(0, enough))).toEqual(new Set(["the arguments are too costly to check"]));
    expect(new Set(messages.slice(enough))).toEqual(new Set([undefined]));
  });
});

test("format and the content keywords only describe", async () => {
  expect(await checkOf('{"format":"email","contentMediaType":"application/json"}', '"{"')).toBeUndefined();
});

test("a draft-07 schema as MCP servers send them is read as it was meant", async () => {
  const schema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
    "properties":{"a":{"$ref":"#/definitions/s","description":"d"}},
    "definitions":{"s":{"type":"string"}},"additionalProperties":false}`;
  expect(await wrong(schema, '{"a":"s"}')).toBeUndefined();
  expect((await wrong(schema, '{"a":1}'))?.message).toBe('"/a" must be a string');
});
