// The values that fixtures/connector/golden pins: one document of each kind and of each turn it can take, and what the
// sealed frames are made of. A change here is a change of the fixtures.

import type { ProviderRequest, TransportReceipt, TransportResult } from "../../src/connector/contract.ts";
import {
  PROVIDER_REQUEST,
  TRANSPORT_INVOCATION,
  TRANSPORT_RECEIPT,
  TRANSPORT_RESULT,
} from "../../src/connector/documents.ts";
import { invocationOf } from "../../src/connector/invocation.ts";
import type { Shape } from "../../src/connector/shape.ts";

export const CALLER = "caller-alpha";
export const REQUEST_ID = "request-0001";
/** For these fixtures alone; a real one is 32 random bytes written as text. */
export const SECRET = "golden-connection-secret-0123456789abcdef";
export const REQUEST_NONCE = Buffer.from("000102030405060708090a0b", "hex");
export const RESPONSE_NONCE = Buffer.from("101112131415161718191a1b", "hex");

const SMALL: Omit<ProviderRequest, "schema_id"> = {
  request_id: REQUEST_ID,
  conversation_id: "conversation-0001",
  model: "model-1",
  instructions: "Answer in one line.",
  input: [{ UserText: { text: "What is on the table?" } }],
  reasoning_effort: null,
  output_format_name: null,
  tools: [],
  tool_choice: "auto",
  parallel_tool_calls: false,
  output_schema_json: null,
  max_output_tokens: 256,
};

/** Every kind of item, every optional field, text past ASCII, numbers in several widths. */
const FULL: Omit<ProviderRequest, "schema_id"> = {
  ...SMALL,
  instructions: `Grüße 東京 🙂 ${"x".repeat(300)}`,
  input: [
    { UserText: { text: "\ufeffLook at the table." } },
    { ReasoningState: { provider: "provider_1", model: "model-1", opaque: Buffer.from([0, 255, 128]) } },
    { AssistantText: { text: "I look." } },
    { ToolCall: { call_id: "call_1", name: "look", arguments: "not JSON {" } },
    { ToolResult: { call_id: "call_1", output: "An apple.\nA knife." } },
  ],
  reasoning_effort: "high",
  output_format_name: "answer",
  tools: [{ name: "look", description: "Looks.", parameters_json: '{"type":"object"}' }],
  tool_choice: "required",
  parallel_tool_calls: true,
  output_schema_json: '{"type":"object","properties":{"seen":{"type":"array"}}}',
  max_output_tokens: 70_000,
};

const parts = { caller: CALLER, expiresAtUnixMs: 1_760_000_060_000 };
export const INVOCATION = invocationOf({ ...parts, request: SMALL });
const FULL_INVOCATION = invocationOf({
  ...parts,
  nativeRequestSha256: Buffer.alloc(32, 7),
  request: FULL,
});

const COMPLETED: TransportReceipt = {
  schema_id: "gamecult.model.transport_receipt.v3",
  request_id: REQUEST_ID,
  caller_runtime_id: CALLER,
  native_request_sha256: INVOCATION.native_request_sha256,
  provider_request_sha256: INVOCATION.provider_request_sha256,
  model: "model-1",
  transport: "golden_v1",
  outcome: {
    Completed: {
      provider_response_id: "response-1",
      stop_reason: "ToolCalls",
      usage: {
        input_tokens: 300,
        output_tokens: 70_000,
        reasoning_output_tokens: 0,
        cached_input_tokens: null,
      },
    },
  },
};

const FAILED: TransportReceipt = {
  ...COMPLETED,
  outcome: { Failed: { failure_kind: "RateLimited", message: "the provider's limit is reached" } },
};

export const RESULT: TransportResult = {
  schema_id: "gamecult.model.transport_result.v3",
  request_id: REQUEST_ID,
  caller_runtime_id: CALLER,
  disposition: {
    Transported: {
      events: [
        { sequence: 0, payload: { TextDelta: { text: "I look" } } },
        {
          sequence: 1,
          payload: { ReasoningState: { provider: "provider_1", model: "model-1", opaque: Buffer.from([1]) } },
        },
        { sequence: 2, payload: { ToolCall: { call_id: "call_1", name: "look", arguments: "{}" } } },
      ],
      receipt: COMPLETED,
    },
  },
};

const FAILED_RESULT: TransportResult = {
  ...RESULT,
  disposition: { Transported: { events: [], receipt: FAILED } },
};

const REFUSED: TransportResult = { ...RESULT, disposition: { Refused: "ModelNotAllowed" } };

export interface GoldenDocument {
  /** Of its two files. */
  readonly name: string;
  readonly shape: Shape<unknown>;
  readonly value: unknown;
}

export const GOLDEN_DOCUMENTS: readonly GoldenDocument[] = [
  { name: "provider_request", shape: PROVIDER_REQUEST, value: INVOCATION.request },
  { name: "provider_request_full", shape: PROVIDER_REQUEST, value: FULL_INVOCATION.request },
  { name: "transport_invocation", shape: TRANSPORT_INVOCATION, value: INVOCATION },
  { name: "transport_invocation_full", shape: TRANSPORT_INVOCATION, value: FULL_INVOCATION },
  { name: "transport_receipt_completed", shape: TRANSPORT_RECEIPT, value: COMPLETED },
  { name: "transport_receipt_failed", shape: TRANSPORT_RECEIPT, value: FAILED },
  { name: "transport_result", shape: TRANSPORT_RESULT, value: RESULT },
  { name: "transport_result_failed", shape: TRANSPORT_RESULT, value: FAILED_RESULT },
  { name: "transport_result_refused", shape: TRANSPORT_RESULT, value: REFUSED },
] as readonly GoldenDocument[];
