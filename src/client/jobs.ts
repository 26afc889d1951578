// The requests that the broker sends us, and their answers: queueing, running handlers, exactly one
// final answer each. What a handler returns or throws becomes a response here and nowhere else.
// A job belongs to the connection it came on: once that is gone, nothing of it is sent any more.

import { DATA_CLASSES, type DataClass } from "../base/labels.ts";
import { FrameFault } from "../wire/fault.ts";
import { encodeFrame } from "../wire/frame.ts";
import { PROTOCOL_VERSION, type ToolRequest, type ToolResponse, type ToolResult } from "../wire/message.ts";
import { splitContent } from "./parts.ts";

/** What a handler is asked. `session` is `ROLE:SESSION`: who asks, as the broker says. */
export interface Request {
  readonly session: string;
  readonly call: bigint;
  readonly tool: string;
  /** The caller's JSON object, byte for byte: untrusted, checked by the broker against the tool's schema if it has one. */
  readonly arguments: string;
  /** The same parsed, undefined where it is no object. Numbers beyond 2^53 are inexact here. */
  readonly args: Readonly<Record<string, unknown>> | undefined;
  /** Aborted when nobody waits for the answer any more: cancelled, connection gone, provider closed. */
  readonly signal: AbortSignal;
}

/**
 * A result or a piece of one. Labels left out claim nothing: the broker raises them to the tool's
 * floor, which is untrusted unless the owner configured otherwise. Long content is sent in parts.
 */
export interface Handled {
  readonly content: string;
  readonly class?: DataClass | undefined;
  readonly untrusted?: boolean | undefined;
  readonly truncated?: boolean | undefined;
}

/** Pieces are sent as they come. What a handler throws becomes `failed`: its message goes to the broker and, as untrusted text, to the caller. */
export type Handler = (request: Request) => Answer | Promise<Answer>;
type Answer = string | Handled | AsyncIterable<string | Handled>;

export interface JobsSettings {
  readonly tools: ReadonlyMap<string, Handler>;
  /** For names that are not in `tools`. */
  readonly handle: Handler | undefined;
  /** Handlers that run at once. One that ignores its signal keeps its place until it ends. */
  readonly concurrency: number;
}

/** Where answers go. */
export interface JobsOutput {
  write(frame: Buffer): boolean;
  drained(): Promise<void>;
}

interface Job {
  readonly id: bigint;
  readonly request: ToolRequest;
  readonly abort: AbortController;
  state: "waiting" | "running" | "answered" | "gone";
}

/** Arguments that wait for a free handler, with a charge for each request. */
const WAITING_CHARS_MAX = 16_777_216;
const WAITING_CHARS_EACH = 1024;
const FAILED_CHARS_MAX = 1000;
/** Asked of a provider that announced it can: `{"session":…,"call":"…"}` as it was given to the provider. */
const CANCEL_TOOL = "callgate.calls.cancel";

export class Jobs {
  readonly #settings: JobsSettings;
  readonly #output: JobsOutput;
  /** Of this connection, by id, until answered. */
  readonly #jobs = new Map<bigint, Job>();
  #waiting: Job[] = [];
  #waitingChars = 0;
  #running = 0;
  #draining = false;
  #idle: (() => void)[] = [];

  constructor(settings: JobsSettings, output: JobsOutput) {
    this.#settings = settings;
    this.#output = output;
  }

