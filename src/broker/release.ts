// Answers to questions. An approval is one transaction: the question answered, the decision taken once more,
// uses counted, taint spread and the intent of the call that it releases, written with the approver's own
// outcome. It is refused unless the question is open, not expired, and what the approver saw.
// Invariants: of two answers one wins; a commit that fails leaves the question open; a call that was
// released by it runs like every other, once.

import { type CallFault, fault, ok, type Result } from "../base/faults.ts";
import { CLEAN } from "../base/labels.ts";
import { type Grant, QUESTION_DEFAULTS } from "../policy/policy.ts";
import type { Actor, ApprovalRecord, Change } from "../store/records.ts";
import { callFault, deniedMessage, failedMessage, NOTHING_RAN } from "./answer.ts";
import { closed } from "./approvals.ts";
import type { Core } from "./core.ts";
import { closeQuestion, endCall, finish, outcomes, writeEnding } from "./deliver.ts";
import { intents, onProvider, place, stillStands } from "./dispatch.ts";
import type { Ending, LiveCall } from "./live.ts";
import { storeItem } from "./new_call.ts";
import { answered, expireIfDue, watchExpiry } from "./questions.ts";
import { rememberedGrant, type Wish } from "./remembering.ts";
import { enter } from "./stages.ts";
import { type Standing, standing, type Verdict } from "./standing.ts";
import { attempt } from "./writing.ts";

/** An answer that is about to be written. */
export interface Answered {
  readonly changes: readonly Change[];
  /** Takes effect, or is undone. Only the first time counts. */
  readonly settled: (written: boolean) => void;
}

type Holds = Extract<Verdict, { kind: "holds" }>;

/** Releases the stored call. Who may approve was looked at before. */
export function approve(
  core: Core,
  question: ApprovalRecord,
  by: Actor,
  digest: string,
  wish: Wish | undefined,
): Result<Answered & { readonly remembered: Grant | undefined }, CallFault> {
  const shown = stillOpen(core, question);
  if (!shown.ok) return shown;
  const { live, verdict } = shown.value;
  if (verdict.kind === "denied" || verdict.kind === "void") return fault(makeVoid(core, live, verdict));
  if (shown.value.digest !== digest) return fault(CHANGED);
  if (verdict.kind === "waits") return fault(verdict.fault);
  const placed = place(core, verdict.located);
  if (!placed.ok) return placed;
  if (core.store.condition !== "ok") return fault(UNWRITABLE);
  const remembered = wish === undefined ? ok(undefined) : rememberedGrant(core, shown.value, wish);
  if (!remembered.ok) return fault(callFault("bad_arguments", `${remembered.fault}. Nothing was decided.`));
  const grant = remembered.value;
  return ok({ ...releasing(core, shown.value, verdict, by, grant), remembered: grant });
}

/** Nothing of the call will run, and an equal one is not asked for a while. */
export function refuse(
  core: Core,
  question: ApprovalRecord,
  by: Actor,
  digest: string | undefined,
): Result<Answered & { readonly untilMs: number }, CallFault> {
  const shown = stillOpen(core, question);
  if (!shown.ok) return shown;
  if (digest !== undefined && digest !== shown.value.digest) return fault(CHANGED);
  const { live } = shown.value;
  const nowMs = core.clock.nowMs();
  const untilMs = nowMs + refuseForMs(core, question);
  const record = closed(question, "refused", nowMs, by, untilMs);
  const ending: Ending = { message: deniedMessage("approval_refused"), labels: CLEAN, status: "denied" };
  const changes: Change[] = [
    { kind: "approval", approval: record },
    ...answered(core, live, "approval_refused", "refused", "an approver has refused it"),
    ...outcomes(core, live, ending),
  ];
  enter(live, "refuse");
  live.answering = by;
  live.unwritten += 1;
  const settled = once(core, live, (written) => {
    if (!written) return reopen(core, live);
    core.metrics.decided("deny", "approval_refused", live.aliases.size + 1);
    close(core, record);
    logAnswered(core, "approval.refused", live, record, undefined);
    finish(core, live, ending);
  });
  return ok({ changes, settled, untilMs });
}

const CHANGED = callFault(
  "conflict",
  "What the question stands on has changed since it was shown: look again. It is still open, and nothing was decided.",
);

/** An operator's own record may still find room; that of the call's outcome would not. */
const UNWRITABLE = callFault(
  "unavailable",
  `The broker can't write its records now. The question is still open. ${NOTHING_RAN}`,
);

/** The question if it can still be answered. An expired one expires here at the latest. */
function stillOpen(core: Core, { id }: ApprovalRecord): Result<Standing, CallFault> {
  const live = core.approvals.open(id);
  const now = live?.question ?? core.approvals.find(id);
  if (now === undefined)
    return fault(callFault("conflict", `That question is no longer kept. ${NOTHING_RAN}`));
  if (live === undefined) return fault(callFault("conflict", closedSentence(now)));
  if (live.stage !== "asking") {
    const by = live.answering === undefined ? "somebody" : actorWords(live.answering);
    return fault(
      callFault("conflict", `That question is just being answered by ${by}. Nothing was decided.`),
    );
  }
  if (expireIfDue(core, live))
    return fault(callFault("conflict", closedSentence({ ...now, state: "expired" })));
  return ok(standing(core, live, now));
}

