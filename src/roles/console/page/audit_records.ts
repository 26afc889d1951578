// Records of the audit as an export gives them, and what each says in words. A record that can't be read is
// still shown, as what it is. Texts are as they stand in the record: whoever shows them makes them visible.

import { counted } from "../../../base/json_text.ts";
import { span } from "../../../base/time_text.ts";
import { type CallName, callText, type Labelled, labelsText } from "../../../client/answers.ts";

export interface AuditRecord {
  readonly seq: string;
  readonly at_ms: number;
  readonly kind: string;
  readonly role?: string;
  readonly session?: string;
  readonly call?: string;
  readonly tool?: string;
  readonly decision?: string;
  readonly row?: string;
  readonly grant?: string;
  readonly grants?: readonly string[];
  readonly condition?: string;
  readonly denied?: string;
  readonly taint?: Labelled;
  readonly class?: string;
  readonly untrusted?: boolean;
  readonly status?: string;
  readonly code?: string;
  readonly count?: number;
  readonly state?: string;
  readonly approval?: string;
  readonly provider?: string;
  readonly of?: string;
  readonly store?: string;
  readonly raised_by?: CallName;
  readonly before?: Labelled | string;
  readonly reason?: string;
  readonly by?: { readonly role: string; readonly uid?: number };
  readonly to?: readonly object[];
  readonly frozen?: boolean;
  readonly effect?: string;
  readonly tools?: readonly string[];
  readonly why?: string;
  readonly how?: string;
  readonly what?: string;
  readonly subject?: string;
  readonly opened_by?: string;
  readonly accepted_by?: string;
  readonly uid?: number;
  readonly first_seq?: string;
  readonly last_seq?: string;
  readonly message_bytes?: number;
  readonly args_bytes?: number;
}

export interface AuditEntry {
  readonly hash: string;
  /** undefined: the line can't be read. */
  readonly record: AuditRecord | undefined;
  /** The line as it came. */
  readonly line: string;
}

/** A line of `callgate.audit.export`. */
export function readLine(line: string): AuditEntry {
  try {
    const { hash, record } = JSON.parse(line) as { readonly hash?: unknown; readonly record?: unknown };
    return { hash: typeof hash === "string" ? hash : "", record: recordOf(record), line };
  } catch {
    return { hash: "", record: undefined, line };
  }
}

function recordOf(value: unknown): AuditRecord | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { seq, at_ms: atMs, kind } = value as Readonly<Record<string, unknown>>;
  const isRecord = typeof seq === "string" && typeof atMs === "number" && typeof kind === "string";
  return isRecord ? (value as AuditRecord) : undefined;
}

/** How something is to be taken, as badges have it. */
type Tone = "plain" | "good" | "warn" | "bad" | "info";

/** What a record tells, in a few words. */
export interface Told {
  readonly title: string;
  readonly detail: string;
  readonly tone: Tone;
}

export function recordWords(record: AuditRecord): Told {
  return (WORDS[record.kind] ?? other)(record);
}

type Words = (record: AuditRecord) => Told;

const WORDS: Readonly<Record<string, Words>> = {
  dispatch: (one) => ({
    title: one.approval === undefined ? "Allowed and sent" : "Approved and sent",
    detail: decisionDetail(one),
    tone: "plain",
  }),
  decision: (one) => ({ ...VERDICTS[one.decision ?? ""], ...decided(one) }),
  repeated: (one) => ({ title: `Decided again, ${times(one)}`, detail: decisionDetail(one), tone: "plain" }),
  failed: (one) => ({
    title: "Failed before it ran",
    detail: joined([one.code, one.count === 1 ? undefined : times(one)]),
    tone: "warn",
  }),
  part: (one) => ({ title: "Part of a result", detail: contents(one), tone: "plain" }),
  outcome: ended,
  settled: (one) => ({ ...ended(one), title: `Settled by ${actor(one)} as ${one.status ?? "?"}` }),
  withdrawn: () => ({ title: "Withdrawn before it ran", detail: "", tone: "plain" }),
  delivery: (one) => ({ title: `Answer given again (${one.how ?? "?"})`, detail: "", tone: "plain" }),
  approval: question,
  taint: (one) => ({
    title: `Taint of ${scope(one)} rose to ${labels(one)}`,
    detail: one.raised_by === undefined ? "" : `by ${callText(one.raised_by)}`,
    tone: "warn",
  }),
  endorsed: (one) => ({
    title: `Taint of ${scope(one)} lowered to ${labels(one)}`,
    detail: joined([`by ${actor(one)}`, was(one), one.reason]),
    tone: "info",
  }),
  session_opened: (one) => ({ title: "Session opened", detail: `by ${actor(one)}`, tone: "info" }),
  session_closed: (one) => ({ title: "Session closed", detail: `by ${actor(one)}`, tone: "info" }),
  frozen: (one) => ({
    title: `${one.session === undefined ? "Role" : "Session"} ${one.frozen === true ? "frozen" : "let go on"}`,
    detail: `by ${actor(one)}`,
    tone: one.frozen === true ? "bad" : "info",
  }),
  pinned: (one) => ({
    title: "Definition of a tool pinned",
    detail: `accepted by ${one.accepted_by ?? "?"}`,
    tone: "info",
  }),
  grant_added: (one) => ({
    title: `Grant ${one.grant ?? "?"} added`,
    detail: joined([`${one.effect ?? "?"} ${(one.tools ?? []).join(", ")}`, `by ${actor(one)}`, one.reason]),
    tone: "info",
  }),
  grant_gone: (one) => ({
    title: `Grant ${one.grant ?? "?"} gone`,
    detail: joined([one.why, `by ${actor(one)}`]),
    tone: "info",
  }),
  change: (one) => ({
    title: one.what ?? "?",
    detail: joined([one.subject, `by ${actor(one)}`]),
    tone: "info",
  }),
  peer_refused: (one) => ({
    title: `A peer was turned away${(one.count ?? 1) === 1 ? "" : `, ${times(one)}`}`,
    detail: joined([one.why, one.uid === undefined ? undefined : `uid ${one.uid}`]),
    tone: "warn",
  }),
  sealed: (one) => ({ title: "Segment sealed", detail: stretch(one), tone: "plain" }),
  removed: (one) => ({
    title: "Old records removed",
    detail: joined([stretch(one), one.why]),
    tone: "plain",
  }),
  restored: () => ({ title: "Restored from a backup", detail: "", tone: "warn" }),
};

