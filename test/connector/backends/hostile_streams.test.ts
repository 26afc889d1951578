// A provider that wants memory or time, not an answer: what its stream costs is bounded by what it may be, not by what it says.

import { describe, expect, it } from "vitest";
import { Answer } from "../../../src/connector/backends/answer.ts";
import { AnthropicReader } from "../../../src/connector/backends/anthropic_answer.ts";
import { CallIds } from "../../../src/connector/backends/call_ids.ts";
import { ChatCalls } from "../../../src/connector/backends/chat_calls.ts";
import { parseRecord } from "../../../src/connector/backends/unknown_json.ts";

/** What an answer of at most so many bytes comes to. */
function read(bytesMax: number, ...events: readonly object[]) {
  const answer = new Answer(bytesMax);
  const owner = { provider: "anthropic", model: "model-1", origin: "https://api.example.com" };
  const reader = new AnthropicReader({ answer, ids: new CallIds(new Uint8Array(32)), owner, key: undefined });
  const ends = events.map((event) => reader.take({ event: "", data: JSON.stringify(event) }));
  return { end: ends.find((end) => end !== undefined), events: answer.prefix() };
}

describe("a stream that is made to be expensive", () => {
  it("can't make an object of millions out of a few bytes each, in lists, objects or numbers", () => {
    for (const piece of ["{},", "[],", "1,", '{"a":1},']) {
      const text = `{"x":[${piece.repeat(1_000_001)}0]}`;
      expect(JSON.parse(text)).toBeTypeOf("object");
      expect(parseRecord(text)).toBeUndefined();
    }
  });

  it("can't nest so deep that what was parsed can't be written again", () => {
    const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
    expect(parseRecord(nested(512))).toBeDefined();
    expect(parseRecord(nested(513))).toBeUndefined();
  });

  it("is no such stream for what stands in its texts", () => {
    const text = `${'{[,\\"'.repeat(1_100_000)}\\`;
    expect(parseRecord(JSON.stringify({ text }))).toEqual({ text });
  });

  it("can't hold the process up with pieces of calls while a thousand are open", () => {
    const calls = new ChatCalls();
    for (let index = 0; index < 1000; index++) calls.take({ index, function: { name: "read" } });
    for (let i = 0; i < 10_000_000; i++) calls.take({ index: 0, function: { arguments: "" } });
    expect(calls.close()).toHaveLength(1000);
  });
});

describe("an answer over its bound", () => {
  const long = "s".repeat(2000);
  const begun = { type: "message_start", message: { id: "m" } };
  const block = (content_block: object) => ({ type: "content_block_start", index: 0, content_block });
  const thinking = block({ type: "thinking", thinking: "" });
  const signature = {
    type: "content_block_delta",
    index: 0,
    delta: { type: "signature_delta", signature: long },
  };
  const stop = { type: "content_block_stop", index: 0 };

  it("ends the turn where it is a signature, an input that came whole, or what a block began with", () => {
    for (const events of [
      [begun, thinking, signature],
      [begun, block({ type: "tool_use", id: "t", name: "read", input: { a: long } })],
      [begun, block({ type: "thinking", thinking: long })],
      [begun, block({ type: "thinking", thinking: "", signature: long })],
      [begun, block({ type: "redacted_thinking", data: long })],
    ]) {
      expect(read(1000, ...events).end).toMatchObject({ failureKind: "StreamInvalid" });
    }
  });

  it("is not kept in front of its failure", () => {
    const text = read(1000, begun, block({ type: "text", text: long }));
    expect(text).toMatchObject({ end: { failureKind: "StreamInvalid" }, events: [] });
    // What is around it in its opaque bytes is over the bound, not itself.
    const reasoning = read(2050, begun, thinking, signature, stop);
    expect(reasoning).toMatchObject({ end: { failureKind: "StreamInvalid" }, events: [] });
  });
});
