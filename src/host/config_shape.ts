// A small declarative reader: what a table may hold is written down as a shape of readers, and
// reading it gives typed values with their positions. Every unknown key, missing key and wrong type
// is reported where it stands; nothing is ever converted silently. Knows no name of callgate's own.

import type { Json } from "../base/json.ts";
import {
  type Located,
  listed,
  nearest,
  type Position,
  quote,
  type Report,
  suggestion,
} from "./config_faults.ts";
import type { TomlNode, TomlTable } from "./config_toml.ts";

/** undefined: refused and reported. `name` is what messages call it. */
export type Reader<T> = (node: TomlNode, name: string, report: Report) => T | undefined;

export type Shape = Readonly<Record<string, Reader<unknown>>>;

export type Fields<S extends Shape> = {
  readonly [K in keyof S]: S[K] extends Reader<infer T> ? Located<T> | undefined : never;
};

export interface TableRead<S extends Shape> {
  readonly at: Position;
  /** undefined: absent, or refused. */
  readonly fields: Fields<S>;
  /** Where each key that was written stands, whether or not its value was accepted. */
  readonly keys: ReadonlyMap<string, Position>;
}

export interface TableRules<S extends Shape> {
  /** Names the table in messages: "a grant". */
  readonly name: string;
  readonly shape: S;
  readonly required?: readonly (keyof S & string)[];
  /** Keys that people write here and that belong elsewhere: what to do instead. */
  readonly elsewhere?: ReadonlyMap<string, string>;
}

export function readTable<S extends Shape>(
  table: TomlTable,
  rules: TableRules<S>,
  report: Report,
): TableRead<S> {
  const fields: Record<string, Located<unknown> | undefined> = {};
  const keys = new Map<string, Position>();
  for (const key of Object.keys(rules.shape)) fields[key] = undefined;
  for (const [key, entry] of table.entries) {
    const read = Object.hasOwn(rules.shape, key) ? rules.shape[key] : undefined;
    if (read === undefined) {
      report(entry.keyAt, unknownKey(key, rules));
      continue;
    }
    keys.set(key, entry.keyAt);
    const value = read(entry.value, key, report);
    if (value !== undefined) fields[key] = { value, at: entry.value.at };
  }
  for (const key of rules.required ?? []) {
    if (!keys.has(key)) report(table.at, `${rules.name} needs ${quote(key)}, which is missing`);
  }
  // Each field was just read by the reader that the shape has under that key.
  return { at: table.at, fields: fields as Fields<S>, keys };
}

function unknownKey<S extends Shape>(key: string, rules: TableRules<S>): string {
  const known = Object.keys(rules.shape);
  const elsewhere = nearest(key, known) === undefined ? rules.elsewhere?.get(key) : undefined;
  const advice = elsewhere ?? suggestion(key, known, "keys");
  return `unknown key ${quote(key)} in ${rules.name}; ${advice}`;
}

const KIND_NAMES: Readonly<Record<TomlNode["kind"], string>> = {
  table: "a table",
  array: "a list",
  string: "text",
  integer: "an integer",
  float: "a number with a fraction or exponent",
  boolean: "true or false",
  instant: "a date and time",
  local_time: "a date or time without an offset",
};

function refuse(node: TomlNode, name: string, expected: string, report: Report): undefined {
  report(node.at, `${name} must be ${expected}, not ${KIND_NAMES[node.kind]}`);
}

const TEXT_CHARS_MAX = 16_384;

/** Text that is not empty. `accepts` may ask more of it; `expected` then says what. */
export function text(expected = "text in quotes", accepts?: (value: string) => boolean): Reader<string> {
  return (node, name, report) => {
    if (node.kind !== "string") return refuse(node, name, expected, report);
    if (node.value === "") return void report(node.at, `${name} must not be empty; it must be ${expected}`);
    if (node.value.length > TEXT_CHARS_MAX) {
      return void report(node.at, `${name} is too long; at most ${TEXT_CHARS_MAX} characters`);
    }
    if (accepts !== undefined && !accepts(node.value)) {
      return void report(node.at, `${name} must be ${expected}, not ${quote(node.value)}`);
    }
    return node.value;
  };
}

export const flag: Reader<boolean> = (node, name, report) =>
  node.kind === "boolean" ? node.value : refuse(node, name, "true or false (without quotes)", report);

