// Audit records, in their order, to the spans of the calls that have ended. What has not is kept here, within bounds, and
// can be put into a file and taken out again. Pure. docs/audit.md says what each kind of record tells.
// Invariant: a call that was seen to begin becomes one group of spans, once; of one that began before, none.

import { type AuditEntry, type CallName, callIn, labelsIn, numberOf, roleIn, textOf } from "./audit_line.ts";
import { addEvent, type CallEnd, labelAttributes, type OpenCall, spansOf } from "./call_span.ts";
import type { Span } from "./otlp.ts";

/** Calls that run or wait; beyond, the oldest is told of as one whose end nobody knows. */
const OPEN_MAX = 4096;
/** No provider has so long: its broker died, and the outcome is not known. */
const RUN_MS_MAX = 86_400_000;

/** Rows of the broker's decision list: of a call whose question is open they make that void. Others deny who asks again. */
const DECIDED_ROWS: ReadonlySet<string | undefined> = new Set([
  "deny",
  "ask_expired",
  "ask_above_taint",
  "allow_above_taint",
  "allow_expired",
  "nothing",
]);
/** Denials by a person's answer, or by none: the outcome follows. */
const ANSWERED_ROWS: ReadonlySet<string | undefined> = new Set(["refused", "expired"]);

export class AuditSpans {
  readonly #open = new Map<string, OpenCall>();
  /** Of those, whose question has ended: the outcome follows in the same transaction, or there is none. */
  readonly #closing = new Map<string, CallEnd>();
  #finished: Span[] = [];
  #lastMs = 0;

  constructor(open: readonly OpenCall[] = []) {
    for (const one of open) this.#open.set(keyOf(one), one);
  }

