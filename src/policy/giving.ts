// Whether a grant that somebody adds at run time stays within what the config lets them give (`[[gives]]`).
// Who may add at all, and never for themselves, is not looked at here.
// Invariant: one entry has to cover the whole grant; parts of several do not add up.

import { BUILTIN_PREFIX, type Pattern, patternMatches } from "../base/ids.ts";
import { covers, type Labels } from "../base/labels.ts";
import type { Giving, Grant } from "./policy.ts";

const EVERY_TAINT: Labels = { class: "restricted", untrusted: true };

/** What is given. `lastsMs` undefined: for good. */
export type Given = Pick<Grant, "role" | "tools" | "effect" | "taintMax" | "aboveTaint"> & {
  readonly lastsMs: number | undefined;
};

/** What no entry covers, as a sentence for people without its full stop; undefined: one covers all of it. */
export function givingFault(gives: readonly Giving[], giver: string, given: Given): string | undefined {
  const steps = given.effect === "deny" ? DENY_STEPS : STEPS;
  let left = gives.filter((giving) => giving.role === giver);
  for (const { covered, otherwise } of steps) {
    left = left.filter((giving) => covered(giving, given));
    if (left.length === 0) return `The config (\`gives\`) does not let role \`${giver}\` give ${otherwise}`;
  }
  return undefined;
}

interface Step {
  readonly covered: (giving: Giving, given: Given) => boolean;
  readonly otherwise: string;
}

const TO_WHOM: Step = {
  covered: ({ to }, { role }) => to.includes(role),
  otherwise: "anything to a role of that name",
};
const WHICH_TOOLS: Step = {
  covered: ({ tools }, given) => given.tools.every((pattern) => tools.some((by) => isWithin(pattern, by))),
  otherwise: "these tools to that role",
};

/** A deny narrows whatever else it is. */
const DENY_STEPS: readonly Step[] = [TO_WHOM, WHICH_TOOLS];

const STEPS: readonly Step[] = [
  TO_WHOM,
  WHICH_TOOLS,
  {
    covered: ({ effects }, { effect }) => effects.some((one) => one === effect),
    otherwise: "that effect for these tools",
  },
  {
    covered: ({ taintMax }, given) => given.taintMax !== undefined && covers(taintMax, given.taintMax),
    otherwise: "a grant up to that taint",
  },
  { covered: coversQuestions, otherwise: "a grant that asks above its taint" },
  {
    covered: ({ longestMs }, { lastsMs }) => lastsMs !== undefined && lastsMs <= longestMs,
    otherwise: "a grant that lasts so long",
  },
];

/** What asks above its taint holds at every taint, for a question. */
function coversQuestions({ taintMax, effects }: Giving, { aboveTaint }: Given): boolean {
  return aboveTaint !== "ask" || (effects.includes("ask") && covers(taintMax, EVERY_TAINT));
}

/** Whether every tool that `pattern` matches is matched by `by`. The broker's own tools are within nothing. */
export function isWithin(pattern: Pattern, by: Pattern): boolean {
  if (pattern.startsWith(BUILTIN_PREFIX) || by.startsWith(BUILTIN_PREFIX)) return false;
  if (!pattern.endsWith("*")) return patternMatches(by, pattern);
  return by.endsWith("*") && pattern.slice(0, -1).startsWith(by.slice(0, -1));
}
