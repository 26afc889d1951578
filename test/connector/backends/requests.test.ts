import { describe, expect, it } from "vitest";
import { anthropicParams } from "../../../src/connector/backends/anthropic_request.ts";
import { chatParams } from "../../../src/connector/backends/chat_request.ts";
import { closeState } from "../../../src/connector/backends/reasoning_state.ts";
import { responsesParams } from "../../../src/connector/backends/responses_request.ts";
import type { InputItem, ProviderRequest, ReasoningState } from "../../../src/connector/contract.ts";
import { providerRequest, READ_TOOL } from "./rig.ts";

const ANTHROPIC = { provider: "anthropic", model: "model-1", origin: "https://api.anthropic.com" };
const RESPONSES = { provider: "openai-responses", model: "model-1", origin: "https://api.openai.com" };

const WRITERS = {
  anthropic: (request: ProviderRequest) => anthropicParams(request, ANTHROPIC),
  "openai-responses": (request: ProviderRequest) => responsesParams(request, RESPONSES),
  "openai-chat": (request: ProviderRequest) => chatParams(request),
} as const;
type Kind = keyof typeof WRITERS;
const KINDS = Object.keys(WRITERS) as Kind[];

function written(kind: Kind, request: Partial<ProviderRequest> = {}): Record<string, unknown> {
  const params = WRITERS[kind](providerRequest(request));
  if (!params.ok) throw new Error(params.fault.message);
  return { ...params.value };
}

function refused(kind: Kind, request: Partial<ProviderRequest>): { failureKind: string; message: string } {
  const params = WRITERS[kind](providerRequest(request));
  if (params.ok) throw new Error("it was written");
  return params.fault;
}

const call = (call_id: string, text = '{"path":"a"}'): InputItem => ({
  ToolCall: { call_id, name: "read", arguments: text },
});
const result = (call_id: string): InputItem => ({ ToolResult: { call_id, output: `of ${call_id}` } });
const user = (text: string): InputItem => ({ UserText: { text } });
const assistant = (text: string): InputItem => ({ AssistantText: { text } });

const TRANSCRIPT: readonly InputItem[] = [
  user("one"),
  user("two"),
  assistant("I'll "),
  assistant("look."),
  call("a.1"),
  call("b"),
  user("meanwhile"),
  result("b"),
  result("a.1"),
  assistant("Done."),
];

