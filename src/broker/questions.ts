// Stage 6: the question to a human. Whether there is one, the limits of asking, what is stored of the call,
// equal calls that wait for the same answer, and the end of the wait by time. Answers: release.ts.
// Invariants: nothing of a call that waits has run; what is stored is what was asked, byte for byte; the
// expiry is absolute and looked at again at every answer.

import type { CallFault, DenyReason } from "../base/faults.ts";
import { type JsonObject, jsonTextInOrder } from "../base/json.ts";
import { CLEAN } from "../base/labels.ts";
import type { Decision } from "../policy/decision.ts";
import type { Grant, RolePolicy, ToolPolicy } from "../policy/policy.ts";
import type { Session } from "../session/sessions.ts";
import type { ApprovalRecord, CallKey, Change } from "../store/records.ts";
import { encodeMessage } from "../wire/envelope.ts";
import { type Admitted, capacityFault } from "./admit.ts";
import { callFault, deniedMessage, NOTHING_RAN } from "./answer.ts";
import { type Authorized, decisionRecord } from "./authorize.ts";
import type { Core } from "./core.ts";
import { deliverQuestion, endCall, finish, joinCall, UNASKED_ENDING, writeEnding } from "./deliver.ts";
import type { Located } from "./dispatch.ts";
import { type LiveCall, recordsOf } from "./live.ts";
import { comparesEqual, newCall, newRecord } from "./new_call.ts";
import { attempt, write } from "./writing.ts";

const APPROVAL_ID_BYTES = 16;
/** What a question costs in memory beside its arguments. */
const QUESTION_BYTES = 1024;

/** Why a human is asked. */
export interface Asking {
  readonly row: "ask" | "allow_above_taint_ask" | "doubt";
  /** Whose question it is; with `doubt` the grant that would have let the call through. */
  readonly grants: readonly Grant[];
  /** The equal call whose outcome nobody knows. */
  readonly doubt: CallKey | undefined;
}

/** undefined: nobody has to be asked. */
export function whyAsked(
  core: Core,
  tool: ToolPolicy,
  role: string,
  decision: Exclude<Decision, { kind: "deny" }>,
  equal: () => string,
): Asking | undefined {
  const doubt = comparesEqual(tool) ? core.doubts.find(role, equal()) : undefined;
  const grants = decision.kind === "ask" ? decision.asks : [decision.grant];
  if (doubt !== undefined) return { row: "doubt", grants, doubt };
  return decision.kind === "ask" ? { row: decision.row, grants, doubt } : undefined;
}

/** A call that nothing but a human stands in the way of. */
export interface Routed {
  readonly admitted: Admitted;
  readonly role: RolePolicy;
  readonly session: Session;
  readonly located: Located;
}

/** Why a question is not put. */
export type Unasked =
  | { readonly kind: "denied"; readonly reason: DenyReason; readonly row: string; readonly why: string }
  | { readonly kind: "failed"; readonly fault: CallFault };

/** Puts the question, or lets the call wait for one that is open. undefined: it waits. */
export function ask(core: Core, routed: Routed, asking: Asking, authorized: Authorized): Unasked | undefined {
  const { admitted, role, session } = routed;
  const equal = admitted.equal();
  const refused = refusedBefore(core, session, equal, admitted.nowMs);
  if (refused !== undefined) return refused;
  const same = core.approvals.same({ session }, equal, admitted.asker.peer.connection.peer?.uid);
  if (same !== undefined && !expireIfDue(core, same)) return follow(core, same, routed);
  const paused = questionsPaused(core, session, admitted.nowMs);
  if (paused !== undefined) return paused;
  const limit = core.approvals.limitReached(role.name, session.id, role.limits, admitted.nowMs);
  if (limit !== undefined) return failed(capacityFault(limit));
  const live = newCall(admitted, session, routed.located.tool, "asking");
  if (!isShowable(live, admitted.args)) return failed(UNSHOWABLE);
  if (!holdBytes(core, live)) return failed(capacityFault("queued_bytes_in"));
  store(core, live, routed, asking, authorized);
  return undefined;
}

