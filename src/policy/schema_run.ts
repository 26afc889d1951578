// One check in progress: its budget, where it is, what it has already looked at, and what it found
// wrong. An overrun is sticky and decided at the top, so that no `not` can turn it into a pass.

import type { Json } from "../base/json.ts";
import type { StepMeter } from "./pattern.ts";
import { pointerToken, quoted } from "./schema_text.ts";

/** Of one check, in steps of some tens of nanoseconds. As many values as the parser admits fit in well. */
export const STEPS_MAX = 2_000_000;
/** Of one schema applied to one value. */
const APPLICATION_STEPS = 8;
/** Of schemas within schemas: bounds the call stack. */
const NESTING_MAX = 512;
const PATTERN_VISITS_PER_STEP = 4;
const POINTER_CHARS_MAX = 256;
const MESSAGE_CHARS_MAX = 600;

export class Run implements StepMeter {
  #left: number;
  #nesting = 0;
  #visits = 0;

  constructor(stepsMax: number) {
    this.#left = stepsMax;
  }

  get overrun(): boolean {
    return this.#left < 0;
  }

  /** False where the budget is spent. */
  charge(steps: number): boolean {
    this.#left -= steps;
    return this.#left >= 0;
  }

  /** Of a pattern's engine, whose visits are cheaper than steps. */
  visit(visits: number): boolean {
    this.#visits += visits;
    const steps = Math.floor(this.#visits / PATTERN_VISITS_PER_STEP);
    this.#visits -= steps * PATTERN_VISITS_PER_STEP;
    return this.charge(steps);
  }

  /** For comparing or counting that many characters beside the step itself. */
  chargeText(chars: number): boolean {
    return this.charge(1 + (chars >> 4));
  }

  exhaust(): void {
    this.#left = -1;
  }

  enter(): boolean {
    this.#nesting++;
    if (this.#nesting > NESTING_MAX) this.exhaust();
    return this.charge(APPLICATION_STEPS);
  }

  leave(): void {
    this.#nesting--;
  }
}

/** A place in the arguments, from the inside out; undefined is the whole. */
export type Place =
  | { readonly outer: Place; readonly token: string | number; readonly depth: number }
  | undefined;

export function within(outer: Place, token: string | number): Place {
  return { outer, token, depth: depthOf(outer) + 1 };
}

export function depthOf(place: Place): number {
  return place === undefined ? 0 : place.depth;
}

/** The token of a member whose name the schema does not declare, and so is not shown. */
export const UNDECLARED = "*";

/** JSON Pointer of a place; one that would be too long ends at an outer place. */
export function pointerOf(place: Place): string {
  const tokens: string[] = [];
  for (let at = place; at !== undefined; at = at.outer) tokens.push(pointerToken(String(at.token)));
  let pointer = "";
  for (const token of tokens.reverse()) {
    if (pointer.length + token.length + 1 > POINTER_CHARS_MAX) break;
    pointer += `/${token}`;
  }
  return pointer;
}

export interface Mismatch {
  readonly place: Place;
  /** The sentence, given the quoted pointer of its place. Built only for the mismatch that is reported. */
  readonly says: (where: string) => string;
}

export function sentence(mismatch: Mismatch): string {
  const text = mismatch.says(quoted(pointerOf(mismatch.place), POINTER_CHARS_MAX));
  return text.length > MESSAGE_CHARS_MAX ? `${text.slice(0, MESSAGE_CHARS_MAX)}…` : text;
}

/** The members and items of one value that some schema has evaluated (for `unevaluated…`). */
export class Evaluated {
  readonly names = new Set<string>();
  readonly indexes = new Set<number>();
  allNames = false;
  /** Items below this index. */
  items = 0;

  hasItem(index: number): boolean {
    return index < this.items || this.indexes.has(index);
  }

  hasName(name: string): boolean {
    return this.allNames || this.names.has(name);
  }

  take(other: Evaluated, run: Run): void {
    run.charge(other.names.size + other.indexes.size);
    for (const name of other.names) {
      if (!run.chargeText(name.length)) return;
      this.names.add(name);
    }
    if (run.overrun) return;
    for (const index of other.indexes) this.indexes.add(index);
    this.allNames ||= other.allNames;
    this.items = Math.max(this.items, other.items);
  }
}

/** `seen` is given where somebody further out asks what was evaluated; it counts only if there is no mismatch. */
export type Evaluate = (
  value: Json,
  place: Place,
  run: Run,
  seen: Evaluated | undefined,
) => Mismatch | undefined;

export function mismatch(place: Place, says: (where: string) => string): Mismatch {
  return { place, says };
}
