// A request as Chat Completions servers want it. Pure. `max_tokens` and the role `system`, which every local server
// knows; OpenAI's newest models want other words, and the Responses API.

import { ok, type Result } from "../../base/faults.ts";
import type { ProviderRequest } from "../contract.ts";
import type { Failure } from "./failure.ts";
import type { ChatMessage, ChatParams, OpenAIEffort } from "./openai_sdk.ts";
import { foreign } from "./reasoning_state.ts";
import { effortOf, OPENAI_EFFORTS, schemaOf } from "./request_parts.ts";
import { type AssistantRun, type Run, readRuns, type UserRun } from "./transcript.ts";

export function chatParams(request: ProviderRequest): Result<ChatParams, Failure> {
  if (request.input.some((item) => "ReasoningState" in item)) {
    return foreign("was made by another backend: this API has none");
  }
  const runs = readRuns(request.input);
  if (!runs.ok) return runs;
  const effort = effortOf<OpenAIEffort>(request.reasoning_effort, OPENAI_EFFORTS);
  if (!effort.ok) return effort;
  return ok({
    model: request.model,
    messages: [{ role: "system", content: request.instructions }, ...runs.value.flatMap(messagesOf)],
    max_tokens: request.max_output_tokens,
    stream: true,
    stream_options: { include_usage: true },
    ...(effort.value === null ? {} : { reasoning_effort: effort.value }),
    ...toolsOf(request),
    ...formatOf(request),
  });
}

function toolsOf(
  request: ProviderRequest,
): Pick<ChatParams, "tools" | "tool_choice" | "parallel_tool_calls"> {
  if (request.tools.length === 0) return {};
  return {
    tools: request.tools.map(({ name, description, parameters_json }) => ({
      type: "function",
      function: { name, description, parameters: schemaOf(parameters_json) },
    })),
    tool_choice: request.tool_choice,
    parallel_tool_calls: request.parallel_tool_calls,
  };
}

function formatOf({
  output_schema_json,
  output_format_name,
}: ProviderRequest): Pick<ChatParams, "response_format"> {
  if (output_schema_json === null || output_format_name === null) return {};
  const schema = schemaOf(output_schema_json);
  return {
    response_format: { type: "json_schema", json_schema: { name: output_format_name, schema, strict: true } },
  };
}

function messagesOf(run: Run): ChatMessage[] {
  return "items" in run ? assistantMessages(run) : userMessages(run);
}

/** One user message: templates of local models refuse two in a row. */
function userMessages({ results, texts }: UserRun): ChatMessage[] {
  const answers = results.map(
    ({ call_id, output }): ChatMessage => ({ role: "tool", tool_call_id: call_id, content: output }),
  );
  return texts.length === 0 ? answers : [...answers, { role: "user", content: texts.join("\n\n") }];
}

/** One message: the API keeps no order between what was said and what was called. */
function assistantMessages({ items }: AssistantRun): ChatMessage[] {
  const texts = items.flatMap((item) => ("AssistantText" in item ? [item.AssistantText.text] : []));
  const calls = items.flatMap((item) => ("ToolCall" in item ? [item.ToolCall] : []));
  const content = texts.length === 0 ? null : texts.join("");
  if (calls.length === 0) return [{ role: "assistant", content }];
  return [
    {
      role: "assistant",
      content,
      tool_calls: calls.map(({ call_id, name, arguments: text }) => ({
        id: call_id,
        type: "function",
        function: { name, arguments: text },
      })),
    },
  ];
}
