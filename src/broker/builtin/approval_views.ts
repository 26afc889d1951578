// What an approver is shown of a question: who asks, where it goes, the exact arguments, why it is asked,
// the taint, what an approval that is remembered would cover. What is long is cut in lists, never where it
// is decided.

import { type Json, type JsonObject, jsonTextInOrder, parseJsonObject } from "../../base/json.ts";
import { join, type Labels } from "../../base/labels.ts";
import { ARGUMENTS_LIMITS } from "../../base/limits.ts";
import type { ApprovalRecord, CallKey, CallRecord } from "../../store/records.ts";
import { equalDigest } from "../admit.ts";
import type { Core } from "../core.ts";
import { locate } from "../dispatch.ts";
import type { LiveCall } from "../live.ts";
import { storeItem } from "../new_call.ts";
import { needsNumber, rememberable, rememberedSessions, rememberUntilMsMax } from "../remembering.ts";
import { askingOf, type Standing, standing } from "../standing.ts";
import { grantWordsLabels } from "./grant_words.ts";
import { sessionLabels } from "./visibility.ts";

/** Characters of a destination's value in a list. */
const LISTED_CHARS = 200;
/** How many calls are looked at, and shown, that changed the same store since. */
const STORE_CALLS_READ = 1000;
const STORE_CALLS_SHOWN = 32;
/** Characters of their arguments that are looked through for the item; beyond, it may be any. */
const STORE_CHARS_READ = 262_144;

/** Labels of what a question shows: its words are its caller's, who had been given this; its grants' are their writers'. */
export function questionLabels(core: Core, { key, taint, grants }: ApprovalRecord): Labels {
  const asked = join(sessionLabels(core, key.role, key.session), taint);
  return join(asked, grantWordsLabels(core, grants));
}

/** One line of a list. */
export function listed(core: Core, question: ApprovalRecord) {
  const { key, decidedBy } = question;
  return {
    approval: question.id,
    role: key.role,
    uid: question.uid ?? null,
    pid: question.pid ?? null,
    session: key.session,
    call: key.call,
    tool: question.tool,
    effect: toolOf(core, question)?.effect ?? "execute",
    state: question.state,
    asked_at_ms: question.askedAtMs,
    expires_at_ms: question.expiresAtMs,
    row: question.row,
    grants: question.grants,
    destinations: shortDestinations(core, question),
    decided_by: decidedBy === undefined ? null : { role: decidedBy.role, uid: decidedBy.uid ?? null },
    decided_at_ms: question.decidedAtMs ?? null,
  };
}

/** Everything about one question; `live` undefined: it no longer waits. */
export function whole(core: Core, question: ApprovalRecord, live: LiveCall | undefined) {
  const text = question.arguments || recordedArguments(core, question);
  const args = argumentsOf(text);
  const now = live === undefined ? undefined : standing(core, live, question);
  return {
    ...listed(core, question),
    digest: now?.digest ?? "",
    arguments: text,
    destinations: destinations(core, question, args),
    keys: keys(core, question, args),
    taint: now?.taint ?? question.taint,
    asked_taint: question.taint,
    raised_by: question.raisedBy === undefined ? null : shownKey(question.raisedBy),
    definition: question.definition ?? null,
    policy: question.policy,
    asks: now === undefined ? [] : asks(now),
    doubt: doubt(core, now === undefined ? question.doubt : askingOf(now.verdict)?.doubt),
    store_changes: storeChanges(core, question, args),
    remember: remembering(core, now),
    now: now === undefined ? null : shownVerdict(now),
  };
}

/** Of a question that no longer waits. One that is void has freed its id: another call may have it by now. */
function recordedArguments(core: Core, { key, tool, equal }: ApprovalRecord): string {
  const text = core.store.findCall(key)?.arguments ?? "";
  return equalDigest(core, tool, argumentsOf(text))() === equal ? text : "";
}

function toolOf(core: Core, { tool }: ApprovalRecord) {
  const located = locate(core, tool);
  return located.ok ? located.value.tool : undefined;
}

function argumentsOf(text: string): JsonObject {
  const parsed = parseJsonObject(text, ARGUMENTS_LIMITS);
  return parsed.ok ? parsed.value : new Map();
}

function destinations(core: Core, question: ApprovalRecord, args: JsonObject) {
  const names = toolOf(core, question)?.destinations.filter((name) => args.has(name)) ?? [];
  return Object.fromEntries(names.map((name) => [name, plain(args.get(name) ?? null)]));
}

/** A list is asked for often, and the arguments may be long. */
const SHORT = new WeakMap<ApprovalRecord, { readonly [name: string]: unknown }>();

function shortDestinations(core: Core, question: ApprovalRecord) {
  if ((toolOf(core, question)?.destinations.length ?? 0) === 0) return {};
  const known = SHORT.get(question);
  if (known !== undefined) return known;
  const args = argumentsOf(question.arguments);
  const names = toolOf(core, question)?.destinations.filter((name) => args.has(name)) ?? [];
  const short = Object.fromEntries(names.map((name) => [name, cut(args.get(name) ?? null)]));
  SHORT.set(question, short);
  return short;
}

