// Server-sent events out of text that comes in pieces cut anywhere (https://html.spec.whatwg.org, "Interpreting
// an event stream"). EventSource itself can't send a header. Ids and retry times are not read: the console
// sends none.

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** Characters of one event; a longer one is a broken stream. */
const EVENT_CHARS_MAX = 16 * 1024 * 1024;

export class EventReader {
  /** The line that has not ended, in pieces: each piece is searched for its ends once. */
  #rest: string[] = [];
  #endedInReturn = false;
  #name = "";
  #data: string[] = [];
  #chars = 0;

  /** The events that are complete with this piece. Throws where an event is longer than any the console sends. */
  take(piece: string): readonly ServerEvent[] {
    if (piece === "") return [];
    const events: ServerEvent[] = [];
    // Its line feed may come in the next piece: the line has ended all the same.
    const text = this.#endedInReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    this.#endedInReturn = piece.endsWith("\r");
    const lines = text.split(/\r\n|\n|\r/);
    const rest = lines.pop() ?? "";
    for (const line of lines) {
      this.#chars += line.length;
      this.#line(this.#rest.join("") + line, events);
      this.#rest = [];
    }
    this.#rest.push(rest);
    this.#chars += rest.length;
    if (this.#chars > EVENT_CHARS_MAX) throw new Error("an event without an end");
    return events;
  }

  #line(line: string, events: ServerEvent[]): void {
    if (line === "") {
      if (this.#data.length > 0) events.push({ event: this.#name || "message", data: this.#data.join("\n") });
      this.#name = "";
      this.#data = [];
      this.#chars = 0;
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
  }
}
