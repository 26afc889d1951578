// A call that is told of in pieces, and the spans that it becomes when it has ended: one for the call, by the semantic
// conventions for GenAI (`execute_tool`) and MCP (`tools/call`); below it one for the question to a person and one for the
// provider's work. Pure. Names, times, lengths and codes only: never arguments, contents or anybody's words.

import { createHash } from "node:crypto";
import type { Labelled } from "../../client/answers.ts";
import type { CallName } from "./audit_line.ts";
import { type Attributes, SPAN_KIND, type Span, type SpanEvent } from "./otlp.ts";

/** Of one span; a call that raises taint with each of a thousand parts has more. */
const EVENTS_MAX = 64;

/** What is known of a call so far. JSON holds all of it. */
export interface OpenCall extends CallName {
  readonly tool: string;
  /** The number of the first record that told of it. */
  readonly seq: string;
  readonly startMs: number;
  /** Where a person is asked. */
  question?: {
    readonly askedMs: number;
    endedMs?: number;
    /** `approved`, `refused`, `expired`, `withdrawn`, `void`. */
    state?: string;
    /** The role that answered. */
    by?: string;
  };
  dispatchedMs?: number;
  provider?: string;
  /** Of the decision and the call as a whole. */
  attributes: Record<string, string | number | boolean>;
  events: SpanEvent[];
  droppedEvents: number;
  parts: number;
  /** Why it was denied, as far as that is told before its end. */
  denied?: string;
}

export interface CallEnd {
  readonly atMs: number;
  /** `result`, `denied`, `failed`; undefined: nothing ran after all, or nobody knows. */
  readonly status: string | undefined;
  /** Why it is an error; undefined: it is none. */
  readonly error: string | undefined;
  readonly attributes: Attributes;
}

export function addEvent(open: OpenCall, name: string, atMs: number, attributes: Attributes): void {
  if (open.events.length < EVENTS_MAX) open.events.push({ name, atMs, attributes });
  else open.droppedEvents += 1;
}

/** The call's own span first. */
export function spansOf(open: OpenCall, end: CallEnd): readonly Span[] {
  const spans = [callSpan(open, end)];
  if (open.question !== undefined) spans.push(questionSpan(open, open.question, end));
  if (open.dispatchedMs !== undefined) spans.push(runSpan(open, open.dispatchedMs, end));
  return spans;
}

/** The same for every exporter and every time: who has a call's name finds its trace. */
export function traceIdOf({ role, session, call }: CallName): string {
  return digest(JSON.stringify(["callgate", role, session, call])).slice(0, 32);
}

/** A call that was denied is decided afresh when it is asked again, so one trace can hold several. */
function spanId(open: OpenCall, part: string): string {
  return digest(JSON.stringify([traceIdOf(open), open.seq, part])).slice(0, 16);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function callSpan(open: OpenCall, end: CallEnd): Span {
  const { role, session, call, tool, seq, parts, question } = open;
  return {
    traceId: traceIdOf(open),
    spanId: spanId(open, "call"),
    parentSpanId: undefined,
    name: spanName("execute_tool", open),
    kind: SPAN_KIND.internal,
    ...times(open.startMs, end.atMs),
    attributes: {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": tool,
      "gen_ai.tool.call.id": call,
      "gen_ai.agent.name": role,
      "gen_ai.conversation.id": session,
      "mcp.method.name": "tools/call",
      "error.type": end.error,
      "callgate.outcome": end.status,
      "callgate.approval.state": question?.state,
      "callgate.provider": open.provider,
      ...open.attributes,
      "callgate.result.parts": parts === 0 ? undefined : parts,
      ...end.attributes,
      "callgate.audit.seq": seq,
    },
    events: open.events,
    droppedEvents: open.droppedEvents,
    error: end.error,
  };
}

function questionSpan(open: OpenCall, question: NonNullable<OpenCall["question"]>, end: CallEnd): Span {
  const { askedMs, endedMs = end.atMs, state = "pending", by } = question;
  return {
    ...childOf(open, "question"),
    name: spanName("callgate.question", open),
    kind: SPAN_KIND.internal,
    ...times(askedMs, endedMs),
    attributes: { "callgate.approval.state": state, "callgate.approval.by": by },
    error: undefined, // that somebody says no is no error of the asking
  };
}

function runSpan(open: OpenCall, dispatchedMs: number, end: CallEnd): Span {
  return {
    ...childOf(open, "run"),
    name: spanName("callgate.run", open),
    kind: open.provider === undefined ? SPAN_KIND.internal : SPAN_KIND.client,
    ...times(dispatchedMs, end.atMs),
    attributes: { "callgate.provider": open.provider, "error.type": end.error },
    error: end.error,
  };
}

function childOf(open: OpenCall, part: string) {
  return {
    traceId: traceIdOf(open),
    spanId: spanId(open, part),
    parentSpanId: spanId(open, "call"),
    events: [],
    droppedEvents: 0,
  };
}

/** A name of a tool that no grant and no decision knows may be anything that a caller thought of: it names no span. */
function spanName(what: string, { tool, attributes }: OpenCall): string {
  const invented = attributes["callgate.row"] === "nothing" || tool === "(unknown)";
  return invented ? what : `${what} ${tool}`;
}

function times(startMs: number, endMs: number) {
  return { startMs, endMs: Math.max(startMs, endMs) };
}

/** Labels as attributes under a prefix. */
export function labelAttributes(
  prefix: string,
  labels: Labelled | undefined,
): Record<string, string | boolean> {
  if (labels === undefined) return {};
  return { [`${prefix}.class`]: labels.class, [`${prefix}.untrusted`]: labels.untrusted };
}
