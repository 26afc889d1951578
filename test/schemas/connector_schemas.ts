import { publishedSchemas } from "../../src/connector/published_schemas.ts";

// The files in schemas/connector: where they stand, and their text. Run as a program (`npm run schemas`) it is in
// write_schemas.ts.

export const SCHEMAS = new URL("../../schemas/connector/", import.meta.url);

/** From file name to text. */
export function schemaFiles(): ReadonlyMap<string, string> {
  return new Map(
    [...publishedSchemas()].map(([name, schema]) => [
      `${name}.schema.json`,
      `${JSON.stringify(schema, undefined, 2)}\n`,
    ]),
  );
}
