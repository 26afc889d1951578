// Keywords about one value by itself: type, const, enum, the bounds of numbers, the length and
// pattern of strings. Each passes over values of a type that it says nothing about.

import type { Json } from "../base/json.ts";
import { buildLength } from "./schema_counts.ts";
import { type Evaluate, mismatch, Run } from "./schema_run.ts";
import { type Builder, numberAt, type Site, stringAt } from "./schema_site.ts";
import { listed, numeral, quoted } from "./schema_text.ts";
import {
  equalityKey,
  hasType,
  isArray,
  isMultiple,
  isNumber,
  isObject,
  TYPE_NAMES,
  type TypeName,
} from "./schema_values.ts";

const TYPE_WORDS: Readonly<Record<TypeName, string>> = {
  null: "null",
  boolean: "a boolean",
  object: "an object",
  array: "an array",
  number: "a number",
  string: "a string",
  integer: "an integer",
};
/** Of division in decimal, beside which other steps are nothing. */
const DECIMAL_DIVISION_STEPS = 50;
const PATTERN_SHOWN_CHARS_MAX = 120;

export const SCALAR_BUILDERS: readonly Builder[] = [
  buildType,
  buildConst,
  buildEnum,
  buildBounds,
  buildMultipleOf,
  buildLength,
  buildPattern,
];

function buildType({ schema }: Site): Evaluate | undefined {
  const given = schema.get("type");
  if (given === undefined) return undefined;
  const listedTypes: readonly Json[] = isArray(given) ? given : [given];
  const types = TYPE_NAMES.filter((name) => listedTypes.includes(name));
  const words = types.map((type) => TYPE_WORDS[type]).join(" or ");
  return (value, place) => {
    if (types.some((type) => hasType(value, type))) return undefined;
    return mismatch(place, (where) => `${where} must be ${words}`);
  };
}

function buildConst({ schema }: Site): Evaluate | undefined {
  const constant = schema.get("const");
  if (constant === undefined) return undefined;
  return oneOfValues([constant], `must be ${shown(constant)}`);
}

function buildEnum({ schema }: Site): Evaluate | undefined {
  const values = schema.get("enum");
  if (values === undefined || !isArray(values)) return undefined;
  return oneOfValues(values, `must be one of: ${listed(values.map(shown))}`);
}

function oneOfValues(values: readonly Json[], words: string): Evaluate {
  // Bounded by the schema's size. A budget that ran out here would spoil the keys.
  const compilation = new Run(Number.POSITIVE_INFINITY);
  const keys = new Set(values.map((value) => equalityKey(value, compilation)));
  const texts = new Set(values.filter((value) => typeof value === "string"));
  const compound = values.some(isCompound);
  const holds = (value: Json, run: Run): boolean => {
    if (typeof value === "string") return run.chargeText(value.length) && texts.has(value);
    return (compound || !isCompound(value)) && keys.has(equalityKey(value, run));
  };
  return (value, place, run) => {
    if (holds(value, run)) return undefined;
    return mismatch(place, (where) => `${where} ${words}`);
  };
}

function isCompound(value: Json): boolean {
  return isArray(value) || isObject(value);
}

function shown(value: Json): string {
  if (typeof value === "string") return quoted(value);
  if (isNumber(value)) return numeral(value);
  if (isArray(value)) return "a certain array";
  return isObject(value) ? "a certain object" : String(value);
}

interface Bound {
  readonly keyword: string;
  readonly words: string;
  /** Exact between integers and other numbers, as the language defines it. */
  holds(value: number | bigint, limit: number | bigint): boolean;
}

const BOUNDS: readonly Bound[] = [
  { keyword: "minimum", words: "at least", holds: (value, limit) => value >= limit },
  { keyword: "exclusiveMinimum", words: "above", holds: (value, limit) => value > limit },
  { keyword: "maximum", words: "at most", holds: (value, limit) => value <= limit },
  { keyword: "exclusiveMaximum", words: "below", holds: (value, limit) => value < limit },
];

function buildBounds({ schema }: Site): Evaluate | undefined {
  const bounds = BOUNDS.flatMap((bound) => {
    const limit = numberAt(schema, bound.keyword);
    return limit === undefined ? [] : [{ ...bound, limit }];
  });
  if (bounds.length === 0) return undefined;
  return (value, place) => {
    if (!isNumber(value)) return undefined;
    const broken = bounds.find(({ holds, limit }) => !holds(value, limit));
    if (broken === undefined) return undefined;
    return mismatch(place, (where) => `${where} must be ${broken.words} ${numeral(broken.limit)}`);
  };
}

function buildMultipleOf({ schema }: Site): Evaluate | undefined {
  const divisor = numberAt(schema, "multipleOf");
  if (divisor === undefined) return undefined;
  return (value, place, run) => {
    if (!isNumber(value)) return undefined;
    run.charge(DECIMAL_DIVISION_STEPS);
    if (isMultiple(value, divisor)) return undefined;
    return mismatch(place, (where) => `${where} must be a multiple of ${numeral(divisor)}`);
  };
}

function buildPattern(site: Site): Evaluate | undefined {
  const source = stringAt(site.schema, "pattern");
  if (source === undefined) return undefined;
  const pattern = site.pattern(source);
  return (value, place, run) => {
    if (typeof value !== "string" || pattern.matches(value, run)) return undefined;
    return mismatch(
      place,
      (where) => `${where} must match the pattern ${quoted(source, PATTERN_SHOWN_CHARS_MAX)}`,
    );
  };
}
