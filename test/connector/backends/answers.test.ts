import { describe, expect, it } from "vitest";
import { Answer } from "../../../src/connector/backends/answer.ts";
import { AnthropicReader } from "../../../src/connector/backends/anthropic_answer.ts";
import { CallIds } from "../../../src/connector/backends/call_ids.ts";
import { ChatReader } from "../../../src/connector/backends/chat_answer.ts";
import { EventStreamReader } from "../../../src/connector/backends/event_stream.ts";
import type { Failure } from "../../../src/connector/backends/failure.ts";
import { ResponsesReader } from "../../../src/connector/backends/responses_answer.ts";
import type { AnswerReader, Ending, Reading } from "../../../src/connector/backends/turn.ts";
import { KINDS, told } from "./rig.ts";
import {
  ANTHROPIC_STREAM,
  block,
  CHAT_STREAM,
  choice,
  chunks,
  item,
  message,
  named,
  responded,
  STREAMS,
} from "./streams.ts";

type Kind = keyof typeof STREAMS;

const READERS: Readonly<Record<Kind, (reading: Reading) => AnswerReader>> = {
  anthropic: (reading) => new AnthropicReader(reading),
  "openai-responses": (reading) => new ResponsesReader(reading),
  "openai-chat": (reading) => new ChatReader(reading),
};

/** Reads as a turn does, without a connection. */
function read(kind: Kind, stream: string | Uint8Array, bytesMax = 100_000) {
  const answer = new Answer(bytesMax);
  const owner = { provider: kind, model: "model-1", origin: "https://api.example.com" };
  const reader = READERS[kind]({ answer, ids: new CallIds(new Uint8Array(32)), owner, key: undefined });
  const bytes = typeof stream === "string" ? new TextEncoder().encode(stream) : stream;
  const { messages } = new EventStreamReader(1_000_000).push(bytes);
  let end: Failure | Ending | undefined;
  for (const one of messages) {
    end = reader.take(one);
    if (end !== undefined) break;
  }
  end ??= reader.end();
  if ("failureKind" in end) return { failure: end, events: told(answer.prefix()) };
  const finished = answer.finish(end.stop);
  if (!finished.ok) return { failure: finished.fault, events: told(answer.prefix()) };
  return { stop: finished.value.stopReason, events: told(finished.value.events), usage: end.usage, end };
}

const TEXT = "I'll read both – ß🙂.";
const CALLS = (prefix: string) => [
  [`${prefix}_1`, "read", '{"path":"a"}'],
  [`${prefix}_2`, "read", '{"path":"b"}'],
];
const EVENTS: Readonly<Record<Kind, unknown[]>> = {
  anthropic: [
    { type: "thinking", thinking: "Let me see.", signature: "c2ln" },
    { type: "redacted_thinking", data: "cmVkYWN0ZWQ=" },
    TEXT,
    ...CALLS("toolu"),
  ],
  "openai-responses": [
    { id: "rs_1", summary: [{ type: "summary_text", text: "Let me see." }], encrypted_content: "ZW5j" },
    TEXT,
    ...CALLS("call"),
  ],
  "openai-chat": [TEXT, ...CALLS("call")],
};

