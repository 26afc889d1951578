// One line of the log, or of the audit as it is exported, as what a person asks of it: when, who, which tool,
// what was decided by which rule, how long it took. Reads only; whatever does not fit is told as it is.

import { localTime } from "../base/time_text.ts";

export const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

export interface Entry {
  /** The line's JSON, without a syslog priority. */
  readonly json: string;
  readonly atMs: number | undefined;
  /** Of the log only. */
  readonly level: Level | undefined;
  /** The log's event, the audit's kind. */
  readonly event: string;
  readonly role: string | undefined;
  readonly session: string | undefined;
  readonly call: string | undefined;
  readonly tool: string | undefined;
  readonly decision: string | undefined;
  /** What was decided, or came of it: its first word is one that the broker has for it. */
  readonly outcome: string | undefined;
  /** The grants that it rests on, and the row of the decision. */
  readonly rule: string | undefined;
  readonly durationMs: number | undefined;
  /** Of the audit only. */
  readonly seq: bigint | undefined;
  /** Everything else, as names and texts. Not escaped. */
  readonly rest: readonly (readonly [name: string, text: string])[];
}

type Members = Readonly<Record<string, unknown>>;

/** A file that was emptied under a daemon that goes on writing where it was begins with a hole. */
const BEFORE_JSON = /^\0*(?:<[0-7]>)?/;

/** undefined: the line is no line of the log. */
export function logEntry(line: string): Entry | undefined {
  const json = line.replace(BEFORE_JSON, "");
  const members = objectOf(json);
  if (members === undefined) return undefined;
  const { time, level, event, ...others } = members;
  const name = word(event) ?? "";
  return {
    ...shared(json, others, decisionLogged(name, others)),
    atMs: typeof time === "string" ? moment(time) : undefined,
    level: LEVELS.find((one) => one === level),
    event: name,
    seq: undefined,
  };
}

/** One that ended as denied was asked about, and nobody let it through. */
function decisionLogged(event: string, { status }: Members): string | undefined {
  return event === "call.ended" && status === "denied" ? "deny" : LOGGED.get(event);
}

/** What an event says of the decision. A call that ended otherwise was let through, at once or by a person. */
const LOGGED: ReadonlyMap<string, string> = new Map([
  ["call.denied", "deny"],
  ["call.ended", "allow"],
  ["approval.asked", "ask"],
]);

/** undefined: the line is none of an export. */
export function auditEntry(line: string): Entry | undefined {
  const members = objectOf(line)?.["record"];
  if (!isObject(members)) return undefined;
  const { seq, at_ms: at, kind, decision, ...others } = members;
  return {
    ...shared(line, others, word(decision)),
    atMs: typeof at === "number" ? at : undefined,
    level: undefined,
    event: word(kind) ?? "",
    seq: typeof seq === "string" && /^[0-9]{1,20}$/.test(seq) ? BigInt(seq) : undefined,
  };
}

function shared(json: string, members: Members, decision: string | undefined) {
  const { role, session, call, tool, duration_ms: duration, waited_ms: waited } = members;
  const took = [duration, waited].find((ms) => typeof ms === "number");
  const labels = labelsOf(members);
  return {
    json,
    role: word(role),
    session: word(session),
    call: word(call),
    tool: word(tool),
    decision,
    outcome: outcomeOf(members, decision) ?? labels,
    rule: ruleOf(members),
    durationMs: took,
    rest: Object.entries(labels === undefined ? members : { ...members, labels })
      .filter(([name, value]) => !isTold(name, value, members) && !name.endsWith("_hmac"))
      .filter(([name]) => name !== "reason" || decision !== "deny") // told as the outcome
      .map(([name, value]): readonly [string, string] => [named(name, value), textOf(name, value)]),
  };
}

/** Members that have a place of their own. Digests say nothing to a person; --json has them. */
const TOLD: ReadonlySet<string> = new Set([
  ...["role", "session", "tool", "duration_ms", "waited_ms", "status", "code", "state", "denied"],
  ...["row", "grant", "grants", "class", "untrusted"],
]);

/** What is about no role's doing has its code with the rest, and may have a number of grants. */
function isTold(name: string, value: unknown, { role }: Members): boolean {
  if ((name === "code" && role === undefined) || (name === "grants" && typeof value === "number"))
    return false;
  return TOLD.has(name);
}

/** `internal,untrusted`, of a result or a taint. */
function labelsOf({ class: dataClass, untrusted }: Members): string | undefined {
  return typeof dataClass === "string"
    ? `${dataClass},${untrusted === true ? "untrusted" : "trusted"}`
    : undefined;
}

/** `deny no_grant`, `result`, `failed timeout`, `ask`, `approved`. */
function outcomeOf(members: Members, decision: string | undefined): string | undefined {
  const { denied, reason, status, code, state, role } = members;
  if (decision === "deny") return joined([decision, denied ?? reason]);
  if (status !== undefined) return joined([status, code]);
  return word(state) ?? decision ?? (role === undefined ? undefined : word(code));
}

function ruleOf({ grant, grants, row }: Members): string | undefined {
  const named = [grant, grants].flat().filter((id) => typeof id === "string");
  const ids = joined(named, "+");
  const decided = word(row);
  return joined([ids, decided && `(${decided})`]);
}

function joined(parts: readonly unknown[], by = " "): string | undefined {
  const words = parts.map(word).filter((part) => part !== undefined);
  return words.length === 0 ? undefined : words.join(by);
}

function objectOf(json: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function word(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function moment(text: string): number | undefined {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

const TIME_NAME = /_(?:at|until)_ms$/;

function isTime(name: string, value: unknown): value is number {
  return TIME_NAME.test(name) && typeof value === "number";
}

/** Enough of it to tell one from another; --json has all. */
const HASH = /^[0-9a-f]{64}$/;

function named(name: string, value: unknown): string {
  return isTime(name, value) ? name.slice(0, -"_ms".length) : name;
}

function textOf(name: string, value: unknown): string {
  if (isTime(name, value)) return localTime(value);
  if (Array.isArray(value)) return value.map((one) => textOf("", one)).join("+");
  if (typeof value === "string") return HASH.test(value) ? `${value.slice(0, 12)}…` : value;
  if (!isObject(value)) return JSON.stringify(value);
  const { role, session, call, uid } = value;
  const labels = labelsOf(value);
  if (labels !== undefined) return labels;
  if (typeof call === "string") return joined([role, session, call], "/") ?? "";
  if (typeof role === "string")
    return uid === undefined || uid === null ? role : `${role},uid ${String(uid)}`;
  return JSON.stringify(value);
}
