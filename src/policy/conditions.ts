// Conditions of grants: CEL over `args`, `session`, `role`, `tool` and `target`. Read by cel.ts,
// checked and built by condition_build.ts, its functions in condition_calls.ts. Invariant: whatever
// the arguments are, an evaluation ends within its budget with a verdict, and an error never looks
// like `no_match`.

import { fault, ok, type Result } from "../base/faults.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { loadCelParser, type SyntaxFault } from "./cel.ts";
import { type Built, buildCondition } from "./condition_build.ts";
import { argumentNamesIn } from "./condition_reads.ts";
import { Fault, isInt64, kindOf, type Outcome } from "./condition_values.ts";
import { loadPatternCompiler } from "./pattern.ts";

export interface ConditionInput {
  readonly args: JsonObject;
  readonly session: string;
  readonly role: string;
  readonly tool: string;
  /** For built-in tools that act on something: its role, tool and session. */
  readonly target: { readonly role?: string; readonly tool?: string; readonly session?: string } | undefined;
  /** The user's words that the session was opened with; undefined where there are none. */
  readonly request: string | undefined;
}

export type Verdict =
  | { readonly kind: "match" }
  | { readonly kind: "no_match" }
  /** `why` never quotes an argument's value. */
  | { readonly kind: "error"; readonly why: string };

export interface Condition {
  readonly source: string;
  /** Members of `args` that it asks for by name. */
  readonly argumentNames: ReadonlySet<string>;
  /** Pure, synchronous, bounded; never throws. */
  evaluate(input: ConditionInput): Verdict;
}

export interface ConditionCompiler {
  /** The fault says what is wrong in the owner's terms, with the column where it is known. */
  compile(source: string): Result<Condition>;
}

/** What one evaluation may cost: some tens of milliseconds at the very worst. */
const WORK_MAX = 1_000_000;

const MATCH: Verdict = { kind: "match" };
const NO_MATCH: Verdict = { kind: "no_match" };
const OUT_OF_RANGE: Verdict = {
  kind: "error",
  why: "an integer in the arguments is outside the range of int64",
};

/** Loads the CEL library (slow, so only where a policy has a condition). */
export async function loadConditionCompiler(): Promise<ConditionCompiler> {
  const [parse, patterns] = await Promise.all([loadCelParser(), loadPatternCompiler()]);
  const ranges = new RangeCheck();
  return {
    compile(source) {
      const parsed = parse(source);
      if (!parsed.ok) return fault(inOwnersTerms(source, parsed.fault));
      const built = buildCondition(parsed.value, (at) => placeIn(source, at), patterns);
      if (!built.ok) return fault(inOwnersTerms(source, built.fault));
      const argumentNames = argumentNamesIn(parsed.value);
      return ok({ source, argumentNames, evaluate: (input) => evaluate(built.value, input, ranges) });
    },
  };
}

function inOwnersTerms(source: string, { message, at }: SyntaxFault): string {
  return at === undefined ? message : `${placeIn(source, at)}: ${message}`;
}

function placeIn(source: string, at: number): string {
  const before = source.slice(0, at).split("\n");
  const column = `column ${(before.at(-1) ?? "").length + 1}`;
  return source.includes("\n") ? `line ${before.length}, ${column}` : column;
}

/**
 * An integer beyond int64 anywhere in the arguments is an error to every condition that looks at
 * them: which of them a condition reaches depends on the arguments themselves.
 */
function evaluate({ step, readsArgs }: Built, input: ConditionInput, ranges: RangeCheck): Verdict {
  const { args, session, role, tool, target, request } = input;
  if (readsArgs && !ranges.holdsFor(args)) return OUT_OF_RANGE;
  const fields = target === undefined ? undefined : targetMap(target);
  return verdict(step({ args, session, role, tool, target: fields, request, variables: [], left: WORK_MAX }));
}

function targetMap(target: NonNullable<ConditionInput["target"]>): JsonObject {
  const fields = new Map<string, string>();
  if (target.role !== undefined) fields.set("role", target.role);
  if (target.tool !== undefined) fields.set("tool", target.tool);
  if (target.session !== undefined) fields.set("session", target.session);
  return fields;
}

function verdict(outcome: Outcome): Verdict {
  if (outcome === true) return MATCH;
  if (outcome === false) return NO_MATCH;
  if (outcome instanceof Fault) return { kind: "error", why: outcome.why };
  return { kind: "error", why: `the condition gives ${kindOf(outcome)}, not bool` };
}

/** Whether all integers are in int64; remembered, as many conditions look at the same arguments. */
class RangeCheck {
  private readonly known = new WeakMap<JsonObject, boolean>();

  holdsFor(args: JsonObject): boolean {
    const known = this.known.get(args);
    if (known !== undefined) return known;
    const holds = isInt64Only(args);
    this.known.set(args, holds);
    return holds;
  }
}

function isInt64Only(value: Json): boolean {
  if (typeof value === "bigint") return isInt64(value);
  if (typeof value !== "object" || value === null) return true;
  for (const item of value.values()) if (!isInt64Only(item)) return false;
  return true;
}
