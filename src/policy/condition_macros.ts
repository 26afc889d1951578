// Loops over a list's items or a map's member names: `all`, `exists`, `exists_one`, `filter`, `map`.
// Each pays for its body once per item before it runs it. A body that comes to no value, or to no bool
// where one is needed, is the loop's outcome: no later item makes up for it.

import type { Json } from "../base/json.ts";
import type { Macro } from "./cel.ts";
import type { Frame, Step } from "./condition_calls.ts";
import { Fault, kindOf, type Outcome, OVERRUN, spend, TypeValue, type Value } from "./condition_values.ts";

export interface MacroParts {
  readonly macro: Macro;
  readonly range: Step;
  readonly body: Step;
  /** Of the loop's variable, in the frame. */
  readonly slot: number;
  readonly unitsPerItem: number;
  readonly faultAt: (why: string) => Fault;
}

/** Of going to the next item, beside what the body's nodes cost. */
const ITEM_UNITS = 8;

/** Takes the body's value for one item; undefined: go on. */
type Visit = (value: Value, item: Json) => Outcome | undefined;

/** One run: what each value means, and what it comes to when all items are through. */
interface Loop {
  readonly visit: Visit;
  finish(): Outcome;
}

export function macroStep(parts: MacroParts): Step {
  const { range, faultAt } = parts;
  return (frame) => {
    const value = range(frame);
    if (value instanceof Fault) return value;
    const items = itemsOf(value);
    if (items === undefined) return faultAt(`it needs a list or a map, not ${kindOf(value)}`);
    return run(parts, items, beginLoop(parts.macro, faultAt), frame);
  };
}

function itemsOf(value: Value): Iterable<Json> | undefined {
  if (value instanceof Map) return (value as ReadonlyMap<string, Json>).keys();
  return Array.isArray(value) ? (value as readonly Json[]) : undefined;
}

function run(parts: MacroParts, items: Iterable<Json>, loop: Loop, frame: Frame): Outcome {
  for (const item of items) {
    if (!spend(frame, ITEM_UNITS + parts.unitsPerItem)) return OVERRUN;
    frame.variables[parts.slot] = item;
    const value = parts.body(frame);
    const outcome = value instanceof Fault ? value : loop.visit(value, item);
    if (outcome !== undefined) return outcome;
  }
  return loop.finish();
}

function beginLoop(macro: Macro, faultAt: (why: string) => Fault): Loop {
  const bool =
    (visit: (value: boolean, item: Json) => Outcome | undefined): Visit =>
    (value, item) =>
      typeof value === "boolean" ? visit(value, item) : faultAt(`its body is ${kindOf(value)}, not bool`);
  switch (macro) {
    case "all":
      return { visit: bool((value) => (value ? undefined : false)), finish: () => true };
    case "exists":
      return { visit: bool((value) => (value ? true : undefined)), finish: () => false };
    case "exists_one":
      return countOne(bool);
    case "filter":
      return collect((keep) => bool((value, item) => (value ? keep(item) : undefined)));
    case "map":
      return collect(
        (keep) => (value) => (value instanceof TypeValue ? faultAt("a list cannot hold types") : keep(value)),
      );
  }
}

function countOne(bool: (visit: (value: boolean) => undefined) => Visit): Loop {
  let count = 0;
  const visit = bool((value) => {
    if (value) count++;
    return undefined;
  });
  return { visit, finish: () => count === 1 };
}

function collect(visitWith: (keep: (item: Json) => undefined) => Visit): Loop {
  const kept: Json[] = [];
  const visit = visitWith((item) => {
    kept.push(item);
    return undefined;
  });
  return { visit, finish: () => kept };
}
