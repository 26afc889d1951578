// `callgate.approvals.list|show|approve|refuse|watch`: questions to humans, for those who answer them. A role
// that is no operator sees its own, and those of sessions that it opened; nobody answers for their own role
// or user.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import type { JsonObject } from "../../base/json.ts";
import { CLEAN, join, type Labels } from "../../base/labels.ts";
import type { ApprovalRecord } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import { type BuiltinCall, type BuiltinOutcome, type Core, roleOf } from "../core.ts";
import { actorOf } from "../live.ts";
import { approve as release, refuse as turnDown } from "../release.ts";
import type { Wish } from "../remembering.ts";
import { isTold, LIST_MEMBERS, listQuestions, maySee, versionFor } from "./approval_list.ts";
import { questionLabels, whole } from "./approval_views.ts";
import { integer, type MemberSchema, objectSchema, text } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { grantWordsLabels } from "./grant_words.ts";
import { actsForItself, sessionLabels } from "./visibility.ts";

const WATCH_SECONDS_MAX = 60;
const REASON_CHARS_MAX = 1024;
const REMEMBER_SECONDS_MAX = 2_592_000;

function show(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedQuestion(core, call);
  if (!named.ok) return named;
  const question = named.value;
  const content = whole(core, question, core.approvals.open(question.id));
  return shown(content, labelsOfWhole(core, question, content));
}

/** Other sessions' calls are named in it. */
function labelsOfWhole(core: Core, question: ApprovalRecord, content: ReturnType<typeof whole>): Labels {
  const grants = content.asks.map(({ grant }) => grant);
  let labels = join(questionLabels(core, question), grantWordsLabels(core, grants));
  const others = [content.raised_by, content.doubt, ...content.store_changes];
  for (const other of others) {
    if (other === null) continue;
    labels = join(labels, sessionLabels(core, other.role, other.session));
  }
  return labels;
}

async function watch(core: Core, call: BuiltinCall): Promise<BuiltinOutcome> {
  const seconds = Math.min(integer(call.args, "timeout_seconds") ?? WATCH_SECONDS_MAX, WATCH_SECONDS_MAX);
  const endsAtMs = core.clock.nowMs() + Math.max(0, seconds) * 1000;
  // Meanwhile a reload may have changed what the role may see.
  const now = () => ({ ...call, role: roleOf(core, call.peer.connection) ?? call.role });
  const seen = integer(call.args, "version") ?? versionFor(core, call);
  for (let leftMs = endsAtMs - core.clock.nowMs(); leftMs > 0; leftMs = endsAtMs - core.clock.nowMs()) {
    if (core.draining || call.peer.asking.size === 0 || versionFor(core, now()) !== seen) break;
    const waiting = core.approvals.watchers.wait(core.clock, call.peer, leftMs);
    if (waiting === undefined)
      return fault(callFault("capacity", `Too many watch the questions already. ${NOTHING_RAN}`));
    await waiting;
    // All are woken at once, and each look takes its time.
    await new Promise<void>((begin) => core.turns.take(call.role.name, begin));
  }
  return listQuestions(core, now());
}

function approve(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = answerable(core, call);
  if (!named.ok) return named;
  const question = named.value;
  const wish = wishOf(call.args);
  if (wish === "wrong")
    return bad(
      `\`remember\` needs 1 to ${REMEMBER_SECONDS_MAX} \`seconds\`, and \`calls\`, where given, 1 or more`,
    );
  const digest = text(call.args, "digest") ?? "";
  const answered = release(core, question, actorOf(call.peer), digest, wish);
  if (!answered.ok) return answered;
  const { changes, settled, remembered } = answered.value;
  const { role, session, call: id } = question.key;
  const content = {
    approval: question.id,
    approved: true,
    role,
    session,
    call: id,
    remembered: remembered?.id ?? null,
  };
  return ok({ content, labels: questionLabels(core, question), changes, settled });
}

function wishOf(args: JsonObject): Wish | undefined | "wrong" {
  const remember = args.get("remember");
  if (!(remember instanceof Map)) return undefined;
  const wish: JsonObject = remember;
  const what = text(wish, "what") === "tool" ? "tool" : "arguments";
  const seconds = integer(wish, "seconds") ?? 0;
  const calls = integer(wish, "calls");
  const wrong = seconds < 1 || seconds > REMEMBER_SECONDS_MAX || (calls !== undefined && calls < 1);
  return wrong ? "wrong" : { what, seconds, calls };
}

