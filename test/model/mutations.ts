// Mistakes that a broker could make, as changes of the model: each must be found, and for its reason.

import type { Bounds } from "./spin.ts";

/** Text that the model holds once, and what stands there instead. */
type Replacement = readonly [from: string, to: string];

export interface Mutation {
  readonly harm: string;
  readonly changes: readonly Replacement[];
  readonly bounds: Bounds;
  /** Of the assertion that does not hold. */
  readonly found: string;
}

const CALM: Bounds = { ASKS: 1, EQUAL_ASKS: 0, CRASHES: 0, FAILURES: 0, RELOADS: 0 };
const AGAIN: Bounds = { ...CALM, ASKS: 2 };
const TWO: Bounds = { ...CALM, EQUAL_ASKS: 1 };
const STUCK = "timeout -> assert(at_rest";

export const MUTATIONS: readonly Mutation[] = [
  {
    harm: "a call is dispatched before its intent is durable",
    changes: [["landed(c, THE_INTENT) ||", "(commit[c] == THE_INTENT && progress[c] != FAILED) ||"]],
    bounds: CALM,
    found: "assert(kept[c] == INTENT)",
  },
  {
    harm: "a call runs although its intent was refused by the store",
    changes: [["landed(c, THE_INTENT) ||", "(commit[c] == THE_INTENT && progress[c] != UNDER_WAY) ||"]],
    bounds: { ...CALM, FAILURES: 1 },
    found: "assert(kept[c] == INTENT)",
  },
  {
    harm: "an answer is heard before it is durable",
    changes: [["ending[c] = ANSWER;", "ending[c] = ANSWER; hear(c, ANSWER);"]],
    bounds: CALM,
    found: "assert(kept[c] == OUTCOME && outcome[c] == m)",
  },
  {
    harm: "an outcome that the store refused is heard all the same",
    changes: [
      [
        "failed(c, THE_OUTCOME) || failed(c, TAKING_BACK) -> told(c); m = OUTCOME_UNKNOWN",
        "failed(c, THE_OUTCOME) || failed(c, TAKING_BACK) -> told(c); m = ending[c]",
      ],
    ],
    bounds: { ...CALM, FAILURES: 1 },
    found: "assert(kept[c] == OUTCOME && outcome[c] == m)",
  },
  {
    harm: "a call whose outcome nobody knows is run again when it is asked again",
    changes: [
      [
        "idle(c) && kept[c] == INTENT -> m = OUTCOME_UNKNOWN",
        "idle(c) && kept[c] == INTENT -> kept[c] = NOTHING; told(c); begin(c, RECORDING); hand_over(c, THE_INTENT)",
      ],
    ],
    bounds: { ...AGAIN, CRASHES: 1 },
    found: "assert(runs[c] == 0)", // it is even told that nothing ran
  },
  {
    harm: "a call that has ended is run again when it is asked again",
    changes: [
      [
        "idle(c) && kept[c] == OUTCOME && verdict != DENY -> m = outcome[c]",
        "idle(c) && kept[c] == OUTCOME && verdict != DENY -> kept[c] = NOTHING; begin(c, RECORDING); hand_over(c, THE_INTENT)",
      ],
    ],
    bounds: AGAIN,
    found: "assert(heard[c] == NO_MESSAGE || heard[c] == m ||",
  },
  {
    harm: "a late answer takes the place of the outcome that was heard",
    changes: [
      [
        "stage[c] != DISPATCHED -> serving[c] = false }",
        "stage[c] != DISPATCHED -> serving[c] = false; if :: kept[c] == OUTCOME -> outcome[c] = ANSWER :: else -> skip fi }",
      ],
    ],
    bounds: AGAIN,
    found: "assert(kept[c] == OUTCOME && outcome[c] == m)",
  },
  {
    harm: "settling overwrites an outcome",
    changes: [
      [
        "unknown(c) && commit[c] == NO_COMMIT ->",
        "kept[c] != NOTHING && idle(c) && commit[c] == NO_COMMIT ->",
      ],
    ],
    bounds: CALM,
    found: "assert(kept[c] != OUTCOME)",
  },
  {
    harm: "an approval releases the call before it is written with the call's intent",
    changes: [
      ["answered(c, APPROVED); releases[c]++; keep_intent(c)", "answered(c, APPROVED); releases[c]++"],
    ],
    bounds: CALM,
    found: "assert(kept[c] == INTENT)",
  },
  {
    harm: "nobody looks whether a question is still pending before it is answered",
    changes: [
      [
        "(stage[c] == ASKING && question[c] == PENDING && commit[c] == NO_COMMIT && !late[c])",
        "(!late[c] && commit[c] == NO_COMMIT)",
      ],
      [
        "inline move(c, before, by, after) {\n  assert(stage[c] == before);",
        "inline move(c, before, by, after) {",
      ],
    ],
    bounds: CALM,
    found: "assert(question[c] == PENDING)",
  },
  {
    harm: "an approval after the expiry releases the call",
    changes: [["commit[c] == NO_COMMIT && !late[c])", "commit[c] == NO_COMMIT)"]],
    bounds: CALM,
    found: "assert(!late[c])",
  },
  {
    harm: "a call that has expired while its approval was being written runs all the same",
    changes: [
      [
        ":: stage[c] == ENDED -> hand_over(c, THE_OUTCOME)",
        ":: stage[c] == ENDED && ending[c] != APPROVAL_EXPIRED -> hand_over(c, THE_OUTCOME)\n        :: stage[c] == ENDED && ending[c] == APPROVAL_EXPIRED -> runs[c]++; hand_over(c, THE_OUTCOME)",
      ],
    ],
    bounds: CALM,
    found: "assert(m != APPROVAL_EXPIRED ||",
  },
  {
    harm: "what the policy denies by now is dispatched since it was approved",
    changes: [
      [
        "#define may_run(c) (verdict == ALLOW || (verdict == ASK && released[c]))",
        "#define may_run(c) (verdict == ALLOW || released[c])",
      ],
    ],
    bounds: { ...CALM, RELOADS: 1 },
    found: "assert(verdict != DENY)",
  },
  {
    harm: "what a reload wants asked by now is dispatched unasked",
    changes: [
      [
        "#define may_run(c) (verdict == ALLOW || (verdict == ASK && released[c]))",
        "#define may_run(c) (verdict != DENY)",
      ],
    ],
    bounds: { ...CALM, RELOADS: 1 },
    found: "assert(releases[c] == 1 ||",
  },
  {
    harm: "an equal call is let through although nobody knows what became of the first",
    changes: [["verdict == ALLOW && !in_doubt(other(c)) ->", "verdict == ALLOW ->"]],
    bounds: TWO,
    found: "assert(releases[c] == 1 ||",
  },
  {
    harm: "an equal call's outcome is not recorded under its own id",
    changes: [["if :: follows[other(c)] -> keep_one_outcome(other(c), m) :: else -> skip fi", "skip"]],
    bounds: TWO,
    found: "assert(kept[c] == OUTCOME && outcome[c] == m)",
  },
  {
    harm: "an equal call is forgotten when the question that it follows is over",
    changes: [
      [
        "follows[other(c)] -> follows[other(c)] = false; hear(other(c), m)",
        "follows[other(c)] -> follows[other(c)] = false",
      ],
    ],
    bounds: TWO,
    found: STUCK,
  },
  {
    harm: "a refusal is not kept",
    changes: [["answered(c, REFUSED); keep_outcome(c, APPROVAL_REFUSED)", "answered(c, REFUSED)"]],
    bounds: CALM,
    found: "assert(kept[c] == OUTCOME && outcome[c] == m)",
  },
  {
    harm: "an expiry is told as a refusal",
    changes: [
      [
        "answered(c, EXPIRED); keep_outcome(c, APPROVAL_EXPIRED)",
        "answered(c, EXPIRED); keep_outcome(c, APPROVAL_REFUSED); ending[c] = APPROVAL_REFUSED",
      ],
    ],
    bounds: CALM,
    found: "assert(m != APPROVAL_REFUSED ||",
  },
  {
    harm: "nothing ends a question that nobody answers",
    changes: [[":: late[c] && stage[c] == ASKING &&", ":: false && stage[c] == ASKING &&"]],
    bounds: CALM,
    found: STUCK,
  },
  {
    harm: "a restart forgets what is pending",
    changes: [[":: question[c] == PENDING -> begin(c, ASKING)", ":: question[c] == PENDING -> skip"]],
    bounds: { ...CALM, CRASHES: 1 },
    found: STUCK,
  },
  {
    harm: "a question that failed to be closed stays pending for ever",
    changes: [
      [":: owes[c] -> owes[c] = false; stale[c] = false", ":: false -> owes[c] = false; stale[c] = false"],
    ],
    bounds: { ...CALM, FAILURES: 1 },
    found: STUCK,
  },
  {
    harm: "a restart opens the question of a call that has run meanwhile",
    changes: [["question[c] != PENDING && kept[c] == NOTHING ->", "question[c] != PENDING ->"]],
    bounds: { ...AGAIN, FAILURES: 1, CRASHES: 1, RELOADS: 1 },
    found: "assert(kept[c] != OUTCOME)",
  },
  {
    harm: "nobody can settle what nobody knows",
    changes: [["unknown(c) && commit[c] == NO_COMMIT ->", "false ->"]],
    bounds: { ...CALM, CRASHES: 1 },
    found: STUCK,
  },
];

export function mutate(model: string, changes: readonly Replacement[]): string {
  return changes.reduce((text, [from, to]) => {
    if (text.split(from).length !== 2) throw new Error(`the model does not hold this once: ${from}`);
    return text.replace(from, () => to);
  }, model);
}
