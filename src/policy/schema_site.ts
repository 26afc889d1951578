// What a keyword's compilation is given: the schema it stands in and the compiled schemas, patterns
// and references that it needs. Builders may assume a document without faults.

import type { Json, JsonObject } from "../base/json.ts";
import type { LinearPattern } from "./pattern.ts";
import type { SchemaNode } from "./schema_document.ts";
import type { Evaluate } from "./schema_run.ts";
import { isArray, isNumber, isObject } from "./schema_values.ts";

/** A schema that may still be under compilation while others already point to it. */
export interface CompiledSchema {
  readonly node: SchemaNode;
  readonly evaluate: Evaluate;
}

export interface Site {
  readonly schema: JsonObject;
  /** The schema under a keyword; `key` is a member's name or an index. */
  inner(keyword: string, key?: string | number): CompiledSchema;
  target(reference: string): CompiledSchema;
  pattern(source: string): LinearPattern;
}

/** One group of keywords; undefined where the schema has none of them. */
export type Builder = (site: Site) => Evaluate | undefined;

export function stringAt(schema: JsonObject, keyword: string): string | undefined {
  const value = schema.get(keyword);
  return typeof value === "string" ? value : undefined;
}

export function numberAt(schema: JsonObject, keyword: string): number | bigint | undefined {
  const value = schema.get(keyword);
  return value !== undefined && isNumber(value) ? value : undefined;
}

export function namesIn(value: Json | undefined): readonly string[] {
  if (value === undefined || !isArray(value)) return [];
  return value.filter((name) => typeof name === "string");
}

/** The members of an object under a keyword; none where there is none. */
export function membersAt(schema: JsonObject, keyword: string): JsonObject {
  const value = schema.get(keyword);
  return value !== undefined && isObject(value) ? value : new Map();
}

export function schemasAt(site: Site, keyword: string): readonly CompiledSchema[] {
  const value = site.schema.get(keyword);
  if (value === undefined || !isArray(value)) return [];
  return value.map((_, index) => site.inner(keyword, index));
}

export function schemaMapAt(site: Site, keyword: string): ReadonlyMap<string, CompiledSchema> {
  const names = [...membersAt(site.schema, keyword).keys()];
  return new Map(names.map((name) => [name, site.inner(keyword, name)]));
}

export function schemaAt(site: Site, keyword: string): CompiledSchema | undefined {
  return site.schema.has(keyword) ? site.inner(keyword) : undefined;
}

/** Of looking all these names up: comparing a long one takes its time. */
export function lookupSteps(names: Iterable<string>): number {
  let steps = 0;
  for (const name of names) steps += 1 + (name.length >> 4);
  return steps;
}
