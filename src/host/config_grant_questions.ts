// What a grant says of its questions (`approval_ttl`, `remember`, `refuse_for`) and of how often it
// serves (`max_calls`): the keys, and that none of them stands where it would do nothing.

import { type Grant, type GrantEffect, QUESTION_DEFAULTS } from "../policy/policy.ts";
import type { Report } from "./config_faults.ts";
import { duration, flag, integer, type Reader, type TableRead } from "./config_shape.ts";

const MAX_CALLS = 1_000_000_000;

export const QUESTION_SHAPE = {
  approval_ttl: duration("1s", "30d"),
  remember: flag,
  refuse_for: duration("0s", "30d"),
} as const;

export const USES_SHAPE = {
  max_calls: integer(1, MAX_CALLS),
  max_calls_per: duration("1s", "366d"),
} as const;

type QuestionRead = TableRead<
  typeof QUESTION_SHAPE &
    typeof USES_SHAPE & { effect: Reader<GrantEffect>; above_taint: Reader<Grant["aboveTaint"]> }
>;

/** The part of a grant that is written here, with its defaults. */
export function questionsOf({
  fields,
}: QuestionRead): Pick<Grant, "approvalTtlMs" | "remember" | "refuseForMs" | "maxCalls"> {
  const { max_calls: calls, max_calls_per: per } = fields;
  return {
    approvalTtlMs: fields.approval_ttl?.value ?? QUESTION_DEFAULTS.approvalTtlMs,
    remember: fields.remember?.value ?? true,
    refuseForMs: fields.refuse_for?.value ?? QUESTION_DEFAULTS.refuseForMs,
    maxCalls: calls === undefined ? undefined : { calls: calls.value, perMs: per?.value },
  };
}

/** Of an `ask`, and of an `allow` that asks above its taint. */
export function asks(grant: Pick<Grant, "effect" | "aboveTaint">): boolean {
  return grant.effect === "ask" || (grant.effect === "allow" && grant.aboveTaint === "ask");
}

export function checkQuestions(read: QuestionRead, report: Report): void {
  const effect = read.fields.effect?.value;
  // What was refused has been told, and may have been right here.
  if (effect === undefined) return;
  if (effect === "allow" && read.keys.has("above_taint") && read.fields.above_taint === undefined) return;
  const aboveTaint = read.fields.above_taint?.value ?? "deny";
  if (!asks({ effect, aboveTaint })) forbidQuestions(read, effect, report);
  checkUses(read, effect, report);
}

function forbidQuestions(read: QuestionRead, effect: GrantEffect, report: Report): void {
  const remedy = effect === "deny" ? "" : ', or write above_taint = "ask"';
  for (const key of Object.keys(QUESTION_SHAPE)) {
    const at = read.keys.get(key);
    if (at === undefined) continue;
    report(
      at,
      `${key} is about a question to a human, and this ${effect} never asks one; remove it${remedy}`,
    );
  }
}

function checkUses(read: QuestionRead, effect: GrantEffect, report: Report): void {
  const [calls, per] = [read.keys.get("max_calls"), read.keys.get("max_calls_per")];
  if (effect === "deny") {
    for (const [key, at] of [["max_calls", calls] as const, ["max_calls_per", per] as const]) {
      if (at !== undefined) report(at, `a deny holds for every call; remove ${key}`);
    }
  } else if (per !== undefined && calls === undefined) {
    report(per, "max_calls_per is the period of max_calls, which is missing; add max_calls = NUMBER");
  }
}