  get open(): readonly OpenCall[] {
    return [...this.#open.values()];
  }

  /** Spans that were finished since this was asked last. */
  finished(): readonly Span[] {
    const spans = this.#finished;
    this.#finished = [];
    return spans;
  }

  take(entry: AuditEntry): void {
    if (entry.kind === "taint") return this.#raised(entry);
    const { name } = entry;
    if (name === undefined) return;
    const open = this.#open.get(keyOf(name));
    const take = TAKERS[entry.kind];
    take?.(this, entry, name, open);
    this.#lastMs = entry.atMs;
    if (this.#open.size > OPEN_MAX) this.#giveUpFirst();
  }

  /** Everything that was written is read: what waits for an outcome in the same transaction gets none. */
  caughtUp(): void {
    for (const [key, end] of this.#closing) {
      const open = this.#open.get(key);
      if (open !== undefined) this.finish(open, end);
    }
    this.#closing.clear();
    for (const open of this.open) {
      const { dispatchedMs = this.#lastMs } = open;
      if (this.#lastMs - dispatchedMs > RUN_MS_MAX) this.finish(open, endUnknown(open));
    }
  }

  /** The records end here, and the ends of these calls are not in them. */
  giveUp(): void {
    this.caughtUp();
    for (const open of this.open) this.finish(open, endUnknown(open));
  }

  begin(entry: AuditEntry, name: CallName): OpenCall {
    const open = begun(entry, name);
    this.#open.set(keyOf(name), open);
    return open;
  }

  /** The end of a call that is kept here. */
  finish(open: OpenCall, end: CallEnd): void {
    this.#open.delete(keyOf(open));
    this.#closing.delete(keyOf(open));
    this.tell(open, end);
  }

  /** One that begins and ends at once. It may have the name of one that is kept here, and is no part of that. */
  tell(call: OpenCall, end: CallEnd): void {
    this.#finished.push(...spansOf(call, end));
  }

  /** Waits for the outcome. */
  close(open: OpenCall, end: CallEnd): void {
    this.#closing.set(keyOf(open), end);
  }

  #raised(entry: AuditEntry): void {
    const by = callIn(entry, "raised_by");
    const open = by === undefined ? undefined : this.#open.get(keyOf(by));
    if (open === undefined) return;
    addEvent(open, "callgate.taint.raised", entry.atMs, {
      "callgate.taint.of": textOf(entry, "of"),
      "callgate.taint.store": textOf(entry, "store"),
      ...labelAttributes("callgate.taint", labelsIn(entry)),
    });
  }

  #giveUpFirst(): void {
    const [oldest] = this.#open.values();
    if (oldest !== undefined) this.finish(oldest, endUnknown(oldest));
  }
}

type Taker = (spans: AuditSpans, entry: AuditEntry, name: CallName, open: OpenCall | undefined) => void;

const TAKERS: Readonly<Record<string, Taker | undefined>> = {
  approval: questionMoved,
  decision: decided,
  dispatch: dispatched,
  part: (_, __, ___, open) => {
    if (open !== undefined) open.parts += 1;
  },
  delivery: (_, entry, __, open) => {
    if (open !== undefined && textOf(entry, "how") === "joined")
      addEvent(open, "callgate.joined", entry.atMs, {});
  },
  outcome: ended,
  settled: ended,
  withdrawn: (spans, entry, _, open) => {
    if (open !== undefined) spans.finish(open, errorEnd(entry, undefined, open.denied ?? "withdrawn"));
  },
  failed: (spans, entry, name) => {
    spans.tell(begun(entry, name), {
      ...errorEnd(entry, "failed", textOf(entry, "code") ?? "_OTHER"),
      attributes: { "callgate.count": repeated(entry) },
    });
  },
  repeated: (spans, entry, name) => {
    if (textOf(entry, "decision") === "deny") denied(spans, entry, name);
  },
};

function questionMoved(
  spans: AuditSpans,
  entry: AuditEntry,
  name: CallName,
  open: OpenCall | undefined,
): void {
  const state = textOf(entry, "state");
  if (state === "asked") return asked(spans.begin(entry, name), entry);
  const question = open?.question;
  if (open === undefined || question === undefined || state === undefined) return;
  question.state = state;
  question.endedMs = numberOf(entry, "decided_at_ms") ?? entry.atMs;
  const by = roleIn(entry, "by");
  if (by !== undefined) question.by = by;
  addEvent(open, "callgate.question.answered", question.endedMs, {
    "callgate.approval.state": state,
    "callgate.approval.by": by,
  });
  if (state !== "approved") spans.close(open, errorEnd(entry, undefined, open.denied ?? state));
}

function asked(open: OpenCall, { atMs }: AuditEntry): void {
  open.question = { askedMs: atMs };
  addEvent(open, "callgate.question.asked", atMs, {});
}

function decided(spans: AuditSpans, entry: AuditEntry, name: CallName, open: OpenCall | undefined): void {
  if (textOf(entry, "decision") !== "deny") return; // `ask` stands in the question, `allow` in the dispatch
  const row = textOf(entry, "row");
  if (ANSWERED_ROWS.has(row)) {
    const waiting = open ?? spans.begin(entry, name); // it followed an equal call's question
    waiting.denied = textOf(entry, "denied") ?? "denied";
    return;
  }
  const endsQuestion = open !== undefined && open.dispatchedMs === undefined && DECIDED_ROWS.has(row);
  if (endsQuestion) open.denied = textOf(entry, "denied") ?? "denied";
  else denied(spans, entry, name);
}

/** Denied at once, one or several times. */
function denied(spans: AuditSpans, entry: AuditEntry, name: CallName): void {
  const end = errorEnd(entry, "denied", textOf(entry, "denied") ?? "denied");
  spans.tell(begun(entry, name), { ...end, attributes: { "callgate.count": repeated(entry) } });
}

function dispatched(spans: AuditSpans, entry: AuditEntry, name: CallName, open: OpenCall | undefined): void {
  const call = open ?? spans.begin(entry, name);
  const provider = textOf(entry, "provider");
  Object.assign(call.attributes, decisionAttributes(entry));
  call.dispatchedMs = entry.atMs;
  if (provider !== undefined) call.provider = provider;
  addEvent(call, "callgate.dispatched", entry.atMs, { "callgate.provider": provider });
}

function ended(spans: AuditSpans, entry: AuditEntry, _: CallName, open: OpenCall | undefined): void {
  if (open === undefined) return; // it began before we looked
  const status = textOf(entry, "status");
  const failure = status === "denied" ? (open.denied ?? "denied") : (textOf(entry, "code") ?? "_OTHER");
  spans.finish(open, {
    atMs: entry.atMs,
    status,
    error: status === "result" ? undefined : failure,
    attributes: {
      ...labelAttributes("callgate.result", labelsIn(entry)),
      "callgate.result.bytes": numberOf(entry, "message_bytes"),
      "callgate.settled": entry.kind === "settled" ? true : undefined,
    },
  });
}

function begun(entry: AuditEntry, { role, session, call }: CallName): OpenCall {
  return {
    ...{ role, session, call },
    tool: textOf(entry, "tool") ?? "(unknown)",
    seq: entry.seq.toString(),
    startMs: entry.atMs,
    attributes: decisionAttributes(entry),
    events: [],
    droppedEvents: 0,
    parts: 0,
  };
}

function decisionAttributes(entry: AuditEntry): Record<string, string | number | boolean> {
  const told = {
    "callgate.decision": textOf(entry, "decision"),
    "callgate.row": textOf(entry, "row"),
    "callgate.grant": textOf(entry, "grant"),
    "callgate.arguments.bytes": numberOf(entry, "args_bytes"),
    ...labelAttributes("callgate.taint", labelsIn(entry, "taint")),
  };
  return Object.fromEntries(
    Object.entries(told).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

function errorEnd({ atMs }: AuditEntry, status: string | undefined, error: string): CallEnd {
  return { atMs, status, error, attributes: {} };
}

/** At the last moment that is known of it. */
function endUnknown({ startMs, dispatchedMs, question, events }: OpenCall): CallEnd {
  const atMs = Math.max(startMs, dispatchedMs ?? 0, question?.endedMs ?? 0, events.at(-1)?.atMs ?? 0);
  return { atMs, status: undefined, error: "outcome_unknown", attributes: {} };
}

function repeated(entry: AuditEntry): number | undefined {
  const count = numberOf(entry, "count") ?? 1;
  return count > 1 ? count : undefined;
}

/** No part of it holds a space. */
function keyOf({ role, session, call }: CallName): string {
  return `${role} ${session} ${call}`;
}