describe("a transcript", () => {
  it("becomes Anthropic's messages: sides joined, results first, ids in the characters that it takes", () => {
    const { messages, system, max_tokens, stream } = written("anthropic", { input: TRANSCRIPT });
    const id = expect.stringMatching(/^call_[0-9a-f]{40}$/);
    expect([system, max_tokens, stream]).toEqual(["Answer briefly.", 1000, true]);
    expect(messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "one" },
          { type: "text", text: "two" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "I'll " },
          { type: "text", text: "look." },
          { type: "tool_use", id, name: "read", input: { path: "a" } },
          { type: "tool_use", id: "b", name: "read", input: { path: "a" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "b", content: "of b" },
          { type: "tool_result", tool_use_id: id, content: "of a.1" },
          { type: "text", text: "meanwhile" },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "Done." }] },
    ]);
    const ids = JSON.stringify(messages).match(/call_[0-9a-f]{40}/g);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
  });

  it("becomes the Responses API's items in their order, and nothing is stored there", () => {
    const { input, store, instructions, max_output_tokens } = written("openai-responses", {
      input: TRANSCRIPT,
    });
    expect([store, instructions, max_output_tokens]).toEqual([false, "Answer briefly.", 1000]);
    expect((input as { type?: string; role?: string }[]).map(({ type, role }) => type ?? role)).toEqual([
      "user",
      "user",
      "assistant",
      "assistant",
      "function_call",
      "function_call",
      "user",
      "function_call_output",
      "function_call_output",
      "assistant",
    ]);
    expect((input as object[])[5]).toEqual({
      type: "function_call",
      call_id: "b",
      name: "read",
      arguments: '{"path":"a"}',
    });
  });

  it("becomes one chat message a side, calls with their texts, results before what the user said", () => {
    const { messages, max_tokens, stream_options } = written("openai-chat", { input: TRANSCRIPT });
    expect([max_tokens, stream_options]).toEqual([1000, { include_usage: true }]);
    expect(messages).toEqual([
      { role: "system", content: "Answer briefly." },
      { role: "user", content: "one\n\ntwo" },
      {
        role: "assistant",
        content: "I'll look.",
        tool_calls: ["a.1", "b"].map((id) => ({
          id,
          type: "function",
          function: { name: "read", arguments: '{"path":"a"}' },
        })),
      },
      { role: "tool", tool_call_id: "b", content: "of b" },
      { role: "tool", tool_call_id: "a.1", content: "of a.1" },
      { role: "user", content: "meanwhile" },
      { role: "assistant", content: "Done." },
    ]);
  });

  it("may use an id again once it is answered, as servers do that count from 0 each turn", () => {
    const input = [call("0"), result("0"), call("0"), result("0")];
    for (const kind of KINDS) expect(() => written(kind, { input })).not.toThrow();
  });

  it("is refused where a call has no result, a result no call, or the talk goes on between them", () => {
    const cases: readonly [readonly InputItem[], string][] = [
      [[call("a")], "no result"],
      [[call("a"), user("well?")], "no result"],
      [[result("a")], "answers no tool call"],
      [[call("a"), result("a"), result("a")], "answers no tool call"],
      [[call("a"), call("a"), result("a")], "one id"],
      [[call("a"), call("b"), result("a"), assistant("so"), result("b")], "before every tool call"],
    ];
    for (const kind of KINDS) {
      for (const [input, why] of cases) {
        expect(refused(kind, { input })).toEqual({
          failureKind: "RequestRejected",
          message: expect.stringContaining(why),
        });
      }
    }
  });

  it("keeps a model's own text of spaces, but where the API would refuse it", () => {
    const input = [user("hi"), assistant("\n\n"), call("a"), result("a")];
    expect(JSON.stringify(written("anthropic", { input })["messages"])).not.toContain("\\n");
    expect(JSON.stringify(written("openai-chat", { input })["messages"])).toContain("\\n\\n");
  });

  it("that is empty is refused by the API that needs one", () => {
    expect(refused("anthropic", { input: [] }).failureKind).toBe("RequestRejected");
    expect(written("openai-responses", { input: [] })["input"]).toEqual([]);
    expect(written("openai-chat", { input: [] })["messages"]).toHaveLength(1);
  });
});

describe("what a model is told beside the transcript", () => {
  it("is the tools, each in its API's form, and the choice only where there are some", () => {
    const request = { tools: [READ_TOOL], tool_choice: "required", parallel_tool_calls: false } as const;
    const schema = JSON.parse(READ_TOOL.parameters_json);
    expect(written("anthropic", request)).toMatchObject({
      tools: [{ name: "read", description: "Reads a file.", input_schema: schema }],
      tool_choice: { type: "any", disable_parallel_tool_use: true },
    });
    expect(written("openai-responses", request)).toMatchObject({
      tools: [{ type: "function", name: "read", parameters: schema, strict: false }],
      tool_choice: "required",
      parallel_tool_calls: false,
    });
    expect(written("openai-chat", request)).toMatchObject({
      tools: [{ type: "function", function: { name: "read", parameters: schema } }],
      tool_choice: "required",
      parallel_tool_calls: false,
    });
    for (const kind of KINDS) {
      expect(written(kind)).not.toHaveProperty("tool_choice");
      expect(written(kind)).not.toHaveProperty("parallel_tool_calls");
    }
  });

  it("is how hard to think, in the API's own words or not at all", () => {
    expect(written("anthropic", { reasoning_effort: "high" })).toMatchObject({
      thinking: { type: "adaptive" },
      output_config: { effort: "high" },
    });
    expect(written("anthropic", { reasoning_effort: "none" })).toMatchObject({
      thinking: { type: "disabled" },
    });
    expect(written("anthropic")).not.toHaveProperty("thinking");
    expect(written("openai-responses", { reasoning_effort: "minimal" })).toMatchObject({
      reasoning: { effort: "minimal" },
      include: ["reasoning.encrypted_content"],
    });
    expect(written("openai-responses")).not.toHaveProperty("include");
    expect(written("openai-chat", { reasoning_effort: "low" })["reasoning_effort"]).toBe("low");
    expect(refused("anthropic", { reasoning_effort: "minimal" }).message).toContain(
      '"minimal" is none of them',
    );
    for (const kind of KINDS)
      expect(refused(kind, { reasoning_effort: "very" }).failureKind).toBe("RequestRejected");
  });

  it("is the form of the output", () => {
    const request = { output_format_name: "weather", output_schema_json: '{"type":"object"}' };
    const schema = { type: "object" };
    expect(written("anthropic", request)["output_config"]).toEqual({
      format: { type: "json_schema", schema },
    });
    expect(written("openai-responses", request)["text"]).toEqual({
      format: { type: "json_schema", name: "weather", schema, strict: true },
    });
    expect(written("openai-chat", request)["response_format"]).toEqual({
      type: "json_schema",
      json_schema: { name: "weather", schema, strict: true },
    });
  });

  it("holds nothing of who asks: neither request nor conversation id", () => {
    for (const kind of KINDS) {
      expect(JSON.stringify(written(kind))).not.toMatch(/request-0001|conversation-1/);
    }
  });
});

