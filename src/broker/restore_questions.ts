// Questions of an earlier process, put back: those that wait wait on, without anybody who asks; those whose
// time was over meanwhile have expired; what was refused stays refused. Nothing of them has run.

import { parseJsonObject } from "../base/json.ts";
import { ARGUMENTS_LIMITS } from "../base/limits.ts";
import type { ToolPolicy } from "../policy/policy.ts";
import type { Session } from "../session/sessions.ts";
import type { ApprovalRecord, Change } from "../store/records.ts";
import { closed } from "./approvals.ts";
import type { Core } from "./core.ts";
import { deliverQuestion } from "./deliver.ts";
import { locate } from "./dispatch.ts";
import type { LiveCall } from "./live.ts";
import { callRecord, comparesEqual, liveCall, storeItem } from "./new_call.ts";
import { expireIfDue, pendingMessage, watchExpiry } from "./questions.ts";

const HOUR_MS = 3_600_000;

/**
 * Called once at start, when sessions, definitions and grants are back, and before anybody connects. The
 * records may come in any order.
 */
export function restoreQuestions(core: Core, records: Iterable<ApprovalRecord>): void {
  const nowMs = core.clock.nowMs();
  const all = [...records].sort((a, b) => (a.decidedAtMs ?? a.askedAtMs) - (b.decidedAtMs ?? b.askedAtMs));
  const changes: Change[] = [];
  for (const record of all) {
    if (record.state === "pending") changes.push(...restoreOpen(core, record));
    else changes.push(...core.approvals.keep(record));
    if (record.state !== "pending" && nowMs - record.askedAtMs < HOUR_MS) core.approvals.askedBefore(record);
  }
  if (changes.length > 0) core.store.commit(changes, () => undefined);
}

/** Puts an open question back; what has to be written where that can't be. */
function restoreOpen(core: Core, record: ApprovalRecord): readonly Change[] {
  const live = openCall(core, record);
  if (live === undefined) {
    const nowMs = core.clock.nowMs();
    const gone = closed(record, nowMs < record.expiresAtMs ? "void" : "expired", nowMs);
    return [{ kind: "approval", approval: gone }, ...core.approvals.keepEnded(gone)];
  }
  core.live.add(live);
  core.approvals.ask(live, record);
  if (expireIfDue(core, live)) return [];
  deliverQuestion(live, pendingMessage(record));
  watchExpiry(core, live);
  return [];
}

/** undefined: its role, session or tool is gone, or its id was used by now, so no answer could release it. */
function openCall(core: Core, record: ApprovalRecord): LiveCall | undefined {
  const session = sessionOf(core, record);
  const located = locate(core, record.tool);
  const args = parseJsonObject(record.arguments, ARGUMENTS_LIMITS);
  if (session === undefined || !located.ok || !args.ok) return undefined;
  if (core.store.findCall(record.key) !== undefined) return undefined;
  if (core.live.find(session, record.key.call) !== undefined) return undefined;
  const { tool } = located.value;
  const quota = core.quotaOf(record.key.role);
  const live = liveCall(recordFor(record, tool), session, quota, tool, storeItem(tool, args.value), "asking");
  live.keptBytes = record.arguments.length;
  quota.charge("queued_bytes_in", live.keptBytes); // also over the limit: it was within when it was asked
  return live;
}

function sessionOf(core: Core, { key }: ApprovalRecord): Session | undefined {
  const role = core.runtime.policy.roles.get(key.role);
  if (role === undefined) return undefined;
  const used = core.sessions.use(role, key.session, core.clock.nowMs(), core.replayForMs);
  return typeof used === "string" ? undefined : used;
}

function recordFor(record: ApprovalRecord, tool: ToolPolicy) {
  return callRecord(record.key, {
    tool: record.tool,
    arguments: record.arguments,
    uid: record.uid,
    durable: true,
    equal: comparesEqual(tool) ? record.equal : undefined,
    askedAtMs: record.askedAtMs,
  });
}
