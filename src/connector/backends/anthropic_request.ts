// A request as Anthropic's Messages API wants it. Pure. What the API has no word for is a failure, never left out;
// but for the name of an output format, which changes nothing, and the model's own texts of spaces, which it refuses.

import { ok, type Result } from "../../base/faults.ts";
import type { ProviderRequest, Tool } from "../contract.ts";
import type {
  AnthropicEffort,
  AnthropicTool,
  ContentBlock,
  MessageParam,
  MessageParams,
} from "./anthropic_sdk.ts";
import { narrowCallId } from "./call_ids.ts";
import type { Failure } from "./failure.ts";
import { foreign, openState, type StateOwner } from "./reasoning_state.ts";
import { effortOf, schemaOf } from "./request_parts.ts";
import { type AssistantItem, type AssistantRun, readRuns, rejected, type UserRun } from "./transcript.ts";
import { parseRecord, textMember } from "./unknown_json.ts";

const EFFORTS: readonly (AnthropicEffort | "none")[] = ["none", "low", "medium", "high", "xhigh", "max"];

export function anthropicParams(request: ProviderRequest, owner: StateOwner): Result<MessageParams, Failure> {
  const messages = messagesOf(request, owner);
  if (!messages.ok) return messages;
  const effort = effortOf(request.reasoning_effort, EFFORTS);
  if (!effort.ok) return effort;
  const tools = toolsOf(request.tools);
  if (!tools.ok) return tools;
  return ok({
    model: request.model,
    max_tokens: request.max_output_tokens,
    system: request.instructions,
    messages: messages.value,
    stream: true,
    ...thinkingOf(effort.value),
    ...outputOf(request, effort.value),
    ...(tools.value.length === 0 ? {} : { tools: tools.value, tool_choice: toolChoiceOf(request) }),
  });
}

/** Without an effort the model's own default stands. A model that can't think when told to is the provider's to refuse. */
function thinkingOf(effort: AnthropicEffort | "none" | null): Pick<MessageParams, "thinking"> {
  if (effort === null) return {};
  return { thinking: effort === "none" ? { type: "disabled" } : { type: "adaptive" } };
}

function outputOf(
  { output_schema_json }: ProviderRequest,
  effort: AnthropicEffort | "none" | null,
): Pick<MessageParams, "output_config"> {
  const config: NonNullable<MessageParams["output_config"]> = {};
  if (effort !== null && effort !== "none") config.effort = effort;
  if (output_schema_json !== null) {
    config.format = { type: "json_schema", schema: schemaOf(output_schema_json) };
  }
  return Object.keys(config).length === 0 ? {} : { output_config: config };
}

function toolChoiceOf(request: ProviderRequest): NonNullable<MessageParams["tool_choice"]> {
  return {
    type: request.tool_choice === "required" ? "any" : "auto",
    disable_parallel_tool_use: !request.parallel_tool_calls,
  };
}

function toolsOf(tools: readonly Tool[]): Result<AnthropicTool[], Failure> {
  const written: AnthropicTool[] = [];
  for (const { name, description, parameters_json } of tools) {
    const schema = schemaOf(parameters_json);
    // The API wants the type said; a tool's input is an object in any case.
    if (Object.hasOwn(schema, "type") && schema["type"] !== "object") {
      return rejected(`the parameters of tool ${name} are no object, which is what this API's tools take`);
    }
    written.push({ name, description, input_schema: { ...schema, type: "object" } });
  }
  return ok(written);
}

function messagesOf(request: ProviderRequest, owner: StateOwner): Result<MessageParam[], Failure> {
  if (request.input.length === 0) return rejected("this API needs a transcript that is not empty");
  const runs = readRuns(request.input);
  if (!runs.ok) return runs;
  const messages: MessageParam[] = [];
  for (const run of runs.value) {
    const message = "items" in run ? assistantMessage(run, owner) : ok(userMessage(run));
    if (!message.ok) return message;
    if (message.value.content.length > 0) messages.push(message.value);
  }
  return ok(messages);
}

function userMessage({ results, texts }: UserRun): MessageParam {
  return {
    role: "user",
    content: [
      ...results.map(({ call_id, output }) => ({
        type: "tool_result" as const,
        tool_use_id: narrowCallId(call_id),
        content: output,
      })),
      ...texts.map((text) => ({ type: "text" as const, text })),
    ],
  };
}

function assistantMessage({ items }: AssistantRun, owner: StateOwner): Result<MessageParam, Failure> {
  const content: ContentBlock[] = [];
  for (const item of items) {
    const block = assistantBlock(item, owner);
    if (!block.ok) return block;
    if (block.value !== undefined) content.push(block.value);
  }
  return ok({ role: "assistant", content });
}

function assistantBlock(item: AssistantItem, owner: StateOwner): Result<ContentBlock | undefined, Failure> {
  if ("AssistantText" in item) {
    const { text } = item.AssistantText;
    return ok(text.trim() === "" ? undefined : { type: "text", text });
  }
  if ("ReasoningState" in item) return thinkingBlock(item.ReasoningState, owner);
  const { call_id, name, arguments: text } = item.ToolCall;
  const input = parseRecord(text);
  if (input === undefined) {
    return rejected(
      `the arguments of a call of tool ${name} are no JSON object, which is all that this API takes`,
    );
  }
  return ok({ type: "tool_use", id: narrowCallId(call_id), name, input });
}

function thinkingBlock(
  state: Parameters<typeof openState>[1],
  owner: StateOwner,
): Result<ContentBlock, Failure> {
  const item = openState(owner, state);
  if (!item.ok) return item;
  const [thinking, signature, data] = ["thinking", "signature", "data"].map((name) =>
    textMember(item.value, name),
  );
  const type = textMember(item.value, "type");
  if (type === "redacted_thinking" && data !== undefined) return ok({ type, data });
  if (type === "thinking" && thinking !== undefined && signature !== undefined) {
    return ok({ type, thinking, signature });
  }
  return foreign("holds no block that this API knows");
}
