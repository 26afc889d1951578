// How an open question stands now: the decision on its stored call taken once more, and the digest that an
// approver's answer is held against, so that nobody answers what they were not shown.

import type { CallFault, DenyReason } from "../base/faults.ts";
import { type JsonObject, parseJsonObject } from "../base/json.ts";
import type { Labels } from "../base/labels.ts";
import { ARGUMENTS_LIMITS } from "../base/limits.ts";
import type { Grant, ToolPolicy } from "../policy/policy.ts";
import type { ApprovalRecord, DecisionRecord } from "../store/records.ts";
import { callFault, NOTHING_RAN } from "./answer.ts";
import { type Authorized, decisionRecord, redecide, sessionDenial } from "./authorize.ts";
import type { Core } from "./core.ts";
import { checkArguments, type Located, locate } from "./dispatch.ts";
import type { LiveCall } from "./live.ts";
import { type Asking, whyAsked } from "./questions.ts";

export type Verdict =
  /** It may run once somebody approves. `asking` undefined: the policy now asks nobody. */
  | {
      readonly kind: "holds";
      readonly authorized: Authorized;
      readonly asking: Asking | undefined;
      readonly located: Located;
    }
  /** An approval would change nothing: the question is void. */
  | { readonly kind: "denied"; readonly reason: DenyReason; readonly decision: DecisionRecord }
  | { readonly kind: "void"; readonly fault: CallFault }
  /** Nothing stands in the way but that nobody could run it now. */
  | { readonly kind: "waits"; readonly asking: Asking | undefined; readonly fault: CallFault };

export interface Standing {
  readonly live: LiveCall;
  readonly question: ApprovalRecord;
  readonly args: JsonObject;
  /** Of the session, now. */
  readonly taint: Labels;
  readonly verdict: Verdict;
  /** Of everything that an approver is shown and decides by. */
  readonly digest: string;
}

export function standing(core: Core, live: LiveCall, question: ApprovalRecord): Standing {
  const args = storedArguments(question);
  const taint = core.sessions.taint(live.session);
  const verdict = judge(core, live, question, args);
  const digest = core.digest(shownText(question, taint, verdict));
  return { live, question, args, taint, verdict, digest };
}

/** They were parsed when the call was asked, so a fault is ours. */
function storedArguments(question: ApprovalRecord): JsonObject {
  const parsed = parseJsonObject(question.arguments, ARGUMENTS_LIMITS);
  if (!parsed.ok) throw new Error("the stored arguments of a question are no JSON object");
  return parsed.value;
}

function judge(core: Core, live: LiveCall, question: ApprovalRecord, args: JsonObject): Verdict {
  const nowMs = core.clock.nowMs();
  const unusable = sessionGone(core, live, nowMs);
  if (unusable !== undefined) return unusable;
  const again = redecide(core, { session: live.session, tool: question.tool, args }, nowMs);
  if (again.kind === "denied") {
    const decision = decisionRecord(live.key, again.subject, again.decision);
    return { kind: "denied", reason: again.decision.reason, decision };
  }
  const { authorized } = again;
  const located = locate(core, question.tool);
  const { decision } = authorized;
  const tool = located.ok ? located.value.tool : live.tool;
  const asking = whyAsked(core, tool, live.key.role, decision, () => question.equal);
  if (!located.ok) return { kind: "waits", asking, fault: located.fault };
  if (located.value.digest !== question.definition) return { kind: "void", fault: REDEFINED };
  const mismatch = checkArguments(located.value.tool.schema, args);
  if (mismatch !== undefined) return { kind: "void", fault: mismatch };
  return { kind: "holds", authorized, asking, located: located.value };
}

const REDEFINED = callFault(
  "no_provider",
  `The tool's definition has changed since the question was put. Ask again. ${NOTHING_RAN}`,
);

/** A role that a reload took away, and a session that has ended or is frozen, run nothing any more. */
function sessionGone(core: Core, live: LiveCall, nowMs: number): Verdict | undefined {
  const { role: roleName, session: id } = live.key;
  const role = core.runtime.policy.roles.get(roleName);
  if (role === undefined)
    return gone(core, live, "no_grant", "role_gone", "the policy has no such role any more");
  const used = core.sessions.use(role, id, nowMs, core.replayForMs);
  if (used === live.session) return undefined;
  const refusal = typeof used === "string" && used !== "too_many" ? used : "ended";
  const { reason, why } = sessionDenial(refusal);
  return gone(core, live, reason, `session_${refusal}`, why);
}

function gone(
  core: Core,
  { key, tool, session }: LiveCall,
  denied: DenyReason,
  row: string,
  why: string,
): Verdict {
  const decision: DecisionRecord = {
    key,
    tool: tool.name,
    atMs: core.clock.nowMs(),
    verdict: "deny",
    row,
    grant: undefined,
    denied,
    reason: why,
    taint: core.sessions.taint(session),
    condition: "none",
  };
  return { kind: "denied", reason: denied, decision };
}

export function askingOf(verdict: Verdict): Asking | undefined {
  return verdict.kind === "holds" || verdict.kind === "waits" ? verdict.asking : undefined;
}

function shownText(question: ApprovalRecord, taint: Labels, verdict: Verdict): string {
  const { id, key, tool, arguments: args, definition, uid, pid, expiresAtMs } = question;
  const asking = askingOf(verdict);
  return JSON.stringify({
    id,
    key: [key.role, key.session, String(key.call)],
    tool,
    args,
    definition,
    peer: [uid, pid],
    expiresAtMs,
    taint: [taint.class, taint.untrusted],
    row: asking?.row,
    asks: asking?.grants.map(shownGrant),
    doubt: asking?.doubt && [asking.doubt.session, String(asking.doubt.call)],
    runs: verdict.kind === "holds" ? shownTool(verdict.located.tool) : undefined,
  });
}

/** Who would run it, and what the owner says of it: a reload may have changed that. */
function shownTool({ role, effect, destinations }: ToolPolicy) {
  return [role, effect, destinations];
}

function shownGrant({ id, when, reason, remember }: Grant) {
  return [id, when?.source, reason, remember];
}