export function integer(min: number, max: number): Reader<number> {
  const expected = `a whole number from ${min} to ${max}`;
  return (node, name, report) => {
    if (node.kind !== "integer") return refuse(node, name, expected, report);
    if (node.value >= min && node.value <= max) return node.value;
    return void report(node.at, `${name} must be ${expected}, not ${node.value}`);
  };
}

export function oneOf<const T extends string>(words: readonly T[]): Reader<T> {
  const expected = `one of ${listed(words.map(quote))}`;
  return (node, name, report) => {
    if (node.kind !== "string") return refuse(node, name, expected, report);
    const word = words.find((one) => one === node.value);
    if (word === undefined) report(node.at, `${name} must be ${expected}, not ${quote(node.value)}`);
    return word;
  };
}

const DURATION = /^(0|[1-9][0-9]{0,11})(ms|s|m|h|d)$/;
const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** A number and its unit, as milliseconds. The bounds are written in the same way. */
export function duration(min: string, max: string): Reader<number> {
  const minMs = durationMs(min) ?? 0;
  const maxMs = durationMs(max) ?? 0;
  const expected = `a duration from ${quote(min)} to ${quote(max)} (a number and ms, s, m, h or d)`;
  return (node, name, report) => {
    if (node.kind !== "string") return refuse(node, name, expected, report);
    const ms = durationMs(node.value);
    if (ms !== undefined && ms >= minMs && ms <= maxMs) return ms;
    return void report(node.at, `${name} must be ${expected}, not ${quote(node.value)}`);
  };
}

function durationMs(value: string): number | undefined {
  const parts = DURATION.exec(value);
  const unit = UNIT_MS.get(parts?.[2] ?? "");
  return unit === undefined ? undefined : Number(parts?.[1]) * unit;
}

/** Milliseconds since the epoch. */
export const instant: Reader<number> = (node, name, report) => {
  const expected = "a date and time with its offset and without quotes, such as 2027-01-01T00:00:00Z";
  if (node.kind !== "instant") return refuse(node, name, expected, report);
  if (Number.isFinite(node.value)) return node.value;
  return void report(node.at, `${name} must be ${expected}; this one does not exist`);
};

/** `none`: what to do instead of an empty list; left out where an empty one is fine. */
export function list<T extends string | number>(
  item: Reader<T>,
  expected: string,
  none?: string,
): Reader<readonly Located<T>[]> {
  return (node, name, report) => {
    if (node.kind !== "array") return refuse(node, name, expected, report);
    if (node.items.length === 0 && none !== undefined) {
      return void report(node.at, `${name} must not be empty; ${none}`);
    }
    const seen = new Set<T>();
    const values: Located<T>[] = [];
    for (const element of node.items) {
      const value = item(element, `each of ${name}`, report);
      if (value === undefined) continue;
      if (seen.has(value)) report(element.at, `${name} names ${quote(String(value))} twice; keep one`);
      seen.add(value);
      values.push({ value, at: element.at });
    }
    // Where nothing is left, an empty list would tell a second, wrong story.
    return values.length === 0 && node.items.length > 0 ? undefined : values;
  };
}

/** A table that is read further by its own rules. */
export const table: Reader<TomlTable> = (node, name, report) =>
  node.kind === "table" ? node : refuse(node, name, `a table, begun with [${name}]`, report);

export const tables: Reader<readonly TomlTable[]> = (node, name, report) => {
  const expected = `a list of tables, each begun with [[${name}]]`;
  if (node.kind !== "array") return refuse(node, name, expected, report);
  const found: TomlTable[] = [];
  for (const item of node.items) {
    if (item.kind === "table") found.push(item);
    else refuse(item, `each of ${name}`, expected, report);
  }
  return found;
};

/** Any value that JSON has too. Integers become bigint, as everywhere (base/json). */
export const json: Reader<Json> = (node, name, report) => {
  switch (node.kind) {
    case "table":
      return jsonObject(node, report);
    case "array":
      return node.items.map((item) => json(item, name, report) ?? null);
    case "integer":
      return BigInt(node.value);
    case "float":
      if (Number.isFinite(node.value)) return node.value;
      return void report(node.at, `${name} must be a finite number; JSON has no nan and no inf`);
    case "string":
    case "boolean":
      return node.value;
    default:
      return refuse(node, name, "a value that JSON has too (a date as text in quotes)", report);
  }
};

function jsonObject(node: TomlTable, report: Report): Json {
  const members = new Map<string, Json>();
  // A refused member was reported, so what stands here instead is never used.
  for (const [key, entry] of node.entries) members.set(key, json(entry.value, key, report) ?? null);
  return members;
}
