// Parts of a request that more than one API wants in the same form. Pure.

import { ok, type Result } from "../../base/faults.ts";
import type { Failure } from "./failure.ts";
import { rejected } from "./transcript.ts";
import { asRecord, type JsonRecord } from "./unknown_json.ts";

/**
 * A JSON Schema of the request. Its text is a JSON object (spec: connector, 2.1); a number that no double holds loses
 * digits on its way, and of two members with one name the last counts.
 */
export function schemaOf(text: string): JsonRecord {
  const schema = asRecord(JSON.parse(text));
  if (schema === undefined) throw new Error("a valid request holds a schema that is no JSON object");
  return schema;
}

/** The effort in the API's own words. */
export function effortOf<Effort extends string>(
  effort: string | null,
  efforts: readonly Effort[],
): Result<Effort | null, Failure> {
  if (effort === null) return ok(null);
  const known = efforts.find((one) => one === effort);
  if (known !== undefined) return ok(known);
  return rejected(`this API's reasoning efforts are ${efforts.join(", ")}, and "${effort}" is none of them`);
}

export const OPENAI_EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
