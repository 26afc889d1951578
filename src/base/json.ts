// Strict JSON: the one parser for text whose meaning decides something (a call's arguments, an
// announced schema), and the texts of parsed values. Tokens are scanned in json_scan.ts. Invariant:
// no input throws, recurses deeper than the depth limit, or costs more than linear time.

import { fault, ok, type Result } from "./faults.ts";
import { NamesSeen } from "./json_names.ts";
import { type Cursor, fail, scanNumber, scanString, skipSpace } from "./json_scan.ts";

/** Integers are bigint always; numbers with fraction or exponent are number (finite). */
export type Json = null | boolean | string | number | bigint | readonly Json[] | JsonObject;
export type JsonObject = ReadonlyMap<string, Json>;

export interface JsonLimits {
  /** Arrays and objects within each other; above DEPTH_HARD_MAX it counts as that. */
  readonly depth: number;
  /** Values and member names together. */
  readonly nodes: number;
  /** Digits of one integer literal. */
  readonly integerDigits: number;
}

/** What is wrong, without quoting the text, and the offset in UTF-16 units. */
export interface JsonFault {
  readonly message: string;
  readonly offset: number;
}

/** What the stack carries for certain, whatever limits a caller gives. */
const DEPTH_HARD_MAX = 512;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const ARRAY_OPEN = 0x5b;
const ARRAY_CLOSE = 0x5d;
const OBJECT_OPEN = 0x7b;
const OBJECT_CLOSE = 0x7d;

/**
 * Parses exactly one JSON value (RFC 8259): no duplicate members (also none that are equal after
 * NFKC and case folding), no lone surrogates, no number that is not finite, nothing behind it.
 * An object's members keep their order.
 */
export function parseJson(text: string, limits: JsonLimits): Result<Json, JsonFault> {
  const cursor = {
    text,
    at: 0,
    nodesLeft: limits.nodes,
    integerDigitsMax: limits.integerDigits,
    message: "",
  };
  const value = parseValue(cursor, Math.min(limits.depth, DEPTH_HARD_MAX));
  if (value !== undefined) {
    skipSpace(cursor);
    if (cursor.at === text.length) return ok(value);
    fail(cursor, "something follows the value", cursor.at);
  }
  return fault({ message: cursor.message, offset: Math.min(cursor.at, text.length) });
}

/** As parseJson, where only an object will do. */
export function parseJsonObject(text: string, limits: JsonLimits): Result<JsonObject, JsonFault> {
  const parsed = parseJson(text, limits);
  if (!parsed.ok) return parsed;
  if (isJsonObject(parsed.value)) return ok(parsed.value);
  return fault({ message: "one JSON object is expected", offset: 0 });
}

export function isJsonObject(value: Json): value is JsonObject {
  return value instanceof Map;
}

function parseValue(cursor: Cursor, depthLeft: number): Json | undefined {
  const unit = skipSpace(cursor);
  if (--cursor.nodesLeft < 0) return fail(cursor, "too many values", cursor.at);
  switch (unit) {
    case QUOTE:
      cursor.at++;
      return scanString(cursor);
    case OBJECT_OPEN:
      if (depthLeft <= 0) return fail(cursor, "too deeply nested", cursor.at);
      cursor.at++;
      return parseObject(cursor, depthLeft - 1);
    case ARRAY_OPEN:
      if (depthLeft <= 0) return fail(cursor, "too deeply nested", cursor.at);
      cursor.at++;
      return parseArray(cursor, depthLeft - 1);
    case 0x74:
      return parseWord(cursor, "true", true);
    case 0x66:
      return parseWord(cursor, "false", false);
    case 0x6e:
      return parseWord(cursor, "null", null);
    default:
      return scanNumber(cursor);
  }
}

function parseWord<T extends Json>(cursor: Cursor, word: string, value: T): T | undefined {
  if (!cursor.text.startsWith(word, cursor.at)) return fail(cursor, "a value is expected", cursor.at);
  cursor.at += word.length;
  return value;
}

function parseArray(cursor: Cursor, depthLeft: number): readonly Json[] | undefined {
  const items: Json[] = [];
  if (skipSpace(cursor) === ARRAY_CLOSE) {
    cursor.at++;
    return items;
  }
  for (;;) {
    const item = parseValue(cursor, depthLeft);
    if (item === undefined) return undefined;
    items.push(item);
    const unit = skipSpace(cursor);
    if (unit !== COMMA && unit !== ARRAY_CLOSE) return fail(cursor, "`,` or `]` is expected", cursor.at);
    cursor.at++;
    if (unit === ARRAY_CLOSE) return items;
  }
}

function parseObject(cursor: Cursor, depthLeft: number): JsonObject | undefined {
  const members = new Map<string, Json>();
  if (skipSpace(cursor) === OBJECT_CLOSE) {
    cursor.at++;
    return members;
  }
  const seen = new NamesSeen(members);
  for (;;) {
    const name = parseName(cursor, seen);
    if (name === undefined) return undefined;
    const value = parseValue(cursor, depthLeft);
    if (value === undefined) return undefined;
    members.set(name, value);
    const unit = skipSpace(cursor);
    if (unit !== COMMA && unit !== OBJECT_CLOSE) return fail(cursor, "`,` or `}` is expected", cursor.at);
    cursor.at++;
    if (unit === OBJECT_CLOSE) return members;
  }
}

/** A member's name and the colon behind it. */
function parseName(cursor: Cursor, seen: NamesSeen): string | undefined {
  if (skipSpace(cursor) !== QUOTE) return fail(cursor, "a member's name is expected", cursor.at);
  const start = cursor.at++;
  if (--cursor.nodesLeft < 0) return fail(cursor, "too many values", start);
  const name = scanString(cursor);
  if (name === undefined) return undefined;
  const verdict = seen.judge(name, cursor);
  if (verdict === "repeated") return fail(cursor, "a member's name is given twice", start);
  if (verdict === "costly") return fail(cursor, "the members' names cost too much to compare", start);
  if (skipSpace(cursor) !== COLON) return fail(cursor, "`:` is expected", cursor.at);
  cursor.at++;
  return name;
}

/**
 * Canonical text: two values have the same one exactly when they mean the same call. Members are
 * sorted by UTF-16 unit; numbers count by value, so `1`, `1.0`, `10e-1` are one, and `-0.0` is `0`:
 * otherwise every number would give an agent one more way to ask a refused question again.
 */
export function jsonText(value: Json): string {
  if (typeof value === "number") return canonicalNumber(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (!isJsonObject(value)) return `[${value.map(jsonText).join(",")}]`;
  const names = [...value.keys()].sort(byUnit);
  return `{${names.map((name) => `${JSON.stringify(name)}:${jsonText(value.get(name) ?? null)}`).join(",")}}`;
}

function byUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function canonicalNumber(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString() : String(value);
}

/** Plain text: members in their order, numbers of their kind. `parseJson` gives the same value back. */
export function jsonTextInOrder(value: Json): string {
  if (typeof value === "number") return doubleText(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (!isJsonObject(value)) return `[${value.map(jsonTextInOrder).join(",")}]`;
  const members = [...value].map(([name, member]) => `${JSON.stringify(name)}:${jsonTextInOrder(member)}`);
  return `{${members.join(",")}}`;
}

/** With a point or an exponent, so that it reads back as a double. */
function doubleText(value: number): string {
  const text = Object.is(value, -0) ? "-0" : String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
