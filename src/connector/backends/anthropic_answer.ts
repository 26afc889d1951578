// A stream of Anthropic's Messages API: blocks, one after the other, each begun, filled and ended. Pure. Unknown
// events are passed over, as the API asks; a block of an unknown kind is content that would be lost, so it ends the turn.

import type { StopReason, Usage } from "../contract.ts";
import { count, isToolName, protocolBroken, readUsage } from "./answer.ts";
import type { AnthropicStop, StreamEventType } from "./anthropic_sdk.ts";
import type { StreamMessage } from "./event_stream.ts";
import { type Failure, streamFailure } from "./failure.ts";
import { closeState } from "./reasoning_state.ts";
import { TextPieces } from "./text_pieces.ts";
import type { AnswerReader, Ending, Reading } from "./turn.ts";
import { asRecord, type JsonRecord, member, parseRecord, recordMember, textMember } from "./unknown_json.ts";

/** What is open, and what came of it. */
type Block =
  | { readonly kind: "text" }
  | { readonly kind: "thinking"; readonly texts: TextPieces; readonly signature: TextPieces }
  | { readonly kind: "redacted_thinking"; readonly data: string }
  | ToolUse;

interface ToolUse {
  readonly kind: "tool_use";
  readonly id: unknown;
  readonly name: string;
  readonly pieces: TextPieces;
  /** What the block began with: all of it, where a server sends no pieces; empty else. */
  readonly given: string;
}

const STOPS: Readonly<Partial<Record<AnthropicStop, StopReason>>> = {
  end_turn: "EndTurn",
  stop_sequence: "EndTurn", // none is asked for; a server that has its own has ended the answer by it
  tool_use: "ToolCalls",
  max_tokens: "MaxOutputTokens",
  model_context_window_exceeded: "MaxOutputTokens",
  refusal: "ContentFilter",
  // pause_turn is of the provider's own tools, none of which is asked for: no reason of the contract says it.
};

const COUNTS = [
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "output_tokens",
  "output_tokens_details",
] as const;

type Step = Failure | Ending | undefined;

export class AnthropicReader implements AnswerReader {
  readonly #reading: Reading;
  #open: { readonly index: unknown; readonly block: Block } | undefined;
  #started = false;
  #responseId: unknown;
  #stop: string | undefined;
  /** By the API's names; what comes later replaces what came before. */
  readonly #counts = new Map<string, unknown>();

  readonly #takers: ReadonlyMap<string, (event: JsonRecord) => Step>;

  constructor(reading: Reading) {
    this.#reading = reading;
    const takers: Readonly<Record<StreamEventType | "error", (event: JsonRecord) => Step>> = {
      message_start: (event) => this.#start(event),
      content_block_start: (event) => this.#startBlock(event),
      content_block_delta: (event) => this.#fillBlock(event),
      content_block_stop: (event) => this.#endBlock(event),
      message_delta: (event) => this.#noteEnd(event),
      message_stop: () => this.#finish(),
      error: (event) => streamFailure(event, reading.key),
    };
    this.#takers = new Map(Object.entries(takers));
  }

  take({ event: name, data }: StreamMessage): Step {
    const event = parseRecord(data);
    if (event === undefined) return protocolBroken("an event is no JSON object");
    const type = textMember(event, "type") ?? name;
    const take = this.#takers.get(type);
    if (take === undefined) return undefined;
    if (!this.#started && type !== "message_start" && type !== "error") {
      return protocolBroken("an event came before the message began");
    }
    return take(event);
  }

  end(): Failure {
    return protocolBroken("the stream ended before the message did");
  }

  #start(event: JsonRecord): Step {
    if (this.#started) return protocolBroken("the message began twice");
    this.#started = true;
    const message = recordMember(event, "message");
    this.#responseId = member(message, "id");
    this.#noteCounts(recordMember(message, "usage"));
    return undefined;
  }

  #startBlock(event: JsonRecord): Step {
    if (this.#open !== undefined) return protocolBroken("a block began within another one");
    const content = recordMember(event, "content_block");
    const block = blockOf(content);
    if (block === undefined)
      return protocolBroken("a block is of a kind that was not asked for, or has no valid name");
    this.#open = { index: member(event, "index"), block };
    // A server may put the beginning, or all of it, here.
    const { answer } = this.#reading;
    if (block.kind === "text") return answer.text(textMember(content, "text") ?? "");
    return answer.charge(Buffer.byteLength(heldBy(block)));
  }

