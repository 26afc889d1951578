// From syntax to something that runs: each node becomes a closure once, at load, where names,
// functions, operands written down and nesting are checked. Evaluation goes from left to right and
// stops at the first Fault: `&&` and `||` skip what their left side has settled, but never swallow an
// error that they have met, as CEL would.

import { fault, ok, type Result } from "../base/faults.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { type Syntax, type SyntaxFault, syntaxSize } from "./cel.ts";
import {
  type Apply,
  type Frame,
  FUNCTIONS,
  type FunctionSpec,
  type Step,
  type Written,
} from "./condition_calls.ts";
import { macroStep } from "./condition_macros.ts";
import { BINARY, type Binary } from "./condition_operators.ts";
import {
  equals,
  Fault,
  KINDS,
  kindOf,
  negate,
  type Outcome,
  OVERRUN,
  spend,
  TypeValue,
  type Value,
} from "./condition_values.ts";
import type { PatternCompiler } from "./pattern.ts";

export interface Built {
  readonly step: Step;
  /** Whether it looks at the arguments at all. */
  readonly readsArgs: boolean;
}

const MACRO_DEPTH_MAX = 2;
/** Of making a list, beside what its items cost. */
const LIST_UNITS = 16;

type SyntaxOf<K extends Syntax["kind"]> = Extract<Syntax, { kind: K }>;

/** `place` says where in the source an offset is, for faults at evaluation. */
export function buildCondition(
  syntax: Syntax,
  place: (at: number) => string,
  patterns: PatternCompiler,
): Result<Built, SyntaxFault> {
  const builder = new Builder(place, patterns);
  if (isNeverBool(syntax))
    return fault({ message: "the condition is neither true nor false", at: syntax.at });
  const step = builder.step(syntax, []);
  return builder.fault === undefined ? ok({ step, readsArgs: builder.readsArgs }) : fault(builder.fault);
}

const NOT_BOOL_CALLS: ReadonlySet<string> = new Set([
  "_+_",
  "_-_",
  "_*_",
  "_/_",
  "_%_",
  "-_",
  "size",
  "int",
  "double",
  "string",
  "type",
]);

function isNeverBool(syntax: Syntax): boolean {
  if (syntax.kind === "literal") return typeof syntax.value !== "boolean";
  if (syntax.kind === "call") return NOT_BOOL_CALLS.has(syntax.name);
  if (syntax.kind === "macro") return syntax.macro === "map" || syntax.macro === "filter";
  return syntax.kind === "list" || syntax.kind === "name";
}

const VARIABLES: ReadonlyMap<string, Step> = new Map<string, Step>([
  ["args", (frame) => frame.args],
  ["session", (frame) => frame.session],
  ["role", (frame) => frame.role],
  ["tool", (frame) => frame.tool],
  ["target", (frame) => frame.target ?? NO_TARGET],
]);
const TARGET_FIELDS: ReadonlySet<string> = new Set(["role", "tool", "session"]);
const NO_TARGET = new Fault("the call has no target");
const TYPES: ReadonlyMap<string, TypeValue> = new Map(KINDS.map((kind) => [kind, new TypeValue(kind)]));

class Builder {
  readsArgs = false;
  /** The first one. */
  fault: SyntaxFault | undefined;
  private readonly place: (at: number) => string;
  private readonly patterns: PatternCompiler;

  constructor(place: (at: number) => string, patterns: PatternCompiler) {
    this.place = place;
    this.patterns = patterns;
  }

  /** `variables` are those of the macros around. */
  step(syntax: Syntax, variables: readonly string[]): Step {
    switch (syntax.kind) {
      case "literal": {
        const { value } = syntax;
        return () => value;
      }
      case "name":
        return this.name(syntax, variables);
      case "select":
        return this.select(syntax, variables);
      case "has":
        return this.has(syntax, variables);
      case "list":
        return this.list(syntax, variables);
      case "call":
        return this.call(syntax, variables);
      case "macro":
        return this.macro(syntax, variables);
    }
  }

  private refuse(message: string, at: number): Step {
    this.fault ??= { message, at };
    return () => OVERRUN;
  }

  private faultAt(at: number, why: string): Fault {
    return new Fault(`${this.place(at)}: ${why}`);
  }

  private placed(outcome: Outcome, at: number): Outcome {
    return outcome instanceof Fault ? this.faultAt(at, outcome.why) : outcome;
  }

