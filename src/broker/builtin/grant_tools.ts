// `callgate.grants.list|explain`: what a role was given, what would be decided, and (reach_tool.ts) what all of it comes to.

import { fault } from "../../base/faults.ts";
import { parseJsonObject } from "../../base/json.ts";
import { DATA_CLASSES, type DataClass, join, type Labels } from "../../base/labels.ts";
import { ARGUMENTS_LIMITS } from "../../base/limits.ts";
import { explain, type TraceStep } from "../../policy/decision.ts";
import { grantsOfRole } from "../../policy/grant_index.ts";
import type { Grant } from "../../policy/policy.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import { subjectFor } from "../authorize.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import type { GrantOrigin } from "../runtime_grants.ts";
import { flag, objectSchema, ROLE, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { GRANT_CHANGE_TOOLS } from "./grant_changes.ts";
import { grantWordsLabels } from "./grant_words.ts";
import { explainPolicy } from "./reach_tool.ts";
import { namedRole, namedSessionId, sessionLabels } from "./visibility.ts";

function list(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const ofOne = text(call.args, "role") !== undefined || !call.role.operator;
  const { policy, index } = core.runtime;
  const grants = ofOne ? grantsOfRole(index, named.value.name) : [...policy.grants, ...core.grants.all()];
  const nowMs = core.clock.nowMs();
  return shown(
    { policy: policy.version, grants: grants.map((grant) => shownGrant(core, grant, nowMs)) },
    labelsOf(core, grants),
  );
}

function shownGrant(core: Core, grant: Grant, nowMs: number) {
  return {
    id: grant.id,
    role: grant.role,
    effect: grant.effect,
    tools: grant.tools,
    sessions: grant.sessions.length === 0 ? ["*"] : grant.sessions,
    when: grant.when?.source ?? null,
    taint_max: grant.taintMax?.class ?? null,
    taint_untrusted: grant.taintMax?.untrusted ?? null,
    above_taint: grant.effect === "deny" ? null : grant.aboveTaint,
    expires_at_ms: grant.expiresAtMs ?? null,
    expired: grant.expiresAtMs !== undefined && nowMs >= grant.expiresAtMs,
    max_calls: shownUses(core, grant, nowMs),
    ...shownQuestions(grant),
    remembers: grant.remembers ?? null,
    exact_arguments: grant.equal !== undefined,
    reason: grant.reason ?? null,
    ...shownOrigin(core.grants.find(grant.id)?.origin),
  };
}

function shownUses(core: Core, grant: Grant, nowMs: number) {
  if (grant.maxCalls === undefined) return null;
  const { calls, perMs } = grant.maxCalls;
  const uses = core.grants.uses(grant, nowMs);
  return { calls, per_ms: perMs ?? null, used: uses?.used ?? 0, since_ms: uses?.sinceMs ?? null };
}

/** Of a grant that never asks these would mean nothing. */
function shownQuestions(grant: Grant) {
  const asks = grant.effect === "ask" || (grant.effect === "allow" && grant.aboveTaint === "ask");
  return {
    approval_ttl_ms: asks ? grant.approvalTtlMs : null,
    remember: grant.effect === "ask" ? grant.remember : null,
    refuse_for_ms: asks ? grant.refuseForMs : null,
  };
}

function shownOrigin(origin: GrantOrigin | undefined) {
  return {
    runtime: origin !== undefined,
    by: origin === undefined ? null : { role: origin.by.role, uid: origin.by.uid ?? null },
    added_at_ms: origin?.addedAtMs ?? null,
    approval: origin?.approval ?? null,
  };
}

function explainAny(core: Core, call: BuiltinCall): BuiltinOutcome | Promise<BuiltinOutcome> {
  const tool = text(call.args, "tool");
  return tool === undefined ? explainPolicy(core, call) : explainCall(core, call, tool);
}

function explainCall(core: Core, call: BuiltinCall, tool: string): BuiltinOutcome {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const role = named.value.name;
  const ofSession = namedSessionId(call);
  if (!ofSession.ok) return ofSession;
  const session = ofSession.value;
  const parsed = parseJsonObject(text(call.args, "arguments") ?? "{}", ARGUMENTS_LIMITS);
  if (!parsed.ok) {
    return fault(
      callFault("bad_arguments", `\`arguments\` must be the text of one JSON object. ${NOTHING_RAN}`),
    );
  }
  const taint = assumedTaint(core, call, role, session);
  const request = core.sessions.find(role, session)?.request;
  const nowMs = core.clock.nowMs();
  const asked = { role, session, request, taint, tool, args: parsed.value, nowMs };
  const { decision, trace } = explain(core.runtime.index, subjectFor(core, asked));
  const content = {
    role,
    session,
    taint,
    verdict: decision.kind,
    row: decision.row,
    reason: decision.kind === "deny" ? decision.reason : null,
    grant: decision.grant?.id ?? null,
    owner_says: decision.grant?.reason ?? null,
    remembered: decision.kind === "deny" ? [] : decision.remembered.map(({ id }) => id),
    grants: trace.map((step) => shownStep(core, step)),
  };
  const ofGrants = labelsOf(core, grantsOfRole(core.runtime.index, role));
  return shown(content, join(sessionLabels(core, role, session), ofGrants));
}

/** The session's taint, with what the caller asks to be assumed in its place. */
function assumedTaint(core: Core, call: BuiltinCall, role: string, session: string): Labels {
  const found = core.sessions.find(role, session);
  const now = found === undefined ? core.sessions.roleTaint(role) : core.sessions.taint(found);
  const dataClass = DATA_CLASSES.find((one) => one === text(call.args, "taint_class")) ?? now.class;
  return {
    class: dataClass satisfies DataClass,
    untrusted: flag(call.args, "taint_untrusted") ?? now.untrusted,
  };
}

function shownStep(core: Core, step: TraceStep) {
  const { condition } = step;
  return {
    grant: step.grant,
    effect: step.effect,
    runtime: core.grants.find(step.grant) !== undefined,
    matches: step.failed === undefined,
    failed: step.failed ?? null,
    condition: condition === undefined ? null : condition.kind,
    condition_error: condition?.kind === "error" ? condition.why : null,
    expired: step.expired,
    spent: step.spent,
    within_taint: step.withinTaint ?? null,
    satisfied_by: step.satisfiedBy ?? null,
  };
}

function labelsOf(core: Core, grants: readonly Grant[]): Labels {
  return grantWordsLabels(
    core,
    grants.map(({ id }) => id),
  );
}

export const GRANT_TOOLS: readonly BuiltinSource[] = [
  {
    name: "callgate.grants.list",
    description: "The grants of a role: the config's, and those that were added or remembered at run time.",
    effect: "read",
    schema: objectSchema({ role: ROLE }),
    run: list,
  },
  {
    name: "callgate.grants.explain",
    description:
      "What would be decided about a call, and how each grant of the role stands to it. Without a tool: which tools the " +
      "role (an operator's: every role) reaches at which taint, and which ways lead from untrusted content to an " +
      "effect without a person. Runs nothing.",
    effect: "read",
    schema: objectSchema({
      role: ROLE,
      session: SESSION,
      tool: { type: "string", description: "The tool's name; left out: the policy as a whole." },
      arguments: { type: "string", description: "The text of the arguments' JSON object." },
      taint_class: {
        type: "string",
        enum: DATA_CLASSES,
        description: "As if the session's class were this.",
      },
      taint_untrusted: {
        type: "boolean",
        description: "As if the session had, or had not, read something untrusted.",
      },
    }),
    run: explainAny,
  },
  ...GRANT_CHANGE_TOOLS,
];
