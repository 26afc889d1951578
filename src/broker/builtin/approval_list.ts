// `callgate.approvals.list`, and what `watch` answers: questions page by page. Those that wait come first, in the
// order of asking, then those that no longer wait, the latest first. A question that ends while somebody pages
// is told again with its end; none is left out.
// Invariant: whatever waits, only one page of it is made into text.

import { createHash } from "node:crypto";
import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import { CLEAN, join, type Labels } from "../../base/labels.ts";
import type { ApprovalRecord } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import type { LiveCall } from "../live.ts";
import { listed, questionLabels } from "./approval_views.ts";
import { integer, type MemberSchema, text } from "./arguments.ts";
import { shown } from "./builtin.ts";
import { sessionLabels } from "./visibility.ts";

const LIST_MAX = 200;
/** Characters of a list: within a frame however much of it is escaped, and each line of it is short. */
const LIST_CHARS_MAX = 200_000;

/** Where a page ended: it says enough to go on also when that question is no longer kept. */
interface Place {
  readonly part: "waiting" | "ended";
  readonly atMs: number;
  readonly id: string;
}

interface Wanted {
  readonly role: string | undefined;
  readonly session: string | undefined;
  readonly tool: string | undefined;
  readonly state: "pending" | "ended" | "all";
  readonly after: Place | undefined;
  readonly limit: number;
}

type Placed = Place & { readonly question: ApprovalRecord };

export function listQuestions(core: Core, call: BuiltinCall): BuiltinOutcome {
  const wanted = readWanted(core, call);
  if (!wanted.ok) return wanted;
  const { state, limit } = wanted.value;
  const waiting = new Part(core, call, wanted.value);
  for (const live of core.approvals.waiting(wanted.value.role))
    if (live.question !== undefined && isWritten(live)) waiting.look(waitingPlace(live.question));
  const ended = new Part(core, call, wanted.value);
  if (state !== "pending")
    for (const question of core.approvals.ended(wanted.value.role)) ended.look(endedPlace(question));
  const fitting = state === "ended" ? ended.inOrder() : [...waiting.inOrder(), ...ended.inOrder()];
  const { rows, lines, more } = page(core, fitting, limit);
  const last = rows.at(-1);
  const next = more && last !== undefined ? placeText(last) : null;
  const content = { approvals: lines, version: versionFor(core, call), more, next, total: waiting.total };
  return shown(content, join(labelsOf(core, rows), join(waiting.labels, ended.labels)));
}

/**
 * Another one whenever what the caller may see has changed. The table's own would tell who is no operator when, and how
 * often, others are asked about.
 */
export function versionFor(core: Core, call: BuiltinCall): number {
  if (call.role.operator) return core.approvals.version;
  const seen = createHash("sha256");
  for (const { question } of core.approvals.waiting(undefined))
    if (question !== undefined && maySee(core, call, question) && isTold(core, question))
      seen.update(`${question.id} `);
  for (const question of core.approvals.ended(undefined))
    if (maySee(core, call, question)) seen.update(`${question.id} ${question.state} `);
  return seen.digest().readUIntBE(0, 6);
}

/** Questions that wait, or that no longer do: how many fit, and which may be on the page that is asked for. */
class Part {
  /** Of all that fit, whichever page they are on. */
  total = 0;
  /** What is missing, and how many there are, tells too: so for who is no operator, of all that it asked about. */
  labels: Labels = CLEAN;
  readonly #core: Core;
  readonly #call: BuiltinCall;
  readonly #wanted: Wanted;
  readonly #sessions = new Set<string>();
  readonly #candidates: Placed[] = [];
  /** Of the role that is looked at now: each role's come in the order of asking, so no more than a page of them is needed. */
  #role = "";
  #ofRole = 0;
  #lastAtMs = 0;

  constructor(core: Core, call: BuiltinCall, wanted: Wanted) {
    this.#core = core;
    this.#call = call;
    this.#wanted = wanted;
  }

