import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import { compileArgumentsSchema } from "../../src/policy/schema.ts";
import { blocks } from "../docs/console.ts";
import { APPROVER, compiled, minimal } from "./config_fixture.ts";

const GRANTS = readFileSync(new URL("../../docs/grants.md", import.meta.url), "utf8");

const closed = (name: string, ...args: readonly string[]) =>
  `[tools.${name}]\nrole = "files"\neffect = "write"\nschema = { type = "object", properties = { ${args
    .map((arg) => `${arg} = { type = "string" }`)
    .join(", ")} }, additionalProperties = false }\n`;

/** What the pieces of the document are pieces of. */
const AROUND = minimal(
  `${closed("write_file", "path")}${closed("send_letter", "to")}${APPROVER.replaceAll("approver", "operator")}`,
);

describe("the pieces of a config in docs/grants.md", () => {
  const pieces = blocks(GRANTS, "toml");
  const ports = {
    loadConditions: loadConditionCompiler,
    compileSchema: async (schema: Parameters<typeof compileArgumentsSchema>[0]) =>
      compileArgumentsSchema(schema),
  };

  it("are there", () => expect(pieces.length).toBeGreaterThanOrEqual(4));

  it.each(pieces)("are right as they stand: %s", async (piece) => {
    const { config, warnings } = await compiled(`${AROUND}${piece}`, ports);
    expect(config.policy.grants.length + config.policy.gives.length).toBeGreaterThan(2);
    // Each piece is about one thing, so the tools of the others are called by nobody.
    expect(warnings.filter(({ code }) => code !== "unreachable_tool")).toEqual([]);
  });
});
