// The functions that a condition may call, by name: the part of CEL's standard library that makes
// sense over JSON, and callgate's own (condition_functions.ts). The table is closed. Invariant: every
// function charges its work before it does it, and anything that it cannot judge is a Fault.

import { fault, ok, type Result } from "../base/faults.ts";
import type { JsonObject } from "../base/json.ts";
import {
  type AddressList,
  addressIn,
  type HostList,
  hostIn,
  inRequest,
  parseAddresses,
  parseHosts,
  pathFlaw,
  TOKEN_CHARS_MAX,
  under,
} from "./condition_functions.ts";
import {
  Fault,
  kindOf,
  type Meter,
  type Outcome,
  OVERRUN,
  spend,
  spendChars,
  TypeValue,
  type Value,
} from "./condition_values.ts";
import type { PatternCompiler } from "./pattern.ts";

/** What one evaluation sees and may cost. */
export interface Frame extends Meter {
  readonly args: JsonObject;
  readonly session: string;
  readonly role: string;
  readonly tool: string;
  readonly target: JsonObject | undefined;
  readonly request: string | undefined;
  /** Of the macros around, outermost first. */
  readonly variables: Value[];
}

/** One node of a condition, ready to run. */
export type Step = (frame: Frame) => Outcome;

export type Apply = (values: readonly Value[], frame: Frame) => Outcome;

/** An operand as far as it is known before any call: its value, if it is written down. */
export type Written = string | readonly string[] | undefined;

export interface FunctionSpec {
  /** How a call is written, for the owner. */
  readonly form: string;
  /** Whether the first value stands in front of the name, as in `args.path.startsWith("/")`. */
  readonly receiver: "always" | "never" | "either";
  /** Values that it takes, with the receiver. */
  readonly arity: number;
  /** Once per call in the source. The fault is the owner's to mend. */
  prepare(written: readonly Written[], patterns: PatternCompiler): Result<Apply>;
}

/** Units that reading a short URL, path or address costs. */
const SCAN_UNITS = 200;
const PART_CHARS_PER_UNIT = 32;

function ofStrings(apply: (texts: readonly [string, string], frame: Frame) => Outcome): Apply {
  return (values, frame) => {
    const [a, b] = values;
    if (typeof a === "string" && typeof b === "string") return apply([a, b], frame);
    return new Fault(`it needs two strings, not ${values.map(kindOf).join(" and ")}`);
  };
}

function plain(form: string, receiver: FunctionSpec["receiver"], arity: number, apply: Apply): FunctionSpec {
  return { form, receiver, arity, prepare: () => ok(apply) };
}

const startsWith = ofStrings(([text, part], frame) =>
  spendChars(frame, part.length) ? text.startsWith(part) : OVERRUN,
);

const endsWith = ofStrings(([text, part], frame) =>
  spendChars(frame, part.length) ? text.endsWith(part) : OVERRUN,
);

/** At worst the engine looks at each character of the text once for each of the part's. */
const contains = ofStrings(([text, part], frame) =>
  spend(frame, 1 + text.length * (0.5 + part.length / PART_CHARS_PER_UNIT)) ? text.includes(part) : OVERRUN,
);

/** Of a string: its code points. */
function size([value]: readonly Value[], frame: Frame): Outcome {
  if (typeof value === "string")
    return spend(frame, 1 + value.length / 4) ? BigInt(codePoints(value)) : OVERRUN;
  if (Array.isArray(value)) return BigInt(value.length);
  if (value instanceof Map) return BigInt(value.size);
  return new Fault("it needs a string, a list or a map");
}

function codePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0xdc00 || unit > 0xdfff) count++;
  }
  return count;
}

const INTEGER = /^-?(?:0|[1-9][0-9]{0,18})$/;
const NUMBER = /^-?(?:0|[1-9][0-9]{0,307})(?:\.[0-9]{1,307})?(?:[eE][+-]?[0-9]{1,3})?$/;

/** Units that reading a number out of a text costs at worst, or writing one. */
const NUMERAL_UNITS = 16;
/** A longer text is refused after a look. */
const NUMERAL_CHARS_MAX = 1024;

/** A double only where it is whole: cutting it off would move it across somebody's limit. */
function toInt([value]: readonly Value[], frame: Frame): Outcome {
  if (!spend(frame, NUMERAL_UNITS)) return OVERRUN;
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === "string" && INTEGER.test(value) && BigInt.asIntN(64, BigInt(value)) === BigInt(value))
    return BigInt(value);
  return new Fault("it is no integer");
}

function toDouble([value]: readonly Value[], frame: Frame): Outcome {
  const chars = typeof value === "string" ? Math.min(value.length, NUMERAL_CHARS_MAX) : 0;
  if (!spend(frame, NUMERAL_UNITS + chars)) return OVERRUN;
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "string" && NUMBER.test(value) && Number.isFinite(Number(value))) return Number(value);
  return new Fault("it is no number");
}

