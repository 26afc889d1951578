// A broker for tests that does only what it is told: it listens on a real socket, hands over what each
// connection sent, and sends what the test gives it. Built over the project's own frame codec.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { decodeBody } from "../../src/wire/envelope.ts";
import { encodeFrame, FrameReader } from "../../src/wire/frame.ts";
import type { Envelope, ToolRequest, ToolResponse } from "../../src/wire/message.ts";

/** What arrives, in order, for whoever asks next. */
class Arrivals<T> {
  #items: T[] = [];
  #askers: ((item: T) => void)[] = [];

  add(item: T): void {
    const asker = this.#askers.shift();
    if (asker === undefined) this.#items.push(item);
    else asker(item);
  }

  next(): Promise<T> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve) => this.#askers.push(resolve));
  }

  get size(): number {
    return this.#items.length;
  }
}

export class FakePeer {
  /** Resolves when the client has ended its side or is gone. */
  readonly gone: Promise<void>;
  readonly #stream: Duplex;
  readonly #arrivals = new Arrivals<Envelope>();

  constructor(stream: Duplex) {
    this.#stream = stream;
    const reader = new FrameReader();
    stream.on("data", (chunk: Buffer) => {
      reader.push(chunk);
      for (let body = reader.next(); body !== undefined; body = reader.next())
        this.#arrivals.add(decodeBody(body));
    });
    stream.on("error", () => {});
    this.gone = new Promise((resolve) => {
      stream.on("end", resolve).on("close", resolve);
    });
  }

  next(): Promise<Envelope> {
    return this.#arrivals.next();
  }

  get unread(): number {
    return this.#arrivals.size;
  }

  async request(): Promise<ToolRequest & { readonly id: bigint }> {
    const { id, msg } = await this.next();
    if (msg.kind !== "tool_request") throw new Error(`expected a request, got ${msg.kind}`);
    return { id, ...msg.body };
  }

  async response(): Promise<{ id: bigint; final: boolean; body: ToolResponse }> {
    const { id, final, msg } = await this.next();
    if (msg.kind !== "tool_response") throw new Error(`expected a response, got ${msg.kind}`);
    return { id, final, body: msg.body };
  }

  answer(id: bigint, body: ToolResponse, final = true): void {
    this.send({ v: 1, id, final, msg: { kind: "tool_response", body } });
  }

  ask(id: bigint, tool: string, args = "{}", call = id, session = "agent:s"): void {
    const body = { session, call, tool, arguments: args };
    this.send({ v: 1, id, final: true, msg: { kind: "tool_request", body } });
  }

  send(envelope: Envelope): void {
    this.#stream.write(encodeFrame(envelope));
  }

  sendBytes(bytes: Buffer): void {
    this.#stream.write(bytes);
  }

  answerByteByByte(id: bigint, body: ToolResponse): void {
    const frame = encodeFrame({ v: 1, id, final: true, msg: { kind: "tool_response", body } });
    for (const byte of frame) this.#stream.write(Buffer.from([byte]));
  }

  end(): void {
    this.#stream.end();
  }

  pause(): void {
    this.#stream.pause();
  }

  kill(): void {
    this.#stream.destroy();
  }
}

export class FakeBroker {
  readonly path: string;
  readonly #directory: string;
  readonly #peers = new Arrivals<FakePeer>();
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  private constructor() {
    this.#directory = mkdtempSync(join(tmpdir(), "callgate-client-"));
    this.path = join(this.#directory, "role.sock");
  }

  /** Not listening yet. */
  static idle(): FakeBroker {
    return new FakeBroker();
  }

  static async start(): Promise<FakeBroker> {
    const broker = new FakeBroker();
    await broker.listen();
    return broker;
  }

  async listen(): Promise<void> {
    const server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      this.#peers.add(new FakePeer(socket));
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.path, resolve));
  }

  /** The next connection that came. */
  accept(): Promise<FakePeer> {
    return this.#peers.next();
  }

  /** As kill -9 would: all connections are cut, nobody listens. */
  async die(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async remove(): Promise<void> {
    await this.die();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export function result(content: string, labels: Partial<ToolResponse> = {}): ToolResponse {
  return {
    status: "result",
    content,
    class: "public",
    untrusted: false,
    truncated: false,
    ...labels,
  } as ToolResponse;
}

/** Retries at once, so that a test waits for nothing but the socket. */
export const QUICK = { delayMs: 1, delayMsMax: 5, giveUpAfterMs: 20_000, stableAfterMs: 60_000 } as const;