function refusedBefore(core: Core, session: Session, equal: string, nowMs: number): Unasked | undefined {
  const untilMs = core.approvals.refusals.refusedUntilMs(session.role, equal, nowMs);
  if (untilMs === undefined) return undefined;
  const why = `an equal call was refused, and is not asked again before ${instant(untilMs)}`;
  return { kind: "denied", reason: "approval_refused", row: "refused_before", why };
}

function questionsPaused(core: Core, session: Session, nowMs: number): Unasked | undefined {
  const untilMs = core.approvals.refusals.pausedUntilMs(session, nowMs);
  if (untilMs === undefined) return undefined;
  const why = `so many questions of this session were refused that it asks none before ${instant(untilMs)}`;
  return { kind: "denied", reason: "approval_refused", row: "questions_paused", why };
}

/** Bytes of what an approver's frame carries of the arguments: text within JSON within JSON. */
const SHOWN_BYTES_MAX = 700_000;
/** Arguments of so many characters always fit. */
const SHOWABLE_CHARS = 16_384;
const UNSHOWABLE = callFault(
  "too_large",
  `A human would have to approve this call, and its arguments are too long to be shown. ${NOTHING_RAN}`,
);

/** What nobody can be shown nobody can approve: the exact text, all keys, and the destinations whole. */
function isShowable({ record, tool }: LiveCall, args: JsonObject): boolean {
  if (record.arguments.length <= SHOWABLE_CHARS) return true;
  const destinations = tool.destinations.map((name) => jsonTextInOrder(args.get(name) ?? null));
  const shown = JSON.stringify([record.arguments, ...args.keys(), ...destinations]);
  return Buffer.byteLength(JSON.stringify(shown)) <= SHOWN_BYTES_MAX;
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

function failed(fault: CallFault): Unasked {
  return { kind: "failed", fault };
}

/** What waits is charged to its role even when nobody waits for it any more; one session holds at most half. */
function holdBytes(core: Core, live: LiveCall): boolean {
  const { quota, key, record } = live;
  const bytes = record.arguments.length + QUESTION_BYTES;
  const ofSession = core.approvals.heldBytes(key.role, key.session) + bytes;
  if (ofSession > quota.limits.queued_bytes_in / 2 || !quota.hold("queued_bytes_in", bytes)) return false;
  live.keptBytes = bytes;
  return true;
}

/** The question is told once it is written down; a call that ended meanwhile is told its end. */
function store(core: Core, live: LiveCall, routed: Routed, asking: Asking, authorized: Authorized): void {
  const { asker } = routed.admitted;
  const record = questionRecord(core, live, routed, asking);
  core.live.add(live);
  core.approvals.ask(live, record);
  asker.live = live;
  const { subject, decision } = authorized;
  const decided = {
    ...decisionRecord(live.key, subject, decision),
    verdict: "ask",
    row: asking.row,
  } as const;
  const changes: Change[] = [
    { kind: "approval", approval: record },
    { kind: "audit", record: { kind: "decision", decision: decided } },
  ];
  write(core, live, changes, (unwritten) => {
    live.unwritten -= 1;
    if (unwritten !== undefined) return giveUp(core, live, record);
    if (live.ending !== undefined) return writeEnding(core, live);
    logAsked(core, live, record);
    core.approvals.changed();
    deliverQuestion(live, pendingMessage(record));
    watchExpiry(core, live);
  });
}

function giveUp(core: Core, live: LiveCall, record: ApprovalRecord): void {
  core.approvals.unask(record);
  finish(core, live, UNASKED_ENDING);
}

function questionRecord(core: Core, live: LiveCall, routed: Routed, asking: Asking): ApprovalRecord {
  const { admitted, session, located } = routed;
  const ttlMs = Math.min(...asking.grants.map(({ approvalTtlMs }) => approvalTtlMs));
  const { peer } = admitted.asker.peer.connection;
  return {
    id: core.random(APPROVAL_ID_BYTES),
    key: live.key,
    tool: live.record.tool,
    arguments: live.record.arguments,
    equal: admitted.equal(),
    uid: peer?.uid,
    pid: peer?.pid,
    definition: located.digest,
    grants: asking.grants.map(({ id }) => id),
    row: asking.row,
    policy: core.runtime.policy.version,
    taint: core.sessions.taint(session),
    raisedBy: core.sessions.raisedBy(session),
    doubt: asking.doubt,
    askedAtMs: admitted.nowMs,
    expiresAtMs: admitted.nowMs + ttlMs,
    state: "pending",
    decidedBy: undefined,
    decidedAtMs: undefined,
    refusedUntilMs: undefined,
  };
}

function logAsked(core: Core, { key, tool }: LiveCall, record: ApprovalRecord): void {
  core.log("info", "approval.asked", {
    approval: record.id,
    role: key.role,
    session: key.session,
    call: String(key.call),
    tool: tool.name,
    row: record.row,
    grants: record.grants,
    expires_at_ms: record.expiresAtMs,
  });
}

export function pendingMessage({ id, expiresAtMs }: ApprovalRecord): Buffer {
  return encodeMessage({
    kind: "tool_response",
    body: { status: "pending_approval", approval: id, expires: BigInt(expiresAtMs) },
  });
}

/** An equal call under another id: it waits for the same answer, which is recorded under its own id too. */
function follow(core: Core, leader: LiveCall, routed: Routed): Unasked | undefined {
  const { admitted, session, located } = routed;
  const { quota, aliases, waiting } = leader;
  if (leader.stage !== "asking") return failed(JUST_ANSWERED);
  if (aliases.size >= quota.limits.joins || waiting > quota.limits.joins)
    return failed(capacityFault("joins"));
  const record = newRecord(admitted, session, located.tool, true);
  const bytes = record.arguments.length + QUESTION_BYTES;
  if (!quota.hold("queued_bytes_in", bytes)) return failed(capacityFault("queued_bytes_in"));
  leader.keptBytes += bytes;
  core.live.follow(leader, record);
  joinCall(core, leader, record.key, admitted.asker);
  return undefined;
}

const JUST_ANSWERED: CallFault = callFault(
  "unavailable",
  `An equal call's question is just being answered; ask again. ${NOTHING_RAN}`,
);

/** Waits for the expiry; a clock that was set forward makes it come early, and is believed at the next answer. */
export function watchExpiry(core: Core, live: LiveCall): void {
  const { question } = live;
  if (question === undefined || live.stage !== "asking") return;
  const leftMs = Math.max(0, question.expiresAtMs - core.clock.nowMs());
  live.stopTimer?.();
  live.stopTimer = core.clock.after(Math.min(leftMs, LOOK_EVERY_MS), () =>
    attempt(core, live, () => {
      live.stopTimer = undefined;
      if (!expireIfDue(core, live)) watchExpiry(core, live);
    }),
  );
}

/** A timer does not hear of a clock that was set forward: so often it looks. */
const LOOK_EVERY_MS = 60_000;

/** Whether the question's time is over; then it is closed, and its call has ended. */
export function expireIfDue(core: Core, live: LiveCall): boolean {
  const { question } = live;
  if (question === undefined || core.clock.nowMs() < question.expiresAtMs) return false;
  core.metrics.decided("deny", "approval_expired", live.aliases.size + 1);
  endCall(core, live, {
    message: deniedMessage("approval_expired"),
    labels: CLEAN,
    status: "denied",
    closes: "expired",
    changes: answered(
      core,
      live,
      "approval_expired",
      "expired",
      "nobody answered the question before it expired",
    ),
  });
  return true;
}

/** The denial that an answer, or none, amounts to, of the call and of those that follow it: what `calls.why` tells. */
export function answered(
  core: Core,
  live: LiveCall,
  denied: DenyReason,
  row: string,
  reason: string,
): readonly Change[] {
  const decision = {
    tool: live.tool.name,
    atMs: core.clock.nowMs(),
    verdict: "deny",
    row,
    grant: live.question?.grants[0],
    denied,
    reason,
    taint: core.sessions.taint(live.session),
    condition: "none",
  } as const;
  return recordsOf(live).map(({ key }) => ({
    kind: "audit",
    record: { kind: "decision", decision: { key, ...decision } },
  }));
}
