import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileSchema, type Validator } from "../../src/policy/schema_compile.ts";
import { Run, STEPS_MAX } from "../../src/policy/schema_run.ts";
import { equalityKey } from "../../src/policy/schema_values.ts";
import { jsonOf } from "./schema_given.ts";

const name = fc.constantFrom("a", "b", "c", "__proto__");
const leaf = fc.oneof(
  fc.integer({ min: -2, max: 3 }),
  fc.constantFrom("", "a", "ab", "zz", 1.5, null, true, false),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    leaf,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
  ),
}));

const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const inner = tie("schema");
  const keywords = fc.record(
    {
      type: fc.constantFrom("object", "array", "string", "integer", "number", ["null", "boolean"]),
      enum: fc.array(value, { minLength: 1, maxLength: 3 }),
      minimum: fc.integer({ min: -2, max: 3 }),
      maxLength: fc.nat(3),
      pattern: fc.constantFrom("^a", "b$", "^z*$"),
      required: fc.array(name, { maxLength: 2 }),
      properties: fc.dictionary(name, inner, { maxKeys: 2 }),
      patternProperties: fc.dictionary(fc.constantFrom("^a", "b"), inner, { maxKeys: 1 }),
      additionalProperties: inner,
      unevaluatedProperties: inner,
      propertyNames: inner,
      prefixItems: fc.array(inner, { minLength: 1, maxLength: 2 }),
      items: inner,
      contains: inner,
      unevaluatedItems: inner,
      uniqueItems: fc.boolean(),
      allOf: fc.array(inner, { minLength: 1, maxLength: 2 }),
      anyOf: fc.array(inner, { minLength: 1, maxLength: 2 }),
      oneOf: fc.array(inner, { minLength: 1, maxLength: 2 }),
      not: inner,
      if: inner,
      // biome-ignore lint/suspicious/noThenProperty: it is the keyword
      then: inner,
      else: inner,
      dependentSchemas: fc.dictionary(name, inner, { maxKeys: 1 }),
    },
    { requiredKeys: [] },
  );
  return { schema: fc.oneof({ maxDepth: 3, depthSize: "small" }, fc.boolean(), keywords) };
});

async function validator(source: unknown): Promise<Validator> {
  const result = await compileSchema(jsonOf(source), "any");
  if (!result.ok) throw new Error(JSON.stringify(result.fault));
  return result.value;
}

/** For each value, whether the schema holds. */
async function verdicts(source: unknown, values: readonly unknown[]): Promise<readonly boolean[]> {
  const compiled = await validator(source);
  return values.map((data) => compiled.check(jsonOf(data)) === undefined);
}

const values = fc.array(value, { minLength: 1, maxLength: 6 });

describe("the combining keywords are the logic that they stand for", () => {
  test("a further constraint in allOf never makes an invalid value valid", async () => {
    await fc.assert(
      fc.asyncProperty(schema, schema, values, async (first, second, given) => {
        const one = await verdicts(first, given);
        const other = await verdicts(second, given);
        expect(await verdicts({ allOf: [first, second] }, given)).toEqual(
          one.map((holds, index) => holds && other[index]),
        );
      }),
      { numRuns: 60 },
    );
  });

  test("not, anyOf, oneOf and if agree with the schemas that they hold", async () => {
    // biome-ignore lint/suspicious/noThenProperty: it is the keyword
    const ifThen = (first: unknown, second: unknown) => ({ if: first, then: second, else: false });
    await fc.assert(
      fc.asyncProperty(schema, schema, values, async (first, second, given) => {
        const one = await verdicts(first, given);
        const other = await verdicts(second, given);
        expect(await verdicts({ not: first }, given)).toEqual(one.map((holds) => !holds));
        expect(await verdicts({ anyOf: [first, second] }, given)).toEqual(
          one.map((holds, index) => holds || other[index]),
        );
        expect(await verdicts({ oneOf: [first, second] }, given)).toEqual(
          one.map((holds, index) => holds !== other[index]),
        );
        expect(await verdicts(ifThen(first, second), given)).toEqual(
          one.map((holds, index) => holds && other[index]),
        );
      }),
      { numRuns: 60 },
    );
  });

  test("a reference is the schema that it leads to", async () => {
    await fc.assert(
      fc.asyncProperty(schema, values, async (inner, given) => {
        const referring = { $ref: "#/$defs/a%20b~1", $defs: { "a b/": inner } };
        expect(await verdicts(referring, given)).toEqual(await verdicts(inner, given));
      }),
      { numRuns: 40 },
    );
  });
});

test("what is called closed refuses every member that no schema names", async () => {
  let seen = 0;
  await fc.assert(
    fc.asyncProperty(schema, fc.dictionary(name, value, { maxKeys: 3 }), async (source, data) => {
      const keywords = typeof source === "object" ? source : {};
      for (const closing of [{ unevaluatedProperties: false }, { additionalProperties: false }]) {
        const compiled = await validator({ ...keywords, ...closing });
        if (!compiled.closed) continue;
        seen++;
        expect(compiled.check(jsonOf({ ...data, "q unnamed": 1 }))).toBeDefined();
      }
    }),
    { numRuns: 100 },
  );
  expect(seen).toBeGreaterThan(50);
});

test("two values have one equality key exactly when they are equal", () => {
  const key = (data: unknown) => equalityKey(jsonOf(data), new Run(STEPS_MAX));
  const canonical = (data: unknown): string =>
    Array.isArray(data)
      ? `[${data.map(canonical)}]`
      : data !== null && typeof data === "object"
        ? `{${Object.entries(data)
            .map(([member, inner]) => `${JSON.stringify(member)}:${canonical(inner)}`)
            .sort()}}`
        : JSON.stringify(data);
  fc.assert(
    fc.property(value, value, (one, other) => {
      expect(key(one) === key(other)).toBe(canonical(one) === canonical(other));
    }),
    { numRuns: 500 },
  );
});

test("no schema and no value make a check throw", async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (source, data) => {
      const result = await compileSchema(jsonOf(source), "any");
      if (result.ok) result.value.check(jsonOf(data));
    }),
    { numRuns: 300 },
  );
});