function toText([value]: readonly Value[], frame: Frame): Outcome {
  if (!spend(frame, NUMERAL_UNITS)) return OVERRUN;
  if (typeof value === "string") return value;
  if (typeof value === "bigint" || typeof value === "number" || typeof value === "boolean")
    return String(value);
  return new Fault("it has no text");
}

function typeOf([value]: readonly Value[]): Outcome {
  return value === undefined ? new Fault("it has no type") : new TypeValue(kindOf(value));
}

const matches: FunctionSpec = {
  form: "text.matches('pattern')",
  receiver: "either",
  arity: 2,
  prepare([, pattern], patterns) {
    if (typeof pattern !== "string") return fault("the pattern must be written down in the condition");
    const compiled = patterns(pattern);
    if (!compiled.ok) return fault(`the pattern ${compiled.fault}`);
    return ok(([text], frame) => {
      if (typeof text !== "string") return new Fault("it needs a string");
      const found = compiled.value.matches(text, { visit: (visits) => spend(frame, visits) });
      return frame.left < 0 ? OVERRUN : found;
    });
  },
};

const underSpec: FunctionSpec = {
  form: "under(path, '/dir')",
  receiver: "never",
  arity: 2,
  prepare([, dir]) {
    const flaw = typeof dir === "string" ? pathFlaw(dir) : undefined;
    if (flaw !== undefined) return fault(`the directory is unusable: ${flaw}`);
    return ok(
      ofStrings(([path, above], frame) =>
        spend(frame, SCAN_UNITS + 4 * (path.length + above.length)) ? under(path, above) : OVERRUN,
      ),
    );
  },
};

/** A function over a text and a list that is read once where it is written down, else at each call. */
function listed<L>(
  form: string,
  parseList: (entries: readonly string[]) => Result<L>,
  judge: (text: string, list: L) => boolean | Fault,
): FunctionSpec {
  return {
    form,
    receiver: "never",
    arity: 2,
    prepare([, written]) {
      const known = Array.isArray(written) ? parseList(written as readonly string[]) : undefined;
      if (known !== undefined && !known.ok) return known;
      return ok(([text, value], frame) => {
        if (typeof text !== "string") return new Fault("it needs a string");
        const list = known ?? readList(value, parseList, frame);
        if (list instanceof Fault) return list;
        if (!list.ok) return new Fault(list.fault);
        return spend(frame, SCAN_UNITS + text.length) ? judge(text, list.value) : OVERRUN;
      });
    },
  };
}

function readList<L>(
  value: Value | undefined,
  parseList: (entries: readonly string[]) => Result<L>,
  frame: Frame,
): Result<L> | Fault {
  if (!Array.isArray(value)) return new Fault("it needs a list");
  if (!spend(frame, value.length * SCAN_UNITS)) return OVERRUN;
  if (!value.every((entry) => typeof entry === "string"))
    return new Fault("its list holds something other than strings");
  return parseList(value);
}

/** An integer stands for its digits. */
function requested([value]: readonly Value[], frame: Frame): Outcome {
  const text = typeof value === "bigint" ? value.toString() : value;
  if (typeof text !== "string") return new Fault("it needs a string or an integer");
  return spend(frame, requestedUnits(text, frame.request ?? "")) ? inRequest(text, frame.request) : OVERRUN;
}

/**
 * A long word may nearly fit at each place of the request, a short one fit at many without being a word there.
 * One that is too long is not looked for.
 */
function requestedUnits(word: string, request: string): number {
  const chars = Math.max(1, Math.min(word.length, TOKEN_CHARS_MAX));
  const unitsPerPlace = 1 / 8 + 3 / chars + chars / 64;
  return SCAN_UNITS / 2 + chars + request.length * unitsPerPlace;
}

export const FUNCTIONS: ReadonlyMap<string, FunctionSpec> = new Map<string, FunctionSpec>([
  ["under", underSpec],
  ["host_in", listed<HostList>("host_in(url, ['host'])", parseHosts, hostIn)],
  ["address_in", listed<AddressList>("address_in(text, ['user@host'])", parseAddresses, addressIn)],
  ["in_request", plain("in_request(value)", "never", 1, requested)],
  ["size", plain("size(value)", "either", 1, size)],
  ["startsWith", plain("text.startsWith(part)", "always", 2, startsWith)],
  ["endsWith", plain("text.endsWith(part)", "always", 2, endsWith)],
  ["contains", plain("text.contains(part)", "always", 2, contains)],
  ["matches", matches],
  ["int", plain("int(value)", "never", 1, toInt)],
  ["double", plain("double(value)", "never", 1, toDouble)],
  ["string", plain("string(value)", "never", 1, toText)],
  ["type", plain("type(value)", "never", 1, typeOf)],
]);
