// Spans as OTLP's JSON (opentelemetry-proto, trace/v1, in its JSON mapping): ids in hex, times as decimal strings of
// nanoseconds, enums as numbers. Pure. fixtures/otlp holds it against the encoder of OpenTelemetry's own library.

/** Members that are undefined are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface SpanEvent {
  readonly name: string;
  readonly atMs: number;
  readonly attributes: Attributes;
}

/** Within the process; to another one that is asked. The numbers are OTLP's. */
export const SPAN_KIND = { internal: 1, client: 3 } as const;

export interface Span {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: (typeof SPAN_KIND)[keyof typeof SPAN_KIND];
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  /** Events that there was no room for. */
  readonly droppedEvents: number;
  /** Its status is an error, with this short word; undefined: it is not set. */
  readonly error: string | undefined;
}

export interface Origin {
  /** Of the service: `service.name` and the like. */
  readonly resource: Attributes;
  readonly scope: { readonly name: string; readonly version: string };
}

const NS_IN_MS = 1_000_000n;
const STATUS_UNSET = 0;
const STATUS_ERROR = 2;
/** Sampled; and that the parent, where there is one, is of this process (bit 8 says that this is known). */
const FLAGS = 0x101;

/** The body of one `POST /v1/traces`. */
export function otlpText(origin: Origin, spans: readonly Span[]): string {
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: keyValues(origin.resource), droppedAttributesCount: 0 },
        scopeSpans: [{ scope: origin.scope, spans: spans.map(spanValue) }],
      },
    ],
  });
}

function spanValue(span: Span) {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    name: span.name,
    kind: span.kind,
    startTimeUnixNano: nanoseconds(span.startMs),
    endTimeUnixNano: nanoseconds(span.endMs),
    attributes: keyValues(span.attributes),
    droppedAttributesCount: 0,
    events: span.events.map(eventValue),
    droppedEventsCount: span.droppedEvents,
    status: span.error === undefined ? { code: STATUS_UNSET } : { code: STATUS_ERROR, message: span.error },
    links: [],
    droppedLinksCount: 0,
    flags: FLAGS,
  };
}

function eventValue({ name, atMs, attributes }: SpanEvent) {
  return {
    attributes: keyValues(attributes),
    name,
    timeUnixNano: nanoseconds(atMs),
    droppedAttributesCount: 0,
  };
}

/** A double does not hold nanoseconds since 1970. */
function nanoseconds(ms: number): string {
  return (BigInt(Math.round(ms)) * NS_IN_MS).toString();
}

function keyValues(attributes: Attributes) {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValue(value) }],
  );
}

function anyValue(value: string | number | boolean | readonly string[]): object {
  if (typeof value === "string") return { stringValue: value.toWellFormed() };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value !== "number") return { arrayValue: { values: value.map(anyValue) } };
  return Number.isInteger(value) ? { intValue: value } : { doubleValue: value };
}
