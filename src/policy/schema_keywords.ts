// The keywords of JSON Schema 2020-12 that callgate knows: what each may hold, which of them only
// describe, and which it refuses with the reason. A keyword in none of these tables is a fault: a
// misspelt one would be a hole that nobody sees.

import type { Json } from "../base/json.ts";
import { isArray, isNumber, isObject, TYPE_NAMES } from "./schema_values.ts";

/** What a keyword holds. The first three are where schemas are found. */
export type Shape =
  | "schema"
  | "schemas"
  | "schema_map"
  | "count"
  | "number"
  | "divisor"
  | "boolean"
  | "text"
  | "names"
  | "names_map"
  | "types"
  | "values"
  | "anything";

export const KEYWORDS: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  ["$anchor", "text"],
  ["$comment", "anything"],
  ["$defs", "schema_map"],
  ["$id", "text"],
  ["$ref", "text"],
  ["$schema", "text"],
  ["additionalProperties", "schema"],
  ["allOf", "schemas"],
  ["anyOf", "schemas"],
  ["const", "anything"],
  ["contains", "schema"],
  ["contentEncoding", "anything"],
  ["contentMediaType", "anything"],
  ["contentSchema", "schema"],
  ["default", "anything"],
  ["definitions", "schema_map"],
  ["dependentRequired", "names_map"],
  ["dependentSchemas", "schema_map"],
  ["deprecated", "anything"],
  ["description", "anything"],
  ["else", "schema"],
  ["enum", "values"],
  ["examples", "anything"],
  ["exclusiveMaximum", "number"],
  ["exclusiveMinimum", "number"],
  ["format", "anything"],
  ["if", "schema"],
  ["items", "schema"],
  ["maxContains", "count"],
  ["maxItems", "count"],
  ["maxLength", "count"],
  ["maxProperties", "count"],
  ["maximum", "number"],
  ["minContains", "count"],
  ["minItems", "count"],
  ["minLength", "count"],
  ["minProperties", "count"],
  ["minimum", "number"],
  ["multipleOf", "divisor"],
  ["not", "schema"],
  ["oneOf", "schemas"],
  ["pattern", "text"],
  ["patternProperties", "schema_map"],
  ["prefixItems", "schemas"],
  ["properties", "schema_map"],
  ["propertyNames", "schema"],
  ["readOnly", "anything"],
  ["required", "names"],
  ["then", "schema"],
  ["title", "anything"],
  ["type", "types"],
  ["unevaluatedItems", "schema"],
  ["unevaluatedProperties", "schema"],
  ["uniqueItems", "boolean"],
  ["writeOnly", "anything"],
]);

/** Known elsewhere or by other drafts; the value says what to write instead. */
export const REFUSED: ReadonlyMap<string, string> = new Map([
  ["$dynamicAnchor", "dynamic references are not supported: use $anchor"],
  ["$dynamicRef", "dynamic references are not supported: use $ref"],
  ["$recursiveAnchor", "recursive anchors are not supported: use $defs and $ref"],
  ["$recursiveRef", 'recursive references are not supported: use $ref, "#" for the root'],
  ["$vocabulary", "vocabularies belong to meta-schemas: remove it"],
  ["additionalItems", "it is of older drafts: write the leading items as prefixItems and the rest as items"],
  ["dependencies", "it is of older drafts: use dependentRequired or dependentSchemas"],
  ["discriminator", "it is OpenAPI's: use oneOf with a const in each alternative"],
  ["divisibleBy", "it is of older drafts: use multipleOf"],
  ["example", "it is OpenAPI's: use examples, an array"],
  ["extends", "it is of older drafts: use allOf"],
  ["id", "it is of older drafts: use $id at the root, or $anchor"],
  ["nullable", 'it is OpenAPI\'s: add "null" to type'],
]);

