// `callgate.calls.why`: what was decided about a call, and why. What the process remembers is told at once; what it
// does not is looked up in the audit, so it is told also after a restart and of old calls.

import { type CallFault, fault } from "../../base/faults.ts";
import { join, type Labels } from "../../base/labels.ts";
import type { CallKey, CallRecord, DecisionRecord } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import { VARIOUS } from "../audit_budget.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import {
  type CallTimes,
  type CountedDenials,
  type Decided,
  type Searched,
  searchDecision,
  type ToldDecision,
} from "../decision_search.ts";
import { CALL, objectSchema, ROLE, SESSION } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { type FoundRecord, findCall, mayTouch, namedCall } from "./call_row.ts";
import { grantWordsLabels } from "./grant_words.ts";
import { joinAll } from "./listing.ts";
import { sessionLabels } from "./visibility.ts";

async function why(core: Core, call: BuiltinCall): Promise<BuiltinOutcome> {
  const named = namedCall(core, call);
  if (!named.ok) return named;
  const key = named.value;
  const found = findCall(core, key);
  if (found !== undefined && !mayTouch(call, found.record)) return notFound("");
  const remembered = lastDecision(core, key);
  if (remembered !== undefined && !isOvertaken(remembered, found?.record))
    return shown(rememberedContent(remembered), decisionLabels(core, key, remembered));
  const searched = await searchDecision(core.store.audit, key, timesOf(found), () => pause(core, call));
  return told(core, call, key, searched);
}

/** One from before it was asked denied an earlier try under its id: it is not what this call ran by. */
export function isOvertaken(decision: DecisionRecord, record: CallRecord | undefined): boolean {
  return record !== undefined && decision.atMs < record.askedAtMs;
}

/** The latest that is remembered; one that was counted is in no record. */
export function lastDecision(core: Core, key: CallKey): DecisionRecord | undefined {
  const counted = core.audit.findDenied(key);
  const recorded = core.store.findDecision(key);
  const overtaken = recorded !== undefined && counted !== undefined && counted.atMs <= recorded.atMs;
  return overtaken ? recorded : (counted ?? recorded);
}

/** Resolves with false where nobody waits for an answer any more. */
async function pause(core: Core, { peer, role }: BuiltinCall): Promise<boolean> {
  await new Promise<void>((begin) => core.turns.take(role.name, begin));
  return peer.asking.size > 0;
}

function timesOf(found: FoundRecord | undefined): CallTimes | undefined {
  if (found === undefined) return undefined;
  const { askedAtMs, endedAtMs } = found.record;
  return { askedAtMs, endedAtMs: found.state === "ended" ? endedAtMs : undefined };
}

function told(core: Core, call: BuiltinCall, key: CallKey, searched: Searched): BuiltinOutcome {
  const { decision, failed, sinceMs } = searched;
  if (decision !== undefined && mayBeTold(call, decision))
    return shown(toldContent(key, decision), toldLabels(core, key, [decision]));
  const counted = searched.counted.filter(({ decision: { key: first } }) => {
    return call.role.operator || first.session === key.session;
  });
  if (counted.length > 0) {
    const decisions = counted.map((one) => one.decision);
    return shown(countedContent(key, counted), toldLabels(core, key, decisions));
  }
  if (failed !== undefined)
    return notFound(` It failed before anything was decided for good, with \`${failed}\`.`);
  // How far back a search gets tells how much everybody does.
  return notFound(sinceMs === undefined || !call.role.operator ? "" : lookedSince(sinceMs));
}

/** As with a record of a call, another user of the same role is not the one who asked. */
function mayBeTold(call: BuiltinCall, { uid, verdict }: ToldDecision): boolean {
  return call.role.operator || verdict === "deny" || uid === call.peer.connection.peer?.uid;
}

function lookedSince(ms: number): string {
  const since = new Date(ms).toISOString();
  return ` The records were looked at back to ${since}; older ones are in the export of the audit.`;
}

function notFound(more: string): { readonly ok: false; readonly fault: CallFault } {
  const causes =
    "it was never asked, it was denied so long ago that the audit has let its record go, or it is not the caller's to look at";
  const sentence = `No record names a decision on that call: ${causes}.${more} ${NOTHING_RAN}`;
  return fault(callFault("bad_arguments", sentence));
}

