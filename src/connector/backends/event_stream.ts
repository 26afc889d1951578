// Server-sent events out of bytes (WHATWG HTML, 9.2.6), strictly bounded. The SDKs' own readers are not used: one
// writes what it can't parse to the console, and both end without a word where the request was aborted. Pure.

import { type Failure, failure } from "./failure.ts";
import { TextPieces } from "./text_pieces.ts";

export interface StreamMessage {
  /** Empty: the stream named none. */
  readonly event: string;
  readonly data: string;
}

export class EventStreamReader {
  readonly #charsMax: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  /** Of a line that has no end yet: joined once, so that a long line costs no more than it is long. */
  #line = new TextPieces();
  #chars = 0;
  #event = "";
  #data: string[] = [];
  #afterReturn = false;

  /** `charsMax`: of one message, in UTF-16 units, with what is not read of it. */
  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  /**
   * The messages that this piece completes, and what is wrong behind them. A message without its empty line at the
   * end of the stream is none.
   */
  push(chunk: Uint8Array): { readonly messages: readonly StreamMessage[]; readonly failure?: Failure } {
    const text = this.#decode(chunk);
    if (text === undefined) {
      return { messages: [], failure: failure("StreamInvalid", "the provider's stream is not UTF-8") };
    }
    const messages = this.#takeText(text);
    if (this.#chars <= this.#charsMax) return { messages };
    const sentence = "one message of the provider's stream is larger than an answer may be";
    return { messages, failure: failure("StreamInvalid", sentence) };
  }

  #takeText(text: string): StreamMessage[] {
    const messages: StreamMessage[] = [];
    let start = 0;
    for (const { index, 0: end } of text.matchAll(/\r\n|[\r\n]/g)) {
      const line = this.#takeLine(text.slice(start, index));
      // The two halves of one line end, in two pieces.
      const half = index === 0 && end === "\n" && this.#afterReturn;
      if (!half) this.#takeField(line, messages);
      start = index + end.length;
    }
    if (text !== "") this.#afterReturn = text.endsWith("\r");
    this.#keep(text.slice(start));
    return messages;
  }

  #decode(chunk: Uint8Array): string | undefined {
    try {
      return this.#decoder.decode(chunk, { stream: true });
    } catch {
      return undefined;
    }
  }

  #keep(piece: string): void {
    if (piece === "") return;
    this.#line.push(piece);
    this.#chars += piece.length;
  }

  #takeLine(rest: string): string {
    this.#keep(rest);
    const line = this.#line.text();
    this.#line = new TextPieces();
    return line;
  }

  #takeField(line: string, messages: StreamMessage[]): void {
    if (line === "") {
      if (this.#data.length > 0) messages.push({ event: this.#event, data: this.#data.join("\n") });
      this.#event = "";
      this.#data = [];
      this.#chars = 0;
      return;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#event = value;
    if (name === "data") this.#data.push(value);
  }
}
