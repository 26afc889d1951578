// The values that a condition works on and what its operators make of them. Stricter than CEL where
// CEL lets a value of the wrong type slip past a deny: values of different types are neither equal
// nor unequal, a result is never infinite, an integer never leaves int64. No syntax here.

import { isJsonObject, type Json } from "../base/json.ts";

/** As `type(x)` names them. */
export const KINDS = ["null_type", "bool", "int", "double", "string", "list", "map", "type"] as const;
export type Kind = (typeof KINDS)[number];

/** What `type(x)` gives. */
export class TypeValue {
  readonly kind: Kind;

  constructor(kind: Kind) {
    this.kind = kind;
  }
}

export type Value = Json | TypeValue;

/** An evaluation that came to no value. `why` never quotes a value. */
export class Fault {
  readonly why: string;

  constructor(why: string) {
    this.why = why;
  }
}

export type Outcome = Value | Fault;

/** What an evaluation may still cost; a unit is about ten nanoseconds at worst. */
export interface Meter {
  left: number;
}

export const OVERRUN = new Fault("it would cost too much on these arguments");
const OVERFLOW = new Fault("an integer leaves the range of int64");
const NOT_FINITE = new Fault("a number is not finite");
const BY_ZERO = new Fault("an integer is divided by zero");
/** Characters that one unit pays for where the engine compares or copies. */
const CHARS_PER_UNIT = 16;

export function spend(meter: Meter, units: number): boolean {
  meter.left -= units;
  return meter.left >= 0;
}

export function spendChars(meter: Meter, chars: number): boolean {
  return spend(meter, 1 + chars / CHARS_PER_UNIT);
}

export function kindOf(value: Value): Kind {
  switch (typeof value) {
    case "string":
      return "string";
    case "bigint":
      return "int";
    case "number":
      return "double";
    case "boolean":
      return "bool";
    default:
      if (value === null) return "null_type";
      if (value instanceof TypeValue) return "type";
      return isJsonObject(value) ? "map" : "list";
  }
}

export function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value;
}

function isNumeric(value: Value): value is bigint | number {
  return typeof value === "bigint" || typeof value === "number";
}

function mismatch(verb: string, a: Value, b: Value): Fault {
  return new Fault(`${kindOf(a)} is ${verb} ${kindOf(b)}`);
}

/** By value, int and double together exactly. Of two types: a fault, also deep inside. */
export function equals(a: Value, b: Value, meter: Meter): boolean | Fault {
  // An order compares a bigint and a number exactly, which `===` does not do at all.
  if (isNumeric(a) && isNumeric(b)) return a <= b && a >= b;
  if (typeof a === "string" && typeof b === "string") {
    if (a.length !== b.length) return false;
    return spendChars(meter, a.length) ? a === b : OVERRUN;
  }
  if (kindOf(a) !== kindOf(b)) return mismatch("compared with", a, b);
  if (a instanceof TypeValue && b instanceof TypeValue) return a.kind === b.kind;
  if (Array.isArray(a) && Array.isArray(b)) return equalLists(a, b, meter);
  if (a instanceof Map && b instanceof Map) return equalMaps(a, b, meter);
  return a === b;
}

function equalLists(a: readonly Json[], b: readonly Json[], meter: Meter): boolean | Fault {
  if (a.length !== b.length) return false;
  for (const [index, item] of a.entries()) {
    if (!spend(meter, 2)) return OVERRUN;
    const other = b[index];
    const same = other === undefined ? false : equals(item, other, meter);
    if (same !== true) return same;
  }
  return true;
}

function equalMaps(
  a: ReadonlyMap<string, Json>,
  b: ReadonlyMap<string, Json>,
  meter: Meter,
): boolean | Fault {
  if (a.size !== b.size) return false;
  for (const [name, member] of a) {
    if (!spend(meter, 1) || !spendChars(meter, name.length)) return OVERRUN;
    const other = b.get(name);
    const same = other === undefined ? false : equals(member, other, meter);
    if (same !== true) return same;
  }
  return true;
}

/** `value in container`. Found wins; not found beside an item of another type is a fault. */
export function isIn(value: Value, container: Value, meter: Meter): boolean | Fault {
  if (container instanceof Map) {
    if (typeof value !== "string") return mismatch("no member name of", value, container);
    return spendChars(meter, value.length) ? container.has(value) : OVERRUN;
  }
  if (!Array.isArray(container)) return mismatch("sought in", value, container);
  let odd: Fault | undefined;
  for (const item of container as readonly Json[]) {
    if (!spend(meter, 2)) return OVERRUN;
    const same = equals(value, item, meter);
    if (same === true) return true;
    if (same === OVERRUN) return OVERRUN;
    if (same instanceof Fault) odd ??= same;
  }
  return odd ?? false;
}

/** Below zero, zero or above it, as `a` is before, equal to or behind `b`. */
export function compare(a: Value, b: Value, meter: Meter): number | Fault {
  if (isNumeric(a) && isNumeric(b)) return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a !== "string" || typeof b !== "string") return mismatch("ordered with", a, b);
  return spendChars(meter, Math.min(a.length, b.length)) ? compareText(a, b) : OVERRUN;
}

/** By code point, which differs from the engine's order where surrogates meet U+E000 and above. */
function compareText(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  let at = 0;
  while (at < shared && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  if (at === shared) return a.length - b.length;
  return codePointRank(a.charCodeAt(at)) - codePointRank(b.charCodeAt(at));
}

function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

export type ArithmeticOperator = "+" | "-" | "*" | "/" | "%";

export function calculate(operator: ArithmeticOperator, a: Value, b: Value, meter: Meter): Outcome {
  if (typeof a === "bigint" && typeof b === "bigint") return calculateInt(operator, a, b);
  if (typeof a === "number" && typeof b === "number" && operator !== "%") {
    const value = calculateDouble(operator, a, b);
    return Number.isFinite(value) ? value : NOT_FINITE;
  }
  if (operator === "+" && typeof a === "string" && typeof b === "string")
    return spendChars(meter, a.length + b.length) ? a + b : OVERRUN;
  if (operator === "+" && Array.isArray(a) && Array.isArray(b))
    return spend(meter, a.length + b.length) ? [...a, ...b] : OVERRUN;
  return mismatch(`combined by \`${operator}\` with`, a, b);
}

function calculateInt(operator: ArithmeticOperator, a: bigint, b: bigint): Outcome {
  if (b === 0n && (operator === "/" || operator === "%")) return BY_ZERO;
  const value = intResult(operator, a, b);
  return isInt64(value) ? value : OVERFLOW;
}

function intResult(operator: ArithmeticOperator, a: bigint, b: bigint): bigint {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "%":
      return a % b;
  }
}

function calculateDouble(operator: Exclude<ArithmeticOperator, "%">, a: number, b: number): number {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
  }
}

export function negate(value: Value): Outcome {
  if (typeof value === "number") return -value;
  if (typeof value === "bigint") return isInt64(-value) ? -value : OVERFLOW;
  return new Fault(`${kindOf(value)} has no negative`);
}
