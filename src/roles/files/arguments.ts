// Arguments of the five tools: a JSON object, already parsed strictly, to one typed value. What the
// schemas in definitions.ts say is checked here once more, because a broker may have been
// configured without them. Faults name an argument, never its value.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import type { FilesLimits } from "./limits.ts";
import { WINDOW_BYTES_MIN } from "./text_window.ts";

export const PATTERN_CHARS_MAX = 256;
export const WRITE_MODES = ["create", "overwrite"] as const;
export type WriteMode = (typeof WRITE_MODES)[number];

export interface PathArguments {
  readonly path: string;
}

export interface ReadArguments extends PathArguments {
  /** Bytes from the beginning of the file. */
  readonly offset: number;
  /** Bytes. */
  readonly limit: number;
}

export interface WriteArguments extends PathArguments {
  readonly content: string;
  readonly mode: WriteMode;
}

export interface SearchArguments extends PathArguments {
  readonly name: string | undefined;
  readonly content: string | undefined;
}

export function parsePathArguments(args: JsonObject): Result<PathArguments> {
  const unknown = unknownNames(args, ["path"]);
  if (unknown !== undefined) return unknown;
  const path = text(args, "path");
  return path.ok ? ok({ path: path.value }) : path;
}

export function parseReadArguments(args: JsonObject, limits: FilesLimits): Result<ReadArguments> {
  const unknown = unknownNames(args, ["path", "offset", "limit"]);
  if (unknown !== undefined) return unknown;
  const path = text(args, "path");
  if (!path.ok) return path;
  const offset = integer(args, "offset", 0, Number.MAX_SAFE_INTEGER - limits.contentBytesMax, 0);
  if (!offset.ok) return offset;
  const most = limits.contentBytesMax;
  const limit = integer(args, "limit", WINDOW_BYTES_MIN, most, most);
  if (!limit.ok) return limit;
  return ok({ path: path.value, offset: offset.value, limit: limit.value });
}

export function parseWriteArguments(args: JsonObject): Result<WriteArguments> {
  const unknown = unknownNames(args, ["path", "content", "mode"]);
  if (unknown !== undefined) return unknown;
  const path = text(args, "path");
  if (!path.ok) return path;
  const content = text(args, "content");
  if (!content.ok) return content;
  const given = args.get("mode");
  const mode = given === undefined ? "create" : WRITE_MODES.find((one) => one === given);
  if (mode === undefined) return fault("`mode` must be `create` or `overwrite`");
  return ok({ path: path.value, content: content.value, mode });
}

export function parseSearchArguments(args: JsonObject): Result<SearchArguments> {
  const unknown = unknownNames(args, ["path", "name", "content"]);
  if (unknown !== undefined) return unknown;
  const path = text(args, "path");
  if (!path.ok) return path;
  const name = pattern(args, "name");
  if (!name.ok) return name;
  const content = pattern(args, "content");
  if (!content.ok) return content;
  if (name.value === undefined && content.value === undefined) {
    return fault("`name` or `content` must be given");
  }
  return ok({ path: path.value, name: name.value, content: content.value });
}

function unknownNames(args: JsonObject, known: readonly string[]): Result<never> | undefined {
  for (const name of args.keys()) {
    if (!known.includes(name)) return fault(`only these arguments are known: ${known.join(", ")}`);
  }
  return undefined;
}

function text(args: JsonObject, name: string): Result<string> {
  const value = args.get(name);
  return typeof value === "string" ? ok(value) : fault(`\`${name}\` must be given, as a string`);
}

function pattern(args: JsonObject, name: string): Result<string | undefined> {
  const value = args.get(name);
  if (value === undefined) return ok(undefined);
  if (typeof value === "string" && value !== "" && value.length <= PATTERN_CHARS_MAX) return ok(value);
  return fault(`\`${name}\` must be a string of 1 to ${PATTERN_CHARS_MAX} characters`);
}

function integer(
  args: JsonObject,
  name: string,
  least: number,
  most: number,
  absent: number,
): Result<number> {
  const value = args.get(name);
  if (value === undefined) return ok(absent);
  const number = integerOf(value);
  if (number !== undefined && number >= least && number <= most) return ok(number);
  return fault(`\`${name}\` must be an integer from ${least} to ${most}`);
}

/** The strict parser gives integers as bigint; one out of the exact range is no argument of ours. */
function integerOf(value: Json): number | undefined {
  if (typeof value !== "bigint" && typeof value !== "number") return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : undefined;
}
