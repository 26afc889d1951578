// Stage 3 and, just before dispatch, stage 7: the decision on a call by the policy in force, the
// session's taint and the time, and the record of why.

import type { DenyReason } from "../base/faults.ts";
import { TOOL_NAME_CHARS_MAX } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import type { Labels } from "../base/labels.ts";
import { type Decision, decide, type Subject } from "../policy/decision.ts";
import { isExact } from "../policy/equal.ts";
import type { RolePolicy } from "../policy/policy.ts";
import type { Session, SessionRefusal } from "../session/sessions.ts";
import type { CallKey, DecisionRecord } from "../store/records.ts";
import { type Admitted, equalDigest } from "./admit.ts";
import type { Core, Runtime } from "./core.ts";
import type { Used } from "./runtime_grants.ts";

/** A call that is decided: from its request, or from what was stored of it. */
export interface Decided {
  readonly role: string;
  readonly session: string;
  /** The words that its session was opened with. */
  readonly request: string | undefined;
  readonly taint: Labels;
  readonly tool: string;
  readonly args: JsonObject;
  readonly nowMs: number;
}

/** No digest: arguments that can't be told from others are not what a grant of exact arguments is for. */
const EQUAL_TO_NOTHING = "";

/** The call as the policy sees it. What equal calls share is computed where a grant asks for it, and once. */
export function subjectFor(
  core: Core,
  call: Decided,
  equal: () => string = equalDigest(core, call.tool, call.args),
): Subject {
  const { role, session, request, taint, tool, args, nowMs } = call;
  return {
    role,
    session,
    request,
    taint,
    tool,
    args,
    nowMs, // written out: to spread it costs ten times as much
    target: core.builtins.get(call.tool)?.target(call.args, call.role),
    equal: () => (isExact(call.args) ? equal() : EQUAL_TO_NOTHING),
    isSpent: (grant, nowMs) => core.grants.isSpent(grant, nowMs),
  };
}

export function subjectOf(core: Core, role: RolePolicy, session: Session, admitted: Admitted): Subject {
  const { request, args, nowMs, equal } = admitted;
  const call: Decided = {
    role: role.name,
    session: session.id,
    request: session.request,
    taint: core.sessions.taint(session),
    tool: request.tool,
    args,
    nowMs,
  };
  return subjectFor(core, call, equal);
}

/** What the first decision rested on; where nothing of it has changed, it still stands. */
export interface Authorized {
  readonly decision: Extract<Decision, { kind: "allow" | "ask" }>;
  readonly subject: Subject;
  readonly runtime: Runtime;
  /** How far uses were counted by then (`RuntimeGrants.usesVersion`). */
  readonly usesVersion: number;
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
  const { runtime, grants } = core;
  return { kind: "authorized", authorized: { decision, subject, runtime, usesVersion: grants.usesVersion } };
}

/** The whole decision once more, unless policy, time, taint and uses are those it was taken with. */
export function authorizeAgain(core: Core, session: Session, before: Authorized): Authorization {
  const nowMs = core.clock.nowMs();
  const taint = core.sessions.taint(session);
  const { subject, runtime, usesVersion } = before;
  const same = nowMs === subject.nowMs && taint === subject.taint && core.runtime === runtime;
  if (same && core.grants.usesVersion === usesVersion) return { kind: "authorized", authorized: before };
  return authorize(core, { ...subject, nowMs, taint });
}

/**
 * Once more for a call whose own uses are counted already (its intent was being written): a use of its own
 * does not make a grant used up for it.
 */
export function authorizeCounted(
  core: Core,
  session: Session,
  { subject }: Authorized,
  used: Used,
): Authorization {
  const taint = core.sessions.taint(session);
  return authorize(core, { ...subject, taint, nowMs: core.clock.nowMs(), isSpent: used.isSpent });
}

/** What is stored of a call that waits for its approval. */
export interface StoredCall {
  readonly session: Session;
  readonly tool: string;
  /** Parsed from the very bytes that would run. */
  readonly args: JsonObject;
}

/**
 * The whole decision on a stored call, by policy, taint, uses and time as they are now. `ask` means that the
 * question stands, and `asks` whose it is; that somebody has answered it is not looked at here.
 */
export function redecide(core: Core, { session, tool, args }: StoredCall, nowMs: number): Authorization {
  const { role, id, request } = session;
  const taint = core.sessions.taint(session);
  return authorize(core, subjectFor(core, { role, session: id, request, taint, tool, args, nowMs }));
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
    condition: decision.condition,
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