  /** The answer is what the broker did wrong, if anything. */
  received(id: bigint, request: ToolRequest, final: boolean): string | undefined {
    if (id === 0n || !final) return "a request must be final and have an id";
    if (this.#jobs.has(id)) return "a request came under an id that is in flight";
    const job: Job = { id, request, abort: new AbortController(), state: "waiting" };
    this.#jobs.set(id, job);
    if (request.tool === CANCEL_TOOL) this.#cancel(job);
    else if (this.#handler(request.tool) === undefined) this.#fail(job, "this provider has no such tool");
    else if (this.#draining) this.#fail(job, "this provider is closing; nothing ran");
    else if (this.#waitingChars + charge(job) > WAITING_CHARS_MAX)
      this.#fail(job, "this provider is busy; nothing ran");
    else this.#enqueue(job);
    return undefined;
  }

  /** The connection is gone, and with it all who waited. */
  lost(): void {
    const jobs = [...this.#jobs.values()];
    this.#jobs.clear();
    this.#waiting = [];
    this.#waitingChars = 0;
    for (const job of jobs) {
      job.state = "gone";
      job.abort.abort();
    }
    this.#wakeIfIdle();
  }

  /** Takes no new request; resolves when all that were taken are answered. */
  drain(): Promise<void> {
    this.#draining = true;
    if (this.#jobs.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #handler(tool: string): Handler | undefined {
    return this.#settings.tools.get(tool) ?? this.#settings.handle;
  }

  #enqueue(job: Job): void {
    this.#waiting.push(job);
    this.#waitingChars += charge(job);
    this.#startNext();
  }

  #startNext(): void {
    while (this.#running < this.#settings.concurrency) {
      const job = this.#waiting.shift();
      if (job === undefined) return;
      this.#waitingChars -= charge(job);
      if (job.state !== "waiting") continue;
      job.state = "running";
      this.#running += 1;
      void this.#run(job).finally(() => {
        this.#running -= 1;
        this.#startNext();
      });
    }
  }

  async #run(job: Job): Promise<void> {
    try {
      const handler = this.#handler(job.request.tool)!;
      const answer: unknown = await handler(requestOf(job));
      if (isAsyncIterable(answer)) await this.#stream(job, answer);
      else await this.#send(job, answer, true);
    } catch (error) {
      this.#fail(job, messageOf(error));
    }
    await this.#output.drained();
  }

  /** The end of the pieces is told by an empty last part, so that no piece waits for the next. */
  async #stream(job: Job, pieces: AsyncIterable<unknown>): Promise<void> {
    for await (const piece of pieces) {
      if (job.state !== "running") return;
      await this.#send(job, piece, false);
    }
    await this.#send(job, "", true);
  }

  async #send(job: Job, answer: unknown, final: boolean): Promise<void> {
    const result = resultOf(answer);
    if (typeof result === "string") return this.#fail(job, result);
    const pieces = splitContent(result.content);
    for (const [index, content] of pieces.entries()) {
      const last = final && index === pieces.length - 1;
      this.#respond(job, { ...result, content }, last);
      if (!last) await this.#output.drained();
    }
  }

  #fail(job: Job, message: string): void {
    this.#respond(job, { status: "failed", message: bounded(message) }, true);
  }

  #respond(job: Job, body: ToolResponse, final: boolean): void {
    if (job.state === "answered" || job.state === "gone") return;
    const { id } = job;
    this.#output.write(encodeFrame({ v: PROTOCOL_VERSION, id, final, msg: { kind: "tool_response", body } }));
    if (!final) return;
    job.state = "answered";
    this.#jobs.delete(id);
    this.#wakeIfIdle();
  }

  #cancel(request: Job): void {
    const target = parseObject(request.request.arguments);
    for (const job of this.#jobs.values()) {
      const { session, call } = job.request;
      if (job === request || session !== target?.["session"] || String(call) !== target["call"]) continue;
      job.abort.abort();
      if (job.state === "waiting") this.#fail(job, "cancelled before it began; nothing ran");
    }
    void this.#send(request, "", true);
  }

  #wakeIfIdle(): void {
    if (this.#jobs.size > 0) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }
}

function charge(job: Job): number {
  return job.request.arguments.length + WAITING_CHARS_EACH;
}

function requestOf(job: Job): Request {
  const { session, call, tool, arguments: text } = job.request;
  let parsed: { readonly value: Request["args"] } | undefined;
  return {
    ...{ session, call, tool, arguments: text, signal: job.abort.signal },
    get args() {
      parsed ??= { value: parseObject(text) };
      return parsed.value;
    },
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>) // any JSON object is one
      : undefined;
  } catch {
    return undefined;
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/** What a handler gave, as a result; or a sentence on why it is none. Handlers need not be type-checked. */
function resultOf(answer: unknown): ToolResult | string {
  const handled = (typeof answer === "string" ? { content: answer } : answer) as Partial<Handled> | undefined;
  const content = handled?.content;
  if (typeof content !== "string") return "the handler gave no content";
  if (!content.isWellFormed()) return "the handler's content is not well-formed Unicode";
  const dataClass = handled?.class ?? "public";
  if (!DATA_CLASSES.includes(dataClass)) return "the handler gave an unknown class";
  const untrusted = Boolean(handled?.untrusted);
  return { status: "result", content, class: dataClass, untrusted, truncated: Boolean(handled?.truncated) };
}

function messageOf(error: unknown): string {
  if (error instanceof FrameFault) return "the answer can't be sent";
  // Handlers need not be type-checked, nor the libraries that throw in them: a message may be anything.
  const message: unknown = error instanceof Error ? error.message : undefined;
  return typeof message === "string" && message !== "" ? message : "the handler failed";
}

/** Well-formed, and cut between characters. */
function bounded(message: string): string {
  if (message.length <= FAILED_CHARS_MAX) return message.toWellFormed();
  return `${message.slice(0, FAILED_CHARS_MAX).replace(/[\ud800-\udbff]$/, "")}…`.toWellFormed();
}
