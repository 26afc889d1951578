// JSON Schema 2020-12 of a tool's arguments. (contract; the body is being written)

import type { Result } from "../base/faults.ts";
import type { Json, JsonObject } from "../base/json.ts";

export interface SchemaFault {
  /** JSON Pointer into the schema. */
  readonly pointer: string;
  /** What is wrong and what would be right. */
  readonly message: string;
}

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
  void schema;
  throw new Error("not written yet");
}
