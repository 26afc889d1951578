// What is written down about each change. Arguments and contents are in no record, but as keyed digest
// and length; only the values of arguments that a tool opts in are, bounded.
// Invariant: every change has its records, except uses of a grant and forgotten questions.

import { jsonTextInOrder, parseJsonObject } from "../base/json.ts";
import { ARGUMENTS_LIMITS } from "../base/limits.ts";
import {
  type AuditEvent,
  actorNames,
  ascii,
  auditEvent,
  callNames,
  type KeyedDigest,
  labelNames,
} from "./audit_event.ts";
import { stateEvent } from "./audit_state_events.ts";
import type { AuditRecord, CallRecord, Change, DecisionRecord } from "./records.ts";

/** Opted-in arguments of one call, and characters of one value; beyond, digest and length stand in for it. */
const ARGUMENTS_SHOWN_MAX = 16;
const ARGUMENT_CHARS_MAX = 256;
/** Peers named that an outcome goes to. */
const ACTORS_SHOWN_MAX = 16;

type Intent = Extract<Change, { kind: "intent" }>;
type Outcome = Extract<Change, { kind: "outcome" }>;

/** The records of one change, in order. Pure; what `keyed` is asked for shows as digest only. */
export function auditEvents(change: Change, keyed: KeyedDigest): readonly AuditEvent[] {
  switch (change.kind) {
    case "intent":
      return [dispatched(change, keyed)];
    case "withdrawn":
      return [auditEvent("withdrawn", callNames(change.record.key, change.record.tool))];
    case "message":
      return [part(change.record, change.message, keyed)];
    case "outcome":
      return [outcome(change, keyed)];
    case "audit":
      return [spoken(change.record)];
    case "grant_used":
    case "approval_forgotten":
      return [];
    default:
      return [stateEvent(change, keyed)];
  }
}

/** The decision and the dispatch that follows from it, in one record. */
function dispatched(intent: Intent, keyed: KeyedDigest): AuditEvent {
  const { record, decision, provider, definition, approval, clear = [] } = intent;
  const event = auditEvent("dispatch", callNames(record.key, record.tool), trace(decision), {
    uid: record.uid,
    provider,
    definition,
    approval,
    memory: record.durable ? undefined : true,
    args_hmac: keyed(record.arguments),
    args_bytes: Buffer.byteLength(record.arguments),
  });
  if (clear.length === 0) return event;
  return { members: `${event.members},"args":{${ascii(shownArguments(record, clear, keyed))}}` };
}

/** What a decision rested on. */
function trace({ verdict, row, grant, condition, denied, taint }: DecisionRecord) {
  return { decision: verdict, row, grant, condition, denied, taint: labelNames(taint) };
}

/** As JSON in the caller's own numbers; the members that `names` lists and the call has. */
function shownArguments(record: CallRecord, names: readonly string[], keyed: KeyedDigest): string {
  const args = parseJsonObject(record.arguments, ARGUMENTS_LIMITS);
  if (!args.ok) return "";
  const shown: string[] = [];
  for (const name of names.slice(0, ARGUMENTS_SHOWN_MAX)) {
    const value = args.value.get(name);
    if (value === undefined) continue;
    const text = jsonTextInOrder(value);
    const short =
      text.length <= ARGUMENT_CHARS_MAX
        ? text
        : JSON.stringify({ hmac: keyed(text), bytes: Buffer.byteLength(text) });
    shown.push(`${JSON.stringify(name)}:${short}`);
  }
  return shown.join(",");
}

function part(record: CallRecord, message: Buffer, keyed: KeyedDigest): AuditEvent {
  return auditEvent("part", callNames(record.key, record.tool), labelNames(record.labels), {
    message_hmac: keyed(message),
    message_bytes: message.length,
  });
}

/** `labels` are those of all the call's messages together. */
function outcome(change: Outcome, keyed: KeyedDigest): AuditEvent {
  const { record, message, status, code, to = [], settledBy } = change;
  const kind = settledBy === undefined ? "outcome" : "settled";
  return auditEvent(kind, callNames(record.key, record.tool), labelNames(record.labels), {
    status,
    code,
    message_hmac: keyed(message),
    message_bytes: message.length,
    to: to.slice(0, ACTORS_SHOWN_MAX).map(actorNames),
    to_count: to.length > ACTORS_SHOWN_MAX ? to.length : undefined,
    by: settledBy && actorNames(settledBy),
  });
}

function spoken(record: AuditRecord): AuditEvent {
  switch (record.kind) {
    case "decision":
      return auditEvent("decision", decided(record.decision), trace(record.decision));
    case "failed":
      return auditEvent("failed", callNames(record.key, record.tool), {
        code: record.code,
        count: record.count,
      });
    case "repeated":
      return auditEvent("repeated", decided(record.decision), trace(record.decision), {
        count: record.count,
      });
    case "delivery":
      return auditEvent("delivery", callNames(record.key, undefined), {
        how: record.how,
        to: [actorNames(record.to)],
      });
    case "peer_refused": {
      const { role, uid, pid, why, count } = record;
      return auditEvent("peer_refused", { role, uid, pid, why, count });
    }
    case "change":
      return auditEvent("change", {
        what: record.what,
        subject: record.subject,
        by: actorNames(record.by),
      });
  }
}

function decided({ key, tool }: DecisionRecord) {
  return callNames(key, tool);
}