/** What is said of every decision, wherever it is from. */
function decisionContent(decision: Omit<DecisionRecord, "reason">) {
  return {
    tool: decision.tool,
    verdict: decision.verdict,
    at_ms: decision.atMs,
    denied: decision.denied ?? null,
    row: decision.row,
    grant: decision.grant ?? null,
    condition: decision.condition,
    taint: decision.taint,
  };
}

export function shownDecision(decision: DecisionRecord) {
  return { ...decisionContent(decision), reason: decision.reason ?? null };
}

function callNames({ role, session, call }: CallKey) {
  return { role, session, call };
}

function rememberedContent(decision: DecisionRecord) {
  const nothingElse = { approval: null, grants: [], counted: null, from: "memory" };
  return { ...callNames(decision.key), ...shownDecision(decision), ...nothingElse };
}

/** The words on a grant are not in the audit, and those that it has now may be others. */
function toldContent(key: CallKey, decision: ToldDecision) {
  const { approval = null, grants } = decision;
  const rest = { reason: null, approval, grants, counted: null, from: "audit" };
  return { ...callNames(key), ...decisionContent(decision), ...rest };
}

/** No record names the call; of one kind, what its denials have in common is told, of several, nothing. */
function countedContent(key: CallKey, counted: readonly CountedDenials[]) {
  const [first, ...others] = counted;
  const kinds = counted.map(({ decision, count }) => ({
    ...decisionContent(decision),
    session: decision.key.session,
    first_call: decision.key.call,
    count,
  }));
  const one = first !== undefined && others.every((other) => isOneKind(first, other)) ? first : undefined;
  const ofThem = one === undefined ? ofNoKind(counted) : ofKind(one);
  return { ...callNames(key), ...ofThem, counted: kinds, from: "audit" };
}

function isOneKind({ decision: a }: CountedDenials, { decision: b }: CountedDenials): boolean {
  const same = a.tool === b.tool && a.row === b.row && a.grant === b.grant && a.denied === b.denied;
  return same && a.key.session === b.key.session && a.key.session !== VARIOUS;
}

function ofKind({ decision }: CountedDenials) {
  return { ...decisionContent(decision), reason: null, approval: null, grants: [] };
}

/** The time is that of the latest, the taint what none of them was above. */
function ofNoKind(counted: readonly CountedDenials[]) {
  const [latest] = counted;
  return {
    tool: null,
    verdict: "unknown",
    at_ms: latest?.decision.atMs ?? null,
    denied: null,
    row: "counted",
    grant: null,
    condition: "none",
    taint: joinAll(counted.map(({ decision }) => decision.taint)),
    reason: null,
    approval: null,
    grants: [],
  };
}

/** It quotes the grant that decided, whose words another may have written. */
export function decisionLabels(core: Core, key: CallKey, decision: DecisionRecord | undefined): Labels {
  const words = grantWordsLabels(core, decision?.grant === undefined ? [] : [decision.grant]);
  return join(sessionLabels(core, key.role, key.session), words);
}

/** Of what records tell: the taint then too, which may have been lowered since. */
function toldLabels(core: Core, key: CallKey, decisions: readonly (Decided | ToldDecision)[]): Labels {
  let labels = sessionLabels(core, key.role, key.session);
  for (const decision of decisions) {
    const { grant, taint, key: of } = decision;
    const asking = "grants" in decision ? decision.grants : [];
    const words = grantWordsLabels(core, grant === undefined ? asking : [grant, ...asking]);
    labels = join(join(labels, taint), words);
    labels = join(labels, sessionLabels(core, of.role, of.session));
  }
  return labels;
}

export const CALL_WHY: BuiltinSource = {
  name: "callgate.calls.why",
  description:
    "What was decided about a call, and why: the row of the decision list, the grant and its owner's reason, the taint then. `counted`: no record names it; denials of its session that were only counted, of which it may be one.",
  effect: "read",
  schema: objectSchema({ role: ROLE, session: SESSION, call: CALL }, "call"),
  run: why,
};
