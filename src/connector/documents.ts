// The documents and the two carriage messages, as shapes (spec: connector, 3 to 5). The types are in contract.ts.

import {
  type Completed,
  type Disposition,
  type Event,
  type EventPayload,
  FAILURE_KINDS,
  type Failed,
  type InputItem,
  MESSAGE_KINDS,
  type Outcome,
  type ProviderRequest,
  REFUSALS,
  type ReasoningState,
  STOP_REASONS,
  type Tool,
  type ToolCall,
  type TransportEnvelope,
  type TransportInvocation,
  type TransportReceipt,
  type TransportResult,
  type Usage,
} from "./contract.ts";
import { DIGEST_BYTES, NONCE_BYTES, OPERATION, OUTPUT_TOKENS_MAX, SERVICE_ID, TAG_BYTES } from "./limits.ts";
import {
  BOOLEAN,
  bytes,
  bytesNotZero,
  choice,
  constant,
  integer,
  list,
  map,
  optional,
  type Shape,
  tag,
  text,
} from "./shape.ts";
import {
  CALL_ID_RULE,
  CONTENT,
  ECHO,
  FAILURE_MESSAGE,
  ID,
  isId,
  JSON_OBJECT,
  NAME_RULE,
} from "./text_rules.ts";

const TOOL = map<Tool>("Tool", {
  name: text(NAME_RULE),
  description: text(CONTENT),
  parameters_json: text(JSON_OBJECT),
});

const TOOL_CALL = map<ToolCall>("ToolCall", {
  call_id: text(CALL_ID_RULE),
  name: text(NAME_RULE),
  arguments: text(CONTENT),
});

const REASONING_STATE = map<ReasoningState>("ReasoningState", {
  provider: text(NAME_RULE),
  model: text(ID),
  opaque: bytes(1, Number.POSITIVE_INFINITY),
});

const TEXT = map<{ readonly text: string }>("Text", { text: text(CONTENT) });

const INPUT_ITEM = choice<InputItem>({
  UserText: TEXT,
  AssistantText: TEXT,
  ToolCall: TOOL_CALL,
  ToolResult: map<{ readonly call_id: string; readonly output: string }>("ToolResult", {
    call_id: text(CALL_ID_RULE),
    output: text(CONTENT),
  }),
  ReasoningState: REASONING_STATE,
});

export const PROVIDER_REQUEST: Shape<ProviderRequest> = map<ProviderRequest>(
  "ProviderRequest",
  {
    schema_id: constant("gamecult.model.provider_request.v3"),
    request_id: text(ID),
    conversation_id: text(ID),
    model: text(ID),
    instructions: text(CONTENT),
    input: list(INPUT_ITEM),
    reasoning_effort: optional(text(NAME_RULE)),
    output_format_name: optional(text(NAME_RULE)),
    tools: list(TOOL),
    tool_choice: tag(["auto", "required"]),
    parallel_tool_calls: BOOLEAN,
    output_schema_json: optional(text(JSON_OBJECT)),
    max_output_tokens: integer(1, OUTPUT_TOKENS_MAX),
  },
  [
    {
      says: "output_format_name is null exactly where output_schema_json is",
      holds: (request) => (request.output_format_name === null) === (request.output_schema_json === null),
    },
    {
      says: "tool names are distinct",
      holds: ({ tools }) => new Set(tools.map(({ name }) => name)).size === tools.length,
    },
    {
      says: "tool_choice required needs a tool",
      holds: ({ tool_choice, tools }) => tool_choice !== "required" || tools.length > 0,
    },
  ],
);

export const TRANSPORT_INVOCATION: Shape<TransportInvocation> = map<TransportInvocation>(
  "TransportInvocation",
  {
    schema_id: constant("gamecult.model.transport_invocation.v3"),
    caller_runtime_id: text(ID),
    expires_at_unix_ms: integer(1),
    native_request_sha256: bytesNotZero(DIGEST_BYTES),
    provider_request_sha256: bytes(DIGEST_BYTES, DIGEST_BYTES),
    request: PROVIDER_REQUEST,
  },
);

/** What comes before the request: of an invocation's encoding, all but the request and its key. */
type InvocationHead = Omit<TransportInvocation, "request">;

export const INVOCATION_HEAD: Shape<InvocationHead> = map<InvocationHead>("InvocationHead", {
  schema_id: constant("gamecult.model.transport_invocation.v3"),
  caller_runtime_id: text(ID),
  expires_at_unix_ms: integer(1),
  native_request_sha256: bytesNotZero(DIGEST_BYTES),
  provider_request_sha256: bytes(DIGEST_BYTES, DIGEST_BYTES),
});

const USAGE = map<Usage>(
  "Usage",
  {
    input_tokens: optional(integer()),
    output_tokens: optional(integer()),
    reasoning_output_tokens: optional(integer()),
    cached_input_tokens: optional(integer()),
  },
  [
    {
      says: "no more reasoning_output_tokens than output_tokens, where both are stated",
      holds: (usage) => isWithin(usage.reasoning_output_tokens, usage.output_tokens),
    },
    {
      says: "no more cached_input_tokens than input_tokens, where both are stated",
      holds: (usage) => isWithin(usage.cached_input_tokens, usage.input_tokens),
    },
  ],
);

function isWithin(part: number | null, whole: number | null): boolean {
  return part === null || whole === null || part <= whole;
}

