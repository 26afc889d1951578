// The audit records of what changes beside calls: taint, sessions, definitions, questions, grants.
// Invariant: no argument is in any of them; an item of a store is named by an argument, so it is a digest.

import {
  type AuditEvent,
  actorNames,
  auditEvent,
  callNames,
  type KeyedDigest,
  labelNames,
  otherCall,
  words,
} from "./audit_event.ts";
import type { ApprovalRecord, Change, SessionRecord, StoredGrant, TaintScope } from "./records.ts";

/** Patterns and grants named in one record. */
const NAMES_SHOWN_MAX = 32;

export type StateChange = Exclude<
  Change,
  { kind: "intent" | "withdrawn" | "message" | "outcome" | "audit" | "grant_used" | "approval_forgotten" }
>;

export function stateEvent(change: StateChange, keyed: KeyedDigest): AuditEvent {
  switch (change.kind) {
    case "taint":
      return auditEvent("taint", scopeNames(change.scope, keyed), labelNames(change.labels), {
        raised_by: otherCall(change.by),
      });
    case "endorsed":
      return auditEvent("endorsed", scopeNames(change.scope, keyed), labelNames(change.labels), {
        before: labelNames(change.before),
        reason: words(change.reason),
        by: actorNames(change.by),
      });
    case "session_opened":
      return auditEvent("session_opened", opened(change.session, keyed), { by: actorNames(change.by) });
    case "session_closed":
      return auditEvent("session_closed", {
        role: change.role,
        session: change.id,
        by: actorNames(change.by),
      });
    case "frozen": {
      const { role, session, frozen } = change;
      return auditEvent("frozen", { role, session, frozen, by: actorNames(change.by) });
    }
    case "pinned": {
      const { tool, role, digest, acceptedBy } = change.pin;
      const by = actorNames(change.by);
      return auditEvent("pinned", { role, tool, definition: digest, accepted_by: acceptedBy, by });
    }
    case "approval":
      return approval(change.approval, keyed);
    case "grant_added":
      return grantAdded(change.grant, keyed);
    case "grant_gone":
      return auditEvent("grant_gone", { grant: change.id, why: change.why, by: actorNames(change.by) });
  }
}

function scopeNames(scope: TaintScope, keyed: KeyedDigest) {
  switch (scope.of) {
    case "role":
      return { of: scope.of, role: scope.role };
    case "session":
      return { of: scope.of, role: scope.role, session: scope.session };
    case "store":
      return {
        of: scope.of,
        store: scope.store,
        item_hmac: scope.key === undefined ? undefined : keyed(scope.key),
      };
  }
}

/** The user's words are as good as content. */
function opened(
  { role, id, request, requestLabels, openedBy, expiresAtMs }: SessionRecord,
  keyed: KeyedDigest,
) {
  return {
    role,
    session: id,
    request_hmac: request === undefined ? undefined : keyed(request),
    request_bytes: request === undefined ? undefined : Buffer.byteLength(request),
    request_labels: requestLabels && labelNames(requestLabels),
    opened_by: openedBy,
    expires_at_ms: expiresAtMs,
  };
}

function approval(asked: ApprovalRecord, keyed: KeyedDigest): AuditEvent {
  const { key, tool, state, decidedBy } = asked;
  const isAsked = state === "pending";
  const question = isAsked ? questionNames(asked, keyed) : {};
  return auditEvent("approval", callNames(key, tool), question, {
    approval: asked.id,
    state: isAsked ? "asked" : state,
    by: decidedBy && actorNames(decidedBy),
    decided_at_ms: asked.decidedAtMs,
    refused_until_ms: asked.refusedUntilMs,
  });
}

/** Told once, when it is asked: none of it changes afterwards. */
function questionNames(asked: ApprovalRecord, keyed: KeyedDigest) {
  return {
    decision: "ask",
    row: asked.row,
    grants: asked.grants.slice(0, NAMES_SHOWN_MAX),
    policy: asked.policy,
    uid: asked.uid,
    pid: asked.pid,
    taint: labelNames(asked.taint),
    raised_by: otherCall(asked.raisedBy),
    doubt: otherCall(asked.doubt),
    definition: asked.definition,
    args_hmac: keyed(asked.arguments),
    args_bytes: Buffer.byteLength(asked.arguments),
    expires_at_ms: asked.expiresAtMs,
  };
}

/** `equal` is a plain digest of arguments that somebody could guess at, so it is keyed once more. */
function grantAdded(grant: StoredGrant, keyed: KeyedDigest): AuditEvent {
  return auditEvent("grant_added", {
    role: grant.role,
    grant: grant.id,
    effect: grant.effect,
    tools: grant.tools.slice(0, NAMES_SHOWN_MAX),
    sessions: grant.sessions.slice(0, NAMES_SHOWN_MAX),
    when: words(grant.when),
    taint_max: grant.taintMax && labelNames(grant.taintMax),
    above_taint: grant.aboveTaint,
    max_calls: grant.maxCalls && { calls: grant.maxCalls.calls, per_ms: grant.maxCalls.perMs },
    remembers: grant.remembers,
    equal_hmac: grant.equal === undefined ? undefined : keyed(grant.equal),
    approval: grant.approval,
    expires_at_ms: grant.expiresAtMs,
    reason: words(grant.reason),
    by: actorNames(grant.by),
  });
}