function refuse(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = answerable(core, call);
  if (!named.ok) return named;
  const question = named.value;
  const reason = text(call.args, "reason");
  if (reason !== undefined && reason.length > REASON_CHARS_MAX)
    return bad(`\`reason\` is longer than ${REASON_CHARS_MAX} characters`);
  const by = actorOf(call.peer);
  const answered = turnDown(core, question, by, text(call.args, "digest"));
  if (!answered.ok) return answered;
  const { changes, settled, untilMs } = answered.value;
  // For the audit alone: the caller hears what the broker says, and none of the approver's words.
  const subject = `${question.id}: ${reason}`;
  const why = reason === undefined ? [] : [{ kind: "change", what: "refusal reason", by, subject } as const];
  const audit = why.map((record) => ({ kind: "audit", record }) as const);
  const content = { approval: question.id, refused: true, until_ms: untilMs };
  return ok({ content, labels: CLEAN, changes: [...changes, ...audit], settled });
}

/** The fault is the same for what does not exist and what the caller may not see. */
function namedQuestion(core: Core, call: BuiltinCall): Result<ApprovalRecord, CallFault> {
  const question = core.approvals.find(text(call.args, "approval") ?? "");
  if (question !== undefined && maySee(core, call, question) && isTold(core, question)) return ok(question);
  return bad("There is no such question for the caller to look at");
}

function answerable(core: Core, call: BuiltinCall): Result<ApprovalRecord, CallFault> {
  const named = namedQuestion(core, call);
  if (!named.ok) return named;
  const role = core.runtime.policy.roles.get(named.value.key.role);
  const itself = role !== undefined && actsForItself(core, call, role);
  if (itself || isSameUser(core, call, named.value))
    return bad("Nobody answers a question of their own role or user");
  return named;
}

/** The user who asked, whatever roles it may connect as by now. */
function isSameUser(core: Core, call: BuiltinCall, { uid }: ApprovalRecord): boolean {
  const own = call.peer.connection.peer?.uid;
  return !core.runtime.policy.allowSameUser && (own === undefined || own === uid);
}

function bad(sentence: string): { readonly ok: false; readonly fault: CallFault } {
  return fault(callFault("bad_arguments", `${sentence}. ${NOTHING_RAN}`));
}

const APPROVAL: MemberSchema = { type: "string", description: "The question's id, from `approvals.list`." };
const DIGEST: MemberSchema = { type: "string", description: "The digest that `approvals.show` gave." };

export const APPROVAL_TOOLS: readonly BuiltinSource[] = [
  {
    name: "callgate.approvals.list",
    description:
      "The questions that wait for a human, the first asked first, and on demand what became of the latest others, the latest first. `total`: how many wait.",
    effect: "read",
    schema: objectSchema(LIST_MEMBERS),
    run: listQuestions,
  },
  {
    name: "callgate.approvals.show",
    description:
      "One question, whole: who asks, the exact arguments, why it is asked, the taint, what remembering would cover.",
    effect: "read",
    actsOn: "approval",
    schema: objectSchema({ approval: APPROVAL }, "approval"),
    run: show,
  },
  {
    name: "callgate.approvals.watch",
    description: "As `approvals.list`, once something has changed since `version`, or after the timeout.",
    effect: "read",
    schema: objectSchema({
      ...LIST_MEMBERS,
      version: { type: "integer", description: "The version that the caller has seen." },
      timeout_seconds: {
        type: "integer",
        description: `At most ${WATCH_SECONDS_MAX}, which is the default.`,
      },
    }),
    run: watch,
  },
  {
    name: "callgate.approvals.approve",
    description: "Releases the stored call, exactly as it was shown.",
    effect: "write",
    actsOn: "approval",
    schema: objectSchema(
      {
        approval: APPROVAL,
        digest: DIGEST,
        remember: {
          type: "object",
          description: "Stands in for the same question from now on.",
          properties: {
            what: { type: "string", enum: ["arguments", "tool"], description: "What it covers." },
            seconds: { type: "integer", description: "For how long." },
            calls: { type: "integer", description: "How often; needed for what spends or executes." },
          },
          required: ["what", "seconds"],
          additionalProperties: false,
        },
      },
      "approval",
      "digest",
    ),
    run: approve,
  },
  {
    name: "callgate.approvals.refuse",
    description: "Refuses the call; an equal one of its role is not asked again for a while.",
    effect: "write",
    actsOn: "approval",
    schema: objectSchema(
      {
        approval: APPROVAL,
        digest: DIGEST,
        reason: { type: "string", description: "For the audit; the caller does not hear it." },
      },
      "approval",
    ),
    run: refuse,
  },
];
