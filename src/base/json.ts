// Strict JSON: the one parser for text whose meaning decides something (a call's arguments, an
// announced schema). (contract; the body is being written)

import type { Result } from "./faults.ts";

/** Integers are bigint always; numbers with fraction or exponent are number (finite). */
export type Json = null | boolean | string | number | bigint | readonly Json[] | JsonObject;
export type JsonObject = ReadonlyMap<string, Json>;

export interface JsonLimits {
  readonly depth: number;
  readonly nodes: number;
  readonly integerDigits: number;
}

/** What is wrong, without quoting the text, and the offset in UTF-16 units. */
export interface JsonFault {
  readonly message: string;
  readonly offset: number;
}

/**
 * Parses exactly one JSON value (RFC 8259): no duplicate members (also none that are equal after
 * NFKC and case folding), no lone surrogates, no number that is not finite, nothing behind it.
 */
export function parseJson(text: string, limits: JsonLimits): Result<Json, JsonFault> {
  void text;
  void limits;
  throw new Error("not written yet");
}

/** Canonical text of a value: what `parseJson` gives is equal exactly when this is. */
export function jsonText(value: Json): string {
  void value;
  throw new Error("not written yet");
}
