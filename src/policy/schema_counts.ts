// Keywords about how many of something a value has: characters, items, members.

import type { Json } from "../base/json.ts";
import { mismatch, type Run } from "./schema_run.ts";
import { type Builder, numberAt } from "./schema_site.ts";
import { numeral } from "./schema_text.ts";
import { characterCount, isArray, isObject } from "./schema_values.ts";

export const buildLength = counting("minLength", "maxLength", "characters", (value, run) => {
  if (typeof value !== "string") return undefined;
  run.chargeText(value.length);
  return characterCount(value);
});

export const buildItemCount = counting("minItems", "maxItems", "items", (value) =>
  isArray(value) ? value.length : undefined,
);

export const buildMemberCount = counting("minProperties", "maxProperties", "members", (value) =>
  isObject(value) ? value.size : undefined,
);

/** `count` gives undefined for a value that the keywords say nothing about. */
function counting(
  least: string,
  most: string,
  what: string,
  count: (value: Json, run: Run) => number | undefined,
): Builder {
  return ({ schema }) => {
    const min = numberAt(schema, least);
    const max = numberAt(schema, most);
    if (min === undefined && max === undefined) return undefined;
    return (value, place, run) => {
      const found = count(value, run);
      if (found === undefined) return undefined;
      if (min !== undefined && found < min)
        return mismatch(place, (where) => `${where} must have at least ${numeral(min)} ${what}`);
      if (max !== undefined && found > max)
        return mismatch(place, (where) => `${where} must have at most ${numeral(max)} ${what}`);
      return undefined;
    };
  };
}
