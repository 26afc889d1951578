// A peer of the daemon that speaks bytes: what the library would never send can be sent here.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { decodeBody } from "../../src/wire/envelope.ts";
import { FrameReader } from "../../src/wire/frame.ts";
import type { Envelope, ToolResponse } from "../../src/wire/message.ts";
import { onCleanUp } from "./daemon.ts";
import { frame, requestFrame } from "./frames.ts";

export class WirePeer {
  readonly socket: Socket;
  readonly received: Envelope[] = [];
  /** Resolves when the connection is gone, by whichever side. */
  readonly closed: Promise<void>;
  /** Resolves when the daemon has ended its side. */
  readonly ended: Promise<void>;
  #taken = 0;
  #over = false;
  #waiting: (() => void)[] = [];

  static async connect(path: string, options: { readonly reads?: boolean } = {}): Promise<WirePeer> {
    const socket = connect({ path, allowHalfOpen: true });
    await once(socket, "connect");
    return new WirePeer(socket, options.reads !== false);
  }

  constructor(socket: Socket, reads = true) {
    this.socket = socket;
    onCleanUp(() => socket.destroy());
    socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => socket.once("close", () => resolve(this.#end())));
    this.ended = new Promise((resolve) => {
      for (const event of ["end", "close"]) socket.once(event, () => resolve());
    });
    const reader = new FrameReader();
    if (!reads) return;
    socket.once("end", () => this.#end());
    socket.on("data", (chunk: Buffer) => {
      reader.push(chunk);
      for (let body = reader.next(); body !== undefined; body = reader.next())
        this.received.push(decodeBody(body));
      this.#wake();
    });
  }

  bytes(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  ask(id: bigint, tool: string, args: object, call: bigint, session = "s"): void {
    this.bytes(requestFrame(id, tool, args, call, session));
  }

  answer(id: bigint, body: ToolResponse, final = true): void {
    this.bytes(frame(id, { kind: "tool_response", body }, final));
  }

  /** The next envelope, in order; undefined when there will be none. */
  async next(): Promise<Envelope | undefined> {
    while (this.#taken >= this.received.length && !this.#over) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    const envelope = this.received[this.#taken];
    this.#taken += 1;
    return envelope;
  }

  /** The next tool request that the daemon gives us. */
  async request(): Promise<{ id: bigint; call: bigint; session: string; args: string }> {
    const envelope = await this.next();
    if (envelope?.msg.kind !== "tool_request") throw new Error(`no request but ${envelope?.msg.kind}`);
    const { call, session, arguments: args } = envelope.msg.body;
    return { id: envelope.id, call, session, args };
  }

  /** The next answer. */
  async response(): Promise<ToolResponse> {
    const envelope = await this.next();
    if (envelope?.msg.kind !== "tool_response") {
      const detail = envelope?.msg.kind === "error" ? envelope.msg.body.detail : "";
      throw new Error(`no answer but ${envelope?.msg.kind} ${detail}`);
    }
    return envelope.msg.body;
  }

  /** Waits for the error that lets us go, and for the end. */
  async refused(): Promise<string> {
    for (let envelope = await this.next(); envelope !== undefined; envelope = await this.next()) {
      if (envelope.msg.kind === "error" && envelope.id === 0n) {
        await this.ended;
        return envelope.msg.body.code;
      }
    }
    return "closed";
  }

  close(): Promise<void> {
    this.socket.destroy();
    return this.closed;
  }

  #end(): void {
    this.#over = true;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
