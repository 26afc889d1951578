// Against a mock of the providers that others keep in step with the real ones.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BackendKind } from "../../../src/connector/backends/settings.ts";
import type { EventPayload, InputItem } from "../../../src/connector/contract.ts";
import { backend, CANARY, completedOf, failedOf, KINDS, READ_TOOL, take } from "./rig.ts";

const mock = new LLMock({ port: 0, chunkSize: 3 });

beforeAll(async () => {
  mock.onMessage("greet", {
    content: "Hi there, friend of mine! – ß🙂",
    usage: { input_tokens: 3, output_tokens: 9, prompt_tokens: 3, completion_tokens: 9 },
  });
  mock.onMessage("think", {
    content: "42",
    reasoning: "six times seven",
    reasoningSignature: "c2lnbmF0dXJl",
    redactedThinking: ["cmVkYWN0ZWQ="],
  });
  mock.onMessage("look", {
    content: "I'll look.",
    reasoning: "where is it",
    toolCalls: [
      { name: "read", arguments: '{"path":"/etc/hosts","lines":12}', id: "toolu_A1" },
      { name: "read", arguments: "{}", id: "toolu_A2" },
    ],
  });
  mock.onMessage("long", { content: "Once upon a", finishReason: "length" });
  mock.onMessage("never", { content: "I can't", finishReason: "content_filter" });
  mock.onMessage("refuse", { content: "I can't", finishReason: "refusal" });
  mock.onMessage("wrong", {
    error: { message: "max_tokens: too many", type: "invalid_request_error" },
    status: 400,
  });
  mock.onMessage("busy", { error: { message: "slow down", type: "rate_limit_error" }, status: 429 });
  mock.onMessage("broken", { error: { message: "oops", type: "api_error" }, status: 500 });
  await mock.start();
});
afterAll(() => mock.stop());

const baseUrl = (kind: BackendKind): string => (kind === "anthropic" ? mock.url : `${mock.url}/v1`);

async function ask(kind: BackendKind, text: string, settings = {}) {
  const one = await backend({ kind, baseUrl: baseUrl(kind), retriesMax: 0, ...settings });
  return take(one, { input: [{ UserText: { text } }], tools: [READ_TOOL] });
}

const textOf = (events: readonly EventPayload[]): string =>
  events.map((event) => ("TextDelta" in event ? event.TextDelta.text : "")).join("");

describe.each(KINDS)("a turn with %s", (kind) => {
  it("tells text, the response's id and what it took", async () => {
    const turn = await ask(kind, "greet");
    expect(turn.events).toEqual([{ TextDelta: { text: "Hi there, friend of mine! – ß🙂" } }]);
    const { provider_response_id, stop_reason, usage } = completedOf(turn);
    expect(provider_response_id).toMatch(/^(?:msg_|resp|chatcmpl)/);
    expect(stop_reason).toBe("EndTurn");
    expect(usage).toMatchObject({ input_tokens: 3, output_tokens: 9 });
  });

  it("tells calls put together, and takes them and their results back in the next turn", async () => {
    const { events, outcome } = await ask(kind, "look");
    expect(outcome).toMatchObject({ Completed: { stop_reason: "ToolCalls" } });
    expect(textOf(events)).toBe("I'll look.");
    const calls = events.flatMap((event) => ("ToolCall" in event ? [event.ToolCall] : []));
    expect(calls).toEqual([
      { call_id: "toolu_A1", name: "read", arguments: '{"path":"/etc/hosts","lines":12}' },
      { call_id: "toolu_A2", name: "read", arguments: "{}" },
    ]);
    const input: InputItem[] = [
      { UserText: { text: "look" } },
      ...events.map(
        (event): InputItem => ("TextDelta" in event ? { AssistantText: event.TextDelta } : event),
      ),
      ...calls.map(({ call_id }) => ({ ToolResult: { call_id, output: "127.0.0.1" } })),
      { UserText: { text: "greet me" } },
    ];
    const next = await take(await backend({ kind, baseUrl: baseUrl(kind) }), { input, tools: [READ_TOOL] });
    expect(completedOf(next).stop_reason).toBe("EndTurn");
  });

  it("tells what cut an answer", async () => {
    expect(completedOf(await ask(kind, "long")).stop_reason).toBe("MaxOutputTokens");
    const never = await ask(kind, kind === "anthropic" ? "refuse" : "never");
    // The mock says "failed" where the Responses API is cut by a filter; a failure keeps what came before it as well.
    if (kind === "openai-responses") expect(failedOf(never).failure_kind).toBe("ProviderFailed");
    else expect(completedOf(never).stop_reason).toBe("ContentFilter");
    expect(textOf(never.events)).toBe("I can't");
  });

  it("tells errors by their kind, with the provider's words where they are of the request", async () => {
    const wrong = failedOf(await ask(kind, "wrong"));
    expect(wrong.failure_kind).toBe("RequestRejected");
    expect(wrong.message).toContain('400 (invalid_request_error: "max_tokens: too many")');
    expect(failedOf(await ask(kind, "busy"))).toMatchObject({
      failure_kind: "RateLimited",
      message: expect.stringContaining("asks for a wait of 1 s"),
    });
    const broken = failedOf(await ask(kind, "broken"));
    expect(broken).toMatchObject({ failure_kind: "ProviderFailed" });
    expect(broken.message).not.toContain("oops");
  });

  it("shows the key to the provider alone", async () => {
    const turns = await Promise.all(["greet", "look", "wrong", "broken"].map((text) => ask(kind, text)));
    expect(JSON.stringify(turns)).not.toContain(CANARY);
    expect(JSON.stringify(mock.getLastRequest()?.body)).not.toContain(CANARY);
  });
});

describe("reasoning", () => {
  it("of Anthropic's and of the Responses API goes back as it came; a chat server's is no answer", async () => {
    for (const kind of KINDS) {
      const { events } = await ask(kind, "think");
      expect(textOf(events)).toBe("42");
      const states = events.filter((event) => "ReasoningState" in event);
      expect(states.length > 0).toBe(kind !== "openai-chat");
      const input = [
        ...states,
        { AssistantText: { text: "42" } },
        { UserText: { text: "greet" } },
      ] as InputItem[];
      await take(await backend({ kind, baseUrl: baseUrl(kind) }), { input });
      expect(JSON.stringify(events)).not.toContain("six times seven");
    }
  });
});
