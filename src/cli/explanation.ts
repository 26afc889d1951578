// How the answer of `callgate.grants.explain` reads: the verdict in a sentence, then each grant of the
// role on a line, in the order considered.

import { visibleLine } from "../base/display.ts";
import type { ExplainedGrant, Explanation } from "../client/answers.ts";
import { type Look, PLAIN, toneOf } from "./paint.ts";

const LINE_CHARS_MAX = 1000;

/** `value` is the parsed content that the broker gave. */
export function explanation(value: unknown, _nowMs: number = 0, look: Look = PLAIN): string {
  const told = value as Explanation;
  const trust = told.taint.untrusted ? "untrusted" : "trusted";
  const verdict = look.paint(toneOf(told.verdict), visibleLine(told.verdict));
  const reason = told.reason === null ? "" : ` (${told.reason})`;
  const by = told.grant === null ? "no grant fits" : `by grant ${told.grant}`;
  const lines = [
    ...(told.owner_says === null ? [] : [`  ${told.owner_says}`]),
    `for role ${told.role}, session ${told.session}, tainted ${told.taint.class} and ${trust}`,
    ...(told.grants.length === 0 ? ["  the role has no grants"] : []),
  ].map((one) => visibleLine(one, LINE_CHARS_MAX));
  const head = `${verdict}${visibleLine(`${reason}: ${by}, row ${told.row}`, LINE_CHARS_MAX)}`;
  const steps = told.grants.map(line(told.grants, look));
  return `${[head, ...lines, ...steps].join("\n")}\n`;
}

function line(all: readonly ExplainedGrant[], { paint }: Look): (step: ExplainedGrant) => string {
  const width = Math.max(...all.map(({ grant }) => grant.length));
  return (step) => {
    const effect = paint(toneOf(step.effect), visibleLine(step.effect).padEnd(5));
    const text = visibleLine(standing(step), LINE_CHARS_MAX);
    return `  ${visibleLine(step.grant).padEnd(width)}  ${effect}  ${text}`;
  };
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
