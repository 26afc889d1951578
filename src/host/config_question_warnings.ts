// Warnings about questions to a human: whether somebody can answer them, whether that one is somebody
// else, and what in a grant or tool means less there than it seems to. Only about configs without faults.

import { listed, type Position } from "./config_faults.ts";
import { asks } from "./config_grant_questions.ts";
import type { GrantDraft } from "./config_grants.ts";
import {
  actsForItself,
  type Compiled,
  hasExpired,
  isProvider,
  mayUse,
  reachedTools,
  reaches,
  sharesUsers,
  type Warn,
} from "./config_reach.ts";
import type { RoleDraft } from "./config_roles.ts";
import type { ToolDraft } from "./config_tools.ts";

const APPROVE = "callgate.approvals.approve";
const SHOW = "callgate.approvals.show";
const OPEN = "callgate.sessions.open";
/** With one of these a role answers for others. */
const JUDGING = [APPROVE, "callgate.sessions.endorse", "callgate.calls.settle"];

export function warnOfQuestions(grant: GrantDraft, compiled: Compiled, warn: Warn): void {
  const { policy, read } = grant;
  if (asks(policy)) {
    const at = (policy.effect === "ask" ? read.fields.effect : read.fields.above_taint)?.at ?? read.at;
    warnOfNoAnswer(grant, at, compiled, warn);
    warnOfLateQuestion(grant, compiled, warn);
    warnOfNothingRemembered(grant, warn);
  }
  const { max_calls: calls, max_calls_per: per } = read.fields;
  if (calls !== undefined && per === undefined && policy.expiresAtMs === undefined) {
    warn(
      "used_up_for_good",
      calls.at,
      `after ${calls.value} calls the grant ${policy.id} is used up for good; write max_calls_per = "1h" (or ` +
        "another period), or expires",
    );
  }
}

function warnOfNoAnswer({ policy }: GrantDraft, at: Position, compiled: Compiled, warn: Warn): void {
  const asker = compiled.roles.get(policy.role);
  // An expired one is told of by itself.
  if (asker === undefined || hasExpired(policy, compiled.nowMs)) return;
  const approvers = [...compiled.roles.values()].filter((role) => answers(role, asker, compiled));
  if (!approvers.every((approver) => actsForItself(approver, asker, compiled))) return;
  const why =
    approvers.length === 0
      ? `no role that sees it may use ${APPROVE}`
      : `${listed(approvers.map((one) => one.policy.name))} may use ${APPROVE}, and nobody approves for its own ` +
        "role or user";
  warn(
    "nobody_answers",
    at,
    `nobody can answer what the grant ${policy.id} asks: ${why}; give an operator that is somebody else that tool`,
  );
}

/** An operator sees everybody's questions, who opens sessions those of the sessions that it has opened. */
function approves(role: RoleDraft, compiled: Compiled): boolean {
  const { name, operator } = role.policy;
  if (!mayUse(name, APPROVE, compiled)) return false;
  if (operator) return true;
  const others = [...compiled.roles.values()].filter((other) => other !== role);
  return mayUse(name, OPEN, compiled) && others.some(({ policy }) => policy.sessions === "opened");
}

/** Whether it comes to see what the other asks, and to answer. */
function answers(approver: RoleDraft, asker: RoleDraft, compiled: Compiled): boolean {
  if (!approver.policy.operator && asker.policy.sessions === "any") return false;
  return approves(approver, compiled);
}

function warnOfLateQuestion({ policy, read }: GrantDraft, { nowMs }: Compiled, warn: Warn): void {
  const { approval_ttl: ttl } = read.fields;
  if (ttl === undefined || policy.expiresAtMs === undefined || hasExpired(policy, nowMs)) return;
  if (nowMs + ttl.value <= policy.expiresAtMs) return;
  warn(
    "question_outlives_grant",
    ttl.at,
    `a question of the grant ${policy.id} may stay open for longer than the grant lives: what is approved ` +
      "after it has expired does not run; shorten approval_ttl, or move expires",
  );
}

/** A taint that rose is looked at each time. */
function warnOfNothingRemembered({ policy, read }: GrantDraft, warn: Warn): void {
  if (policy.effect !== "allow" || read.fields.remember?.value !== true) return;
  warn(
    "never_remembered",
    read.fields.remember.at,
    `what the grant ${policy.id} asks above its taint is asked each time, so remember does nothing there; remove it, ` +
      "or write an ask of its own",
  );
}

