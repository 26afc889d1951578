// A stream of Chat Completions chunks, as loosely as local servers write them: calls without an id or an index, one
// index for all, "stop" though tools were called, no [DONE]. Pure. What a model thinks (`reasoning_content`,
// `reasoning`) is passed over: it is no answer, and the API has no place to send it back.

import type { StopReason, Usage } from "../contract.ts";
import { isToolName, protocolBroken, readUsage } from "./answer.ts";
import { ChatCalls } from "./chat_calls.ts";
import type { StreamMessage } from "./event_stream.ts";
import { type Failure, failure, streamFailure } from "./failure.ts";
import type { ChatFinish } from "./openai_sdk.ts";
import type { AnswerReader, Ending, Reading } from "./turn.ts";
import {
  asRecord,
  type JsonRecord,
  listMember,
  member,
  parseRecord,
  recordMember,
  textMember,
} from "./unknown_json.ts";

const STOPS: ReadonlyMap<string, StopReason> = new Map<ChatFinish, StopReason>([
  ["stop", "EndTurn"],
  ["tool_calls", "ToolCalls"],
  ["length", "MaxOutputTokens"],
  ["content_filter", "ContentFilter"],
  // function_call is of the older way to offer tools, which is not used.
]);
/** vLLM's and routers' words for a turn that the server itself gave up. */
const GIVEN_UP: ReadonlySet<string> = new Set(["abort", "error"]);

type Step = Failure | Ending | undefined;

export class ChatReader implements AnswerReader {
  readonly #reading: Reading;
  readonly #calls = new ChatCalls();
  #responseId: unknown;
  #finish: string | undefined;
  #refused = false;
  #usage: JsonRecord | undefined;

  constructor(reading: Reading) {
    this.#reading = reading;
  }

  take({ event: name, data }: StreamMessage): Step {
    if (data === "[DONE]") return this.end();
    const chunk = parseRecord(data);
    if (chunk === undefined) return protocolBroken("a chunk is no JSON object");
    const error = member(chunk, "error");
    if (name === "error" || (error !== undefined && error !== null)) {
      return streamFailure(chunk, this.#reading.key);
    }
    this.#responseId ??= member(chunk, "id");
    this.#usage = recordMember(chunk, "usage") ?? this.#usage;
    const choices = listMember(chunk, "choices");
    if (choices.length > 1)
      return protocolBroken("a chunk holds more than the one choice that was asked for");
    return choices.length === 0 ? undefined : this.#takeChoice(asRecord(choices[0]));
  }

  /** A server that closes after the finish reason has said all that counts. */
  end(): Failure | Ending {
    if (this.#finish === undefined) return protocolBroken("the stream ended before the answer did");
    if (GIVEN_UP.has(this.#finish)) return failure("ProviderFailed", "the provider gave the turn up");
    const stop = STOPS.get(this.#finish);
    if (stop === undefined) return protocolBroken("the answer ended for no reason that this program knows");
    const problem = this.#closeCalls();
    if (problem !== undefined) return problem;
    return {
      stop: this.#refused && stop !== "MaxOutputTokens" ? "ContentFilter" : stop,
      usage: usageOf(this.#usage),
      responseId: this.#responseId,
    };
  }

  #takeChoice(choice: JsonRecord | undefined): Step {
    const delta = recordMember(choice, "delta");
    const refusal = textMember(delta, "refusal") ?? "";
    if (refusal !== "") this.#refused = true;
    const problem = this.#takeText((textMember(delta, "content") ?? "") + refusal);
    if (problem !== undefined) return problem;
    for (const piece of listMember(delta, "tool_calls").map(asRecord)) {
      const bytes = this.#calls.take(piece);
      const step =
        bytes === undefined
          ? protocolBroken("a piece belongs to no tool call")
          : this.#reading.answer.charge(bytes);
      if (step !== undefined) return step;
    }
    this.#finish = textMember(choice, "finish_reason") ?? this.#finish;
    return undefined;
  }

  /** Calls that stand before a text are whole, since a call's pieces come in one run. */
  #takeText(text: string): Failure | undefined {
    if (text === "") return undefined;
    return this.#closeCalls() ?? this.#reading.answer.text(text);
  }

  #closeCalls(): Failure | undefined {
    for (const { id, name, pieces } of this.#calls.close()) {
      if (!isToolName(name)) return protocolBroken("a tool call has no valid name");
      const call = { call_id: this.#reading.ids.give(id), name, arguments: pieces.text() };
      const problem = this.#reading.answer.toolCall(call);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
}

function usageOf(usage: JsonRecord | undefined): Usage {
  return readUsage({
    input: member(usage, "prompt_tokens"),
    output: member(usage, "completion_tokens"),
    reasoning: member(recordMember(usage, "completion_tokens_details"), "reasoning_tokens"),
    cached: member(recordMember(usage, "prompt_tokens_details"), "cached_tokens"),
  });
}