describe("a whole stream", () => {
  it("becomes events in its order, calls put together, and what the turn took", () => {
    for (const kind of KINDS) {
      expect(read(kind, STREAMS[kind])).toMatchObject({
        stop: "ToolCalls",
        events: EVENTS[kind],
        usage: {
          input_tokens: 15,
          cached_input_tokens: 5,
          output_tokens: 20,
          reasoning_output_tokens: 7,
        },
      });
    }
  });

  it("that ends anywhere before its end is a broken one, and what came is a beginning of what would have come", () => {
    for (const kind of KINDS) {
      const bytes = new TextEncoder().encode(STREAMS[kind]);
      const whole = EVENTS[kind];
      let completed = 0;
      for (let cut = 0; cut < bytes.length; cut++) {
        const { failure, events, stop } = read(kind, bytes.subarray(0, cut));
        const texts = events.filter((event) => typeof event === "string").join("");
        expect(TEXT.startsWith(texts)).toBe(true);
        const others = events.filter((event) => typeof event !== "string");
        expect(others).toEqual(whole.filter((event) => typeof event !== "string").slice(0, others.length));
        if (stop !== undefined) completed++;
        else expect(failure?.failureKind).toBe("StreamInvalid");
      }
      // A chat server may close without [DONE] once it has told why it stopped.
      expect(completed > 0).toBe(kind === "openai-chat");
    }
  });

  it("ends where the answer is larger than allowed", () => {
    for (const kind of KINDS) {
      const { failure } = read(kind, STREAMS[kind], 40);
      expect(failure).toMatchObject({
        failureKind: "StreamInvalid",
        message: expect.stringContaining("larger than 40 bytes"),
      });
    }
  });

  it("of more calls than any model makes is ended", () => {
    const one = block(0, { type: "tool_use", id: "t", name: "read", input: {} });
    const { failure } = read(
      "anthropic",
      message(Array.from({ length: 10_002 }, () => one).flat(), "tool_use"),
    );
    expect(failure?.message).toContain("larger than");
    const calls = Array.from({ length: 2000 }, (_, index) =>
      choice({ tool_calls: [{ index, id: `c${index}`, function: { name: "read", arguments: "{}" } }] }),
    );
    expect(read("openai-chat", chunks(...calls)).failure?.failureKind).toBe("StreamInvalid");
  });
});

const textBlock = (text: string) => block(0, { type: "text", text: "" }, { type: "text_delta", text });
const toolBlock = (index: number, ...pieces: string[]) =>
  block(
    index,
    { type: "tool_use", id: `t${index}`, name: "read", input: {} },
    ...pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
  );

describe("why Anthropic's model stopped", () => {
  it("is one of the contract's reasons", () => {
    for (const [stop, reason] of [
      ["end_turn", "EndTurn"],
      ["stop_sequence", "EndTurn"],
      ["max_tokens", "MaxOutputTokens"],
      ["model_context_window_exceeded", "MaxOutputTokens"],
      ["refusal", "ContentFilter"],
    ] as const) {
      expect(read("anthropic", message(textBlock("so"), stop))).toMatchObject({
        stop: reason,
        events: ["so"],
      });
    }
  });

  it("is told as it is where a server says something else than it did", () => {
    expect(read("anthropic", message(toolBlock(0, "{}"), "end_turn")).stop).toBe("ToolCalls");
    expect(read("anthropic", message(textBlock("so"), "tool_use"))).toMatchObject({
      failure: { failureKind: "StreamInvalid", message: expect.stringContaining("called no tool") },
      events: ["so"],
    });
  });

  it("is a broken stream where it is unknown, or of tools that nobody asked for", () => {
    for (const stop of ["pause_turn", "compaction", "constructor", ""]) {
      expect(read("anthropic", message(textBlock("so"), stop)).failure?.failureKind).toBe("StreamInvalid");
    }
  });
});

describe("a call that was cut", () => {
  it("is no event, wherever it was cut; the calls before it are", () => {
    for (const pieces of [[], ['{"path'], ['{"path":"a"'], ["{"]]) {
      const stream = message([...toolBlock(0, '{"path":"a"}'), ...toolBlock(1, ...pieces)], "max_tokens");
      expect(read("anthropic", stream)).toMatchObject({
        stop: "MaxOutputTokens",
        events: [["t0", "read", '{"path":"a"}']],
      });
      const calls = chunks(
        choice({
          tool_calls: [{ index: 0, id: "t0", function: { name: "read", arguments: '{"path":"a"}' } }],
        }),
        choice({
          tool_calls: [{ index: 1, id: "t1", function: { name: "read", arguments: pieces.join("") } }],
        }),
        choice({}, "length"),
      );
      expect(read("openai-chat", calls)).toMatchObject({
        stop: "MaxOutputTokens",
        events: [["t0", "read", '{"path":"a"}']],
      });
    }
  });

  it("is no event of the Responses API, which says that it is incomplete", () => {
    const cut = item(0, {
      type: "function_call",
      call_id: "c",
      name: "read",
      arguments: "{",
      status: "incomplete",
    });
    const end = responded("response.incomplete", { incomplete_details: { reason: "max_output_tokens" } });
    expect(read("openai-responses", named(cut, end))).toMatchObject({ stop: "MaxOutputTokens", events: [] });
  });

  it("is told from one of a tool that takes nothing", () => {
    expect(read("anthropic", message(toolBlock(0), "tool_use")).events).toEqual([["t0", "read", "{}"]]);
    const stream = message([...toolBlock(0), ...toolBlock(1, '{"a')], "max_tokens");
    expect(read("anthropic", stream).events).toEqual([["t0", "read", "{}"]]);
  });

  it("goes on as the model wrote it where the turn was not cut, JSON or not", () => {
    expect(read("anthropic", message(toolBlock(0, "{oops"), "tool_use")).events).toEqual([
      ["t0", "read", "{oops"],
    ]);
  });
});

