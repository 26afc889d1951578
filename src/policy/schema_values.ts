// What JSON Schema asks of single values: their type, equality, exact division, length. Integers
// are bigint and never rounded; a number without fraction counts as the integer it is.

import type { Json, JsonObject } from "../base/json.ts";
import type { Run } from "./schema_run.ts";

export const TYPE_NAMES = ["null", "boolean", "object", "array", "number", "string", "integer"] as const;
export type TypeName = (typeof TYPE_NAMES)[number];

export function isObject(value: Json): value is JsonObject {
  return value instanceof Map;
}

export function isArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

export function isNumber(value: Json): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

export function hasType(value: Json, type: TypeName): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "object":
      return isObject(value);
    case "array":
      return isArray(value);
    case "number":
      return isNumber(value);
    case "integer":
      return typeof value === "bigint" || Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

const EQUALITY_DEPTH_MAX = 256;
/** Of making one value into text. */
const EQUALITY_STEPS = 6;

/**
 * Text that is the same for two values exactly when JSON Schema calls them equal (1 and 1.0 are, the
 * order of members is not looked at). Charged to the run; of an overrun run it means nothing.
 */
export function equalityKey(value: Json, run: Run, depth = 0): string {
  if (!run.charge(EQUALITY_STEPS) || depth > EQUALITY_DEPTH_MAX) {
    run.exhaust();
    return "";
  }
  if (typeof value === "string") return stringKey(value, run);
  if (isNumber(value)) return numberKey(value);
  if (isArray(value)) return `[${value.map((item) => equalityKey(item, run, depth + 1)).join(",")}]`;
  if (isObject(value)) return objectKey(value, run, depth);
  return String(value);
}

function stringKey(value: string, run: Run): string {
  run.charge(value.length >> 4);
  return JSON.stringify(value);
}

/** Short even where the number is huge: 1e308 stays five characters, an inexact bigint keeps all its digits. */
function numberKey(value: number | bigint): string {
  if (typeof value === "number") return String(value === 0 ? 0 : value);
  const nearest = Number(value);
  return Number.isFinite(nearest) && BigInt(nearest) === value ? String(nearest) : `${value.toString(16)}n`;
}

function objectKey(value: JsonObject, run: Run, depth: number): string {
  const names = [...value.keys()].sort();
  const members = names.map((name) => {
    const member = value.get(name) ?? null;
    return `${stringKey(name, run)}:${equalityKey(member, run, depth + 1)}`;
  });
  return `{${members.join(",")}}`;
}

/** Exact, in decimal: 0.0075 is a multiple of 0.0001. `divisor` is above zero. */
export function isMultiple(value: number | bigint, divisor: number | bigint): boolean {
  if (typeof value === "bigint" && typeof divisor === "bigint") return value % divisor === 0n;
  const dividend = decimal(value);
  const by = decimal(divisor);
  const scale = dividend.exponent - by.exponent;
  return scale >= 0
    ? (dividend.digits * 10n ** BigInt(scale)) % by.digits === 0n
    : dividend.digits % (by.digits * 10n ** BigInt(-scale)) === 0n;
}

interface Decimal {
  readonly digits: bigint;
  /** Of ten. */
  readonly exponent: number;
}

/** The decimal that a number prints as, which is the one that its author wrote. */
function decimal(value: number | bigint): Decimal {
  if (typeof value === "bigint") return { digits: value, exponent: 0 };
  const [mantissa = "0", exponent = "0"] = String(value).split("e");
  const [whole = "0", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

/** Unicode characters, not UTF-16 units. */
export function characterCount(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length - 1; index++) {
    if ((text.charCodeAt(index) & 0xfc00) === 0xd800 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      count--;
      index++;
    }
  }
  return count;
}
