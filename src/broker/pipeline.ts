// The whole order of a call, on one screen (spec: broker, Calls). Every stage answers for itself or
// hands on a value that the next one asks for, so that skipping one does not compile.

import type { CallFault, DenyReason } from "../base/faults.ts";
import type { RolePolicy } from "../policy/policy.ts";
import type { Session } from "../session/sessions.ts";
import type { DecisionRecord } from "../store/records.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { ToolRequest } from "../wire/message.ts";
import { type Admitted, capacityFault, equalDigest, parse, protocolBreak, take } from "./admit.ts";
import { deniedMessage, failedMessage, NOTHING_RAN } from "./answer.ts";
import { answer } from "./asking.ts";
import {
  type Authorization,
  type Authorized,
  authorize,
  authorizeAgain,
  decisionRecord,
  recordedTool,
  sessionDenial,
  subjectOf,
} from "./authorize.ts";
import { runBuiltin } from "./builtin/run.ts";
import { type Core, roleOf } from "./core.ts";
import { joinCall, replayCall } from "./deliver.ts";
import { checkArguments, locate, onProvider, place, recordIntent } from "./dispatch.ts";
import type { Asker, Peer } from "./live.ts";
import { ask, type Routed, whyAsked } from "./questions.ts";
import { recall } from "./recall.ts";
import { write } from "./writing.ts";

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
  if (core.draining === "left") return;

  // 1. limits and strict parsing
  const taken = take(core, peer, id, request);
  if (!taken.ok) return refuseUnheld(core, peer, id, request, taken.fault);
  const { asker, nowMs } = taken.value;
  const args = parse(request);
  if (!args.ok) return refuse(core, asker, request, args.fault);
  const equal = equalDigest(core, request.tool, args.value);
  const admitted: Admitted = { asker, request, args: args.value, equal, nowMs };
  const session = useSession(core, role, admitted);
  if (session === undefined) return;

  // 2. replay look-up (what the broker itself reads is asked afresh each time)
  const builtin = core.builtins.get(request.tool);
  if (builtin?.effect !== "read") {
    const recalled = recall(core, role, session, admitted);
    if (recalled.kind === "join") return joinCall(core, recalled.live, recalled.record.key, asker);
    if (recalled.kind === "replay") return replayCall(core, session, recalled.record, asker);
    if (recalled.kind === "denied") return deny(core, admitted, recalled.reason, "replay", undefined);
    if (recalled.kind === "failed") return refuse(core, asker, request, recalled.fault);
  }

  // 3. the decision's denials
  const first = authorize(core, subjectOf(core, role, session, admitted));
  if (first.kind === "denied") return denyDecided(core, admitted, first);
  if (builtin !== undefined)
    return runBuiltin(core, builtin, { admitted, role, session, authorized: first.authorized });

  // 4. argument schema
  const located = locate(core, request.tool);
  if (!located.ok) return refuse(core, asker, request, located.fault);
  const mismatch = checkArguments(located.value.tool.schema, admitted.args);
  if (mismatch !== undefined) return refuse(core, asker, request, mismatch);

  // 5. provider present
  const placed = place(core, located.value);
  if (!placed.ok) return refuse(core, asker, request, placed.fault);

  if (core.store.condition !== "ok") return refuse(core, asker, request, UNWRITABLE);

  // 6. the question to a human
  const routed: Routed = { admitted, role, session, located: located.value };
  if (isAsked(core, routed, first.authorized)) return;

  // 7. the whole decision once more
  const second = authorizeAgain(core, session, first.authorized);
  if (second.kind === "denied") return denyDecided(core, admitted, second);
  if (isAsked(core, routed, second.authorized)) return;

  // 8. intent, then dispatch
  const runner = onProvider(core, located.value, request.arguments);
  recordIntent(core, admitted, session, located.value.tool, second.authorized, runner);
}

const UNWRITABLE: CallFault = {
  code: "unavailable",
  sentence: `The broker can't write its records now. ${NOTHING_RAN}`,
};

/** Whether a human has to be asked; then the call waits, or is answered with why nobody is asked. */
function isAsked(core: Core, routed: Routed, authorized: Authorized): boolean {
  const { admitted, role, located } = routed;
  const asking = whyAsked(core, located.tool, role.name, authorized.decision, admitted.equal);
  if (asking === undefined) return false;
  const unasked = ask(core, routed, asking, authorized);
  if (unasked?.kind !== "denied") core.metrics.decided("ask", asking.row);
  if (unasked?.kind === "denied") deny(core, admitted, unasked.reason, unasked.row, unasked.why);
  if (unasked?.kind === "failed") refuse(core, admitted.asker, admitted.request, unasked.fault);
  return true;
}