describe("a refusal", () => {
  it("is what the model said, and a stop for content", () => {
    const refusals = named(
      { type: "response.refusal.delta", delta: "I " },
      { type: "response.refusal.delta", delta: "won't." },
      item(0, { type: "message", content: [{ type: "refusal", refusal: "I won't." }] }),
      responded("response.completed"),
    );
    expect(read("openai-responses", refusals)).toMatchObject({ stop: "ContentFilter", events: ["I won't."] });
    const filtered = responded("response.incomplete", { incomplete_details: { reason: "content_filter" } });
    expect(read("openai-responses", named(filtered))).toMatchObject({ stop: "ContentFilter", events: [] });
    const chat = chunks(choice({ refusal: "I won't." }), choice({}, "stop"), "[DONE]");
    expect(read("openai-chat", chat)).toMatchObject({ stop: "ContentFilter", events: ["I won't."] });
    const cut = chunks(choice({ content: "I " }), choice({}, "content_filter"), "[DONE]");
    expect(read("openai-chat", cut)).toMatchObject({ stop: "ContentFilter", events: ["I "] });
  });
});

describe("the Responses API's stream", () => {
  it("tells a message that came whole as one that came in pieces", () => {
    const whole = item(0, { type: "message", content: [{ type: "output_text", text: "so" }] });
    expect(read("openai-responses", named(whole, whole, responded("response.completed")))).toMatchObject({
      stop: "EndTurn",
      events: ["soso"],
    });
  });

  it("keeps no reasoning that can't be sent back", () => {
    const plain = item(0, { type: "reasoning", id: "rs_1", summary: [], encrypted_content: null });
    expect(read("openai-responses", named(plain, responded("response.completed"))).events).toEqual([]);
  });

  it("is broken by an item that nobody asked for, and not by an event", () => {
    const searched = item(0, { type: "web_search_call", id: "ws_1" });
    const end = responded("response.completed");
    expect(read("openai-responses", named(searched, end)).failure?.failureKind).toBe("StreamInvalid");
    expect(read("openai-responses", named({ type: "response.new_thing" }, end)).stop).toBe("EndTurn");
  });
});

