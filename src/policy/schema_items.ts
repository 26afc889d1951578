// Keywords about an array's items: how many, whether they differ, the schema of each, and how many
// match `contains`.

import type { Json } from "../base/json.ts";
import { buildItemCount } from "./schema_counts.ts";
import {
  type Evaluate,
  type Evaluated,
  type Mismatch,
  mismatch,
  type Place,
  type Run,
  within,
} from "./schema_run.ts";
import {
  type Builder,
  type CompiledSchema,
  numberAt,
  type Site,
  schemaAt,
  schemasAt,
} from "./schema_site.ts";
import { numeral } from "./schema_text.ts";
import { equalityKey, isArray } from "./schema_values.ts";

export const ITEM_BUILDERS: readonly Builder[] = [
  buildItemCount,
  buildItems,
  buildContains,
  buildUniqueItems,
];

/** `prefixItems` and `items`. */
function buildItems(site: Site): Evaluate | undefined {
  const leading = schemasAt(site, "prefixItems");
  const others = schemaAt(site, "items");
  if (leading.length === 0 && others === undefined) return undefined;
  return (value, place, run, seen) => {
    if (!isArray(value)) return undefined;
    const end = others === undefined ? Math.min(leading.length, value.length) : value.length;
    for (let index = 0; index < end; index++) {
      const schema = leading[index] ?? others;
      const wrong = itemMismatch(schema, value, index, place, run, leading.length);
      if (wrong !== undefined) return wrong;
    }
    if (seen !== undefined) seen.items = Math.max(seen.items, end);
    return undefined;
  };
}

function itemMismatch(
  schema: CompiledSchema | undefined,
  items: readonly Json[],
  index: number,
  place: Place,
  run: Run,
  allowed: number,
): Mismatch | undefined {
  const item = items[index];
  if (schema === undefined || item === undefined) return undefined;
  if (schema.node.schema === false && index >= allowed) {
    return mismatch(place, (where) => `${where} must have at most ${allowed} items`);
  }
  return schema.evaluate(item, within(place, index), run, undefined);
}

/** `contains`, `minContains` and `maxContains`; without the first the others say nothing. */
function buildContains(site: Site): Evaluate | undefined {
  const wanted = schemaAt(site, "contains");
  if (wanted === undefined) return undefined;
  const least = numberAt(site.schema, "minContains") ?? 1;
  const most = numberAt(site.schema, "maxContains");
  return (value, place, run, seen) => {
    if (!isArray(value)) return undefined;
    let found = 0;
    for (const [index, item] of value.entries()) {
      if (wanted.evaluate(item, within(place, index), run, undefined) !== undefined) continue;
      found++;
      seen?.indexes.add(index);
    }
    if (found < least) {
      return mismatch(
        place,
        (where) => `${where} must have at least ${numeral(least)} items that match "contains"`,
      );
    }
    if (most !== undefined && found > most) {
      return mismatch(
        place,
        (where) => `${where} must have at most ${numeral(most)} items that match "contains"`,
      );
    }
    return undefined;
  };
}

function buildUniqueItems({ schema }: Site): Evaluate | undefined {
  if (schema.get("uniqueItems") !== true) return undefined;
  return (value, place, run) => {
    if (!isArray(value)) return undefined;
    const keys = new Set<string>();
    for (const [index, item] of value.entries()) {
      if (run.overrun) return undefined;
      keys.add(equalityKey(item, run));
      if (keys.size <= index) return mismatch(place, (where) => `${where} must not have the same item twice`);
    }
    return undefined;
  };
}

/** `unevaluatedItems`: runs last, over what all the others have left. */
export function unevaluatedItems(
  rest: CompiledSchema,
  value: readonly Json[],
  place: Place,
  run: Run,
  seen: Evaluated,
): Mismatch | undefined {
  for (const [index, item] of value.entries()) {
    if (!run.charge(1)) return undefined;
    if (seen.hasItem(index)) continue;
    if (rest.node.schema === false)
      return mismatch(place, (where) => `${where} has an item that its schema does not allow`);
    const wrong = rest.evaluate(item, within(place, index), run, undefined);
    if (wrong !== undefined) return wrong;
  }
  seen.items = Math.max(seen.items, value.length);
  return undefined;
}