  look(one: Placed): void {
    const { question } = one;
    const { session, tool, after } = this.#wanted;
    if (session !== undefined && question.key.session !== session) return;
    if (!maySee(this.#core, this.#call, question)) return;
    this.#label(question);
    if (tool !== undefined && question.tool !== tool) return;
    this.total += 1;
    if (after !== undefined && inOrder(one, after) <= 0) return;
    if (question.key.role !== this.#role) {
      this.#role = question.key.role;
      this.#ofRole = 0;
    }
    // Of one millisecond all are needed: they are told in the order of their ids.
    const isNeeded = this.#ofRole <= this.#wanted.limit || one.atMs === this.#lastAtMs;
    if (one.part === "waiting" && !isNeeded) return;
    this.#ofRole += 1;
    this.#lastAtMs = one.atMs;
    this.#candidates.push(one);
  }

  inOrder(): readonly Placed[] {
    return this.#candidates.sort(inOrder);
  }

  #label({ key: { role, session } }: ApprovalRecord): void {
    if (this.#call.role.operator || this.#sessions.has(`${role} ${session}`)) return;
    this.#sessions.add(`${role} ${session}`);
    this.labels = join(this.labels, sessionLabels(this.#core, role, session));
  }
}

function readWanted(core: Core, call: BuiltinCall): Result<Wanted, CallFault> {
  const { args } = call;
  const state = text(args, "state");
  const shownStates = state === "ended" || state === "all" ? state : "pending";
  const given = text(args, "after");
  const after = given === undefined ? undefined : readPlace(core, call, given, shownStates);
  if (given !== undefined && after === undefined)
    return fault(
      callFault(
        "bad_arguments",
        `\`after\` names no question that is still kept for the caller to look at: list from the beginning. ${NOTHING_RAN}`,
      ),
    );
  return ok({
    role: text(args, "role"),
    session: text(args, "session"),
    tool: text(args, "tool"),
    state: shownStates,
    after,
    limit: Math.max(1, Math.min(integer(args, "limit") ?? LIST_MAX, LIST_MAX)),
  });
}

const PLACE = /^(waiting|ended)\.([0-9]{1,15})\.([^.]{1,128})$/;

function placeText({ part, atMs, id }: Place): string {
  return `${part}.${atMs}.${id}`;
}

/** The `next` of an answer, or the id of a question. */
function readPlace(core: Core, call: BuiltinCall, given: string, state: Wanted["state"]): Place | undefined {
  const [, part, atMs, id = ""] = PLACE.exec(given) ?? [];
  if (part === "waiting" || part === "ended") return { part, atMs: Number(atMs), id };
  const question = core.approvals.find(given);
  if (question === undefined || !maySee(core, call, question) || !isTold(core, question)) return undefined;
  return question.state === "pending" || state === "pending" ? waitingPlace(question) : endedPlace(question);
}

function waitingPlace(question: ApprovalRecord): Placed {
  return { part: "waiting", atMs: question.askedAtMs, id: question.id, question };
}

function endedPlace(question: ApprovalRecord): Placed {
  const atMs = question.decidedAtMs ?? question.askedAtMs;
  return { part: "ended", atMs, id: question.id, question };
}

/** A total order; it depends on nothing but the two. */
function inOrder(a: Place, b: Place): number {
  if (a.part !== b.part) return a.part === "waiting" ? -1 : 1;
  const forward = a.atMs - b.atMs || (a.id < b.id ? -1 : Number(a.id > b.id));
  return a.part === "waiting" ? forward : -forward;
}

function page(core: Core, all: readonly Placed[], limit: number) {
  const rows: Placed[] = [];
  const lines: object[] = [];
  let chars = 0;
  for (const one of all) {
    if (rows.length >= limit) return { rows, lines, more: true };
    const line = listed(core, one.question);
    chars += JSON.stringify({ ...line, call: "" }).length;
    if (rows.length > 0 && chars > LIST_CHARS_MAX) return { rows, lines, more: true };
    rows.push(one);
    lines.push(line);
  }
  return { rows, lines, more: false };
}

function labelsOf(core: Core, rows: readonly Placed[]): Labels {
  let labels = CLEAN;
  for (const { question } of rows) labels = join(labels, questionLabels(core, question));
  return labels;
}

/** One whose question is not written yet nobody has been told of. */
export function isTold(core: Core, question: ApprovalRecord): boolean {
  const live = core.approvals.open(question.id);
  return live === undefined || isWritten(live);
}

function isWritten({ stage, unwritten }: LiveCall): boolean {
  return stage === "answering" || unwritten === 0;
}

/** As with a replay, another user of the same role is not the one who asked. */
export function maySee(core: Core, call: BuiltinCall, { key, uid }: ApprovalRecord): boolean {
  if (call.role.operator) return true;
  if (core.sessions.find(key.role, key.session)?.openedBy === call.role.name) return true;
  if (key.role !== call.role.name || uid !== call.peer.connection.peer?.uid) return false;
  return !call.role.isolated || key.session === call.session.id;
}

export const LIST_MEMBERS: Readonly<Record<string, MemberSchema>> = {
  role: { type: "string", description: "Of this role only." },
  session: { type: "string", description: "Of this session only." },
  tool: { type: "string", description: "About this tool only." },
  state: {
    type: "string",
    enum: ["pending", "ended", "all"],
    description: "Default `pending`. `ended`: the latest of those that no longer wait.",
  },
  after: {
    type: "string",
    description: "For what comes behind: the `next` of the answer before, or the id of a question.",
  },
  limit: { type: "integer", description: `At most ${LIST_MAX}.` },
};
