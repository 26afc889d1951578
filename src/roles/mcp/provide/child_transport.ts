// MCP's stdio transport over a process of ours: one JSON-RPC message a line. What a server may send is bounded: a line's
// length, and how much comes that nobody asked for. Answers under an id that nothing was asked with are dropped here.
// It has `pid` and `stderr` because the SDK knows a stdio transport by them.

import { visibleLine } from "../../../base/display.ts";
import { messageLine } from "../message_line.ts";
import type { ServerCommand } from "./confinement.ts";
import type { ExactArguments } from "./exact_arguments.ts";
import { LineReader } from "./line_reader.ts";
import { type ServerEnd, ServerProcess } from "./server_process.ts";
import type { ServerText } from "./server_text.ts";

/** Of one message of the server's. */
export const MESSAGE_BYTES_MAX = 67_108_864;
/** Messages that answer nothing (progress, logs, requests, what is no JSON): at once, and regained each second. */
const UNASKED_MAX = 20_000;
const UNASKED_PER_SECOND = 2000;
const SHOWN_STRAYS_MAX = 5;

export interface ChildTransportSettings {
  readonly command: ServerCommand;
  readonly exact: ExactArguments;
  readonly text: ServerText;
  readonly say: (line: string) => void;
  readonly monotonicMs: () => number;
}

interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

export class ChildTransport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: never) => void) | undefined;
  readonly stderr = null;
  readonly #settings: ChildTransportSettings;
  readonly #lines = new LineReader(MESSAGE_BYTES_MAX);
  readonly #asked = new Set<unknown>();
  #process: ServerProcess | undefined;
  #unasked = UNASKED_MAX;
  #regainedAtMs: number;
  #strays = 0;
  /** Whether something came before in what is read now that the SDK looks at a little later. */
  #isNoticed = false;
  #faulty = false;
  /** Why we ended it, where that was for what it did. */
  #verdict: string | undefined;
  #isClosed = false;
  #onGone!: (end: ServerEnd & { readonly verdict: string | undefined }) => void;
  /** Resolves when the process and all that it started are gone. */
  readonly gone: Promise<ServerEnd & { readonly verdict: string | undefined }>;

  constructor(settings: ChildTransportSettings) {
    this.#settings = settings;
    this.#regainedAtMs = settings.monotonicMs();
    this.gone = new Promise((resolve) => {
      this.#onGone = resolve;
    });
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  async start(): Promise<void> {
    const { command, text } = this.#settings;
    const started = ServerProcess.start(command, {
      stdout: (chunk) => this.#received(chunk),
      stderr: (chunk) => text.take(chunk),
    });
    if (!started.ok) {
      this.#onGone({ ...started.fault, ended: 0, verdict: undefined });
      throw new Error(started.fault.how);
    }
    this.#process = started.value;
    void started.value.ended.then((end) => {
      text.end();
      this.#faulty = true;
      this.#onGone({ ...end, verdict: this.#verdict });
      this.onclose?.();
    });
  }

  /** Whether we were told to end it; also by the SDK, which gives up a start by itself. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether what the server must not see is hidden from it still. */
  get isHidden(): boolean {
    return this.#process?.isHidden ?? true;
  }

  async send(message: object): Promise<void> {
    const { id, method } = message as Message;
    const text = this.#settings.exact.spliced(JSON.stringify(message));
    if (text === undefined) throw new Error("the call is over");
    if (this.#process?.write(messageLine(text)) !== true)
      throw new Error("the server does not read what it is sent");
    if (method !== undefined && id !== undefined) this.#asked.add(id);
  }

  /** Ends the process. */
  async close(atOnce?: "atOnce"): Promise<void> {
    this.#isClosed = true;
    await this.#process?.stop(atOnce === undefined ? undefined : 0);
  }

  #received(chunk: Buffer): void {
    if (this.#faulty) return;
    const lines = this.#lines.take(chunk);
    if (!lines.ok) return this.#condemn(`it sent a line of more than ${MESSAGE_BYTES_MAX} bytes`);
    this.#isNoticed = false;
    for (const line of lines.value) {
      if (this.#faulty) return;
      this.#line(line);
    }
  }

  #line(line: Buffer): void {
    const text = line.toString("utf8");
    const message = parseMessage(text);
    if (message === undefined) return this.#stray(text);
    const isAnswer = message.method === undefined;
    if (isAnswer && this.#asked.delete(message.id)) return this.#answered(readable(message));
    if (!this.#mayBeUnasked()) return this.#condemn("it sends more than anybody asked for");
    if (isAnswer) return;
    this.#isNoticed = true;
    this.onmessage?.(message as never);
  }

  /** The SDK takes an answer at once and a notification in the next microtask: the last progress of a call would be lost. */
  #answered(message: Message): void {
    if (this.#isNoticed) queueMicrotask(() => this.onmessage?.(message as never));
    else this.onmessage?.(message as never);
  }

  /** Servers greet on their standard output, though they should not. */
  #stray(text: string): void {
    if (text.trim() === "") return;
    if (!this.#mayBeUnasked()) return this.#condemn("it sends more than anybody asked for");
    this.#strays += 1;
    if (this.#strays > SHOWN_STRAYS_MAX) return;
    const more = this.#strays === SHOWN_STRAYS_MAX ? " (more of that is passed over)" : "";
    this.#settings.say(`the server sent what is no JSON-RPC message: ${visibleLine(text, 100)}${more}`);
  }

  #mayBeUnasked(): boolean {
    const nowMs = this.#settings.monotonicMs();
    const regained = ((nowMs - this.#regainedAtMs) * UNASKED_PER_SECOND) / 1000;
    this.#unasked = Math.min(UNASKED_MAX, this.#unasked + regained) - 1;
    this.#regainedAtMs = nowMs;
    return this.#unasked >= 0;
  }

  #condemn(verdict: string): void {
    this.#faulty = true;
    this.#verdict ??= verdict;
    void this.#process?.stop(0);
  }
}

/** What the SDK would pass over, so that its call would wait in vain, becomes an error. */
function readable(answer: Message): Message {
  const { code, message } = (answer.error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const isError = Number.isSafeInteger(code) && typeof message === "string";
  const isResult =
    typeof answer.result === "object" && answer.result !== null && !Array.isArray(answer.result);
  if (isError ? answer.result === undefined : isResult && answer.error === undefined) return answer;
  const error = { code: INTERNAL_ERROR, message: "an answer that is neither a result nor an error" };
  return { ...JSONRPC, id: answer.id, error };
}

const JSONRPC = { jsonrpc: "2.0" } as const;
const INTERNAL_ERROR = -32603;

/** An object that says it is JSON-RPC 2.0. Its inside is the SDK's to check. */
function parseMessage(text: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return (value as { readonly jsonrpc?: unknown }).jsonrpc === "2.0" ? value : undefined;
  } catch {
    return undefined;
  }
}
