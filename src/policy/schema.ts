// JSON Schema 2020-12 of a tool's arguments: the contract. A schema may come from a hostile
// provider and the arguments from a hostile caller; either costs a bounded amount, and no answer
// tells more than the schema itself. `format` and the content keywords describe, they don't check.

import { ok, type Result } from "../base/faults.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { compileSchema } from "./schema_compile.ts";
import type { SchemaFault } from "./schema_fault.ts";

export type { SchemaFault };

export interface ArgumentsMismatch {
  /** JSON Pointer into the arguments; only the names that the schema itself declares, `*` for others. */
  readonly pointer: string;
  /** For the caller; never quotes a value. */
  readonly message: string;
}

export interface ArgumentsSchema {
  /** The schema as it was given. */
  readonly source: Json;
  /** Whether unknown members are refused at the top (`additionalProperties` or `unevaluatedProperties` false). */
  readonly closed: boolean;
  /** undefined: valid. Bounded cost; never throws. */
  check(args: JsonObject): ArgumentsMismatch | undefined;
}

/** All faults at once. Loads the regular expression engine only where a schema has a pattern. */
export async function compileArgumentsSchema(
  schema: Json,
): Promise<Result<ArgumentsSchema, readonly SchemaFault[]>> {
  const compiled = await compileSchema(schema, "object");
  if (!compiled.ok) return compiled;
  const { closed, check } = compiled.value;
  return ok({ source: schema, closed, check });
}
