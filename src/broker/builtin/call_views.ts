// `callgate.calls.show`: what became of a call, and the table of the tools that look at calls. Nothing is changed here. A role that is no operator
// sees its own, and of those only what the same user asked.

import { fault } from "../../base/faults.ts";
import { join } from "../../base/labels.ts";
import type { CallRecord } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { CALL, objectSchema, ROLE, SESSION } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { CALL_LIST } from "./call_list.ts";
import { callRow, findCall, mayTouch, namedCall } from "./call_row.ts";
import { CALL_WHY, decisionLabels, isOvertaken, lastDecision, shownDecision } from "./call_why.ts";

/** Characters of recorded messages that are shown of a call. */
const MESSAGE_CHARS_MAX = 262_144;

/** The exact arguments and answers: with the taint of the session that they are of. */
function show(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedCall(core, call);
  if (!named.ok) return named;
  const key = named.value;
  const found = findCall(core, key);
  if (found === undefined || !mayTouch(call, found.record))
    return fault(
      callFault("bad_arguments", `No such call is kept for the caller to look at. ${NOTHING_RAN}`),
    );
  const { record } = found;
  const last = lastDecision(core, key);
  const decision = last === undefined || isOvertaken(last, record) ? undefined : last;
  const content = {
    ...callRow(found),
    uid: record.uid ?? null,
    arguments: record.arguments,
    labels: record.labels,
    ...shownMessages(record),
    decision: decision === undefined ? null : shownDecision(decision),
  };
  return shown(content, join(decisionLabels(core, key, decision), record.labels));
}

/** The JSON of each `msg`, as its caller got it. */
function shownMessages({ messages }: CallRecord) {
  const texts: string[] = [];
  let room = MESSAGE_CHARS_MAX;
  for (const message of messages) {
    const text = message.toString("utf8");
    if (text.length > room) return { messages: texts, messages_cut: true };
    room -= text.length;
    texts.push(text);
  }
  return { messages: texts, messages_cut: false };
}

export const CALL_VIEWS: readonly BuiltinSource[] = [
  CALL_LIST,
  {
    name: "callgate.calls.show",
    description: "One call: its exact arguments, what its caller was answered, and the decision on it.",
    effect: "read",
    schema: objectSchema({ role: ROLE, session: SESSION, call: CALL }, "call"),
    run: show,
  },
  CALL_WHY,
];