function other(record: AuditRecord): Told {
  return { title: record.kind, detail: "", tone: "plain" };
}

const VERDICTS: Readonly<Record<string, { readonly title: string; readonly tone: Tone }>> = {
  allow: { title: "Allowed", tone: "good" },
  ask: { title: "To be asked", tone: "warn" },
  deny: { title: "Denied", tone: "bad" },
};

function decided(record: AuditRecord): Told {
  const { title, tone } = VERDICTS[record.decision ?? ""] ?? { title: "Decided", tone: "plain" };
  return { title, tone, detail: decisionDetail(record) };
}

/** The reason of a denial, the grant and its condition. */
export function decisionDetail({ denied, grant, row, condition }: AuditRecord): string {
  const by =
    grant === undefined ? (denied === undefined ? `row ${row ?? "?"}` : undefined) : `grant ${grant}`;
  return joined([denied, by, condition === "error" ? "its condition errors" : undefined]);
}

function ended(record: AuditRecord): Told {
  const { status, code } = record;
  const tone: Tone = status === "result" ? "good" : status === "denied" ? "bad" : "warn";
  const title = status === "result" ? "Result" : `Ended: ${[status, code].filter(Boolean).join(", ")}`;
  return { title, detail: contents(record), tone };
}

function contents(record: AuditRecord): string {
  const bytes = record.message_bytes;
  return joined([labels(record), bytes === undefined ? undefined : counted(bytes, "byte")]);
}

const QUESTIONS: Readonly<Record<string, { readonly title: string; readonly tone: Tone }>> = {
  asked: { title: "A person is asked", tone: "warn" },
  approved: { title: "Approved", tone: "good" },
  refused: { title: "Refused", tone: "bad" },
  expired: { title: "Question expired", tone: "warn" },
  withdrawn: { title: "Question withdrawn", tone: "plain" },
  void: { title: "Question void", tone: "warn" },
};

function question(record: AuditRecord): Told {
  const { title, tone } = QUESTIONS[record.state ?? ""] ?? {
    title: `Question ${record.state}`,
    tone: "plain",
  };
  const by = record.by === undefined ? undefined : `by ${actor(record)}`;
  const grants = record.grants?.length ? `asked by ${record.grants.join(", ")}` : undefined;
  return { title, tone, detail: joined([by, grants]) };
}

function scope({ of, role, session, store }: AuditRecord): string {
  if (of === "store") return `store ${store ?? "?"}`;
  return of === "session" ? `session ${session ?? "?"}` : `role ${role ?? "?"}`;
}

/** A record's own labels. */
export function labelsOf({ class: name, untrusted }: AuditRecord): Labelled | undefined {
  return name === undefined ? undefined : { class: name, untrusted: untrusted !== false };
}

function labels(record: AuditRecord): string {
  const own = labelsOf(record);
  return own === undefined ? "?" : labelsText(own);
}

function was({ before }: AuditRecord): string | undefined {
  return typeof before === "object" ? `it was ${labelsText(before)}` : undefined;
}

function actor({ by }: AuditRecord): string {
  if (by === undefined) return "nobody";
  return by.uid === undefined ? by.role : `${by.role} (uid ${by.uid})`;
}

function times({ count = 1 }: AuditRecord): string {
  return counted(count, "time");
}

function stretch(record: AuditRecord): string {
  return `records ${record.first_seq ?? "?"} to ${record.last_seq ?? "?"}`;
}

function joined(parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== "").join("; ");
}

/** How long something took, in the unit that fits. */
export function took(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : span(ms);
}
