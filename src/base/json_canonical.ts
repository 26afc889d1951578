// One text for all spellings of a JSON value: what makes two calls equal (spec: broker, Approvals and
// Replay). Members sorted by name, no white space, integers exact, and `1.0` is `1`.

import type { Json } from "./json.ts";

/** `value` as the strict parser gives it, so its depth is bounded. */
export function canonicalText(value: Json): string {
  if (typeof value === "number") return doubleText(value);
  if (typeof value === "bigint") return integerText(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (value instanceof Map) {
    const names = [...value.keys()].sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalText(value.get(name) ?? null)}`).join(",")}}`;
  }
  return `[${(value as readonly Json[]).map(canonicalText).join(",")}]`;
}

/**
 * Beyond 2^53 not by its digits: `1e308` has 309 of them, and written out so, numbers that take a caller's
 * megabyte would take twenty, and seconds. The mark keeps it apart from an integer of those digits.
 */
function doubleText(value: number): string {
  if (!Number.isInteger(value)) return String(value);
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? BigInt(value).toString() : `~${value}`;
}

function integerText(value: bigint): string {
  const double = Number(value);
  if (Number.isSafeInteger(double) || !Number.isFinite(double)) return value.toString();
  return BigInt(double) === value ? doubleText(double) : value.toString();
}
