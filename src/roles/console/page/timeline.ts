// A session's life out of its audit records: each call as one entry, what else happened as entries between
// them, and the taint that the session had after each. Pure.
// Invariants: entries are newest first; nothing is left out, what can't be read is an entry too; a taint
// that no record tells is unknown, never guessed.

import { DATA_CLASSES, join, type Labels } from "../../../base/labels.ts";
import type { CallName, Labelled } from "../../../client/answers.ts";
import { type AuditEntry, type AuditRecord, labelsOf } from "./audit_records.ts";

/** A rise or fall of the taint. */
export interface Step {
  /** undefined: it was not known before. */
  readonly from: Labels | undefined;
  readonly to: Labels;
  /** `rose`, or lowered by an operator; `elsewhere`: it had risen when this was decided, by nothing in this session. */
  readonly how: "rose" | "lowered" | "elsewhere";
  readonly by: CallName | undefined;
}

export interface TimelineEntry {
  /** The newest record's number. */
  readonly seq: string;
  readonly atMs: number;
  /** Set where it is about a call of this session. */
  readonly call: string | undefined;
  readonly tool: string | undefined;
  /** Oldest first; empty: a line that can't be read. */
  readonly records: readonly AuditRecord[];
  /** From the decision to the outcome. */
  readonly tookMs: number | undefined;
  /** The taint from here on, as far as it is told. */
  readonly after: Labels | undefined;
  readonly steps: readonly Step[];
}

/** `entries`: newest first, as exported backwards. */
export function timeline(entries: readonly AuditEntry[]): readonly TimelineEntry[] {
  const groups = grouped(entries.toReversed());
  const band = bandOf(groups.flatMap(({ records }) => records).toSorted(bySeq));
  return groups.map((group) => entryOf(group, band)).reverse();
}

function bySeq(a: AuditRecord, b: AuditRecord): number {
  return compareSeq(a.seq, b.seq);
}

/** Decimal numbers without leading zeros, of any length. */
export function compareSeq(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

interface Group {
  readonly records: AuditRecord[];
}

/** Of a call all its records stand where its last one does. */
function grouped(oldestFirst: readonly AuditEntry[]): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const { record, line } of oldestFirst) {
    const key = record === undefined ? `line ${line}` : (callKey(record) ?? `seq ${record.seq}`);
    const group = groups.get(key) ?? { records: [] };
    groups.delete(key);
    groups.set(key, group);
    if (record !== undefined) group.records.push(record);
  }
  return [...groups.values()];
}

/** The call whose part a record is: its own, or the one that raised the taint of this session, or of its role. */
function callKey({ kind, call, raised_by: by, role, session }: AuditRecord): string | undefined {
  if (call !== undefined) return `call ${session} ${call}`;
  const own = kind === "taint" && by?.role === role && (session === undefined || by?.session === session);
  return own ? `call ${by?.session} ${by?.call}` : undefined;
}

interface Band {
  readonly after: Labels | undefined;
  readonly steps: readonly Step[];
}

/** The taint behind each record, by its number. */
function bandOf(oldestFirst: readonly AuditRecord[]): ReadonlyMap<string, Band> {
  const band = new Map<string, Band>();
  let now: Labels | undefined;
  for (const record of oldestFirst) {
    const steps: Step[] = [];
    for (const { to, how, by } of told(record, now)) {
      if (!equal(now, to)) steps.push({ from: now, to, how, by });
      now = to;
    }
    band.set(record.seq, { after: now, steps });
  }
  return band;
}

type Told = Pick<Step, "to" | "how" | "by">;

function told(record: AuditRecord, now: Labels | undefined): readonly Told[] {
  const own = asLabels(labelsOf(record));
  switch (record.kind) {
    case "dispatch":
    case "decision":
    case "approval": {
      const to = asLabels(record.taint);
      return to === undefined ? [] : [{ to, how: "elsewhere", by: undefined }];
    }
    case "taint":
      if (own === undefined || record.of === "store") return [];
      return [{ to: joined(now, own), how: "rose", by: record.raised_by }];
    case "outcome":
    case "part":
      // In role scope no record of the session's tells of the rise that a delivered answer brings.
      if (own === undefined || now === undefined || !isHeard(record)) return [];
      return [{ to: join(now, own), how: "rose", by: itself(record) }];
    case "endorsed":
      return own === undefined || record.of === "store" ? [] : [{ to: own, how: "lowered", by: undefined }];
    default:
      return []; // `repeated` tells of a taint that may be a minute old
  }
}

function joined(now: Labels | undefined, own: Labels): Labels {
  return now === undefined ? own : join(now, own);
}

/** Whether somebody was there to be given it. */
function isHeard({ kind, to = [] }: AuditRecord): boolean {
  return kind === "part" || to.length > 0;
}

function itself({ role, session = "", call = "" }: AuditRecord): CallName {
  return role === undefined ? { session, call } : { role, session, call };
}

/** A class that this page does not know counts as the highest. */
export function asLabels(labelled: Labelled | undefined): Labels | undefined {
  if (labelled === undefined) return undefined;
  const known = DATA_CLASSES.find((name) => name === labelled.class);
  return { class: known ?? "restricted", untrusted: labelled.untrusted };
}

function equal(a: Labels | undefined, b: Labels): boolean {
  return a?.class === b.class && a.untrusted === b.untrusted;
}

function entryOf({ records }: Group, band: ReadonlyMap<string, Band>): TimelineEntry {
  const last = records.at(-1);
  const named = records.find(({ call }) => call !== undefined);
  return {
    seq: last?.seq ?? "",
    atMs: last?.at_ms ?? 0,
    call: named?.call,
    tool: records.find(({ tool }) => tool !== undefined)?.tool,
    records,
    tookMs: tookMs(records),
    after: last && band.get(last.seq)?.after,
    steps: records.flatMap(({ seq }) => band.get(seq)?.steps ?? []),
  };
}

function tookMs(records: readonly AuditRecord[]): number | undefined {
  const began = records.find(({ kind }) => kind === "dispatch");
  const ended = records.find(({ kind }) => kind === "outcome");
  return began === undefined || ended === undefined ? undefined : ended.at_ms - began.at_ms;
}
