// CEL's operators with two operands, by the names that its grammar gives them; those that look at the
// operands' syntax (`==` with null, `&&`, `||`, `?:`) are in condition_build.ts.

import type { Json } from "../base/json.ts";
import type { Frame } from "./condition_calls.ts";
import {
  type ArithmeticOperator,
  calculate,
  compare,
  Fault,
  isIn,
  kindOf,
  type Outcome,
  OVERRUN,
  spendChars,
  type Value,
} from "./condition_values.ts";

export type Binary = (a: Value, b: Value, frame: Frame) => Outcome;

function ordered(holds: (order: number) => boolean): Binary {
  return (a, b, frame) => {
    const order = compare(a, b, frame);
    return order instanceof Fault ? order : holds(order);
  };
}

function arithmetic(operator: ArithmeticOperator): Binary {
  return (a, b, frame) => calculate(operator, a, b, frame);
}

export const BINARY: ReadonlyMap<string, Binary> = new Map<string, Binary>([
  ["_<_", ordered((order) => order < 0)],
  ["_<=_", ordered((order) => order <= 0)],
  ["_>_", ordered((order) => order > 0)],
  ["_>=_", ordered((order) => order >= 0)],
  ["_+_", arithmetic("+")],
  ["_-_", arithmetic("-")],
  ["_*_", arithmetic("*")],
  ["_/_", arithmetic("/")],
  ["_%_", arithmetic("%")],
  ["@in", isIn],
  ["_[_]", element],
]);

function element(container: Value, key: Value, frame: Frame): Outcome {
  if (container instanceof Map) {
    if (typeof key !== "string") return new Fault("a member is named by a string");
    if (!spendChars(frame, key.length)) return OVERRUN;
    return (container as ReadonlyMap<string, Json>).get(key) ?? absent(container, key);
  }
  if (!Array.isArray(container)) return new Fault(`${kindOf(container)} has no elements`);
  if (typeof key !== "bigint") return new Fault("an element of a list is named by an int");
  const item = key >= 0n && key < container.length ? (container[Number(key)] as Json) : undefined;
  return item === undefined ? new Fault("the list has no such element") : item;
}

/** A member may be there and null, which `??` takes for absent. */
function absent(map: ReadonlyMap<string, Json>, name: string): Outcome {
  return map.has(name) ? null : new Fault("there is no such member");
}
