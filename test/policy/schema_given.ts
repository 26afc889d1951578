// Schemas and arguments written as JSON text, so that 1 and 1.0 stay what they are.

import { expect } from "vitest";
import { type Json, type JsonObject, parseJson } from "../../src/base/json.ts";
import { type ArgumentsSchema, compileArgumentsSchema } from "../../src/policy/schema.ts";
import { compileSchema } from "../../src/policy/schema_compile.ts";

export function json(text: string): Json {
  const parsed = parseJson(text, { depth: 400, nodes: 1_000_000, integerDigits: 400 });
  if (!parsed.ok) throw new Error(`${parsed.fault.message} at ${parsed.fault.offset}`);
  return parsed.value;
}

export function jsonObject(text: string): JsonObject {
  const value = json(text);
  if (!(value instanceof Map)) throw new Error("not an object");
  return value;
}

/** Of plain values, also where the parser would refuse their names; integers become bigint. */
export function jsonOf(value: unknown): Json {
  if (Array.isArray(value)) return value.map(jsonOf);
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value !== "object" || value === null) return null;
  return new Map(Object.entries(value).map(([name, member]) => [name, jsonOf(member)]));
}

export async function compiled(schema: unknown): Promise<ArgumentsSchema> {
  const result = await compileArgumentsSchema(typeof schema === "string" ? json(schema) : jsonOf(schema));
  expect(result).toMatchObject({ ok: true });
  if (!result.ok) throw new Error("refused");
  return result.value;
}

/** What is wrong with one argument `x` under a schema; undefined: nothing. */
export async function checkOf(schema: string, x: string): Promise<string | undefined> {
  const checked = await compiled(`{"type":"object","properties":{"x":${schema}}}`);
  return checked.check(jsonObject(`{"x":${x}}`))?.message;
}

/** `CODE POINTER` of each fault. */
export async function faultsOf(schema: unknown): Promise<readonly string[]> {
  const result = await compileSchema(typeof schema === "string" ? json(schema) : jsonOf(schema), "object");
  return result.ok ? [] : result.fault.map(({ code, pointer }) => `${code} ${pointer}`);
}
