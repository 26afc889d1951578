// What was decided about a call, from the audit: for calls that the process does not remember, of an earlier run or
// long ago. Looked for backwards, in turns and up to a bound.
// Invariant: what is said of a call stands in a record that names it; denials that were only counted are told as
// what they are, records of their kind.

import type { FailCode } from "../base/faults.ts";
import { DATA_CLASSES, type Labels } from "../base/labels.ts";
import type { AuditLine, AuditReader } from "../store/port.ts";
import type { CallKey, DecisionRecord } from "../store/records.ts";
import { VARIOUS } from "./audit_budget.ts";
import { recordAtMs } from "./audit_filter.ts";

/** Records of one turn; most of them are passed over after one look at their text. */
const TURN_RECORDS = 1024;
/** Records that one search looks at, at most. */
export const SEARCHED_MAX = 262_144;
/** Within so many records behind a call's last one its end is found. */
const ENDING_RECORDS = 2048;
const COUNTED_MAX = 8;
/** Between a decision to ask and the question, which are written together. */
const QUESTION_RECORDS = 16;

/** A decision as the audit tells of it. */
export type ToldDecision = Omit<DecisionRecord, "reason"> & {
  /** Who asked; undefined: the record does not say, as with a denial. */
  readonly uid: number | undefined;
  /** The question that was asked about it, or whose approval released it. */
  readonly approval: string | undefined;
  /** Of a question: whose it is. */
  readonly grants: readonly string[];
};

export type Decided = Omit<ToldDecision, "grants">;

/** Denials of one kind within a minute, beyond the first. */
export interface CountedDenials {
  /** The first of them; their count does not include it. */
  readonly decision: Decided;
  readonly count: number;
}

export interface Searched {
  readonly decision: ToldDecision | undefined;
  /** It failed before anything was decided or dispatched. */
  readonly failed: FailCode | undefined;
  /** Of its session, the latest first; none where a record names the call. */
  readonly counted: readonly CountedDenials[];
  /** Time of the oldest record that was looked at; undefined: all that are kept were. */
  readonly sinceMs: number | undefined;
}

/** When a call was asked and, where it has, ended: it was decided in between. */
export interface CallTimes {
  readonly askedAtMs: number;
  readonly endedAtMs: number | undefined;
}

/**
 * The last decision on that call. `times`: where they are known, only records from then are looked at. `pause`: lets
 * others run; resolves with false where nobody waits for the answer any more.
 */
export async function searchDecision(
  audit: AuditReader,
  key: CallKey,
  times: CallTimes | undefined,
  pause: () => Promise<boolean>,
): Promise<Searched> {
  const search = new Search(key);
  let before = audit.head().seq + 1n;
  if (times?.endedAtMs !== undefined) before = endOf(audit, key, times.endedAtMs);
  for (let looked = 0; looked < SEARCHED_MAX; ) {
    const lines = audit.linesBefore(before, TURN_RECORDS);
    const last = lines.at(-1);
    if (last === undefined) return search.outcome(undefined);
    for (const line of lines) if (search.take(line)) return search.outcome(undefined);
    const atMs = recordAtMs(last.text);
    if (times !== undefined && atMs !== undefined && atMs < times.askedAtMs) return search.outcome(undefined);
    looked += lines.length;
    before = last.seq;
    if (!(await pause())) break;
  }
  return search.outcome(recordAtMs(audit.lines(before, 1)[0]?.text ?? "") ?? 0);
}

/** Behind the record of the call's end, which is written at that time or a little later. */
function endOf(audit: AuditReader, key: CallKey, endedAtMs: number): bigint {
  const begins = firstFrom(audit, endedAtMs);
  const names = nameTest(key);
  const lines = audit.lines(begins, ENDING_RECORDS);
  const ends = lines.findLast(({ text }) => names(text));
  const last = ends ?? lines.at(-1);
  return last === undefined ? begins : last.seq + 1n;
}

/** The number of the first record that was written then or later. Times only rise along the chain. */
function firstFrom(audit: AuditReader, atMs: number): bigint {
  let low = 1n;
  let high = audit.head().seq + 1n;
  while (low < high) {
    const middle = (low + high) / 2n;
    const [line] = audit.lines(middle, 1);
    if (line !== undefined && (recordAtMs(line.text) ?? 0) < atMs) low = line.seq + 1n;
    else high = middle;
  }
  return low;
}

