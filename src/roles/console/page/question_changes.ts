// What has become different between two looks at one question, in sentences: what an approver must see before
// they answer what is there now. Peers' text in them is not escaped yet.

import { counted } from "../../../base/json_text.ts";
import { labelsText, type WholeQuestion } from "../../../client/answers.ts";

export interface Changes {
  /** In words; empty where nothing that a person is shown has changed. */
  readonly sentences: readonly string[];
  /** The answer must name the new digest: what was shown can't be answered any more. */
  readonly isOther: boolean;
}

export function changesBetween(shown: WholeQuestion, now: WholeQuestion): Changes {
  if (now.state !== "pending") return { sentences: [], isOther: false };
  const sentences = [
    ...taintChange(shown, now),
    ...askChanges(shown, now),
    ...doubtChange(shown, now),
    ...storeChange(shown, now),
    ...standingChange(shown, now),
    ...otherChanges(shown, now),
  ];
  const isOther = shown.digest !== now.digest;
  return { sentences: isOther && sentences.length === 0 ? [UNNAMED] : sentences, isOther };
}

const UNNAMED = "How the tool runs, by the policy, has changed.";

function taintChange(
  { taint: before }: WholeQuestion,
  { taint: after, raised_by: by }: WholeQuestion,
): string[] {
  if (labelsText(before) === labelsText(after)) return [];
  const raised = by === null ? "" : ` (raised by session ${by.session}, call ${by.call})`;
  return [`The taint is now ${labelsText(after)}; it was ${labelsText(before)}${raised}.`];
}

function askChanges({ asks: before }: WholeQuestion, { asks: after }: WholeQuestion): string[] {
  const text = (ask: WholeQuestion["asks"][number]) => JSON.stringify(ask);
  const added = after.filter((ask) => !before.some((one) => text(one) === text(ask)));
  const gone = before.filter((ask) => !after.some((one) => one.grant === ask.grant));
  return [
    ...added.map(({ grant, reason }) => `Grant ${grant} asks now${reason === null ? "" : `: ${reason}`}`),
    ...gone.map(({ grant }) => `Grant ${grant} no longer asks.`),
  ];
}

function doubtChange({ doubt: before }: WholeQuestion, { doubt: after }: WholeQuestion): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (after === null) return ["The equal call of unknown outcome has been settled."];
  return [
    `It may have run already: session ${after.session}, call ${after.call} was equal, and its outcome is unknown.`,
  ];
}

function storeChange(
  { store_changes: before }: WholeQuestion,
  { store_changes: after }: WholeQuestion,
): string[] {
  const known = new Set(before.map(({ role, session, call }) => JSON.stringify([role, session, call])));
  const fresh = after.filter(({ role, session, call }) => !known.has(JSON.stringify([role, session, call])));
  if (fresh.length === 0) return [];
  const tools = [...new Set(fresh.map(({ tool }) => tool))].join(", ");
  return [`${counted(fresh.length, "more call")} changed the same store, or may have: ${tools}.`];
}

function standingChange({ now: before }: WholeQuestion, { now: after }: WholeQuestion): string[] {
  if (JSON.stringify(before ?? null) === JSON.stringify(after ?? null)) return [];
  if (after === null || after === undefined) return [];
  if (after.verdict === "holds") return ["Approving would run it now."];
  return [`Approving would not run it now: ${after.why ?? after.verdict}`];
}

function otherChanges(shown: WholeQuestion, now: WholeQuestion): string[] {
  return [
    ...(shown.arguments === now.arguments ? [] : ["The arguments are others."]),
    ...(shown.definition === now.definition ? [] : ["The tool's definition is another."]),
    ...(shown.effect === now.effect
      ? []
      : [`The tool's effect is now ${now.effect}; it was ${shown.effect}.`]),
    ...(shown.policy === now.policy ? [] : ["The policy is another."]),
    ...(shown.expires_at_ms === now.expires_at_ms ? [] : ["It expires at another time."]),
    ...(sameRemembering(shown, now) ? [] : ["What remembering would cover has changed."]),
  ];
}

/** Its latest time moves with every look. */
function sameRemembering({ remember: a }: WholeQuestion, { remember: b }: WholeQuestion): boolean {
  const covered = ({ allowed, why, number_needed, arguments: exact, tool }: WholeQuestion["remember"]) =>
    JSON.stringify([allowed, why ?? null, number_needed, exact.covers, tool.covers]);
  return covered(a) === covered(b);
}