  private name({ name, at }: SyntaxOf<"name">, variables: readonly string[]): Step {
    const slot = variables.indexOf(name);
    if (slot >= 0) return (frame) => frame.variables[slot] ?? null;
    const type = TYPES.get(name);
    if (type !== undefined) return () => type;
    if (name === "args") this.readsArgs = true;
    const known = [...VARIABLES.keys()].join(", ");
    return VARIABLES.get(name) ?? this.refuse(`there is no \`${name}\`; there are ${known}`, at);
  }

  private select({ operand, field, at }: SyntaxOf<"select">, variables: readonly string[]): Step {
    this.checkTarget(operand, field, at);
    const map = this.map(operand, at, variables);
    const missing = this.faultAt(at, `there is no member \`${field}\``);
    return (frame) => {
      const value = map(frame);
      if (value instanceof Fault) return value;
      const member = value.get(field);
      return member === undefined ? missing : member;
    };
  }

  private has({ operand, field, at }: SyntaxOf<"has">, variables: readonly string[]): Step {
    this.checkTarget(operand, field, at);
    const map = this.map(operand, at, variables);
    return (frame) => {
      const value = map(frame);
      return value instanceof Fault ? value : value.has(field);
    };
  }

  private map(
    syntax: Syntax,
    at: number,
    variables: readonly string[],
  ): (frame: Frame) => JsonObject | Fault {
    const inner = this.step(syntax, variables);
    return (frame) => {
      const value = inner(frame);
      if (value instanceof Map || value instanceof Fault) return value;
      return this.faultAt(at, `${kindOf(value as Value)} has no members`);
    };
  }

  private checkTarget(operand: Syntax, field: string, at: number): void {
    if (operand.kind !== "name" || operand.name !== "target" || TARGET_FIELDS.has(field)) return;
    this.refuse(`\`target\` has no \`${field}\`; it has ${[...TARGET_FIELDS].join(", ")}`, at);
  }

  private list({ items, at }: SyntaxOf<"list">, variables: readonly string[]): Step {
    const steps = items.map((item) => this.step(item, variables));
    return (frame) => {
      if (!spend(frame, LIST_UNITS + steps.length)) return OVERRUN;
      const values: Json[] = [];
      for (const step of steps) {
        const value = step(frame);
        if (value instanceof Fault) return value;
        if (value instanceof TypeValue) return this.faultAt(at, "a list cannot hold types");
        values.push(value);
      }
      return values;
    };
  }

  private call(syntax: SyntaxOf<"call">, variables: readonly string[]): Step {
    const { name, at } = syntax;
    const [first, second, third] = syntax.operands;
    if (first !== undefined && second !== undefined) {
      if (name === "_&&_") return this.logical(first, second, at, variables, false);
      if (name === "_||_") return this.logical(first, second, at, variables, true);
      if (name === "_==_" || name === "_!=_") return this.equality(syntax, first, second, variables);
      if (name === "_?_:_" && third !== undefined) return this.choice(first, second, third, at, variables);
      const apply = BINARY.get(name);
      if (apply !== undefined) return this.binary(first, second, at, variables, apply);
    }
    if (first !== undefined && name === "!_") return this.not(first, at, variables);
    if (first !== undefined && name === "-_") return this.negative(first, at, variables);
    return this.functionCall(syntax, variables);
  }

  private not(operand: Syntax, at: number, variables: readonly string[]): Step {
    const inner = this.bool(operand, at, variables);
    return (frame) => {
      const value = inner(frame);
      return value instanceof Fault ? value : !value;
    };
  }

  private negative(operand: Syntax, at: number, variables: readonly string[]): Step {
    const inner = this.step(operand, variables);
    return (frame) => {
      const value = inner(frame);
      return value instanceof Fault ? value : this.placed(negate(value), at);
    };
  }

  private binary(left: Syntax, right: Syntax, at: number, variables: readonly string[], apply: Binary): Step {
    const first = this.step(left, variables);
    const second = this.step(right, variables);
    return (frame) => {
      const a = first(frame);
      if (a instanceof Fault) return a;
      const b = second(frame);
      return b instanceof Fault ? b : this.placed(apply(a, b, frame), at);
    };
  }

