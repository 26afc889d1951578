// `callgate.calls.list|show|why`: what became of calls. Nothing is changed here. A role that is no operator
// sees its own, and of those only what the same user asked.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import { join, type Labels } from "../../base/labels.ts";
import type { CallKey, CallRecord, DecisionRecord } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { type LiveCall, recordOf, recordsOf } from "../live.ts";
import { CALL, callId, objectSchema, ROLE, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { grantWordsLabels } from "./grant_words.ts";
import { joinAll, LIMIT, rowsMax } from "./listing.ts";
import { namedRole, namedSessionId, sessionLabels } from "./visibility.ts";

/** Records looked at for one list, so that a filter that nothing matches holds nobody up. */
const SCANNED_MAX = 2000;
/** Characters of recorded messages that are shown of a call. */
const MESSAGE_CHARS_MAX = 262_144;

const STATES = ["running", "waiting", "unknown", "ended"] as const;
type State = (typeof STATES)[number];

interface Found {
  readonly record: CallRecord;
  readonly state: State;
}

/** The call that the arguments name. Whether there is one is not said here. */
export function namedCall(core: Core, call: BuiltinCall): Result<CallKey, CallFault> {
  const id = callId(call.args, "call");
  if (id === undefined) return fault(callFault("bad_arguments", `\`call\` is no call id. ${NOTHING_RAN}`));
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const session = namedSessionId(call);
  if (!session.ok) return session;
  return ok({ role: named.value.name, session: session.value, call: id });
}

/** The call by that key that waits or runs. */
export function liveCall(core: Core, key: CallKey): LiveCall | undefined {
  const session = core.sessions.find(key.role, key.session);
  return session && core.live.find(session, key.call);
}

export function isLive(core: Core, record: CallRecord): boolean {
  return liveCall(core, record.key) !== undefined;
}

/** As with a replay, another user of the same role is not the one who asked. */
export function mayTouch(call: BuiltinCall, record: CallRecord): boolean {
  return call.role.operator || record.uid === call.peer.connection.peer?.uid;
}

function list(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const ofAll = call.role.operator && text(call.args, "role") === undefined;
  const session = call.role.isolated && !call.role.operator ? call.session.id : text(call.args, "session");
  const state = text(call.args, "state");
  const limit = rowsMax(call.args);
  const found: Found[] = [];
  let scanned = 0;
  for (const one of allCalls(core)) {
    scanned += 1;
    if (found.length >= limit || scanned > SCANNED_MAX) break;
    const { key } = one.record;
    if (!ofAll && key.role !== named.value.name) continue;
    if (session !== undefined && key.session !== session) continue;
    if (state !== undefined && one.state !== state) continue;
    if (mayTouch(call, one.record)) found.push(one);
  }
  const labels = found.map(({ record }) => sessionLabels(core, record.key.role, record.key.session));
  // More than were looked at: what is older is not in the list.
  return shown({ calls: found.map(row), all_seen: scanned <= SCANNED_MAX }, joinAll(labels));
}

function* allCalls(core: Core): Iterable<Found> {
  for (const live of core.live.all()) {
    const state = live.stage === "asking" || live.stage === "answering" ? "waiting" : "running";
    for (const record of recordsOf(live)) yield { record, state };
  }
  for (const record of core.store.calls()) {
    if (record.state === "ended") yield { record, state: "ended" };
    else if (!isLive(core, record)) yield { record, state: "unknown" };
  }
}

function findCall(core: Core, key: CallKey): Found | undefined {
  const live = liveCall(core, key);
  const record = live && recordOf(live, key.call);
  if (live !== undefined && record !== undefined) {
    return { record, state: live.stage === "asking" || live.stage === "answering" ? "waiting" : "running" };
  }
  const stored = core.store.findCall(key);
  return stored && { record: stored, state: stored.state === "ended" ? "ended" : "unknown" };
}

function row({ record, state }: Found) {
  const { key, tool, status, code, askedAtMs, endedAtMs } = record;
  return {
    role: key.role,
    session: key.session,
    call: key.call,
    tool,
    state,
    status: status ?? null,
    code: code ?? null,
    asked_at_ms: askedAtMs,
    ended_at_ms: state === "ended" ? endedAtMs : null,
  };
}

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
  // One from before it was asked denied an earlier try under its id: it is not what this call ran by.
  const decision = last !== undefined && last.atMs < record.askedAtMs ? undefined : last;
  const content = {
    ...row(found),
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

function shownDecision(decision: DecisionRecord) {
  return {
    verdict: decision.verdict,
    at_ms: decision.atMs,
    denied: decision.denied ?? null,
    row: decision.row,
    grant: decision.grant ?? null,
    reason: decision.reason ?? null,
    condition: decision.condition,
    taint: decision.taint,
  };
}

function why(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedCall(core, call);
  if (!named.ok) return named;
  const key = named.value;
  const decision = lastDecision(core, key);
  if (decision === undefined) {
    return fault(
      callFault(
        "bad_arguments",
        `No denial of that call is kept (only the latest denials are). ${NOTHING_RAN}`,
      ),
    );
  }
  const content = { session: key.session, call: key.call, ...shownDecision(decision) };
  return shown(content, decisionLabels(core, key, decision));
}

/** The latest; one that was counted is in no record. */
function lastDecision(core: Core, key: CallKey): DecisionRecord | undefined {
  const counted = core.audit.findDenied(key);
  const recorded = core.store.findDecision(key);
  const overtaken = recorded !== undefined && counted !== undefined && counted.atMs <= recorded.atMs;
  return overtaken ? recorded : (counted ?? recorded);
}

/** It quotes the grant that decided, whose words another may have written. */
function decisionLabels(core: Core, key: CallKey, decision: DecisionRecord | undefined): Labels {
  const words = grantWordsLabels(core, decision?.grant === undefined ? [] : [decision.grant]);
  return join(sessionLabels(core, key.role, key.session), words);
}

export const CALL_VIEWS: readonly BuiltinSource[] = [
  {
    name: "callgate.calls.list",
    description:
      "Calls that wait for a human, run, ended, or whose outcome nobody knows (`unknown`): those that go on first, then the newest.",
    effect: "read",
    schema: objectSchema({
      role: {
        type: "string",
        description: "Only of this role; left out: the caller's own, for operators all.",
      },
      session: SESSION,
      state: { type: "string", enum: STATES, description: "Only those." },
      limit: LIMIT,
    }),
    run: list,
  },
  {
    name: "callgate.calls.show",
    description: "One call: its exact arguments, what its caller was answered, and the decision on it.",
    effect: "read",
    schema: objectSchema({ role: ROLE, session: SESSION, call: CALL }, "call"),
    run: show,
  },
  {
    name: "callgate.calls.why",
    description: "Why a call was denied: the row of the decision list, the grant and its owner's reason.",
    effect: "read",
    schema: objectSchema({ role: ROLE, session: SESSION, call: CALL }, "call"),
    run: why,
  },
];
