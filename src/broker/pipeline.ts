// The whole order of a call, on one screen (spec: broker, Calls). Every stage answers for itself or
// hands on a value that the next one asks for, so that skipping one does not compile.

import type { CallFault, DenyReason } from "../base/faults.ts";
import type { RolePolicy } from "../policy/policy.ts";
import type { Session } from "../session/sessions.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { ToolRequest } from "../wire/message.ts";
import { type Admitted, admit, capacityFault, protocolBreak } from "./admit.ts";
import { deniedMessage, failedMessage } from "./answer.ts";
import {
  type Authorization,
  authorize,
  authorizeAgain,
  type DecisionAudit,
  decisionRecord,
  sessionDenial,
  subjectOf,
} from "./authorize.ts";
import { runBuiltin } from "./builtin/run.ts";
import { type Core, roleOf } from "./core.ts";
import { joinCall, replayCall, sendTo } from "./deliver.ts";
import { checkArguments, locate, onProvider, place, question, recordIntent } from "./dispatch.ts";
import type { Peer } from "./peers.ts";
import { recall } from "./recall.ts";

export function takeRequest(
  core: Core,
  peer: Peer,
  id: bigint,
  final: boolean,
  request: ToolRequest<JsonString>,
): void {
  const broken = protocolBreak(peer, id, final);
  if (broken !== undefined) return peer.connection.fail("bad_message", broken);
  const role = roleOf(core, peer.connection);
  if (role === undefined) return peer.connection.close();

  // 1. limits and strict parsing
  const admitted = admit(core, peer, id, request);
  if (!admitted.ok) return refuse(core, peer, id, request, admitted.fault);
  const session = useSession(core, role, admitted.value);
  if (session === undefined) return;

  // 2. replay look-up (what the broker itself reads is asked afresh each time)
  const builtin = core.builtins.get(request.tool);
  if (builtin?.effect !== "read") {
    const recalled = recall(core, role, session, admitted.value);
    if (recalled.kind === "join") return joinCall(core, recalled.live, { peer, id });
    if (recalled.kind === "replay") return replayCall(core, session, recalled.record, { peer, id });
    if (recalled.kind === "denied") return deny(core, admitted.value, recalled.reason, "replay", undefined);
    if (recalled.kind === "failed") return refuse(core, peer, id, request, recalled.fault);
  }

  // 3. the decision's denials
  const first = authorize(core, subjectOf(core, role, session, admitted.value));
  if (first.kind === "denied") return denyDecided(core, admitted.value, first);
  if (builtin !== undefined)
    return runBuiltin(core, builtin, {
      admitted: admitted.value,
      role,
      session,
      authorized: first.authorized,
    });

  // 4. argument schema
  const located = locate(core, request.tool);
  if (!located.ok) return refuse(core, peer, id, request, located.fault);
  const mismatch = checkArguments(located.value.tool.schema, admitted.value.args);
  if (mismatch !== undefined) return refuse(core, peer, id, request, mismatch);

  // 5. provider present
  const placed = place(core, located.value);
  if (!placed.ok) return refuse(core, peer, id, request, placed.fault);

  // 6. the question to a human
  const unanswered = question(first.authorized);
  if (unanswered !== undefined) return refuse(core, peer, id, request, unanswered);

  // 7. the whole decision once more
  const second = authorizeAgain(core, session, first.authorized);
  if (second.kind === "denied") return denyDecided(core, admitted.value, second);
  const asked = question(second.authorized);
  if (asked !== undefined) return refuse(core, peer, id, request, asked);

  // 8. intent, then dispatch
  const { subject, decision } = second.authorized;
  const key = { role: role.name, session: session.id, call: request.call };
  const run = onProvider(core, request.arguments);
  recordIntent(
    core,
    admitted.value,
    session,
    located.value.tool,
    decisionRecord(key, subject, decision),
    run,
  );
}

/** The call's session, or its denial: a session that can't be used is answered as the decision would. */
function useSession(core: Core, role: RolePolicy, admitted: Admitted): Session | undefined {
  const { peer, request, nowMs } = admitted;
  if (role.isolated && peer.boundSession !== undefined && peer.boundSession !== request.session) {
    deny(core, admitted, "no_grant", "isolated", "this connection is bound to another session");
    return undefined;
  }
  const used = core.sessions.use(role, request.session, nowMs, core.replayForMs);
  if (used === "too_many") {
    refuse(core, peer, admitted.id, request, capacityFault("sessions"));
    return undefined;
  }
  if (typeof used === "string") {
    const { reason, why } = sessionDenial(used);
    deny(core, admitted, reason, `session_${used}`, why);
    return undefined;
  }
  if (role.isolated) peer.boundSession = request.session;
  return used;
}

function denyDecided(
  core: Core,
  admitted: Admitted,
  denied: Extract<Authorization, { kind: "denied" }>,
): void {
  const { request, peer } = admitted;
  const key = { role: peer.connection.role, session: request.session, call: request.call };
  writeDenial(core, admitted, denied.decision.reason, decisionRecord(key, denied.subject, denied.decision));
}

function deny(
  core: Core,
  admitted: Admitted,
  reason: DenyReason,
  row: string,
  why: string | undefined,
): void {
  const { request, peer, nowMs } = admitted;
  const { role } = peer.connection;
  const key = { role, session: request.session, call: request.call };
  const taint = core.sessions.roleTaint(role);
  writeDenial(core, admitted, reason, {
    kind: "decision",
    decision: {
      key,
      tool: request.tool,
      atMs: nowMs,
      verdict: "deny",
      row,
      grant: undefined,
      denied: reason,
      reason: why,
      taint,
    },
  });
}

function writeDenial(core: Core, admitted: Admitted, reason: DenyReason, record: DecisionAudit): void {
  const { peer, id, request } = admitted;
  const { row, grant } = record.decision;
  core.log("warn", "call.denied", { ...named(core, peer, request), reason, row, grant });
  // A denial that can't be written down is still a denial.
  core.store.commit([{ kind: "audit", record }], () => sendTo({ peer, id }, true, deniedMessage(reason)));
}

/** Ends a request before anything ran. Not recorded for replay: asked again it is decided afresh. */
function refuse(
  core: Core,
  peer: Peer,
  id: bigint,
  request: ToolRequest<JsonString>,
  fault: CallFault,
): void {
  core.log("warn", "call.refused", { ...named(core, peer, request), code: fault.code });
  sendTo({ peer, id }, true, failedMessage(fault));
}

/** A peer's name for a tool goes to the log only where the tool exists. */
function named(core: Core, peer: Peer, request: ToolRequest<JsonString>) {
  const known = core.builtins.has(request.tool) || core.runtime.policy.tools.has(request.tool);
  return {
    role: peer.connection.role,
    session: request.session,
    call: String(request.call),
    tool: known ? request.tool : "(unknown)",
  };
}