/** About a role that answers for others: who else it is. */
export function warnOfApprover(approver: RoleDraft, compiled: Compiled, warn: Warn): void {
  const { policy, at } = approver;
  if (approves(approver, compiled)) {
    warnOfOwnQuestions(approver, compiled, warn);
    warnOfSharedApprover(approver, compiled, warn);
    if (!mayUse(policy.name, SHOW, compiled)) {
      const why = "so it could only guess what it approves, and the broker takes no guess; grant it that too";
      warn("approver_blind", at, `role ${policy.name} may use ${APPROVE} and not ${SHOW}, ${why}`);
    }
  }
  warnOfBusyJudge(approver, compiled, warn);
}

function warnOfOwnQuestions({ policy }: RoleDraft, { grants }: Compiled, warn: Warn): void {
  for (const { policy: grant, read } of grants) {
    if (grant.role !== policy.name || !asks(grant)) continue;
    warn(
      "approver_asks",
      read.fields.role?.at ?? read.at,
      `role ${policy.name} approves, and the grant ${grant.id} has it ask: nobody approves for its own role, so ` +
        "another operator would have to; let one role ask and another approve",
    );
  }
}

/** Whether the one could answer what the other asks while both are one user or group. */
export function sharesWithAsker(approver: RoleDraft, asker: RoleDraft, compiled: Compiled): boolean {
  return (
    approver !== asker &&
    answers(approver, asker, compiled) &&
    compiled.grants.some(({ policy }) => policy.role === asker.policy.name && asks(policy)) &&
    sharesUsers(approver, asker)
  );
}

function warnOfSharedApprover(approver: RoleDraft, compiled: Compiled, warn: Warn): void {
  const { policy, read, at } = approver;
  for (const asker of compiled.roles.values()) {
    if (!sharesWithAsker(approver, asker, compiled)) continue;
    const harm =
      compiled.sameUserAt === undefined
        ? "that user's approvals are refused, and a group's other members are as close"
        : "allow_same_user lets it approve what it itself asked";
    warn(
      "approver_shares_users",
      (read.fields.users ?? read.fields.groups)?.at ?? at,
      `a user or group of role ${asker.policy.name}, whose calls ask, may also connect as the approver ` +
        `${policy.name}: ${harm}; give the approver a user of its own`,
    );
  }
}

/** What an approver reads, and what reaches it as a provider, may be written to win its approval. */
function warnOfBusyJudge(judge: RoleDraft, compiled: Compiled, warn: Warn): void {
  const { policy, read, at } = judge;
  if (!policy.operator && !approves(judge, compiled)) return;
  const powers = JUDGING.filter((tool) => mayUse(policy.name, tool, compiled));
  if (powers.length === 0) return;
  const operator = read.fields.operator?.at ?? at;
  if (isProvider(judge, compiled)) {
    warn(
      "judge_provides",
      operator,
      `role ${policy.name} may use ${listed(powers)} and is a provider too: it would judge calls that it serves; ` +
        "give the provider a role of its own",
    );
  }
  const called = compiled.grants
    .filter(({ policy: grant }) => grant.role === policy.name && grant.effect !== "deny")
    .flatMap(({ policy: grant }) => grant.tools.flatMap((pattern) => reachedTools(pattern, compiled)));
  if (called.length > 0) {
    warn(
      "judge_calls",
      operator,
      `role ${policy.name} may use ${listed(powers)} and calls tools too (${listed(new Set(called))}): what it ` +
        "reads there can talk it into an answer; give its calls a role of their own",
    );
  }
}

/** A call that was asked is written down, whatever `record` says. */
export function warnOfAskedMemory({ policy, read, at }: ToolDraft, { grants }: Compiled, warn: Warn): void {
  if (policy.record !== "memory") return;
  const asking = grants.filter(({ policy: grant }) => asks(grant) && reaches(grant.tools, policy.name));
  if (asking.length === 0) return;
  warn(
    "memory_asked",
    read.fields.record?.at ?? at,
    `calls of ${policy.name} that are asked (by ${listed(asking.map((one) => one.policy.id))}) are written to disk ` +
      'all the same; record = "memory" spares only those that are allowed',
  );
}