describe("a chat server's looseness", () => {
  const loose = (...calls: object[]) =>
    read(
      "openai-chat",
      chunks(...calls.map((one) => choice({ tool_calls: [one] })), choice({}, "stop"), "[DONE]"),
    );
  const asked = (path: string) => ({ name: "read", arguments: `{"path":"${path}"}` });

  it("of one index for all calls keeps them apart by their ids", () => {
    const { stop, events } = loose(
      { index: 0, id: "a", function: asked("a") },
      { index: 0, id: "b", function: asked("b") },
    );
    expect(stop).toBe("ToolCalls");
    expect(events).toEqual([
      ["a", "read", '{"path":"a"}'],
      ["b", "read", '{"path":"b"}'],
    ]);
  });

  it("of no index and no id keeps them apart by their names, and gives each an id, the same at each reading", () => {
    const first = loose({ function: asked("a") }, { function: asked("b") }).events;
    const id = expect.stringMatching(/^call_[0-9a-f]{40}$/);
    expect(first).toEqual([
      [id, "read", '{"path":"a"}'],
      [id, "read", '{"path":"b"}'],
    ]);
    expect(new Set(first.map((event) => (event as string[])[0])).size).toBe(2);
    expect(loose({ function: asked("a") }, { function: asked("b") }).events).toEqual(first);
  });

  it("of an id and a name on every piece makes one call of them", () => {
    const { events } = loose(
      { index: 0, id: "a", function: { name: "read", arguments: '{"path"' } },
      { index: 0, id: "a", function: { name: "read", arguments: ':"a"}' } },
    );
    expect(events).toEqual([["a", "read", '{"path":"a"}']]);
  });

  it("of pieces of two calls by turns keeps each to its own", () => {
    const { events } = loose(
      { index: 0, id: "a", function: { name: "read", arguments: '{"path"' } },
      { index: 1, id: "b", function: { name: "read", arguments: '{"path"' } },
      { index: 0, function: { arguments: ':"a"}' } },
      { index: 1, function: { arguments: ':"b"}' } },
    );
    expect(events).toEqual([
      ["a", "read", '{"path":"a"}'],
      ["b", "read", '{"path":"b"}'],
    ]);
  });

  it("of ids that the contract can't carry, or one for two calls, is made good", () => {
    for (const id of ["x".repeat(65), "a b", "ß", "", 7, null]) {
      const [event] = loose({ index: 0, id, function: asked("a") }).events as string[][];
      expect(event?.[0]).toMatch(/^call_[0-9a-f]{40}$/);
    }
    const { events } = loose(
      { index: 0, id: "a", function: asked("a") },
      { index: 1, id: "a", function: asked("b") },
    );
    expect(new Set((events as string[][]).map(([id]) => id)).size).toBe(2);
  });

  it("of arguments that are the object itself takes its text", () => {
    expect(loose({ index: 0, id: "a", function: { name: "read", arguments: { path: "a" } } }).events).toEqual(
      [["a", "read", '{"path":"a"}']],
    );
  });

  it("ends at names that no tool can have, at pieces of nothing, at two choices and at its own words", () => {
    for (const name of ["x".repeat(65), "a b", "a.b"]) {
      expect(loose({ index: 0, id: "a", function: { name, arguments: "{}" } }).failure?.failureKind).toBe(
        "StreamInvalid",
      );
    }
    expect(loose({ index: 0, function: { arguments: "{}" } }).failure?.failureKind).toBe("StreamInvalid");
    expect(loose("text" as unknown as object).failure?.failureKind).toBe("StreamInvalid");
    const two = {
      choices: [
        { index: 0, delta: {} },
        { index: 1, delta: {} },
      ],
    };
    expect(read("openai-chat", chunks(two)).failure?.failureKind).toBe("StreamInvalid");
    for (const [finish, kind] of [
      ["abort", "ProviderFailed"],
      ["error", "ProviderFailed"],
      ["function_call", "StreamInvalid"],
      ["constructor", "StreamInvalid"],
    ]) {
      expect(read("openai-chat", chunks(choice({}, finish), "[DONE]")).failure?.failureKind).toBe(kind);
    }
  });

  it("keeps text and calls in the order in which they came", () => {
    const stream = chunks(
      choice({ tool_calls: [{ index: 0, id: "a", function: asked("a") }] }),
      choice({ content: "and now" }),
      choice({ tool_calls: [{ index: 1, id: "b", function: asked("b") }] }),
      choice({}, "tool_calls"),
    );
    expect(
      read("openai-chat", stream).events.map((event) => (typeof event === "string" ? event : "call")),
    ).toEqual(["call", "and now", "call"]);
  });
});

