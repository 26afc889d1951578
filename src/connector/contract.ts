// What passes between a caller and a connector: the five documents as types (spec: connector, 3 and 4). Names are
// those of the contract, so a value reads like its JSON view; binary is a Uint8Array, an absent optional value
// is null. The rules that a type can't say are in documents.ts; nothing here is checked.

export interface ProviderRequest {
  readonly schema_id: "gamecult.model.provider_request.v3";
  /** Chosen by the caller; not reused while a record of it may exist. 1 to 256 bytes. */
  readonly request_id: string;
  /** A hint for affinity; selects no stored state. */
  readonly conversation_id: string;
  readonly model: string;
  readonly instructions: string;
  /** The whole transcript, oldest first. */
  readonly input: readonly InputItem[];
  readonly reasoning_effort: string | null;
  /** Null exactly where `output_schema_json` is. */
  readonly output_format_name: string | null;
  /** With distinct names. */
  readonly tools: readonly Tool[];
  /** `required` needs a tool. */
  readonly tool_choice: "auto" | "required";
  readonly parallel_tool_calls: boolean;
  /** Text of a JSON object. */
  readonly output_schema_json: string | null;
  /** 1 to 2^32 - 1. */
  readonly max_output_tokens: number;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  /** Text of a JSON object: a JSON Schema. */
  readonly parameters_json: string;
}

export type InputItem =
  | { readonly UserText: { readonly text: string } }
  | { readonly AssistantText: { readonly text: string } }
  | { readonly ToolCall: ToolCall }
  | { readonly ToolResult: { readonly call_id: string; readonly output: string } }
  | { readonly ReasoningState: ReasoningState };

export interface ToolCall {
  readonly call_id: string;
  readonly name: string;
  /** As the model produced it; need not be JSON. */
  readonly arguments: string;
}

/** What a backend emitted and wants back in its place; nobody else looks into it. */
export interface ReasoningState {
  readonly provider: string;
  readonly model: string;
  readonly opaque: Uint8Array;
}

export interface TransportInvocation {
  readonly schema_id: "gamecult.model.transport_invocation.v3";
  readonly caller_runtime_id: string;
  readonly expires_at_unix_ms: number;
  /** Of the caller's own request, opaque here; not all zero. 32 bytes. */
  readonly native_request_sha256: Uint8Array;
  /** Of the canonical encoding of `request`. 32 bytes. */
  readonly provider_request_sha256: Uint8Array;
  readonly request: ProviderRequest;
}

export interface TransportResult {
  readonly schema_id: "gamecult.model.transport_result.v3";
  /** An id unless the disposition is `Refused: Malformed`. */
  readonly request_id: string;
  readonly caller_runtime_id: string;
  readonly disposition: Disposition;
}

export type Disposition =
  | { readonly Refused: Refusal }
  | { readonly Transported: { readonly events: readonly Event[]; readonly receipt: TransportReceipt } };

export interface Event {
  /** From 0, in order. */
  readonly sequence: number;
  readonly payload: EventPayload;
}

export type EventPayload =
  | { readonly TextDelta: { readonly text: string } }
  | { readonly ToolCall: ToolCall }
  | { readonly ReasoningState: ReasoningState };

export interface TransportReceipt {
  readonly schema_id: "gamecult.model.transport_receipt.v3";
  readonly request_id: string;
  readonly caller_runtime_id: string;
  readonly native_request_sha256: Uint8Array;
  readonly provider_request_sha256: Uint8Array;
  /** As requested, not as resolved. */
  readonly model: string;
  /** Names the backend's transport. */
  readonly transport: string;
  readonly outcome: Outcome;
}

export type Outcome = { readonly Completed: Completed } | { readonly Failed: Failed };

export interface Completed {
  readonly provider_response_id: string | null;
  readonly stop_reason: StopReason;
  readonly usage: Usage;
}

export interface Failed {
  readonly failure_kind: FailureKind;
  /** 1 to 1024 bytes. */
  readonly message: string;
}

/** Null is not reported, zero is zero. Input counts cached tokens, output counts those of reasoning. */
export interface Usage {
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly reasoning_output_tokens: number | null;
  readonly cached_input_tokens: number | null;
}

export const STOP_REASONS = ["EndTurn", "ToolCalls", "MaxOutputTokens", "ContentFilter"] as const;
export type StopReason = (typeof STOP_REASONS)[number];

export const FAILURE_KINDS = [
  "CredentialUnavailable",
  "RateLimited",
  "Overloaded",
  "RequestRejected",
  "ForeignReasoningState",
  "TransportFailed",
  "TimedOut",
  "StreamInvalid",
  "ProviderFailed",
  "ResultTooLarge",
  "BackendFault",
] as const;
export type FailureKind = (typeof FAILURE_KINDS)[number];

/** This frame started nothing; none is recorded. */
export const REFUSALS = [
  "Malformed",
  "PayloadOverBound",
  "IdentitySubstitution",
  "ProviderDigestSubstitution",
  "ReplayConflict",
  "InFlight",
  "Indeterminate",
  "Expired",
  "ModelNotAllowed",
  "OutputTokensOverBound",
  "Capacity",
] as const;
export type Refusal = (typeof REFUSALS)[number];

export const MESSAGE_KINDS = ["Invocation", "Result"] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];

export interface TransportEnvelope {
  readonly schema_id: "gamecult.model.transport_envelope.v3";
  readonly caller_runtime_id: string;
  /** May be malformed: it is echoed. */
  readonly request_id: string;
  readonly message_kind: MessageKind;
  /** 12 bytes. */
  readonly nonce: Uint8Array;
  /** AES-256-GCM's output and its tag behind it: 17 bytes or more. */
  readonly ciphertext: Uint8Array;
}
