// What a turn comes to while its stream is read: events in their order, bounded, and how the turn ended, as the
// contract has it. Pure. Invariant: the events of a finished answer form a valid result (spec: connector, 3.3), and a
// tool call whose arguments were cut is none of them.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { EventPayload, ReasoningState, StopReason, ToolCall, Usage } from "../contract.ts";
import { INTEGER_MAX } from "../limits.ts";
import { NAME_RULE } from "../text_rules.ts";
import { type Failure, failure } from "./failure.ts";
import { TextPieces } from "./text_pieces.ts";
import { parseRecord } from "./unknown_json.ts";

/** More calls and reasoning states than any model makes in a turn. */
const EVENTS_MAX = 10_000;

interface CallPiece {
  readonly call: ToolCall;
}

/** In the order of the stream; a run of text is joined at the end. */
type Piece = { readonly texts: TextPieces } | CallPiece | { readonly state: ReasoningState };

export class Answer {
  readonly #bytesMax: number;
  readonly #pieces: Piece[] = [];
  #bytes = 0;

  /** `bytesMax`: of text, arguments and reasoning state together, as UTF-8. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  text(text: string): Failure | undefined {
    if (text === "") return undefined;
    const problem = this.charge(Buffer.byteLength(text));
    if (problem !== undefined) return problem;
    const last = this.#pieces.at(-1);
    const texts = last !== undefined && "texts" in last ? last.texts : new TextPieces();
    if (last === undefined || !("texts" in last)) this.#pieces.push({ texts });
    texts.push(text);
    return undefined;
  }

  /** Its arguments were charged piece by piece. Empty ones are those of a tool that takes none, or were cut. */
  toolCall(call: ToolCall): Failure | undefined {
    return this.charge(0) ?? this.#add({ call });
  }

  reasoning(state: ReasoningState): Failure | undefined {
    return this.charge(state.opaque.length) ?? this.#add({ state });
  }

  #add(piece: Piece): undefined {
    this.#pieces.push(piece);
    return undefined;
  }

  /** Bytes that are on their way to be an event. What does not fit is not kept, before a failure either. */
  charge(bytes: number): Failure | undefined {
    this.#bytes += bytes;
    if (this.#bytes <= this.#bytesMax && this.#pieces.length < EVENTS_MAX) return undefined;
    return failure("StreamInvalid", `the provider's answer is larger than ${this.#bytesMax} bytes`);
  }

  /** What stands before a failure, or before an end that cut the answer: without calls that may have been cut. */
  prefix(): EventPayload[] {
    const last = this.#pieces.at(-1);
    return this.#events((piece) => {
      const { arguments: text } = piece.call;
      return text === "" ? piece !== last : parseRecord(text) !== undefined;
    });
  }

  /** Also says what the provider meant: one may say that it stopped though it called tools. */
  finish(stop: StopReason): Result<{ events: EventPayload[]; stopReason: StopReason }, Failure> {
    if (stop === "MaxOutputTokens" || stop === "ContentFilter") {
      return ok({ events: this.prefix(), stopReason: stop });
    }
    const events = this.#events(() => true);
    const calls = events.some((event) => "ToolCall" in event);
    if (stop === "ToolCalls" && !calls) {
      return fault(failure("StreamInvalid", "the provider waits for tool results but called no tool"));
    }
    return ok({ events, stopReason: calls ? "ToolCalls" : "EndTurn" });
  }

  #events(isWhole: (piece: CallPiece) => boolean): EventPayload[] {
    return this.#pieces.flatMap((piece): EventPayload[] => {
      if ("texts" in piece) return [{ TextDelta: { text: piece.texts.text().toWellFormed() } }];
      if ("state" in piece) return [{ ReasoningState: piece.state }];
      if (!isWhole(piece)) return [];
      const text = piece.call.arguments === "" ? "{}" : piece.call.arguments.toWellFormed();
      return [{ ToolCall: { ...piece.call, arguments: text } }];
    });
  }
}

/** As a provider reports them, in the contract's accounting; what is no count is not reported. */
export interface TokenCounts {
  readonly input: unknown;
  readonly output: unknown;
  readonly reasoning: unknown;
  readonly cached: unknown;
}

/** Keeps the contract's rule that a part is no larger than its whole, where a provider's numbers do not. */
export function readUsage(counts: TokenCounts): Usage {
  const input = count(counts.input);
  const output = count(counts.output);
  return {
    input_tokens: input,
    output_tokens: output,
    reasoning_output_tokens: part(count(counts.reasoning), output),
    cached_input_tokens: part(count(counts.cached), input),
  };
}

/** A count of tokens; null: it is none. */
export function count(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= INTEGER_MAX
    ? value
    : null;
}

function part(value: number | null, whole: number | null): number | null {
  return value !== null && whole !== null && value > whole ? null : value;
}

/** Whether the contract can carry it. */
export function isToolName(name: unknown): name is string {
  return typeof name === "string" && name.length <= NAME_RULE.bytesMax && NAME_RULE.fits(name);
}

export function protocolBroken(why: string): Failure {
  return failure("StreamInvalid", `the provider broke its own protocol: ${why}`);
}
