// The last stage: bytes to everybody who asked. What reaches a caller has raised its session's taint
// before, and that is written; a final message ends the call.

import type { CallFault } from "../base/faults.ts";
import { CLEAN, join, type Labels } from "../base/labels.ts";
import type { Session } from "../session/sessions.ts";
import type { CallKey, CallRecord, Change } from "../store/records.ts";
import { callFault, failedMessage, MAY_HAVE_RUN } from "./answer.ts";
import { answer, MESSAGE_BYTES_MAX, sendPart, UNFRAMED, waits } from "./asking.ts";
import type { Core } from "./core.ts";
import type { Asker, Ending, LiveCall } from "./live.ts";
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
  live.record.labels = live.labels;
  const changes: Change[] = [
    ...raise(core, live.session, labels, live.key),
    { kind: "message", record: live.record, message },
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

/** A question that somebody behind the provider was asked: passed on, and no part of what is replayed. */
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
  stopServing(live);
  live.stage = "ended";
  live.ending = ending.message.length > MESSAGE_BYTES_MAX ? unframed(ending) : ending;
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

/** Where the call has ended and nothing of it waits to be written any more. */
export function writeEnding(core: Core, live: LiveCall): void {
  const { ending, record } = live;
  if (ending === undefined || live.unwritten > 0) return;
  live.labels = join(live.labels, ending.labels);
  record.labels = live.labels;
  write(core, live, endingChanges(core, live, ending), (unwritten) => {
    ending.settled?.(unwritten === undefined);
    finish(core, live, unwritten === undefined ? ending : UNRECORDED_ENDING);
  });
}

function endingChanges(core: Core, live: LiveCall, ending: Ending): readonly Change[] {
  const { key, record } = live;
  const changes: Change[] = [...raise(core, live.session, ending.labels, key), ...(ending.changes ?? [])];
  const { status, message, fault } = ending;
  if (ending.withdrawn) changes.push({ kind: "withdrawn", record });
  else
    changes.push({ kind: "outcome", record, message, status, code: fault?.code, atMs: core.clock.nowMs() });
  return changes;
}

const UNWRITABLE = callFault(
  "unavailable",
  "The broker can't write its records now. The call was not run again.",
);
const UNRECORDED = callFault("outcome_unknown", `The outcome could not be written down. ${MAY_HAVE_RUN}`);
const UNRECORDED_ENDING: Ending = {
  message: failedMessage(UNRECORDED),
  labels: CLEAN,
  status: "failed",
  fault: UNRECORDED,
};

/** Answers everybody and forgets the call. What could not be written down ends here too. */
export function finish(core: Core, live: LiveCall, ending: Ending): void {
  stopServing(live);
  live.stage = "ended";
  live.answer = ending.message;
  core.live.remove(live);
  for (const asker of live.askers.splice(0)) answer(core, asker, ending.message);
  core.log(ending.status === "result" ? "info" : "warn", "call.ended", {
    role: live.key.role,
    session: live.key.session,
    call: String(live.key.call),
    tool: live.tool.name,
    status: ending.status,
    code: ending.fault?.code,
    class: live.labels.class,
    untrusted: live.labels.untrusted,
    duration_ms: core.clock.nowMs() - live.startedAtMs,
  });
}

/** Waits on a running call: everything so far, then whatever comes. */
export function joinCall(core: Core, live: LiveCall, asker: Asker): void {
  asker.live = live;
  live.waiting += 1;
  const changes = [...raise(core, live.session, live.labels, live.key), delivery(live.key, "joined")];
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
  const changes = [...raise(core, session, record.labels, record.key), delivery(record.key, "replayed")];
  write(core, asker, changes, (unwritten) => {
    if (unwritten !== undefined) return answer(core, asker, failedMessage(UNWRITABLE));
    const final = record.messages.at(-1);
    if (record.state !== "ended" || final === undefined)
      return answer(core, asker, failedMessage(UNRECORDED));
    for (const message of record.messages.slice(0, -1)) sendPart(asker, message);
    answer(core, asker, final);
  });
}

function delivery(key: CallKey, how: "joined" | "replayed"): Change {
  return { kind: "audit", record: { kind: "delivery", key, how } };
}
