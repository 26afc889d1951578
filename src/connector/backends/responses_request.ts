// A request as OpenAI's Responses API wants it. Pure. Tools and output keep their schema as it is: of a tool it is
// not made strict, which would change it; of an output it is, or it would be a wish.

import { ok, type Result } from "../../base/faults.ts";
import type { InputItem, ProviderRequest, ReasoningState } from "../contract.ts";
import { narrowCallId } from "./call_ids.ts";
import type { Failure } from "./failure.ts";
import type { OpenAIEffort, ResponseInputItem, ResponseParams } from "./openai_sdk.ts";
import { foreign, openState, type StateOwner } from "./reasoning_state.ts";
import { effortOf, OPENAI_EFFORTS, schemaOf } from "./request_parts.ts";
import { readRuns } from "./transcript.ts";
import { asRecord, listMember, textMember } from "./unknown_json.ts";

export function responsesParams(
  request: ProviderRequest,
  owner: StateOwner,
): Result<ResponseParams, Failure> {
  const input = inputOf(request.input, owner);
  if (!input.ok) return input;
  const effort = effortOf<OpenAIEffort>(request.reasoning_effort, OPENAI_EFFORTS);
  if (!effort.ok) return effort;
  return ok({
    model: request.model,
    instructions: request.instructions,
    input: input.value,
    max_output_tokens: request.max_output_tokens,
    store: false,
    stream: true,
    ...reasoningOf(effort.value),
    ...toolsOf(request),
    ...formatOf(request),
  });
}

/**
 * Reasoning comes back encrypted by default; it is asked for only where the model surely reasons, since others refuse
 * a request that asks for it.
 */
function reasoningOf(effort: OpenAIEffort | null): Pick<ResponseParams, "reasoning" | "include"> {
  if (effort === null) return {};
  if (effort === "none") return { reasoning: { effort } };
  return { reasoning: { effort }, include: ["reasoning.encrypted_content"] };
}

function toolsOf(
  request: ProviderRequest,
): Pick<ResponseParams, "tools" | "tool_choice" | "parallel_tool_calls"> {
  if (request.tools.length === 0) return {};
  return {
    tools: request.tools.map(({ name, description, parameters_json }) => ({
      type: "function",
      name,
      description,
      parameters: schemaOf(parameters_json),
      strict: false,
    })),
    tool_choice: request.tool_choice,
    parallel_tool_calls: request.parallel_tool_calls,
  };
}

function formatOf({ output_schema_json, output_format_name }: ProviderRequest): Pick<ResponseParams, "text"> {
  if (output_schema_json === null || output_format_name === null) return {};
  const schema = schemaOf(output_schema_json);
  return { text: { format: { type: "json_schema", name: output_format_name, schema, strict: true } } };
}

function inputOf(items: readonly InputItem[], owner: StateOwner): Result<ResponseInputItem[], Failure> {
  const runs = readRuns(items); // its order is free, but for what belongs together
  if (!runs.ok) return runs;
  const input: ResponseInputItem[] = [];
  for (const item of items) {
    const written = inputItem(item, owner);
    if (!written.ok) return written;
    input.push(written.value);
  }
  return ok(input);
}

function inputItem(item: InputItem, owner: StateOwner): Result<ResponseInputItem, Failure> {
  if ("UserText" in item) return ok({ role: "user", content: item.UserText.text });
  if ("AssistantText" in item) return ok({ role: "assistant", content: item.AssistantText.text });
  if ("ReasoningState" in item) return reasoningItem(item.ReasoningState, owner);
  if ("ToolResult" in item) {
    const { call_id, output } = item.ToolResult;
    return ok({ type: "function_call_output", call_id: narrowCallId(call_id), output });
  }
  const { call_id, name, arguments: text } = item.ToolCall;
  return ok({ type: "function_call", call_id: narrowCallId(call_id), name, arguments: text });
}

function reasoningItem(state: ReasoningState, owner: StateOwner): Result<ResponseInputItem, Failure> {
  const item = openState(owner, state);
  if (!item.ok) return item;
  const id = textMember(item.value, "id");
  const encrypted = textMember(item.value, "encrypted_content");
  if (id === undefined || encrypted === undefined) return foreign("holds no item that this API knows");
  const summary = listMember(item.value, "summary").flatMap((part) => {
    const text = textMember(asRecord(part), "text");
    return text === undefined ? [] : [{ type: "summary_text" as const, text }];
  });
  return ok({ type: "reasoning", id, summary, encrypted_content: encrypted });
}
