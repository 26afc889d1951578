// Stage 3 and, just before dispatch, stage 7: the decision on a call by the policy in force, the
// session's taint and the time, and the record of why.

import type { DenyReason } from "../base/faults.ts";
import { TOOL_NAME_CHARS_MAX } from "../base/ids.ts";
import { type Decision, decide, type Subject } from "../policy/decision.ts";
import type { RolePolicy } from "../policy/policy.ts";
import type { Session, SessionRefusal } from "../session/sessions.ts";
import type { CallKey, DecisionRecord } from "../store/records.ts";
import type { Admitted } from "./admit.ts";
import type { Core, Runtime } from "./core.ts";

export function subjectOf(core: Core, role: RolePolicy, session: Session, admitted: Admitted): Subject {
  const { request, args } = admitted;
  return {
    role: role.name,
    tool: request.tool,
    session: session.id,
    args,
    target: core.builtins.get(request.tool)?.target(args, role.name),
    request: session.request,
    taint: core.sessions.taint(session),
    nowMs: admitted.nowMs,
  };
}

/** What the first decision rested on; where nothing of it has changed, it still stands. */
export interface Authorized {
  readonly decision: Extract<Decision, { kind: "allow" | "ask" }>;
  readonly subject: Subject;
  readonly runtime: Runtime;
}

export type Authorization =
  | { readonly kind: "authorized"; readonly authorized: Authorized }
  | {
      readonly kind: "denied";
      readonly decision: Extract<Decision, { kind: "deny" }>;
      readonly subject: Subject;
    };

export function authorize(core: Core, subject: Subject): Authorization {
  const decision = decide(core.runtime.index, subject);
  if (decision.kind === "deny") return { kind: "denied", decision, subject };
  return {
    kind: "authorized",
    authorized: { decision, subject, runtime: core.runtime },
  };
}

/** The whole decision once more, unless policy, time and taint are those it was taken with. */
export function authorizeAgain(core: Core, session: Session, before: Authorized): Authorization {
  const nowMs = core.clock.nowMs();
  const taint = core.sessions.taint(session);
  const { subject } = before;
  if (nowMs === subject.nowMs && taint === subject.taint && core.runtime === before.runtime) {
    return { kind: "authorized", authorized: before };
  }
  return authorize(core, { ...subject, nowMs, taint });
}

export function decisionRecord(key: CallKey, subject: Subject, decision: Decision): DecisionRecord {
  return {
    key,
    tool: recordedTool(subject.tool),
    atMs: subject.nowMs,
    verdict: decision.kind,
    row: decision.row,
    grant: decision.grant?.id,
    denied: decision.kind === "deny" ? decision.reason : undefined,
    reason: decision.grant?.reason,
    taint: subject.taint,
  };
}

/** What is kept of the name that was asked for: one too long to be a tool's would cost what its caller likes. */
export function recordedTool(name: string): string {
  return name.length <= TOOL_NAME_CHARS_MAX ? name : "(unknown)";
}

const REFUSALS: Readonly<Record<Exclude<SessionRefusal, "too_many">, { reason: DenyReason; why: string }>> = {
  not_opened: { reason: "no_grant", why: "nobody has opened this session for the role" },
  ended: { reason: "grant_expired", why: "the session has ended" },
  frozen: { reason: "denied_by_grant", why: "an operator has frozen the role or the session" },
};

/** A session that can't be used is a denial, recorded like any other. */
export function sessionDenial(refusal: Exclude<SessionRefusal, "too_many">) {
  return REFUSALS[refusal];
}
