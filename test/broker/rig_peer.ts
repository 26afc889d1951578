// A peer of the broker for tests: what it sends goes through the real codec, what it gets is kept.

import { decodeBody } from "../../src/wire/envelope.ts";
import { encodeFrame, FrameReader } from "../../src/wire/frame.ts";
import type { Envelope, ErrorCode, Message, ToolRequest, ToolResponse } from "../../src/wire/message.ts";
import type { PairedSocket } from "./socket_pair.ts";

export interface AskOptions {
  readonly session?: string;
  readonly call?: bigint;
  readonly id?: bigint;
  readonly final?: boolean;
}

export interface Labelled {
  readonly class?: "public" | "internal" | "confidential" | "restricted";
  readonly untrusted?: boolean;
  readonly truncated?: boolean;
}

/** What came back for one request. */
export class Reply {
  readonly id: bigint;
  readonly envelopes: Envelope[] = [];

  constructor(id: bigint) {
    this.id = id;
  }

  get finals(): number {
    return this.envelopes.filter(({ final }) => final).length;
  }

  /** All messages in short words: what a table of a test compares. */
  get seen(): readonly string[] {
    return this.envelopes.map(({ msg, final }) => `${final ? "" : "part: "}${words(msg)}`);
  }

  /** The final message in short words, or what there is instead. */
  get end(): string {
    const finals = this.envelopes.filter(({ final }) => final);
    if (finals.length > 1) return `${finals.length} finals`;
    return finals[0] === undefined ? "nothing yet" : words(finals[0].msg);
  }

  get content(): string {
    const last = this.envelopes.at(-1)?.msg;
    if (last?.kind !== "tool_response" || last.body.status !== "result") return `no result: ${this.end}`;
    return last.body.content;
  }

  get json(): Readonly<Record<string, unknown>> {
    return JSON.parse(this.content) as Record<string, unknown>;
  }

  get sentence(): string {
    const last = this.envelopes.at(-1)?.msg;
    return last?.kind === "tool_response" && last.body.status === "failed" ? last.body.message : "";
  }
}

export function words(msg: Message): string {
  if (msg.kind === "tool_request") return `request ${msg.body.tool}`;
  if (msg.kind === "error") return `error ${msg.body.code}`;
  const { body } = msg;
  if (body.status === "denied") return `denied ${body.reason}`;
  if (body.status === "failed") return `failed ${body.message.slice(0, body.message.indexOf(":"))}`;
  if (body.status === "pending_approval") return "pending_approval";
  const flags = `${body.untrusted ? " untrusted" : ""}${body.truncated ? " truncated" : ""}`;
  return `result ${body.class}${flags} ${body.content}`;
}

export class RigPeer {
  readonly #stream: PairedSocket;
  readonly #reader = new FrameReader();
  readonly #replies = new Map<bigint, Reply>();
  /** Requests of the broker that the test has not taken. */
  readonly requests: Served[] = [];
  readonly errors: { readonly id: bigint; readonly code: ErrorCode; readonly detail: string }[] = [];
  /** Answers to nothing that is open. */
  readonly strays: Envelope[] = [];
  /** Does for every request what the test would do by hand. */
  serve: ((request: Served) => void) | undefined;
  ended = false;
  received = 0;
  #readFor = Number.POSITIVE_INFINITY;
  #nextId = 1n;
  #nextCall: () => bigint;

