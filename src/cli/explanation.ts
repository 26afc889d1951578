// How the answer of `callgate.grants.explain` reads: the verdict in a sentence, then each grant of the
// role on a line, in the order considered.

import { visibleLine } from "../base/display.ts";
import type { ExplainedGrant, Explanation } from "../client/answers.ts";

/** `value` is the parsed content that the broker gave. */
export function explanation(value: unknown): string {
  const told = value as Explanation;
  const trust = told.taint.untrusted ? "untrusted" : "trusted";
  const lines = [
    `${told.verdict}${told.reason === null ? "" : ` (${told.reason})`}: ${told.grant === null ? "no grant fits" : `by grant ${told.grant}`}, row ${told.row}`,
    ...(told.owner_says === null ? [] : [`  ${told.owner_says}`]),
    `for role ${told.role}, session ${told.session}, tainted ${told.taint.class} and ${trust}`,
    ...(told.grants.length === 0 ? ["  the role has no grants"] : told.grants.map(line(told.grants))),
  ];
  return `${lines.map((one) => visibleLine(one, 1000)).join("\n")}\n`;
}

function line(all: readonly ExplainedGrant[]): (step: ExplainedGrant) => string {
  const width = Math.max(...all.map(({ grant }) => grant.length));
  return (step) => `  ${step.grant.padEnd(width)}  ${step.effect.padEnd(5)}  ${standing(step)}`;
}

function standing(step: ExplainedGrant): string {
  switch (step.failed) {
    case "tool":
      return "names other tools";
    case "session":
      return "names other sessions";
    case "condition":
      return step.condition_error === null
        ? "its condition does not hold"
        : `its condition errors, so it does not allow: ${step.condition_error}`;
    case "equal":
      return "remembers an answer about other arguments";
    case "remembers":
      return "its question does not arise";
    default:
      return matching(step);
  }
}

function matching(step: ExplainedGrant): string {
  const notes = [
    step.condition_error === null ? undefined : `(its condition errors: ${step.condition_error})`,
    step.expired ? "but has expired" : undefined,
    step.spent === true ? "but is used up" : undefined,
    step.within_taint === false ? "but not at this taint" : undefined,
    (step.satisfied_by ?? null) === null ? undefined : `but was answered before: ${step.satisfied_by}`,
  ].filter((note) => note !== undefined);
  return ["matches", ...notes].join(" ");
}