function cut(value: Json): unknown {
  const text = typeof value === "string" ? value : jsonTextInOrder(value);
  if (text.length <= LISTED_CHARS) return plain(value);
  return `${text.slice(0, LISTED_CHARS).toWellFormed()}…`;
}

/** All top-level names, destinations first. */
function keys(core: Core, question: ApprovalRecord, args: JsonObject): readonly string[] {
  const first = toolOf(core, question)?.destinations.filter((name) => args.has(name)) ?? [];
  return [...first, ...[...args.keys()].filter((name) => !first.includes(name))];
}

/** As JSON's own values; an integer that a double can't hold is its digits. */
function plain(value: Json): unknown {
  if (typeof value === "bigint")
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([name, member]) => [name, plain(member)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

function shownKey({ role, session, call }: CallKey) {
  return { role, session, call };
}

function asks({ verdict }: Standing) {
  const grants = askingOf(verdict)?.grants ?? [];
  return grants.map(({ id, reason, when, remember }) => ({
    grant: id,
    reason: reason ?? null,
    when: when?.source ?? null,
    remember,
  }));
}

function doubt(core: Core, key: CallKey | undefined) {
  if (key === undefined) return null;
  const record = core.store.findCall(key);
  const ended = record?.state === "ended";
  const code = ended ? (record.code ?? null) : "outcome_unknown";
  return { ...shownKey(key), code, ended_at_ms: ended ? record.endedAtMs : null };
}

function shownVerdict({ verdict }: Standing) {
  if (verdict.kind === "denied") return { verdict: verdict.kind, why: verdict.reason };
  const why = verdict.kind === "holds" ? null : verdict.fault.sentence;
  return { verdict: verdict.kind, why };
}

/** Calls that have, or may have, changed what this one would find: since the question was put. */
function storeChanges(core: Core, question: ApprovalRecord, args: JsonObject) {
  const tool = toolOf(core, question);
  if (tool?.store === undefined) return [];
  const item = storeItem(tool, args);
  const found: (CallKey & { readonly tool: string; readonly at_ms: number })[] = [];
  let read = 0;
  const room = { chars: STORE_CHARS_READ };
  for (const record of core.store.calls()) {
    read += 1;
    const older = record.state === "ended" && record.endedAtMs < question.askedAtMs;
    if (older || read > STORE_CALLS_READ || found.length >= STORE_CALLS_SHOWN) break;
    if (!changes(core, record, tool.store, item, room) || isSame(record.key, question.key)) continue;
    const at = record.state === "ended" ? record.endedAtMs : record.askedAtMs;
    found.push({ ...shownKey(record.key), tool: record.tool, at_ms: at });
  }
  return found;
}

function changes(
  core: Core,
  record: CallRecord,
  store: string,
  item: string | undefined,
  room: { chars: number },
): boolean {
  const located = locate(core, record.tool);
  if (!located.ok || located.value.tool.effect === "read" || located.value.tool.store !== store) return false;
  if (record.status === "denied") return false;
  if (item === undefined || located.value.tool.storeKey === undefined) return true;
  if (record.arguments.length > room.chars) return true;
  room.chars -= record.arguments.length;
  const other = storeItem(located.value.tool, argumentsOf(record.arguments));
  return other === undefined || other === item;
}

function isSame(a: CallKey, b: CallKey): boolean {
  return a.role === b.role && a.session === b.session && a.call === b.call;
}

/** What an approval that is remembered would cover, before anybody decides. */
function remembering(core: Core, now: Standing | undefined) {
  const ask = now === undefined ? undefined : rememberable(now);
  if (now === undefined || ask === undefined || !ask.ok) {
    const why = ask?.ok === false ? ask.fault : "It no longer waits";
    const none = { covers: "" };
    return { allowed: false, why, number_needed: false, arguments: none, tool: none, expires_max_ms: null };
  }
  return {
    allowed: true,
    why: null,
    number_needed: needsNumber(now),
    arguments: { covers: covers(core, now, "arguments") },
    tool: { covers: covers(core, now, "tool") },
    expires_max_ms: rememberUntilMsMax(ask.value, core.clock.nowMs()),
  };
}

function covers(core: Core, now: Standing, what: "arguments" | "tool"): string {
  const { question, taint, live } = now;
  const [session] = rememberedSessions(core, now, what);
  const where = session === undefined ? "every session" : `session ${session}`;
  const which = what === "arguments" ? "with exactly these arguments" : "with any arguments";
  const trust = taint.untrusted ? "untrusted content included" : "nothing untrusted";
  return `${question.tool} ${which}, for role ${live.key.role} in ${where}, while its taint is at most ${taint.class}, ${trust}`;
}