  constructor(stream: PairedSocket, nextCall: () => bigint) {
    this.#stream = stream;
    this.#nextCall = nextCall;
    stream.on("data", (chunk: Buffer) => this.#read(chunk));
    stream.on("error", () => undefined);
    stream.on("end", () => {
      this.ended = true;
    });
  }

  /** `args` may be text, for what is no strict JSON. */
  ask(tool: string, args: object | string = {}, options: AskOptions = {}): Reply {
    const id = options.id ?? this.#nextId;
    this.#nextId = id >= this.#nextId ? id + 1n : this.#nextId;
    const reply = new Reply(id);
    this.#replies.set(id, reply);
    const body: ToolRequest = {
      session: options.session ?? "s",
      call: options.call ?? this.#nextCall(),
      tool,
      arguments: typeof args === "string" ? args : JSON.stringify(args),
    };
    this.send({ id, final: options.final ?? true, msg: { kind: "tool_request", body } });
    return reply;
  }

  answer(id: bigint, body: ToolResponse, final = true): void {
    this.send({ id, final, msg: { kind: "tool_response", body } });
  }

  error(id: bigint, code: ErrorCode, detail = "CANARY-detail"): void {
    this.send({ id, final: true, msg: { kind: "error", body: { code, detail } } });
  }

  send(envelope: Omit<Envelope, "v">): void {
    this.write(encodeFrame({ v: 1, ...envelope }));
  }

  write(bytes: Buffer): void {
    if (!this.#stream.destroyed && !this.#stream.writableEnded) this.#stream.write(bytes);
  }

  /** The broker has closed the connection for good. */
  get gone(): boolean {
    return this.#stream.peerGone;
  }

  /** The oldest request that nobody took. */
  take(): Served {
    const request = this.requests.shift();
    if (request === undefined) throw new Error("the broker has asked nothing");
    return request;
  }

  pause(): void {
    this.#stream.pause();
  }

  /** Reads on for at least so many bytes, then stops again. */
  readSome(bytes: number): void {
    this.#readFor = bytes;
    this.#stream.resume();
  }

  resume(): void {
    this.#readFor = Number.POSITIVE_INFINITY;
    this.#stream.resume();
  }

  /** Sends nothing more. */
  halfClose(): void {
    this.#stream.end();
  }

  /** As `vanish`, and the broker hears it at once. */
  reset(): void {
    this.#stream.reset();
  }

  /** Its process is gone. Until the broker writes that looks like a half-closed peer. */
  vanish(): void {
    this.#stream.destroy();
  }

  #read(chunk: Buffer): void {
    this.#readFor -= chunk.length;
    if (this.#readFor <= 0) this.#stream.pause();
    this.#reader.push(chunk);
    for (let body = this.#reader.next(); body !== undefined; body = this.#reader.next())
      this.#take(decodeBody(body));
  }

  #take(envelope: Envelope): void {
    this.received += 1;
    const { id, msg } = envelope;
    if (msg.kind === "tool_request") {
      const request = new Served(this, id, msg.body);
      if (this.serve === undefined) this.requests.push(request);
      else this.serve(request);
      return;
    }
    if (msg.kind === "error") this.errors.push({ id, ...msg.body });
    const reply = this.#replies.get(id);
    if (reply === undefined || reply.finals > 0) {
      if (msg.kind !== "error") this.strays.push(envelope);
    } else reply.envelopes.push(envelope);
  }
}

/** A request that a provider was given. */
export class Served {
  readonly peer: RigPeer;
  readonly id: bigint;
  readonly body: ToolRequest;

  constructor(peer: RigPeer, id: bigint, body: ToolRequest) {
    this.peer = peer;
    this.id = id;
    this.body = body;
  }

  result(content: string, labels: Labelled = {}): void {
    this.peer.answer(this.id, resultOf(content, labels));
  }

  part(content: string, labels: Labelled = {}): void {
    this.peer.answer(this.id, resultOf(content, labels), false);
  }

  fail(message: string): void {
    this.peer.answer(this.id, { status: "failed", message });
  }

  answer(body: ToolResponse, final = true): void {
    this.peer.answer(this.id, body, final);
  }
}

export function resultOf(content: string, labels: Labelled = {}): ToolResponse {
  return {
    status: "result",
    content,
    class: labels.class ?? "public",
    untrusted: labels.untrusted ?? false,
    truncated: labels.truncated ?? false,
  };
}
