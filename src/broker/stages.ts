// The life of a call as a closed table: from which stage to which, and by what. A call's stage is changed
// here and nowhere else, so what the table does not have can't happen; a model is held against it.

export type LiveStage = "asking" | "answering" | "recording" | "dispatched" | "ended";

export type StageCause =
  /** An approver's answer was handed to the store. */
  | "approve"
  | "refuse"
  /** That answer could not be written, so the question is open as before. */
  | "unwritten"
  /** Its intent is written, and it was handed to whoever runs it. */
  | "dispatch"
  /** Nobody answered in time; the decision, taken again, denies; its caller or an operator gave it up. */
  | "expired"
  | "void"
  | "withdrawn"
  /** Its final answer is known: refused, cancelled, failed, or what the provider said. */
  | "end";

export interface Transition {
  readonly from: LiveStage;
  readonly to: LiveStage;
  readonly by: StageCause;
}

/** A call begins as `asking` (a question to a human is stored) or as `recording` (its intent is). */
export const FIRST_STAGES: readonly LiveStage[] = ["asking", "recording"];

export const TRANSITIONS: readonly Transition[] = [
  { from: "asking", by: "approve", to: "answering" },
  { from: "asking", by: "refuse", to: "answering" },
  { from: "asking", by: "expired", to: "ended" },
  { from: "asking", by: "void", to: "ended" },
  { from: "asking", by: "withdrawn", to: "ended" },
  // the question itself could not be written, or an assumption of ours was broken
  { from: "asking", by: "end", to: "ended" },
  { from: "answering", by: "unwritten", to: "asking" },
  { from: "answering", by: "dispatch", to: "dispatched" },
  { from: "answering", by: "end", to: "ended" },
  { from: "recording", by: "dispatch", to: "dispatched" },
  { from: "recording", by: "end", to: "ended" },
  { from: "dispatched", by: "end", to: "ended" },
];

/** Moves a call on. @throws where the table has no such step: a broken assumption of ours */
export function enter(live: { stage: LiveStage }, by: StageCause): void {
  const next = TRANSITIONS.find((one) => one.from === live.stage && one.by === by);
  if (next === undefined) throw new Error(`a call in stage ${live.stage} can't go on by ${by}`);
  live.stage = next.to;
}
