// Standard input and output as the protocol has them: one JSON document a line. Invariant: no line is longer than the
// bound, nothing is read while the client does not read, and a line that is no message is answered and costs no other.

import type { Readable, Writable } from "node:stream";
import { type Effects, REAL_EFFECTS } from "../../../client/effects.ts";
import { messageLine } from "../message_line.ts";
import { withExactArguments } from "./exact_arguments.ts";
import type { McpMessage, McpTransport } from "./sdk.ts";

/** A request that holds more could not go to the broker. */
export const LINE_BYTES_MAX = 4_194_304;
/** Bytes that the client has not taken, above which nothing more is read from it. */
const HELD_BYTES_MAX = 1_048_576;
/** Requests without their answer, above which no further message is looked at. */
export const UNANSWERED_MAX = 256;

/** After the end of the input. */
const LAST_MS = 1000;

const LINE_FEED = 0x0a;

export class LineTransport implements McpTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: McpMessage) => void;
  /** Resolves when nothing more comes or can be sent. */
  readonly ended: Promise<undefined>;
  #onEnded!: () => void;
  readonly #input: Readable;
  readonly #output: Writable;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The line is too long already: what is left of it is not kept. */
  #skipping = false;
  /** Lines that were read while too much was unanswered. */
  #queue: (readonly Buffer[] | "too_long")[] = [];
  readonly #unanswered = new Set<string | number>();
  readonly #after: Effects["after"];
  #batch = "";
  #isFlushing = false;
  #isLast = false;
  #callOff: () => void = () => {};
  #over = false;

  constructor(input: Readable, output: Writable, { after }: Pick<Effects, "after"> = REAL_EFFECTS) {
    this.#input = input;
    this.#output = output;
    this.#after = after;
    this.ended = new Promise((resolve) => {
      this.#onEnded = () => resolve(undefined);
    });
  }

  async start(): Promise<void> {
    this.#input.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#input.on("error", () => this.#end());
    this.#input.on("close", () => this.#isLast || this.#end());
    this.#input.on("end", () => this.#noMore());
    this.#output.on("error", () => this.#end());
    this.#output.on("close", () => this.#end());
    this.#output.on("drain", () => this.#goOn());
  }

  async send(message: McpMessage): Promise<void> {
    if (!("method" in message) && "id" in message && message.id !== undefined && message.id !== null) {
      this.#unanswered.delete(message.id);
    }
    this.#write(message);
    this.#goOn();
  }

  async close(): Promise<void> {
    this.#end();
  }

  /** Sends what was written, as far as the client takes it in a moment; then nothing of ours is open. */
  async finish(): Promise<void> {
    const output = this.#output;
    this.#flush();
    await new Promise<void>((resolve) => {
      const callOff = this.#after(LAST_MS, done);
      function done(): void {
        callOff();
        resolve();
      }
      output.once("close", done);
      output.end(done);
    });
    output.destroy();
    this.#input.destroy();
  }

  /** What is written in one turn of the event loop leaves in one piece. */
  #write(message: object): void {
    if (this.#output.destroyed || this.#output.writableEnded) return;
    this.#batch += messageLine(JSON.stringify(message));
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushing = false;
    const batch = this.#batch;
    this.#batch = "";
    if (batch !== "" && !this.#output.destroyed && !this.#output.writableEnded) this.#output.write(batch);
    this.#goOn();
  }

  /** Nothing more is asked: what runs gets a moment to be answered, for those who only write and then read. */
  #noMore(): void {
    this.#isLast = true;
    if (this.#isIdle) this.#end();
    else this.#callOff = this.#after(LAST_MS, () => this.#end());
  }

  get #isIdle(): boolean {
    return this.#unanswered.size === 0 && this.#queue.length === 0;
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#callOff();
    this.#input.pause();
    this.#pieces = [];
    this.#queue = [];
    this.onclose?.();
    this.#onEnded();
  }

  get #isFull(): boolean {
    return (
      this.#output.writableLength + this.#batch.length > HELD_BYTES_MAX ||
      this.#unanswered.size >= UNANSWERED_MAX
    );
  }

  #read(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      this.#keep(chunk.subarray(from, end));
      from = end + 1;
      this.#queue.push(this.#skipping ? "too_long" : this.#pieces);
      this.#pieces = [];
      this.#bytes = 0;
      this.#skipping = false;
    }
    this.#keep(chunk.subarray(from));
    this.#goOn();
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes > LINE_BYTES_MAX) {
      this.#skipping = true;
      this.#pieces = [];
    } else if (piece.length > 0) this.#pieces.push(piece);
  }

  /** Looks at what was read as far as it may, and reads on when that is all. */
  #goOn(): void {
    while (!this.#over && !this.#isFull) {
      const line = this.#queue.shift();
      if (line === undefined) break;
      if (line === "too_long") this.#refuse(-32600, `A message is at most ${LINE_BYTES_MAX} bytes.`);
      else if (line.length > 0) this.#message(line.length === 1 ? line[0]! : Buffer.concat(line));
    }
    if (this.#queue.length > 0 || this.#isFull) this.#input.pause();
    else if (!this.#over && this.#input.isPaused()) this.#input.resume();
    if (this.#isLast && this.#isIdle) this.#end();
  }

  #message(line: Buffer): void {
    const text = textOf(line);
    if (text?.trim() === "") return;
    const message = text === undefined ? undefined : parsed(text);
    if (text === undefined || message === undefined)
      return this.#refuse(-32700, "The line is no JSON document.");
    if (!isMessage(message)) return this.#refuse(-32600, "The line is no JSON-RPC message.");
    this.#count(message);
    this.onmessage?.(withExactArguments(message, text) as McpMessage); // the library checks what is in it
  }

  /** A request waits for its answer; one that is cancelled gets none, and a subscription none until the end. */
  #count({ method, id, params }: Sent): void {
    if (method === "notifications/cancelled") {
      const cancelled = params?.["requestId"];
      if (typeof cancelled === "string" || typeof cancelled === "number") this.#unanswered.delete(cancelled);
    } else if (method !== undefined && method !== "subscriptions/listen" && id !== undefined)
      this.#unanswered.add(id);
  }

  #refuse(code: number, message: string): void {
    this.#write({ jsonrpc: "2.0", id: null, error: { code, message } });
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

function textOf(line: Buffer): string | undefined {
  try {
    return UTF8.decode(line);
  } catch {
    return undefined;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** As far as whoever hands it on must know. */
interface Sent {
  readonly jsonrpc: "2.0";
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** Lists of messages are of versions that are no more. */
function isMessage(value: unknown): value is Sent {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { jsonrpc, method, id } = value as Readonly<Record<string, unknown>>;
  if (jsonrpc !== "2.0") return false;
  const isId = typeof id === "string" || (typeof id === "number" && Number.isFinite(id));
  return method === undefined ? isId : typeof method === "string" && (id === undefined || isId);
}
