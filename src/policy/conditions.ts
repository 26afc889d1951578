// Conditions of grants: CEL over `args`, `session`, `role`, `tool` and `target`. (contract; the body is being written)

import type { Result } from "../base/faults.ts";
import type { JsonObject } from "../base/json.ts";

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
  /** Pure, synchronous, bounded; never throws. */
  evaluate(input: ConditionInput): Verdict;
}

export interface ConditionCompiler {
  /** The fault says what is wrong in the owner's terms, with the column where it is known. */
  compile(source: string): Result<Condition>;
}

/** Loads the CEL library (slow, so only where a policy has a condition). */
export async function loadConditionCompiler(): Promise<ConditionCompiler> {
  throw new Error("not written yet");
}
