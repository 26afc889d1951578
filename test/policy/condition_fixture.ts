// Conditions compiled by the real compiler and run over arguments given as JSON text.

import { parseJsonObject } from "../../src/base/json.ts";
import { ARGUMENTS_LIMITS } from "../../src/base/limits.ts";
import { type ConditionInput, loadConditionCompiler, type Verdict } from "../../src/policy/conditions.ts";

const compiler = await loadConditionCompiler();

export type Around = Partial<Omit<ConditionInput, "args">>;

const AROUND: Omit<ConditionInput, "args"> = {
  session: "mm-1",
  role: "agent",
  tool: "pay",
  target: undefined,
  request: undefined,
};

export function verdictOf(source: string, args = "{}", around: Around = {}): Verdict {
  const condition = compiler.compile(source);
  if (!condition.ok) throw new Error(condition.fault);
  const parsed = parseJsonObject(args, ARGUMENTS_LIMITS);
  if (!parsed.ok) throw new Error(parsed.fault.message);
  return condition.value.evaluate({ ...AROUND, ...around, args: parsed.value });
}

export function kindOf(source: string, args = "{}", around: Around = {}): Verdict["kind"] {
  return verdictOf(source, args, around).kind;
}

/** What the owner is told about a condition that does not load; undefined where it loads. */
export function loadFault(source: string): string | undefined {
  const condition = compiler.compile(source);
  return condition.ok ? undefined : condition.fault;
}
