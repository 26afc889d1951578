// A call as it is found (by its name, or one after the other) and as it looks in a list. Who may look at it:
// operators, and of the role that asked the very user who did.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import type { CallKey, CallRecord } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, Core } from "../core.ts";
import { type LiveCall, recordOf } from "../live.ts";
import { callId } from "./arguments.ts";
import { namedRole, namedSessionId } from "./visibility.ts";

export const CALL_STATES = ["running", "waiting", "unknown", "ended"] as const;
export type CallState = (typeof CALL_STATES)[number];

export interface FoundRecord {
  readonly record: CallRecord;
  readonly state: CallState;
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

export function liveState({ stage }: LiveCall): CallState {
  return stage === "asking" || stage === "answering" ? "waiting" : "running";
}

/** As with a replay, another user of the same role is not the one who asked. */
export function mayTouch(call: BuiltinCall, record: CallRecord): boolean {
  return call.role.operator || record.uid === call.peer.connection.peer?.uid;
}

export function findCall(core: Core, key: CallKey): FoundRecord | undefined {
  const live = liveCall(core, key);
  const record = live && recordOf(live, key.call);
  if (live !== undefined && record !== undefined) return { record, state: liveState(live) };
  const stored = core.store.findCall(key);
  return stored && { record: stored, state: stored.state === "ended" ? "ended" : "unknown" };
}

/** One line of a list. */
export function callRow({ record, state }: FoundRecord) {
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
