import { describe, expect, it } from "vitest";
import { type Json, type JsonObject, parseJson } from "../../../src/base/json.ts";
import { ARGUMENTS_LIMITS } from "../../../src/base/limits.ts";
import { compileArgumentsSchema } from "../../../src/policy/schema.ts";
import {
  parsePathArguments,
  parseReadArguments,
  parseSearchArguments,
  parseWriteArguments,
} from "../../../src/roles/files/arguments.ts";
import {
  FILES_TOOLS,
  type FilesToolName,
  filesToolDefinitions,
} from "../../../src/roles/files/definitions.ts";
import { FILES_LIMITS } from "../../../src/roles/files/limits.ts";
import { rootOf } from "./scratch.ts";

const roots = [rootOf("/srv/docs"), rootOf("/srv/a\u202eb", { writable: false })];
const definitions = filesToolDefinitions(roots, FILES_LIMITS);

const PARSERS: Readonly<Record<FilesToolName, (args: JsonObject) => { readonly ok: boolean }>> = {
  list_dir: parsePathArguments,
  stat: parsePathArguments,
  read_file: (args) => parseReadArguments(args, FILES_LIMITS),
  write_file: parseWriteArguments,
  search_files: parseSearchArguments,
};

const VALUES: readonly Json[] = ["/a", "", "create", "x".repeat(257), 0n, 4n, 163_841n, -1n, 1.5, true, null];
const NAMES = ["path", "offset", "limit", "content", "mode", "name", "other"];

async function schemaOf(name: FilesToolName) {
  const definition = definitions.find((one) => one.name === name);
  const source = parseJson(JSON.stringify(definition?.schema), ARGUMENTS_LIMITS);
  if (!source.ok) throw new Error(source.fault.message);
  const schema = await compileArgumentsSchema(source.value);
  if (!schema.ok) throw new Error(schema.fault[0]?.message);
  return schema.value;
}

describe("the definitions", () => {
  it("are one for each tool, name the directories and which are writable, and hide no character", () => {
    expect(definitions.map((one) => one.name)).toEqual([...FILES_TOOLS]);
    for (const { description } of definitions) {
      expect(description).toContain('"/srv/docs" (writable), "/srv/a\\u202eb".');
    }
  });

  it.each(FILES_TOOLS)("of %s have a closed schema that takes all that the tool takes", async (name) => {
    const schema = await schemaOf(name);
    expect(schema.closed).toBe(true);
    let taken = 0;
    for (const args of argumentSets()) {
      if (!PARSERS[name](args).ok) continue;
      taken += 1;
      expect(schema.check(args)).toBeUndefined();
    }
    expect(taken).toBeGreaterThan(0);
  });

  it.each(FILES_TOOLS)(
    "of %s refuse in the schema what the tool refuses, but for what a schema can't say",
    async (name) => {
      const schema = await schemaOf(name);
      for (const args of argumentSets()) {
        if (PARSERS[name](args).ok || schema.check(args) !== undefined) continue;
        // Either of the two is needed, which is left to the tool so that the schema stays plain.
        expect([name, args.has("name") || args.has("content")]).toEqual(["search_files", false]);
      }
    },
  );
});

/** A path with each other argument in each value; and each value as the path. */
function* argumentSets(): Generator<JsonObject> {
  yield new Map();
  for (const value of VALUES) {
    for (const name of NAMES)
      yield new Map<string, Json>([
        ["path", "/a"],
        [name, value],
      ]);
    for (const name of NAMES)
      yield new Map<string, Json>([
        ["path", "/a"],
        ["content", "x"],
        [name, value],
      ]);
  }
}