function closedSentence({ state, decidedBy }: ApprovalRecord): string {
  const by = decidedBy === undefined ? "" : ` by ${actorWords(decidedBy)}`;
  return `${CLOSED_WORDS[state]}${by}. Nothing was decided now.`;
}

const CLOSED_WORDS: Readonly<Record<ApprovalRecord["state"], string>> = {
  pending: "That question is no longer open",
  approved: "That question was already approved",
  refused: "That question was already refused",
  expired: "That question has expired",
  withdrawn: "That question was withdrawn before anybody answered",
  void: "That question is void, since the policy no longer lets the call run",
};

function actorWords({ role, uid }: Actor): string {
  return `role ${role} (uid ${uid ?? "unknown"})`;
}

/** The decision has turned: an approval would release what the policy denies. */
function makeVoid(
  core: Core,
  live: LiveCall,
  verdict: Extract<Verdict, { kind: "denied" | "void" }>,
): CallFault {
  const denied = verdict.kind === "denied";
  const message = denied ? deniedMessage(verdict.reason) : failedMessage(verdict.fault);
  const why = denied ? `it is now denied: ${verdict.reason}` : verdict.fault.sentence;
  const audit: Change[] = denied
    ? [{ kind: "audit", record: { kind: "decision", decision: verdict.decision } }]
    : [];
  if (denied) core.metrics.decided("deny", verdict.reason, live.aliases.size + 1);
  const status = denied ? "denied" : "failed";
  endCall(core, live, { message, labels: CLEAN, status, closes: "void", withdrawn: true, changes: audit });
  return callFault(
    "conflict",
    `That question is void, since the call can't run any more (${why}). ${NOTHING_RAN}`,
  );
}

function releasing(
  core: Core,
  shown: Standing,
  verdict: Holds,
  by: Actor,
  grant: Grant | undefined,
): Answered {
  const { live, question, args } = shown;
  const { authorized, located, asking } = verdict;
  const nowMs = core.clock.nowMs();
  const record = closed(question, "approved", nowMs, by);
  live.tool = located.tool;
  live.item = storeItem(located.tool, args);
  const runner = onProvider(core, located, question.arguments);
  const used = core.grants.use(authorized.decision, nowMs);
  const added =
    grant && core.grants.add(grant, { by, labels: CLEAN, addedAtMs: nowMs, approval: question.id });
  const changes: Change[] = [
    { kind: "approval", approval: record },
    ...(added?.changes ?? []),
    ...used.changes,
    ...runner.spread(live),
    ...intents(live, authorized, runner, question.id),
  ];
  enter(live, "approve");
  live.answering = by;
  live.unwritten += 1;
  const asked = asking?.grants.map(({ id }) => id) ?? [];
  const settled = once(core, live, (written) => {
    used.settled(written);
    added?.settled(written);
    if (!written) return reopen(core, live);
    live.unwritten -= 1;
    live.used = used;
    live.hasIntent = true;
    close(core, record);
    logAnswered(core, "approval.approved", live, record, grant);
    if (live.ending !== undefined) return writeEnding(core, live); // cancelled while the answer was being written
    if (stillStands(core, live, authorized, asked)) runner.run(live);
  });
  return { changes, settled };
}

/** The answer is written. What is no longer kept is forgotten by itself: nobody waits for that. */
function close(core: Core, record: ApprovalRecord): void {
  const forgotten = core.approvals.close(record);
  if (forgotten.length > 0) core.store.commit(forgotten, () => undefined);
}

/** The answer could not be written. What ended the call meanwhile ends the question too. */
function reopen(core: Core, live: LiveCall): void {
  live.unwritten -= 1;
  live.answering = undefined;
  if (live.stage === "ended") {
    closeQuestion(core, live);
    return writeEnding(core, live);
  }
  enter(live, "unwritten");
  watchExpiry(core, live);
}

/** What goes wrong here is the asked call's own, and not its approver's. */
function once(core: Core, live: LiveCall, settle: (written: boolean) => void): (written: boolean) => void {
  let told = false;
  return (written) => {
    if (told) return;
    told = true;
    attempt(core, live, () => settle(written));
  };
}

/** The longest that a grant of the question says. */
function refuseForMs(core: Core, { grants }: ApprovalRecord): number {
  const all = [...core.runtime.policy.grants, ...core.grants.all()].filter(({ id }) => grants.includes(id));
  if (all.length === 0) return QUESTION_DEFAULTS.refuseForMs;
  return Math.max(...all.map((grant) => grant.refuseForMs));
}

function logAnswered(
  core: Core,
  event: "approval.approved" | "approval.refused",
  { key, tool }: LiveCall,
  { id, askedAtMs, decidedAtMs = 0, decidedBy }: ApprovalRecord,
  remembered: Grant | undefined,
): void {
  core.log("info", event, {
    approval: id,
    role: key.role,
    session: key.session,
    call: String(key.call),
    tool: tool.name,
    by: decidedBy?.role,
    uid: decidedBy?.uid,
    remembered: remembered?.id,
    waited_ms: decidedAtMs - askedAtMs,
  });
}