/** The call's session, or its denial: a session that can't be used is answered as the decision would. */
function useSession(core: Core, role: RolePolicy, admitted: Admitted): Session | undefined {
  const { asker, request, nowMs } = admitted;
  const { peer } = asker;
  if (role.isolated && peer.boundSession !== undefined && peer.boundSession !== request.session) {
    // Kept under its own session: it must not write over what is known of another's calls.
    const why = "this connection is bound to another session";
    deny(core, admitted, "no_grant", "isolated", why, peer.boundSession);
    return undefined;
  }
  const used = core.sessions.use(role, request.session, nowMs, core.replayForMs);
  if (used === "too_many") {
    refuse(core, asker, request, capacityFault("sessions"));
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
  const { request, asker } = admitted;
  const key = { role: asker.peer.connection.role, session: request.session, call: request.call };
  writeDenial(core, admitted, denied.decision.reason, decisionRecord(key, denied.subject, denied.decision));
}

function deny(
  core: Core,
  admitted: Admitted,
  reason: DenyReason,
  row: string,
  why: string | undefined,
  session = admitted.request.session,
): void {
  const { request, asker, nowMs } = admitted;
  const { role } = asker.peer.connection;
  const key = { role, session, call: request.call };
  const taint = core.sessions.roleTaint(role);
  writeDenial(core, admitted, reason, {
    key,
    tool: recordedTool(request.tool),
    atMs: nowMs,
    verdict: "deny",
    row,
    grant: undefined,
    denied: reason,
    reason: why,
    taint,
    condition: "none",
  });
}

function writeDenial(core: Core, admitted: Admitted, reason: DenyReason, decision: DecisionRecord): void {
  const { asker, request } = admitted;
  const { row, grant } = decision;
  core.metrics.decided("deny", reason);
  core.metrics.ended(request.tool, "denied");
  core.log("warn", "call.denied", { ...named(core, asker.peer, request), reason, row, grant });
  const changes = core.audit.denied(decision, isKnown(core, request.tool));
  if (changes.length === 0) return answer(core, asker, deniedMessage(reason)); // counted: it repeats
  // A denial that can't be written down is still a denial.
  if (core.store.condition === "stalled") {
    write(core, asker, changes, () => undefined);
    return answer(core, asker, deniedMessage(reason));
  }
  write(core, asker, changes, () => answer(core, asker, deniedMessage(reason)));
}

/** Ends a request before anything ran. Not recorded for replay: asked again it is decided afresh. */
function refuse(core: Core, asker: Asker, request: ToolRequest<JsonString>, fault: CallFault): void {
  const { code, sentence } = fault;
  const why = code === "capacity" ? sentence : undefined;
  core.log("warn", "call.refused", { ...named(core, asker.peer, request), code, why });
  core.metrics.ended(request.tool, code);
  auditFailed(core, asker.peer, request, fault);
  answer(core, asker, failedMessage(fault));
}

/** The same for a request that its role's limits have no room for. */
function refuseUnheld(
  core: Core,
  peer: Peer,
  id: bigint,
  request: ToolRequest<JsonString>,
  fault: CallFault,
): void {
  const { code, sentence: why } = fault;
  core.log("warn", "call.turned_away", { ...named(core, peer, request), code, why });
  core.metrics.ended(request.tool, code);
  auditFailed(core, peer, request, fault);
  peer.connection.send(id, true, failedMessage(fault));
}

function auditFailed(
  core: Core,
  { connection }: Peer,
  { session, call, tool }: ToolRequest<JsonString>,
  { code }: CallFault,
): void {
  core.audit.failed({ role: connection.role, session, call }, isKnown(core, tool) ? tool : "(unknown)", code);
}

function isKnown(core: Core, tool: string): boolean {
  return core.builtins.has(tool) || core.runtime.policy.tools.has(tool);
}

/** A peer's name for a tool goes to the log only where the tool exists. */
function named(core: Core, peer: Peer, request: ToolRequest<JsonString>) {
  return {
    role: peer.connection.role,
    session: request.session,
    call: String(request.call),
    tool: isKnown(core, request.tool) ? request.tool : "(unknown)",
  };
}
