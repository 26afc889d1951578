// The last stage: bytes to everybody who asked. What reaches a caller has raised its session's taint
// before, and a final message ends the call.

import type { CallFault } from "../base/faults.ts";
import { join, type Labels } from "../base/labels.ts";
import type { Session } from "../session/sessions.ts";
import type { CallKey, CallRecord, Change } from "../store/records.ts";
import { FrameFault } from "../wire/fault.ts";
import { callFault, failedMessage, MAY_HAVE_RUN } from "./answer.ts";
import type { Asker, Core, LiveCall } from "./core.ts";

/** Sends to one asker; a message that no frame can hold becomes the failure that says so. */
export function sendTo(asker: Asker, final: boolean, message: Buffer): void {
  try {
    asker.peer.connection.send(asker.id, final, message);
  } catch (error) {
    if (!(error instanceof FrameFault)) throw error;
    const tooLarge = callFault("too_large", `The answer does not fit in a frame. ${MAY_HAVE_RUN}`);
    asker.peer.connection.send(asker.id, true, failedMessage(tooLarge));
  }
}

/** The change that raises a session's taint to `labels`; nothing where it covers them. */
export function raise(core: Core, session: Session, labels: Labels, by: CallKey): readonly Change[] {
  const role = core.runtime.policy.roles.get(session.role);
  if (role === undefined) return []; // a reload took the role away: its peers are being let go
  const change = core.sessions.raise(role, session, labels, by);
  return change === undefined ? [] : [change];
}

/** A message that more will follow. */
export function deliverPart(core: Core, live: LiveCall, message: Buffer, labels: Labels): void {
  live.labels = join(live.labels, labels);
  live.record.labels = live.labels;
  const changes: Change[] = [
    ...raise(core, live.session, labels, live.key),
    { kind: "message", record: live.record, message },
  ];
  core.store.commit(changes, (unwritten) => {
    if (unwritten !== undefined) return endUnrecorded(core, live);
    live.delivered.push(message);
    for (const asker of live.askers) sendTo(asker, false, message);
  });
}

export interface Ending {
  readonly message: Buffer;
  readonly labels: Labels;
  readonly status: "result" | "failed" | "denied";
  readonly fault?: CallFault;
}

/** The final message: recorded, then delivered. A call ends once; whatever comes later finds it gone. */
export function endCall(core: Core, live: LiveCall, ending: Ending): void {
  if (live.stage === "ended") return;
  stopServing(live);
  live.stage = "ended";
  live.labels = join(live.labels, ending.labels);
  live.record.labels = live.labels;
  const atMs = core.clock.nowMs();
  const { key, record } = live;
  const changes: Change[] = [
    ...raise(core, live.session, ending.labels, key),
    { kind: "outcome", record, message: ending.message, atMs },
    {
      kind: "audit",
      record: { kind: "outcome", key, status: ending.status, code: ending.fault?.code, labels: live.labels },
    },
  ];
  core.store.commit(changes, (unwritten) => {
    const message = unwritten === undefined ? ending.message : failedMessage(UNRECORDED);
    finish(
      core,
      live,
      message,
      unwritten === undefined ? ending.status : "failed",
      unwritten ? UNRECORDED : ending.fault,
    );
  });
}

const UNWRITABLE = callFault(
  "unavailable",
  "The broker can't write its records now. The call was not run again.",
);
const UNRECORDED = callFault("outcome_unknown", `The outcome could not be written down. ${MAY_HAVE_RUN}`);

/** A part could not be written: the call ends here, and its outcome stays unknown. */
function endUnrecorded(core: Core, live: LiveCall): void {
  if (live.stage === "ended") return;
  stopServing(live);
  live.stage = "ended";
  finish(core, live, failedMessage(UNRECORDED), "failed", UNRECORDED);
}

function stopServing(live: LiveCall): void {
  live.stopTimer?.();
  live.stopTimer = undefined;
  if (live.serving === undefined) return;
  live.serving.peer.serving.delete(live.serving.id);
}

function finish(
  core: Core,
  live: LiveCall,
  message: Buffer,
  status: string,
  fault: CallFault | undefined,
): void {
  core.live.remove(live);
  for (const asker of live.askers) {
    sendTo(asker, true, message);
    release(asker, live.argumentsBytes);
  }
  live.askers.length = 0;
  core.log(status === "result" ? "info" : "warn", "call.ended", {
    role: live.key.role,
    session: live.key.session,
    call: String(live.key.call),
    tool: live.tool.name,
    status,
    code: fault?.code,
    class: live.labels.class,
    untrusted: live.labels.untrusted,
    duration_ms: core.clock.nowMs() - live.startedAtMs,
  });
}

/** The asker has its final answer: its id is free again, and a half-closed peer with none left is let go. */
export function release(asker: Asker, argumentsBytes: number): void {
  const { peer, id } = asker;
  if (!peer.asking.delete(id)) return;
  peer.quota.release("calls_in_flight", 1);
  peer.quota.release("queued_bytes_in", argumentsBytes);
  finishIfIdle(peer);
}

/** Charges a request that has no final answer yet; `live` is undefined while a record is being replayed. */
export function hold(asker: Asker, live: LiveCall | undefined, argumentsBytes: number): void {
  asker.peer.asking.set(asker.id, live);
  asker.peer.quota.charge("calls_in_flight", 1);
  asker.peer.quota.charge("queued_bytes_in", argumentsBytes);
}

export function finishIfIdle(peer: Asker["peer"]): void {
  if (!peer.connection.readable && peer.asking.size === 0) peer.connection.finish();
}

/** Waits on a running call: everything so far, then whatever comes. */
export function joinCall(core: Core, live: LiveCall, asker: Asker): void {
  hold(asker, live, live.argumentsBytes);
  const changes = [...raise(core, live.session, live.labels, live.key), delivery(live.key, "joined")];
  core.store.commit(changes, (unwritten) => {
    if (unwritten !== undefined || core.live.find(live.session, live.key.call) !== live) {
      answerFromRecord(asker, live.record, live.argumentsBytes, unwritten !== undefined);
      return;
    }
    live.askers.push(asker);
    for (const message of live.delivered) sendTo(asker, false, message);
  });
}

/** Answers from the record of a call that has ended, byte for byte. */
export function replayCall(core: Core, session: Session, record: CallRecord, asker: Asker): void {
  const argumentsBytes = record.arguments.length;
  hold(asker, undefined, argumentsBytes);
  const changes = [...raise(core, session, record.labels, record.key), delivery(record.key, "replayed")];
  core.store.commit(changes, (unwritten) =>
    answerFromRecord(asker, record, argumentsBytes, unwritten !== undefined),
  );
}

function answerFromRecord(
  asker: Asker,
  record: CallRecord,
  argumentsBytes: number,
  unwritten: boolean,
): void {
  if (unwritten) sendTo(asker, true, failedMessage(UNWRITABLE));
  else if (record.state !== "ended") sendTo(asker, true, failedMessage(UNRECORDED));
  else
    for (const [i, message] of record.messages.entries())
      sendTo(asker, i === record.messages.length - 1, message);
  release(asker, argumentsBytes);
}

function delivery(key: CallKey, how: "joined" | "replayed"): Change {
  return { kind: "audit", record: { kind: "delivery", key, how } };
}