  /** Only against a `null` that is written down is a value of another type simply unequal. */
  private equality(
    syntax: SyntaxOf<"call">,
    left: Syntax,
    right: Syntax,
    variables: readonly string[],
  ): Step {
    const wanted = syntax.name === "_==_";
    const withNull = isNull(left) || isNull(right);
    return this.binary(left, right, syntax.at, variables, (a, b, frame) => {
      const same = withNull ? a === b : equals(a, b, frame);
      return same instanceof Fault ? same : same === wanted;
    });
  }

  /** `settled` is the value of the left side that makes the right one irrelevant. */
  private logical(
    left: Syntax,
    right: Syntax,
    at: number,
    variables: readonly string[],
    settled: boolean,
  ): Step {
    const first = this.bool(left, at, variables);
    const second = this.bool(right, at, variables);
    return (frame) => {
      const value = first(frame);
      return value === !settled ? second(frame) : value;
    };
  }

  private bool(syntax: Syntax, at: number, variables: readonly string[]): (frame: Frame) => boolean | Fault {
    const inner = this.step(syntax, variables);
    return (frame) => {
      const value = inner(frame);
      if (typeof value === "boolean" || value instanceof Fault) return value;
      return this.faultAt(at, `an operand is ${kindOf(value)}, not bool`);
    };
  }

  private choice(
    condition: Syntax,
    then: Syntax,
    otherwise: Syntax,
    at: number,
    variables: readonly string[],
  ): Step {
    const test = this.bool(condition, at, variables);
    const first = this.step(then, variables);
    const second = this.step(otherwise, variables);
    return (frame) => {
      const value = test(frame);
      if (value instanceof Fault) return value;
      return value ? first(frame) : second(frame);
    };
  }

  private functionCall(syntax: SyntaxOf<"call">, variables: readonly string[]): Step {
    const { name, receiver, at } = syntax;
    const spec = FUNCTIONS.get(name);
    if (spec === undefined)
      return this.refuse(
        `there is no function \`${name}\`; there are ${[...FUNCTIONS.keys()].join(", ")}`,
        at,
      );
    const operands = receiver === undefined ? syntax.operands : [receiver, ...syntax.operands];
    if (!isCalledRight(spec, receiver !== undefined, operands.length))
      return this.refuse(`\`${name}\` is written as \`${spec.form}\``, at);
    const prepared = spec.prepare(operands.map(written), this.patterns);
    if (!prepared.ok) return this.refuse(`\`${name}\`: ${prepared.fault}`, at);
    const steps = operands.map((operand) => this.step(operand, variables));
    return this.applied(`\`${name}\``, steps, prepared.value, at);
  }

  private applied(name: string, steps: readonly Step[], apply: Apply, at: number): Step {
    return (frame) => {
      const values: Value[] = [];
      for (const step of steps) {
        const value = step(frame);
        if (value instanceof Fault) return value;
        values.push(value);
      }
      const outcome = apply(values, frame);
      return outcome instanceof Fault ? this.faultAt(at, `${name}: ${outcome.why}`) : outcome;
    };
  }

  private macro(syntax: SyntaxOf<"macro">, variables: readonly string[]): Step {
    const { variable, at } = syntax;
    if (variables.length >= MACRO_DEPTH_MAX)
      return this.refuse(`macros are nested more than ${MACRO_DEPTH_MAX} deep`, at);
    if (variables.includes(variable) || VARIABLES.has(variable) || TYPES.has(variable))
      return this.refuse(`the name \`${variable}\` is taken`, at);
    const range = this.step(syntax.range, variables);
    const body = this.step(syntax.body, [...variables, variable]);
    return macroStep({
      macro: syntax.macro,
      range,
      body,
      slot: variables.length,
      unitsPerItem: syntaxSize(syntax.body),
      faultAt: (why) => this.faultAt(at, `\`${syntax.macro}\`: ${why}`),
    });
  }
}

function isNull(syntax: Syntax): boolean {
  return syntax.kind === "literal" && syntax.value === null;
}

function isCalledRight(spec: FunctionSpec, hasReceiver: boolean, arity: number): boolean {
  return spec.arity === arity && (spec.receiver === "either" || (spec.receiver === "always") === hasReceiver);
}

function written(syntax: Syntax): Written {
  if (syntax.kind === "literal") return typeof syntax.value === "string" ? syntax.value : undefined;
  if (syntax.kind !== "list") return undefined;
  const items = syntax.items.map(written);
  return items.every((item) => typeof item === "string") ? items : undefined;
}