/** Not in draft-07, where a validator would pass over them. */
export const NEWER_THAN_DRAFT_07: ReadonlySet<string> = new Set([
  "$anchor",
  "dependentRequired",
  "dependentSchemas",
  "maxContains",
  "minContains",
  "prefixItems",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

/** Not in 2019-09, or with another meaning there. */
export const OTHER_IN_2019_09: ReadonlySet<string> = new Set(["prefixItems", "unevaluatedItems"]);

/** Describe only, so they may stand beside a draft-07 `$ref`, which overrides everything else there. */
export const DESCRIPTIVE: ReadonlySet<string> = new Set([
  "$comment",
  "$defs",
  "$id",
  "$ref",
  "$schema",
  "contentEncoding",
  "contentMediaType",
  "contentSchema",
  "default",
  "definitions",
  "deprecated",
  "description",
  "examples",
  "format",
  "readOnly",
  "title",
  "writeOnly",
]);

export const ENUM_ENTRIES_MAX = 1000;

/** What is wrong with a keyword's value; undefined: nothing. Schemas inside are not looked into. */
export function shapeFault(shape: Shape, value: Json): string | undefined {
  switch (shape) {
    case "schema":
      return unless(isSchema(value), "must be a schema: an object, true or false");
    case "schemas":
      return unless(
        isArray(value) && value.length > 0 && value.every(isSchema),
        "must be a non-empty array of schemas",
      );
    case "schema_map":
      return unless(
        isObject(value) && [...value.values()].every(isSchema),
        "must be an object whose members are schemas",
      );
    case "count":
      return unless(isCount(value), "must be a whole number, 0 or above");
    case "number":
      return unless(isNumber(value), "must be a number");
    case "divisor":
      return unless(isNumber(value) && value > 0, "must be a number above 0");
    case "boolean":
      return unless(typeof value === "boolean", "must be true or false");
    case "text":
      return unless(typeof value === "string", "must be a string");
    case "names":
      return unless(isNames(value), "must be an array of member names");
    case "names_map":
      return unless(
        isObject(value) && [...value.values()].every(isNames),
        "must be an object of arrays of member names",
      );
    case "types":
      return unless(isTypes(value), `must be one of, or a non-empty array of: ${TYPE_NAMES.join(", ")}`);
    case "values":
      return unless(isEnum(value), `must be an array of 1 to ${ENUM_ENTRIES_MAX} values`);
    case "anything":
      return undefined;
  }
}

function unless(holds: boolean, message: string): string | undefined {
  return holds ? undefined : message;
}

function isSchema(value: Json): boolean {
  return typeof value === "boolean" || isObject(value);
}

function isCount(value: Json): boolean {
  return isNumber(value) && value >= 0 && (typeof value === "bigint" || Number.isInteger(value));
}

function isNames(value: Json): boolean {
  return isArray(value) && value.every((name) => typeof name === "string");
}

function isTypes(value: Json): boolean {
  const names: readonly Json[] = isArray(value) ? value : [value];
  return names.length > 0 && names.every((name) => TYPE_NAMES.some((known) => known === name));
}

function isEnum(value: Json): boolean {
  return isArray(value) && value.length > 0 && value.length <= ENUM_ENTRIES_MAX;
}

/** The keyword that was probably meant, where one is near. */
export function nearestKeyword(word: string): string | undefined {
  if (word.length > 32) return undefined;
  const folded = word.toLowerCase();
  for (const keyword of KEYWORDS.keys()) {
    if (Math.abs(word.length - keyword.length) > 2) continue;
    if (distance(folded, keyword.toLowerCase()) <= (keyword.length > 6 ? 2 : 1)) return keyword;
  }
  return undefined;
}

/** Levenshtein's. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let index = 1; index <= a.length; index++) {
    const next = [index];
    for (let column = 1; column <= b.length; column++) {
      const change = row[column - 1]! + (a[index - 1] === b[column - 1] ? 0 : 1);
      next.push(Math.min(change, row[column]! + 1, next[column - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
