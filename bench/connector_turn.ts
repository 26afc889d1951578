// What the connector's bench asks and answers: turns of a given size, and callers by number.

import type { ProviderTurn } from "../src/connector/backend.ts";
import type { TransportInvocation } from "../src/connector/contract.ts";
import { frameBytesForPayload } from "../src/connector/frame_arithmetic.ts";
import { invocationOf } from "../src/connector/invocation.ts";
import type { CallerConfig } from "../src/connector/service_config.ts";

const PAYLOAD_BYTES_MAX = 65_536;
export const FRAME_BYTES_MAX = frameBytesForPayload(PAYLOAD_BYTES_MAX);
/** As the daemon sets it (connector_main.ts). */
export const POOL_BYTES = 131_072;
/** Of what stands beside the text, about. */
const AROUND_BYTES = 600;

export function callerConfig(number: number): CallerConfig {
  return {
    caller_runtime_id: `caller-${number}`,
    connection_secret: `secret-of-caller-${number}-0123456789abcdefghijklmnop`,
    allowed_models: ["echo"],
    max_concurrent_requests: 4,
    max_payload_bytes: PAYLOAD_BYTES_MAX,
    max_output_tokens: 4096,
  };
}

export function turnOf(caller: string, requestId: string, bytes: number): TransportInvocation {
  return invocationOf({
    caller,
    expiresAtUnixMs: Date.now() + 240_000,
    request: {
      request_id: requestId,
      conversation_id: "bench",
      model: "echo",
      instructions: "Answer.",
      input: [{ UserText: { text: "x".repeat(bytes - AROUND_BYTES) } }],
      reasoning_effort: null,
      output_format_name: null,
      tools: [],
      tool_choice: "auto",
      parallel_tool_calls: false,
      output_schema_json: null,
      max_output_tokens: 4096,
    },
  });
}

export function echo(bytes: number): ProviderTurn {
  const usage = {
    input_tokens: 1,
    output_tokens: 1,
    reasoning_output_tokens: null,
    cached_input_tokens: null,
  };
  return {
    events: [{ TextDelta: { text: "y".repeat(bytes - AROUND_BYTES) } }],
    outcome: { Completed: { provider_response_id: "echo", stop_reason: "EndTurn", usage } },
  };
}