const OUTCOME = choice<Outcome>({
  Completed: map<Completed>("Completed", {
    provider_response_id: optional(text(ID)),
    stop_reason: tag(STOP_REASONS),
    usage: USAGE,
  }),
  Failed: map<Failed>("Failed", { failure_kind: tag(FAILURE_KINDS), message: text(FAILURE_MESSAGE) }),
});

export const TRANSPORT_RECEIPT: Shape<TransportReceipt> = map<TransportReceipt>("TransportReceipt", {
  schema_id: constant("gamecult.model.transport_receipt.v3"),
  request_id: text(ID),
  caller_runtime_id: text(ID),
  native_request_sha256: bytesNotZero(DIGEST_BYTES),
  provider_request_sha256: bytes(DIGEST_BYTES, DIGEST_BYTES),
  model: text(ID),
  transport: text(ID),
  outcome: OUTCOME,
});

type Transported = Extract<Disposition, { readonly Transported: unknown }>["Transported"];

const TRANSPORTED = map<Transported>(
  "Transported",
  {
    events: list(
      map<Event>("Event", {
        sequence: integer(),
        payload: choice<EventPayload>({
          TextDelta: TEXT,
          ToolCall: TOOL_CALL,
          ReasoningState: REASONING_STATE,
        }),
      }),
    ),
    receipt: TRANSPORT_RECEIPT,
  },
  [
    {
      says: "events are numbered from 0",
      holds: ({ events }) => events.every(({ sequence }, i) => sequence === i),
    },
    {
      says: "stop reason ToolCalls needs a ToolCall event, EndTurn allows none",
      holds: stopsAsItSays,
    },
  ],
);

function stopsAsItSays({ events, receipt: { outcome } }: Transported): boolean {
  if (!("Completed" in outcome)) return true;
  const { stop_reason } = outcome.Completed;
  if (stop_reason !== "ToolCalls" && stop_reason !== "EndTurn") return true;
  return events.some(({ payload }) => "ToolCall" in payload) === (stop_reason === "ToolCalls");
}

export const TRANSPORT_RESULT: Shape<TransportResult> = map<TransportResult>(
  "TransportResult",
  {
    schema_id: constant("gamecult.model.transport_result.v3"),
    request_id: text(ECHO),
    caller_runtime_id: text(ID),
    disposition: choice<Disposition>({ Refused: tag(REFUSALS), Transported: TRANSPORTED }),
  },
  [
    {
      says: "request_id is an id unless the disposition is Refused: Malformed",
      holds: ({ request_id, disposition }) =>
        ("Refused" in disposition && disposition.Refused === "Malformed") || isId(request_id),
    },
    {
      says: "the receipt names the request and the caller of the result",
      holds: ({ request_id, caller_runtime_id, disposition }) =>
        !("Transported" in disposition) ||
        (disposition.Transported.receipt.request_id === request_id &&
          disposition.Transported.receipt.caller_runtime_id === caller_runtime_id),
    },
  ],
);

export const TRANSPORT_ENVELOPE: Shape<TransportEnvelope> = map<TransportEnvelope>("TransportEnvelope", {
  schema_id: constant("gamecult.model.transport_envelope.v3"),
  caller_runtime_id: text(ID),
  request_id: text(ECHO),
  message_kind: tag(MESSAGE_KINDS),
  nonce: bytes(NONCE_BYTES, NONCE_BYTES),
  ciphertext: bytes(TAG_BYTES + 1, Number.POSITIVE_INFINITY),
});

/** What binds an envelope: its first four fields, encoded as the associated data of the seal. */
export type EnvelopeHead = Omit<TransportEnvelope, "nonce" | "ciphertext">;

export const ENVELOPE_HEAD: Shape<EnvelopeHead> = map<EnvelopeHead>("EnvelopeHead", {
  schema_id: constant("gamecult.model.transport_envelope.v3"),
  caller_runtime_id: text(ID),
  request_id: text(ECHO),
  message_kind: tag(MESSAGE_KINDS),
});

interface Carriage {
  /** The request id, byte-equal to the envelope's. */
  readonly messageId: string;
  readonly serviceId: typeof SERVICE_ID;
  readonly operation: typeof OPERATION;
  readonly payloadSchema: "gamecult.model.transport_envelope.v3";
  readonly payloadEncoding: "messagepack-base64";
  /** Base64 of the canonical envelope; that it is base64 is carriage.ts's to check. */
  readonly payload: string;
}

export interface OperationRequest extends Carriage {
  readonly schemaVersion: "cultnet.operation_request.v0";
}

export interface OperationResponse extends Carriage {
  readonly schemaVersion: "cultnet.operation_response.v0";
  /** Repeats what the sealed disposition says; it authorises nothing. */
  readonly status: "accepted" | "rejected";
}

const ADDRESSED = {
  messageId: text(ECHO),
  serviceId: constant(SERVICE_ID),
  operation: constant(OPERATION),
} as const;

const ENCLOSED = {
  payloadSchema: constant("gamecult.model.transport_envelope.v3"),
  payloadEncoding: constant("messagepack-base64"),
  payload: text(CONTENT),
} as const;

export const OPERATION_REQUEST: Shape<OperationRequest> = map<OperationRequest>("OperationRequest", {
  schemaVersion: constant("cultnet.operation_request.v0"),
  ...ADDRESSED,
  ...ENCLOSED,
});

export const OPERATION_RESPONSE: Shape<OperationResponse> = map<OperationResponse>("OperationResponse", {
  schemaVersion: constant("cultnet.operation_response.v0"),
  ...ADDRESSED,
  status: tag(["accepted", "rejected"]),
  ...ENCLOSED,
});
