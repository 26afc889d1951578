// A stream of OpenAI's Responses API: output items, of which text comes in pieces and the rest when it is done. Pure.
// Unknown events are passed over; an item of a kind that was not asked for is content that would be lost, so it ends
// the turn.

import type { StopReason, Usage } from "../contract.ts";
import { isToolName, protocolBroken, readUsage } from "./answer.ts";
import type { StreamMessage } from "./event_stream.ts";
import { type Failure, streamFailure } from "./failure.ts";
import type { ResponseEventType } from "./openai_sdk.ts";
import { closeState } from "./reasoning_state.ts";
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

type Step = Failure | Ending | undefined;

export class ResponsesReader implements AnswerReader {
  readonly #reading: Reading;
  readonly #takers: ReadonlyMap<string, (event: JsonRecord) => Step>;
  /** A piece of the message that is not done yet came. Of a message without pieces the finished item has the text. */
  #inPieces = false;
  #refused = false;

  constructor(reading: Reading) {
    this.#reading = reading;
    const takers: Partial<Record<ResponseEventType, (event: JsonRecord) => Step>> = {
      "response.output_text.delta": (event) => this.#takePiece(event),
      "response.refusal.delta": (event) => {
        this.#refused = true;
        return this.#takePiece(event);
      },
      "response.output_item.done": (event) => this.#takeItem(event),
      "response.completed": (event) => this.#complete(event),
      "response.incomplete": (event) => this.#cut(event),
      "response.failed": (event) => streamFailure(member(event, "response"), reading.key),
      error: (event) => streamFailure(event, reading.key),
    };
    this.#takers = new Map(Object.entries(takers));
  }

  take({ event: name, data }: StreamMessage): Step {
    if (data === "[DONE]") return this.end();
    const event = parseRecord(data);
    if (event === undefined) return protocolBroken("an event is no JSON object");
    return this.#takers.get(textMember(event, "type") ?? name)?.(event);
  }

  end(): Failure {
    return protocolBroken("the stream ended before the response did");
  }

  #takePiece(event: JsonRecord): Step {
    this.#inPieces = true;
    return this.#reading.answer.text(textMember(event, "delta") ?? "");
  }

  #takeItem(event: JsonRecord): Step {
    const item = recordMember(event, "item");
    switch (textMember(item, "type")) {
      case "message":
        return this.#takeMessage(item);
      case "function_call":
        return this.#takeCall(item);
      case "reasoning":
        return this.#takeReasoning(item);
      default:
        return protocolBroken("an output item is of a kind that was not asked for");
    }
  }

  #takeMessage(item: JsonRecord | undefined): Step {
    const told = this.#inPieces;
    this.#inPieces = false;
    for (const part of listMember(item, "content").map(asRecord)) {
      const refusal = textMember(part, "refusal");
      if (refusal !== undefined) this.#refused = true;
      if (told) continue;
      const problem = this.#reading.answer.text(refusal ?? textMember(part, "text") ?? "");
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  #takeCall(item: JsonRecord | undefined): Step {
    if (textMember(item, "status") === "incomplete") return undefined; // its arguments were cut
    const name = member(item, "name");
    if (!isToolName(name)) return protocolBroken("a tool call has no valid name");
    const text = textMember(item, "arguments") ?? "";
    const { answer, ids } = this.#reading;
    const problem = answer.charge(Buffer.byteLength(text));
    return problem ?? answer.toolCall({ call_id: ids.give(member(item, "call_id")), name, arguments: text });
  }

  /** What is not encrypted can't be sent back: the provider keeps nothing. Its summary is no part of the answer. */
  #takeReasoning(item: JsonRecord | undefined): Step {
    const encrypted = textMember(item, "encrypted_content");
    const id = textMember(item, "id");
    if (encrypted === undefined || encrypted === "" || id === undefined) return undefined;
    const summary = listMember(item, "summary");
    const { answer, owner } = this.#reading;
    return answer.reasoning(closeState(owner, { id, summary, encrypted_content: encrypted }));
  }

  /** Some servers end every response by this event, and say in it how it ended. */
  #complete(event: JsonRecord): Step {
    const response = recordMember(event, "response");
    const status = textMember(response, "status");
    if (status === "incomplete") return this.#cut(event);
    if (status === "failed") return streamFailure(response, this.#reading.key);
    return this.#finish(event, this.#refused ? "ContentFilter" : "EndTurn");
  }

  /** The API may leave the reason out; the events are a prefix in any case. */
  #cut(event: JsonRecord): Step {
    const details = recordMember(recordMember(event, "response"), "incomplete_details");
    const reason = textMember(details, "reason") ?? "max_output_tokens";
    if (reason === "max_output_tokens") return this.#finish(event, "MaxOutputTokens");
    if (reason === "content_filter") return this.#finish(event, "ContentFilter");
    return protocolBroken("the response is incomplete for no reason that this program knows");
  }

  #finish(event: JsonRecord, stop: StopReason): Ending {
    const response = recordMember(event, "response");
    return { stop, usage: usageOf(recordMember(response, "usage")), responseId: member(response, "id") };
  }
}

function usageOf(usage: JsonRecord | undefined): Usage {
  return readUsage({
    input: member(usage, "input_tokens"),
    output: member(usage, "output_tokens"),
    reasoning: member(recordMember(usage, "output_tokens_details"), "reasoning_tokens"),
    cached: member(recordMember(usage, "input_tokens_details"), "cached_tokens"),
  });
}