/** Names of roles and sessions are ASCII without quotes: they stand in a record's text as they are. */
function nameTest({ role, session, call }: CallKey): (text: string) => boolean {
  const name = `"role":"${role}","session":"${session}","call":"${call}"`;
  return (text) => text.includes(name);
}

class Search {
  readonly #key: CallKey;
  readonly #names: (text: string) => boolean;
  #decision: Decided | undefined;
  #approval: string | undefined;
  #grants: readonly string[] = [];
  /** Records looked at since the decision was met. */
  #behind = 0;
  #failed: FailCode | undefined;
  readonly #counted: CountedDenials[] = [];

  constructor(key: CallKey) {
    this.#key = key;
    this.#names = nameTest(key);
  }

  /** true: it is what was looked for. A question is told beside its decision, so a little is looked at behind that. */
  take({ text }: AuditLine): boolean {
    if (this.#names(text)) this.#takeNamed(text);
    if (text.includes('"kind":"repeated"')) this.#takeCounted(text);
    if (this.#decision === undefined) return false;
    this.#behind += 1;
    const isWhole = this.#decision.verdict !== "ask" || this.#grants.length > 0;
    return isWhole || this.#behind > QUESTION_RECORDS;
  }

  #takeNamed(text: string): void {
    const members = membersOf(text);
    if (members === undefined || members["call"] !== this.#key.call.toString()) return; // named as another's cause
    if (members["session"] !== this.#key.session || members["role"] !== this.#key.role) return;
    if (members["kind"] === "repeated") return; // it has a record of its own
    if (members["kind"] === "failed") this.#failed ??= members["code"] as FailCode;
    else this.#decision ??= toldDecision(this.#key, members);
    if (members["kind"] === "approval") this.#takeQuestion(members);
  }

  /** What became of it is told later, so before the question itself is met here. */
  #takeQuestion(members: Members): void {
    this.#approval ??= text(members["approval"]);
    const grants = members["grants"];
    if (Array.isArray(grants)) this.#grants = grants.filter((one) => typeof one === "string");
  }

  #takeCounted(text: string): void {
    if (this.#counted.length >= COUNTED_MAX || !text.includes(`"role":"${this.#key.role}"`)) return;
    const members = membersOf(text) ?? {};
    const { kind, role, session, count } = members;
    if (kind !== "repeated" || role !== this.#key.role) return;
    if (session !== this.#key.session && session !== VARIOUS) return;
    const key = { role: this.#key.role, session, call: BigInt(String(members["call"])) };
    const decision = toldDecision(key, members);
    if (decision?.verdict === "deny" && typeof count === "number") this.#counted.push({ decision, count });
  }

  outcome(sinceMs: number | undefined): Searched {
    const isNamed = this.#decision !== undefined || this.#failed !== undefined;
    const { approval = this.#approval } = this.#decision ?? {};
    return {
      decision: this.#decision && { ...this.#decision, approval, grants: this.#grants },
      failed: this.#failed,
      counted: isNamed ? [] : this.#counted,
      sinceMs: isNamed ? undefined : sinceMs,
    };
  }
}

type Members = Readonly<Record<string, unknown>>;

/** undefined: it is damaged. */
function membersOf(text: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Members) : undefined;
  } catch {
    return undefined;
  }
}

/** undefined: it tells of no decision. */
function toldDecision(key: CallKey, members: Members): Decided | undefined {
  const verdict = members["decision"];
  if (verdict !== "allow" && verdict !== "ask" && verdict !== "deny") return undefined;
  const condition = members["condition"];
  const uid = members["uid"];
  return {
    key,
    tool: text(members["tool"]) ?? "(unknown)",
    atMs: typeof members["at_ms"] === "number" ? members["at_ms"] : 0,
    verdict,
    row: text(members["row"]) ?? "",
    grant: text(members["grant"]),
    denied: text(members["denied"]),
    taint: labels(members["taint"]),
    condition: condition === "match" || condition === "error" ? condition : "none",
    uid: typeof uid === "number" ? uid : undefined,
    approval: text(members["approval"]),
  };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** What can't be read counts as the highest. */
function labels(value: unknown): Labels {
  const told = typeof value === "object" && value !== null ? (value as Members) : {};
  const name = DATA_CLASSES.find((one) => one === told["class"]);
  return name === undefined
    ? { class: "restricted", untrusted: true }
    : { class: name, untrusted: told["untrusted"] !== false };
}