describe("what Anthropic's API has no form for", () => {
  it("is arguments that are no JSON object", () => {
    for (const text of ["not json", "[1]", '"a"', "{", "null"]) {
      const { failureKind, message } = refused("anthropic", { input: [call("a", text), result("a")] });
      expect(failureKind).toBe("RequestRejected");
      expect(message).toContain("no JSON object");
      expect(() => written("openai-chat", { input: [call("a", text), result("a")] })).not.toThrow();
    }
  });

  it("is a tool whose parameters are no object; without a type they are one", () => {
    const tools = (parameters_json: string) => ({ tools: [{ ...READ_TOOL, parameters_json }] });
    expect(refused("anthropic", tools('{"type":"string"}')).message).toContain("tool read");
    expect(written("anthropic", tools("{}"))["tools"]).toMatchObject([{ input_schema: { type: "object" } }]);
  });
});

describe("reasoning state", () => {
  const thinking = { type: "thinking", thinking: "so", signature: "c2ln" };
  const redacted = { type: "redacted_thinking", data: "eA==" };
  const reasoning = {
    id: "rs_1",
    summary: [{ type: "summary_text", text: "so" }],
    encrypted_content: "ZW5j",
  };
  const at = (state: ReasoningState) => ({ input: [user("hi"), { ReasoningState: state }, assistant("ho")] });

  it("goes back in its place, as it came", () => {
    const input = [
      user("hi"),
      ...[thinking, redacted].map((item) => ({ ReasoningState: closeState(ANTHROPIC, item) })),
      assistant("ho"),
    ];
    expect(written("anthropic", { input })["messages"]).toMatchObject([
      {},
      { content: [thinking, redacted, { type: "text", text: "ho" }] },
    ]);
    expect(written("openai-responses", at(closeState(RESPONSES, reasoning)))["input"]).toMatchObject([
      {},
      { type: "reasoning", ...reasoning },
      {},
    ]);
  });

  it("of another backend, model or server is not forwarded, nor what this backend never wrote", () => {
    const opaque = (text: string): ReasoningState => ({
      provider: "anthropic",
      model: "model-1",
      opaque: new TextEncoder().encode(text),
    });
    for (const state of [
      closeState({ ...ANTHROPIC, provider: "openai-responses" }, thinking),
      closeState({ ...ANTHROPIC, model: "model-2" }, thinking),
      closeState({ ...ANTHROPIC, origin: "https://gate.example" }, thinking),
      closeState(ANTHROPIC, reasoning),
      closeState(ANTHROPIC, { ...thinking, signature: 1 }),
      opaque("text"),
      opaque('{"v":2,"origin":"https://api.anthropic.com","item":{}}'),
      opaque('{"v":1,"origin":"https://api.anthropic.com"}'),
      { ...opaque(""), opaque: new Uint8Array([0xff, 0xfe]) },
    ]) {
      expect(refused("anthropic", at(state)).failureKind).toBe("ForeignReasoningState");
    }
    expect(refused("openai-responses", at(closeState(RESPONSES, thinking))).failureKind).toBe(
      "ForeignReasoningState",
    );
  });

  it("is never forwarded by the API that has none", () => {
    const state = closeState({ ...ANTHROPIC, provider: "openai-chat" }, thinking);
    expect(refused("openai-chat", at(state)).failureKind).toBe("ForeignReasoningState");
  });
});
