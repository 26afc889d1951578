// Whole streams of the three APIs, with reasoning, text, and two tool calls in pieces.

interface Named {
  readonly type: string;
  readonly [name: string]: unknown;
}

/** As an API sends events that have a type. */
export function named(...events: readonly Named[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

/** As Chat Completions sends chunks. */
export function chunks(...all: readonly (string | object)[]): string {
  return all.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`).join("");
}

export function choice(delta: object, finish: string | null = null): object {
  return {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: finish }],
  };
}

/** Events of Anthropic's API around its blocks. */
export function message(blocks: readonly Named[], stop: string, usage: object = {}): string {
  return named(
    {
      type: "message_start",
      message: { id: "msg_1", usage: { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 5 } },
    },
    ...blocks,
    { type: "message_delta", delta: { stop_reason: stop }, usage: { output_tokens: 20, ...usage } },
    { type: "message_stop" },
  );
}

export function block(index: number, content: object, ...deltas: readonly object[]): Named[] {
  return [
    { type: "content_block_start", index, content_block: content },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

const text = (piece: string): object => ({ type: "text_delta", text: piece });
const json = (piece: string): object => ({ type: "input_json_delta", partial_json: piece });

export const ANTHROPIC_STREAM = `: a comment\n\n${message(
  [
    ...block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "Let me " },
      { type: "thinking_delta", thinking: "see." },
      { type: "signature_delta", signature: "c2ln" },
    ),
    ...block(1, { type: "redacted_thinking", data: "cmVkYWN0ZWQ=" }),
    { type: "ping" },
    ...block(2, { type: "text", text: "" }, text("I'll read "), text("both – ß🙂.")),
    ...block(3, { type: "tool_use", id: "toolu_1", name: "read", input: {} }, json('{"path"'), json(':"a"}')),
    ...block(4, { type: "tool_use", id: "toolu_2", name: "read", input: {} }, json(""), json('{"path":"b"}')),
  ],
  "tool_use",
  { output_tokens_details: { thinking_tokens: 7 } },
)}`;

export function item(index: number, done: object): Named {
  return { type: "response.output_item.done", output_index: index, item: done };
}

export function responded(type: string, response: object = {}): Named {
  const usage = {
    input_tokens: 15,
    input_tokens_details: { cached_tokens: 5 },
    output_tokens: 20,
    output_tokens_details: { reasoning_tokens: 7 },
  };
  return { type, response: { id: "resp_1", usage, ...response } };
}

export const RESPONSES_STREAM = named(
  { type: "response.created", response: { id: "resp_1", status: "in_progress" } },
  { type: "response.output_item.added", output_index: 0, item: { type: "reasoning", id: "rs_1" } },
  item(0, {
    type: "reasoning",
    id: "rs_1",
    summary: [{ type: "summary_text", text: "Let me see." }],
    encrypted_content: "ZW5j",
  }),
  { type: "response.output_text.delta", output_index: 1, delta: "I'll read " },
  { type: "response.output_text.delta", output_index: 1, delta: "both – ß🙂." },
  item(1, { type: "message", content: [{ type: "output_text", text: "I'll read both – ß🙂." }] }),
  { type: "response.function_call_arguments.delta", output_index: 2, delta: '{"path"' },
  { type: "response.function_call_arguments.delta", output_index: 2, delta: ':"a"}' },
  item(2, {
    type: "function_call",
    call_id: "call_1",
    name: "read",
    arguments: '{"path":"a"}',
    status: "completed",
  }),
  item(3, {
    type: "function_call",
    call_id: "call_2",
    name: "read",
    arguments: '{"path":"b"}',
    status: "completed",
  }),
  responded("response.completed"),
);

const call = (index: number, rest: object): object => choice({ tool_calls: [{ index, ...rest }] });

export const CHAT_STREAM = chunks(
  choice({ role: "assistant", content: null }),
  choice({ reasoning_content: "Let me see." }),
  choice({ content: "I'll read " }),
  choice({ content: "both – ß🙂." }),
  call(0, { id: "call_1", type: "function", function: { name: "read", arguments: "" } }),
  call(0, { function: { arguments: '{"path"' } }),
  call(0, { function: { arguments: ':"a"}' } }),
  call(1, { id: "call_2", type: "function", function: { name: "read", arguments: '{"path":"b"}' } }),
  choice({}, "tool_calls"),
  {
    id: "chatcmpl-1",
    choices: [],
    usage: {
      prompt_tokens: 15,
      completion_tokens: 20,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 7 },
    },
  },
  "[DONE]",
);

export const STREAMS = {
  anthropic: ANTHROPIC_STREAM,
  "openai-responses": RESPONSES_STREAM,
  "openai-chat": CHAT_STREAM,
} as const;