describe("an error in the stream", () => {
  const anthropic = (type: string) => named({ type: "error", error: { type, message: "no" } });
  it("is a failure of the kind that its name says, and keeps what came before", () => {
    for (const [type, kind] of [
      ["overloaded_error", "Overloaded"],
      ["rate_limit_error", "RateLimited"],
      ["authentication_error", "CredentialUnavailable"],
      ["invalid_request_error", "RequestRejected"],
      ["api_error", "ProviderFailed"],
      ["timeout_error", "TimedOut"],
      ["something_new", "ProviderFailed"],
    ] as const) {
      const begun = ANTHROPIC_STREAM.slice(0, ANTHROPIC_STREAM.indexOf("event: ping"));
      const { failure, events } = read("anthropic", begun + anthropic(type));
      expect(failure?.failureKind).toBe(kind);
      expect(failure?.message).toContain(type);
      expect(events).toHaveLength(2);
    }
  });

  it("comes in each server's own form", () => {
    const failed = (code: string) => responded("response.failed", { error: { code, message: "no" } });
    expect(read("openai-responses", named(failed("rate_limit_exceeded"))).failure?.failureKind).toBe(
      "RateLimited",
    );
    expect(read("openai-responses", named(failed("server_error"))).failure?.failureKind).toBe(
      "ProviderFailed",
    );
    expect(
      read("openai-responses", named({ type: "error", code: "server_is_overloaded" })).failure?.failureKind,
    ).toBe("Overloaded");
    for (const [error, kind] of [
      [{ error: { code: 400, message: "too long", type: "exceed_context_size_error" } }, "RequestRejected"],
      [{ error: { code: 503, message: "loading" } }, "Overloaded"],
      [{ error: "out of memory" }, "ProviderFailed"],
    ] as const) {
      expect(read("openai-chat", chunks(choice({ content: "so" }), error))).toMatchObject({
        failure: { failureKind: kind },
        events: ["so"],
      });
    }
  });
});

describe("what breaks a stream", () => {
  it("is anything out of its order", () => {
    const start = named({ type: "message_start", message: {} });
    const [begin, fill, end] = textBlock("so");
    if (begin === undefined || fill === undefined || end === undefined) throw new Error("no block");
    for (const stream of [
      named(begin),
      start + start,
      start + named(begin, begin),
      start + named(fill),
      start + named(end),
      start + named(begin, { ...fill, index: 1 }),
      start + named(begin, { type: "message_stop" }),
      start + named({ type: "content_block_start", index: 0, content_block: { type: "server_tool_use" } }),
      start +
        named({ type: "content_block_start", index: 0, content_block: { type: "tool_use", name: "a b" } }),
      start + named({ type: "content_block_start", index: 0 }),
    ]) {
      const { failure } = read("anthropic", `${stream}${named({ type: "message_stop" })}`);
      expect(failure?.message).toContain("protocol");
    }
  });

  it("is data that is no JSON object", () => {
    for (const kind of KINDS) {
      for (const data of ["not json", "[]", "null", '"a"', "{", ""]) {
        expect(read(kind, `event: message_start\ndata: ${data}\n\n`).failure?.failureKind).toBe(
          "StreamInvalid",
        );
      }
    }
  });

  it("is not a member that is of another type than it should be: that is not there", () => {
    for (const odd of [null, 1, [], {}, "x"]) {
      const choices = [{ delta: { content: odd, tool_calls: odd, refusal: null }, finish_reason: null }];
      const usage = { prompt_tokens: "x", completion_tokens: -1, prompt_tokens_details: odd };
      const { usage: read_, failure } = read(
        "openai-chat",
        chunks({ choices, usage }, choice({}, "stop"), "[DONE]"),
      );
      expect(failure).toBeUndefined();
      expect(Object.values(read_ ?? {})).toEqual([null, null, null, null]);
    }
  });
});

describe("usage", () => {
  it("counts what was written to and read from the cache as input", () => {
    const { usage } = read(
      "anthropic",
      message(textBlock("so"), "end_turn", { cache_creation_input_tokens: 100 }),
    );
    expect(usage).toEqual({
      input_tokens: 115,
      cached_input_tokens: 5,
      output_tokens: 20,
      reasoning_output_tokens: null,
    });
  });

  it("is null where a part is larger than its whole, or a number is no count", () => {
    const usage = {
      input_tokens: 3,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 2 ** 60,
      output_tokens_details: { reasoning_tokens: 1.5 },
    };
    expect(read("openai-responses", named(responded("response.completed", { usage }))).usage).toEqual({
      input_tokens: 3,
      cached_input_tokens: null,
      output_tokens: null,
      reasoning_output_tokens: null,
    });
  });

  it("is unknown, and not zero, where a chat server tells none", () => {
    const { usage } = read("openai-chat", CHAT_STREAM.replace('"usage"', '"used"'));
    expect(Object.values(usage ?? {})).toEqual([null, null, null, null]);
  });
});
