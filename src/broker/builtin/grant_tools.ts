// `callgate.grants.list|explain`: what a role was given, and what would be decided.

import { fault } from "../../base/faults.ts";
import { parseJsonObject } from "../../base/json.ts";
import { DATA_CLASSES, type DataClass, type Labels } from "../../base/labels.ts";
import { ARGUMENTS_LIMITS } from "../../base/limits.ts";
import { explain, type TraceStep } from "../../policy/decision.ts";
import { grantsOfRole } from "../../policy/grant_index.ts";
import type { Grant } from "../../policy/policy.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { flag, objectSchema, ROLE, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { namedRole, namedSessionId, sessionLabels } from "./visibility.ts";

function list(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const ofOne = text(call.args, "role") !== undefined || !call.role.operator;
  const grants = ofOne ? grantsOfRole(core.runtime.index, named.value.name) : core.runtime.policy.grants;
  return shown({
    policy: core.runtime.policy.version,
    grants: grants.map((grant) => shownGrant(grant, core.clock.nowMs())),
  });
}

function shownGrant(grant: Grant, nowMs: number) {
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
    reason: grant.reason ?? null,
  };
}

function explainCall(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const role = named.value.name;
  const tool = text(call.args, "tool") ?? "";
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
  const { decision, trace } = explain(core.runtime.index, {
    role,
    tool,
    session,
    args: parsed.value,
    target: core.builtins.get(tool)?.target(parsed.value, role),
    request: core.sessions.find(role, session)?.request,
    taint,
    nowMs: core.clock.nowMs(),
  });
  const content = {
    role,
    session,
    taint,
    verdict: decision.kind,
    row: decision.row,
    reason: decision.kind === "deny" ? decision.reason : null,
    grant: decision.grant?.id ?? null,
    owner_says: decision.grant?.reason ?? null,
    grants: trace.map(shownStep),
  };
  return shown(content, sessionLabels(core, role, session));
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

function shownStep(step: TraceStep) {
  const { condition } = step;
  return {
    grant: step.grant,
    effect: step.effect,
    matches: step.failed === undefined,
    failed: step.failed ?? null,
    condition: condition === undefined ? null : condition.kind,
    condition_error: condition?.kind === "error" ? condition.why : null,
    expired: step.expired,
    within_taint: step.withinTaint ?? null,
  };
}

export const GRANT_TOOLS: readonly BuiltinSource[] = [
  {
    name: "callgate.grants.list",
    description: "The grants of a role.",
    effect: "read",
    schema: objectSchema({ role: ROLE }),
    run: list,
  },
  {
    name: "callgate.grants.explain",
    description:
      "What would be decided about a call, and how each grant of the role stands to it. Runs nothing.",
    effect: "read",
    schema: objectSchema(
      {
        role: ROLE,
        session: SESSION,
        tool: { type: "string", description: "The tool's name." },
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
      },
      "tool",
    ),
    run: explainCall,
  },
];
