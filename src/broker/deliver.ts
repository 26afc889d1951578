// The last stage: bytes to everybody who asked. What reaches a caller has raised its session's taint
// before, and that is written; a final message ends the call.

import type { CallFault } from "../base/faults.ts";
import { CLEAN, join, type Labels } from "../base/labels.ts";
import type { Session } from "../session/sessions.ts";
import type { ApprovalRecord, CallKey, CallRecord, Change } from "../store/records.ts";
import { callFault, failedMessage, MAY_HAVE_RUN, NOTHING_RAN } from "./answer.ts";
import { closed } from "./approvals.ts";
import { answer, MESSAGE_BYTES_MAX, sendPart, UNFRAMED, waits } from "./asking.ts";
import type { Core } from "./core.ts";
import { UNKNOWN_CODES } from "./doubts.ts";
import { type Asker, actorOf, type Ending, type LiveCall, recordsOf } from "./live.ts";
import { outcomeOf } from "./metrics.ts";
import { payLater } from "./owed.ts";
import { enter } from "./stages.ts";
import { stopServing, write } from "./writing.ts";

/** The change that raises a session's taint to `labels`; nothing where that is written already. */
export function raise(core: Core, session: Session, labels: Labels, by: CallKey): readonly Change[] {
  const role = core.runtime.policy.roles.get(session.role);
  if (role === undefined) return []; // a reload took the role away: its peers are being let go
  const change = core.sessions.raise(role, session, labels, by);
  return change === undefined ? [] : [change];
}

/** A part of the result: recorded, then delivered. */
export function deliverPart(core: Core, live: LiveCall, message: Buffer, labels: Labels): void {
  if (message.length > MESSAGE_BYTES_MAX) return failCall(core, live, UNFRAMED);
  live.labels = join(live.labels, labels);
  label(live);
  const changes: Change[] = [
    ...raise(core, live.session, labels, live.key),
    ...recordsOf(live).map((record): Change => ({ kind: "message", record, message })),
  ];
  live.unwritten += 1;
  write(core, live, changes, (unwritten) => {
    live.unwritten -= 1;
    if (live.answer !== undefined) return; // an earlier part could not be written, and that ended the call
    if (unwritten !== undefined) return finish(core, live, UNRECORDED_ENDING);
    sendToAll(live, message);
    writeEnding(core, live);
  });
}

function label(live: LiveCall): void {
  for (const record of recordsOf(live)) record.labels = live.labels;
}

/** A question that a human is asked, ours or of somebody behind the provider: told, and no part of what is replayed. */
export function deliverQuestion(live: LiveCall, message: Buffer): void {
  sendToAll(live, message);
}

function sendToAll(live: LiveCall, message: Buffer): void {
  live.delivered.push(message);
  for (const asker of live.askers) sendPart(asker, message);
}

/** Ends a call with a failure of ours: the words are the broker's own, so they carry no labels. */
export function failCall(core: Core, live: LiveCall, why: CallFault): void {
  endCall(core, live, { message: failedMessage(why), labels: CLEAN, status: "failed", fault: why });
}

/** Ends a call for which nothing ran: it leaves no trace, and asked again it is decided afresh. */
export function withdrawCall(core: Core, live: LiveCall, message: Buffer, status: "failed" | "denied"): void {
  endCall(core, live, { message, labels: CLEAN, status, withdrawn: true });
}

/**
 * The final message: recorded once all before it is, then delivered. A call ends once; whatever comes
 * later finds it ended.
 */
export function endCall(core: Core, live: LiveCall, ending: Ending): void {
  if (live.stage === "ended") return;
  const asking = live.stage === "asking";
  stopServing(live);
  enter(live, asking ? (ending.closes ?? "withdrawn") : "end");
  live.ending = ending.message.length > MESSAGE_BYTES_MAX ? unframed(ending) : ending;
  if (asking) closeQuestion(core, live);
  writeEnding(core, live);
}

function unframed({ changes = [], settled = () => undefined }: Ending): Ending {
  return {
    message: failedMessage(UNFRAMED),
    labels: CLEAN,
    status: "failed",
    fault: UNFRAMED,
    changes,
    settled,
  };
}

/** The call has ended with its question open: that closes, in the ending's own transaction. */
export function closeQuestion(core: Core, live: LiveCall): void {
  const { ending, question } = live;
  if (ending === undefined || question === undefined || !core.approvals.isOpen(live)) return;
  const record = closed(question, ending.closes ?? "withdrawn", core.clock.nowMs());
  const changes: Change[] = [{ kind: "approval", approval: record }, ...core.approvals.close(record)];
  live.ending = {
    ...ending,
    changes: [...(ending.changes ?? []), ...changes],
    settled: (written) => {
      ending.settled?.(written);
      if (written) return;
      core.approvals.owe(record);
      payLater(core);
    },
  };
  logClosed(core, live, record);
}

/** What became of a question that nobody answered. */
function logClosed(
  core: Core,
  { key, tool }: LiveCall,
  { id, state, askedAtMs, decidedAtMs = 0 }: ApprovalRecord,
) {
  const event = state === "expired" ? "approval.expired" : "approval.void";
  core.log("warn", event, {
    approval: id,
    role: key.role,
    session: key.session,
    call: String(key.call),
    tool: tool.name,
    why: state,
    waited_ms: decidedAtMs - askedAtMs,
  });
}

