// Parameters that a tool's schema wants in headers too (`x-mcp-header`, protocol 2026-07-28 over HTTP), so that what stands
// between can route by them. Whoever looks at the headers must see what runs: what a header says and what the arguments
// hold is the same, or the call is refused. Pure. (Specification: Streamable HTTP, "Custom Headers from Tool Parameters".)

import { type Json, parseJsonObject } from "../../../base/json.ts";
import { ARGUMENTS_LIMITS } from "../../../base/limits.ts";
import type { JsonMembers } from "../definition.ts";

export interface HeaderParameter {
  /** `Mcp-Param-…`, as it is declared. */
  readonly header: string;
  /** Names of properties, from the outermost on. */
  readonly path: readonly string[];
}

const KEYWORD = "x-mcp-header";
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
/** A declaration elsewhere is none: clients do not show such a tool at all. */
const TYPES: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);
const DEPTH_MAX = 32;

/** Those that the schema declares, along chains of `properties`. */
export function headerParameters(schema: JsonMembers): readonly HeaderParameter[] {
  return declaredIn(schema, []);
}

function declaredIn(schema: unknown, path: readonly string[]): HeaderParameter[] {
  if (!isMembers(schema)) return [];
  const name = schema[KEYWORD];
  const own = typeof name === "string" && TOKEN.test(name) && TYPES.has(schema["type"]) && path.length > 0;
  const found: HeaderParameter[] = own ? [{ header: `Mcp-Param-${name}`, path }] : [];
  const { properties } = schema;
  if (!isMembers(properties) || path.length >= DEPTH_MAX) return found;
  for (const [key, inner] of Object.entries(properties)) found.push(...declaredIn(inner, [...path, key]));
  return found;
}

/** What does not agree, as a sentence for the client that repeats no value; undefined where all does. */
export function headerFault(
  parameters: readonly HeaderParameter[],
  argumentsText: string,
  headers: Pick<Headers, "get">,
): string | undefined {
  if (parameters.length === 0) return undefined;
  const args = parseJsonObject(argumentsText, ARGUMENTS_LIMITS);
  if (!args.ok) return undefined; // the broker refuses them, and says why
  for (const { header, path } of parameters) {
    const value = valueAt(args.value, path);
    const held = textOf(value);
    if (held === undefined) continue;
    const given = headers.get(header);
    if (given === null) return `Header mismatch: ${header} is missing, and the arguments hold its value.`;
    const decoded = decodedHeader(given);
    if (decoded === undefined) return `Header mismatch: ${header} is not in canonical Base64.`;
    if (decoded !== held && (typeof value === "string" || !isSameNumber(decoded, held)))
      return `Header mismatch: ${header} is not what the arguments hold.`;
  }
  return undefined;
}

function valueAt(root: Json, path: readonly string[]): Json | undefined {
  let value: Json | undefined = root;
  for (const name of path) value = value instanceof Map ? value.get(name) : undefined;
  return value;
}

/** As headers have it. Of `null`, and of what has no such form, no header is expected. */
function textOf(value: Json | undefined): string | undefined {
  return typeof value === "string" || (typeof value !== "object" && value !== undefined)
    ? String(value)
    : undefined;
}

const DECIMAL = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/;

/** `42.0` is 42. */
function isSameNumber(given: string, held: string): boolean {
  return DECIMAL.test(given) && DECIMAL.test(held) && plain(given) === plain(held);
}

function plain(decimal: string): string {
  return decimal.includes(".") ? decimal.replace(/\.?0+$/, "") : decimal;
}

const ENCODED = /^=\?base64\?(.*)\?=$/;

/** undefined: it says that it is Base64, and is none, or no text. */
function decodedHeader(value: string): string | undefined {
  const base64 = ENCODED.exec(value)?.[1];
  if (base64 === undefined) return value;
  const bytes = Buffer.from(base64, "base64");
  if (bytes.toString("base64") !== base64) return undefined;
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function isMembers(value: unknown): value is JsonMembers {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