  #fillBlock(event: JsonRecord): Step {
    const delta = recordMember(event, "delta");
    if (this.#open === undefined || this.#open.index !== member(event, "index")) {
      return protocolBroken("a piece belongs to no open block");
    }
    const { block } = this.#open;
    const type = textMember(delta, "type");
    if (type === "text_delta" && block.kind === "text") {
      return this.#reading.answer.text(textMember(delta, "text") ?? "");
    }
    if (type === "input_json_delta" && block.kind === "tool_use") {
      return this.#keep(block.pieces, textMember(delta, "partial_json"));
    }
    if (block.kind === "thinking") return this.#fillThinking(block, type, delta);
    return undefined; // a kind of piece that came later than this code, such as a citation
  }

  #fillThinking(
    block: Extract<Block, { kind: "thinking" }>,
    type: string | undefined,
    delta: JsonRecord | undefined,
  ): Step {
    if (type === "thinking_delta") return this.#keep(block.texts, textMember(delta, "thinking"));
    if (type === "signature_delta") return this.#keep(block.signature, textMember(delta, "signature"));
    return undefined;
  }

  #keep(pieces: TextPieces, piece: string | undefined): Step {
    if (piece === undefined || piece === "") return undefined;
    pieces.push(piece);
    return this.#reading.answer.charge(Buffer.byteLength(piece));
  }

  #endBlock(event: JsonRecord): Step {
    if (this.#open === undefined || this.#open.index !== member(event, "index")) {
      return protocolBroken("a block ended that was not open");
    }
    const { block } = this.#open;
    this.#open = undefined;
    const { answer, ids, owner } = this.#reading;
    if (block.kind === "tool_use") {
      return answer.toolCall({ call_id: ids.give(block.id), name: block.name, arguments: inputOf(block) });
    }
    if (block.kind === "redacted_thinking") {
      return answer.reasoning(closeState(owner, { type: block.kind, data: block.data }));
    }
    // Without its signature a block was cut, and the API would not take it back.
    if (block.kind !== "thinking") return undefined;
    const signature = block.signature.text();
    if (signature === "") return undefined;
    const item = { type: block.kind, thinking: block.texts.text(), signature };
    return answer.reasoning(closeState(owner, item));
  }

  #noteEnd(event: JsonRecord): Step {
    this.#stop = textMember(recordMember(event, "delta"), "stop_reason") ?? this.#stop;
    this.#noteCounts(recordMember(event, "usage"));
    return undefined;
  }

  #noteCounts(usage: JsonRecord | undefined): void {
    for (const name of COUNTS) {
      const value = member(usage, name);
      if (value !== undefined && value !== null) this.#counts.set(name, value);
    }
  }

  #finish(): Step {
    if (this.#open !== undefined) return protocolBroken("the message ended within a block");
    const stop = new Map<string, StopReason>(Object.entries(STOPS)).get(this.#stop ?? "");
    if (stop === undefined) return protocolBroken("the message ended for no reason that this program knows");
    return { stop, usage: this.#usage(), responseId: this.#responseId };
  }

  /** What was read from and written to the cache is told apart from the other input. */
  #usage(): Usage {
    const [fresh, written, cached] = [
      "input_tokens",
      "cache_creation_input_tokens",
      "cache_read_input_tokens",
    ].map((name) => count(this.#counts.get(name)));
    const input = fresh === null || fresh === undefined ? null : fresh + (written ?? 0) + (cached ?? 0);
    const details = asRecord(this.#counts.get("output_tokens_details"));
    return readUsage({
      input,
      output: this.#counts.get("output_tokens"),
      reasoning: member(details, "thinking_tokens"),
      cached,
    });
  }
}

function blockOf(content: JsonRecord | undefined): Block | undefined {
  switch (textMember(content, "type")) {
    case "text":
      return { kind: "text" };
    case "thinking":
      return thinkingOf(content);
    case "redacted_thinking":
      return { kind: "redacted_thinking", data: textMember(content, "data") ?? "" };
    case "tool_use":
      return toolUseOf(content);
    default:
      return undefined;
  }
}

function toolUseOf(content: JsonRecord | undefined): ToolUse | undefined {
  const name = textMember(content, "name") ?? "";
  if (!isToolName(name)) return undefined;
  const input = recordMember(content, "input") ?? {};
  const given = Object.keys(input).length > 0 ? JSON.stringify(input) : "";
  return { kind: "tool_use", id: member(content, "id"), name, given, pieces: new TextPieces() };
}

function thinkingOf(content: JsonRecord | undefined): Block {
  const texts = new TextPieces();
  const signature = new TextPieces();
  texts.push(textMember(content, "thinking") ?? "");
  signature.push(textMember(content, "signature") ?? "");
  return { kind: "thinking", texts, signature };
}

/** What a block that is no text began with. */
function heldBy(block: Exclude<Block, { kind: "text" }>): string {
  if (block.kind === "tool_use") return block.given;
  return block.kind === "thinking" ? block.texts.text() + block.signature.text() : block.data;
}

/** Empty: there is nothing of it, or it was cut before its first piece. */
function inputOf({ pieces, given }: ToolUse): string {
  return pieces.text() || given;
}