/** Where the call has ended and nothing of it waits to be written any more. */
export function writeEnding(core: Core, live: LiveCall): void {
  const { ending } = live;
  if (ending === undefined || live.unwritten > 0) return;
  live.labels = join(live.labels, ending.labels);
  label(live);
  write(core, live, endingChanges(core, live, ending), (unwritten) => {
    ending.settled?.(unwritten === undefined);
    if (unwritten === undefined) return finish(core, live, ending);
    finish(core, live, live.hasIntent ? UNRECORDED_ENDING : UNASKED_ENDING);
  });
}

function endingChanges(core: Core, live: LiveCall, ending: Ending): readonly Change[] {
  const changes: Change[] = [
    ...raise(core, live.session, ending.labels, live.key),
    ...(ending.changes ?? []),
  ];
  if (!ending.withdrawn) return [...changes, ...outcomes(core, live, ending)];
  changes.push(...(live.used?.giveBack() ?? []));
  if (live.hasIntent) for (const record of recordsOf(live)) changes.push({ kind: "withdrawn", record });
  return changes;
}

/** The final message for the call and for those that follow it. */
export function outcomes(core: Core, live: LiveCall, ending: Ending): readonly Change[] {
  const { message, status, fault } = ending;
  const atMs = core.clock.nowMs();
  const to = live.askers.map((asker) => actorOf(asker.peer));
  return recordsOf(live).map((record) => ({
    kind: "outcome",
    record,
    message,
    status,
    code: fault?.code,
    atMs,
    to,
  }));
}

const UNWRITABLE = callFault(
  "unavailable",
  "The broker can't write its records now. The call was not run again.",
);
const UNRECORDED = callFault("outcome_unknown", `The outcome could not be written down. ${MAY_HAVE_RUN}`);
/** Of a call without an outcome that nobody works on any more. */
const NOBODY_KNOWS = callFault(
  "outcome_unknown",
  `The broker ended, or could not write, before the outcome was on record. An operator can settle the call. ${MAY_HAVE_RUN}`,
);
const UNRECORDED_ENDING: Ending = failedEnding(UNRECORDED);
/** Of a call that never had an intent: nobody ran it. */
export const UNASKED_ENDING: Ending = failedEnding(
  callFault("unavailable", `The broker can't write its records now. ${NOTHING_RAN}`),
);

function failedEnding(fault: CallFault): Ending {
  return { message: failedMessage(fault), labels: CLEAN, status: "failed", fault };
}

/** Answers everybody and forgets the call. What could not be written down ends here too. */
export function finish(core: Core, live: LiveCall, ending: Ending): void {
  stopServing(live);
  if (live.stage !== "ended") enter(live, "end");
  // Calls that follow one end as it does, and are calls of their own.
  if (live.answer === undefined)
    core.metrics.ended(live.tool.name, outcomeOf(ending.status, ending.fault?.code), live.aliases.size + 1);
  live.answer = ending.message;
  core.live.remove(live);
  for (const record of recordsOf(live)) {
    record.status = ending.status;
    record.code = ending.fault?.code;
  }
  if (live.serving !== undefined && !ending.withdrawn && isUnknown(ending)) core.doubts.add(live.record);
  for (const asker of live.askers.splice(0)) answer(core, asker, ending.message);
  const nowMs = core.clock.nowMs();
  if (live.dispatchedAtMs !== undefined) core.metrics.ran(live.tool.name, nowMs - live.dispatchedAtMs);
  for (const { key } of recordsOf(live)) logEnded(core, live, key, ending, nowMs);
}

function isUnknown({ fault }: Ending): boolean {
  return fault !== undefined && UNKNOWN_CODES.has(fault.code);
}

function logEnded(
  core: Core,
  live: LiveCall,
  { role, session, call }: CallKey,
  ending: Ending,
  nowMs: number,
): void {
  core.log(ending.status === "result" ? "info" : "warn", "call.ended", {
    role,
    session,
    call: String(call),
    tool: live.tool.name,
    status: ending.status,
    code: ending.fault?.code,
    class: live.labels.class,
    untrusted: live.labels.untrusted,
    duration_ms: nowMs - live.startedAtMs,
  });
}

/** Waits on a running call: everything so far, then whatever comes. */
export function joinCall(core: Core, live: LiveCall, key: CallKey, asker: Asker): void {
  asker.live = live;
  live.waiting += 1;
  const changes = [...raise(core, live.session, live.labels, live.key), delivery(key, "joined", asker)];
  write(core, asker, changes, (unwritten) => {
    if (!waits(asker)) return;
    if (unwritten !== undefined) return answer(core, asker, failedMessage(UNWRITABLE));
    for (const message of live.delivered) sendPart(asker, message);
    if (live.answer === undefined) live.askers.push(asker);
    else answer(core, asker, live.answer);
  });
}

/** Answers from the record of a call that has ended, byte for byte. */
export function replayCall(core: Core, session: Session, record: CallRecord, asker: Asker): void {
  const changes = [
    ...raise(core, session, record.labels, record.key),
    delivery(record.key, "replayed", asker),
  ];
  write(core, asker, changes, (unwritten) => {
    if (unwritten !== undefined) return answer(core, asker, failedMessage(UNWRITABLE));
    const final = record.messages.at(-1);
    if (record.state !== "ended" || final === undefined)
      return answer(core, asker, failedMessage(NOBODY_KNOWS));
    for (const message of record.messages.slice(0, -1)) sendPart(asker, message);
    answer(core, asker, final);
  });
}

function delivery(key: CallKey, how: "joined" | "replayed", asker: Asker): Change {
  return { kind: "audit", record: { kind: "delivery", key, how, to: actorOf(asker.peer) } };
}
