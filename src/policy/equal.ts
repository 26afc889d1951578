// What makes two calls equal (spec: broker, Approvals and Replay): tool and parsed arguments, whatever
// their ids, their order of members and their spelling. Whose calls are compared is not here.

import type { Json, JsonObject } from "../base/json.ts";
import { canonicalText } from "../base/json_canonical.ts";

/** The text whose digest equal calls share. A tool's name holds no line feed, so the two parts can't run into each other. */
export function equalText(tool: string, args: JsonObject): string {
  return `${tool}\n${canonicalText(args)}`;
}

/**
 * Whether equal means the same number for every provider. A number with fraction or exponent is parsed to a
 * double, and beyond 2^53 neighbours share one: what goes on are its digits, which nobody may have seen.
 */
export function isExact(value: Json): boolean {
  if (typeof value === "number") return Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  if (typeof value !== "object" || value === null) return true;
  for (const item of value.values()) if (!isExact(item)) return false;
  return true;
}
