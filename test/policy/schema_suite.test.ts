// The official test suite of draft 2020-12, every test of it (fixtures/json-schema/README.md).

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Json } from "../../src/base/json.ts";
import { compileSchema } from "../../src/policy/schema_compile.ts";
import { json } from "./schema_given.ts";

const ROOT = new URL("../../fixtures/json-schema/", import.meta.url);

interface Group {
  readonly description: string;
  readonly schema: Json;
  readonly tests: readonly { readonly description: string; readonly data: Json; readonly valid: boolean }[];
}

interface Refusal {
  readonly codes: readonly string[];
  readonly why: string;
}

const refused: Readonly<Record<string, Readonly<Record<string, Refusal>>>> = JSON.parse(
  readFileSync(new URL("refused.json", ROOT), "utf8"),
);

function groupsOf(path: string): readonly Group[] {
  const groups = json(readFileSync(new URL(path, ROOT), "utf8")) as readonly ReadonlyMap<string, Json>[];
  return groups.map((group) => ({
    description: String(group.get("description")),
    schema: group.get("schema") ?? null,
    tests: (group.get("tests") as readonly ReadonlyMap<string, Json>[]).map((one) => ({
      description: String(one.get("description")),
      data: one.get("data") ?? null,
      valid: one.get("valid") === true,
    })),
  }));
}

const files = readdirSync(new URL("draft2020-12/", ROOT), { recursive: true })
  .map(String)
  .filter((name) => name.endsWith(".json"))
  .sort();

test("the suite is there", () => {
  expect(files.length).toBeGreaterThan(50);
});

test("every refusal names a group of the suite", () => {
  for (const [path, groups] of Object.entries(refused)) {
    const file = files.find((name) => name === path || name.endsWith(`/${path}`)) ?? "";
    const known = groupsOf(`draft2020-12/${file}`).map(({ description }) => description);
    expect(known).toEqual(expect.arrayContaining(Object.keys(groups)));
  }
});

for (const file of files) {
  const refusals = refused[file.replace("optional/", "")] ?? {};
  describe(file, () => {
    for (const group of groupsOf(`draft2020-12/${file}`)) {
      const refusal = refusals[group.description];
      test(
        refusal === undefined ? group.description : `${group.description} is refused: ${refusal.why}`,
        async () => {
          const result = await compileSchema(group.schema, "any");
          const codes = result.ok ? [] : [...new Set(result.fault.map(({ code }) => code))].sort();
          expect(codes).toEqual(refusal?.codes ?? []);
          if (!result.ok) return;
          for (const { description, data, valid } of group.tests) {
            expect(result.value.check(data) === undefined, description).toBe(valid);
          }
        },
      );
    }
  });
}
