// What the tools that list have in common: how many rows, and what a list's labels are.

import type { JsonObject } from "../../base/json.ts";
import { CLEAN, join, type Labels } from "../../base/labels.ts";
import type { MemberSchema } from "./arguments.ts";

export const ROWS_DEFAULT = 100;
export const ROWS_MAX = 500;

export const LIMIT: MemberSchema = {
  type: "integer",
  description: `Rows at most, 1 to ${ROWS_MAX}; left out: ${ROWS_DEFAULT}.`,
};

/** The `limit` of the arguments; what is out of its range is moved into it. */
export function rowsMax(args: JsonObject): number {
  const limit = args.get("limit");
  return typeof limit === "bigint" ? Number(atLeast(1n, atMost(BigInt(ROWS_MAX), limit))) : ROWS_DEFAULT;
}

/** Of a list: those of all that it shows. */
export function joinAll(labels: Iterable<Labels>): Labels {
  let all = CLEAN;
  for (const one of labels) all = join(all, one);
  return all;
}

function atLeast(low: bigint, value: bigint): bigint {
  return value < low ? low : value;
}

function atMost(high: bigint, value: bigint): bigint {
  return value > high ? high : value;
}
