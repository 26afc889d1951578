import type { Span } from "../../../src/roles/traces/otlp.ts";

/** A whole one with nothing special about it. */
export const SPAN: Span = {
  traceId: "a".repeat(32),
  spanId: "b".repeat(16),
  parentSpanId: undefined,
  name: "execute_tool x",
  kind: 1,
  startMs: 1,
  endMs: 2,
  attributes: {},
  events: [],
  droppedEvents: 0,
  error: undefined,
};
