// A peer of a daemon that may die at any moment: it keeps the bytes of what it hears, and whatever it waits
// for ends with `Gone` when the connection does.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { decodeBody } from "../../src/wire/envelope.ts";
import { encodeFrame, FrameReader } from "../../src/wire/frame.ts";
import type { Envelope, ToolRequest, ToolResponse } from "../../src/wire/message.ts";

/** The daemon is no more, or has let us go. */
export class Gone extends Error {}

export interface Answer {
  /** The bytes of `msg` of each message, in order, questions left out: what has to come again byte for byte. */
  readonly bytes: readonly string[];
  readonly body: ToolResponse;
}

/** One request and what came of it. */
export class Asked {
  readonly #bytes: string[] = [];
  /** The final answer. */
  readonly final: Promise<Answer>;
  /** The question's id; undefined where the final answer comes without one. */
  readonly question: Promise<string | undefined>;
  #settle: { readonly final: (answer: Answer) => void; readonly gone: (why: Error) => void };
  #tellQuestion: (id: string) => void = () => undefined;

  constructor() {
    this.#settle = { final: () => undefined, gone: () => undefined };
    this.final = new Promise((resolve, reject) => {
      this.#settle = { final: resolve, gone: reject };
    });
    this.final.catch(() => undefined);
    this.question = new Promise((resolve, reject) => {
      this.#tellQuestion = resolve;
      this.final.then(() => resolve(undefined), reject);
    });
    this.question.catch(() => undefined);
  }

  take({ final, msg }: Envelope, bytes: string): void {
    if (msg.kind !== "tool_response") return this.#settle.gone(new Error(`no answer but ${msg.kind}`));
    if (msg.body.status === "pending_approval") return this.#tellQuestion(msg.body.approval);
    this.#bytes.push(bytes);
    if (final) this.#settle.final({ bytes: this.#bytes, body: msg.body });
  }

  gone(): void {
    this.#settle.gone(new Gone());
  }
}

export interface Served {
  readonly id: bigint;
  readonly request: ToolRequest;
}

/** What a provider does with a request. */
type Serve = (peer: CrashPeer, served: Served) => void;

export class CrashPeer {
  readonly #socket: Socket;
  readonly #asked = new Map<bigint, Asked>();
  readonly #serve: Serve;
  #nextId = 1n;
  #over = false;

  /** @throws Gone */
  static async connect(path: string, serve: Serve = () => undefined): Promise<CrashPeer> {
    const socket = connect(path);
    try {
      await once(socket, "connect");
    } catch {
      throw new Gone();
    }
    return new CrashPeer(socket, serve);
  }

  private constructor(socket: Socket, serve: Serve) {
    this.#socket = socket;
    this.#serve = serve;
    const reader = new FrameReader();
    socket.on("error", () => undefined);
    socket.on("close", () => this.#end());
    socket.on("data", (chunk: Buffer) => {
      reader.push(chunk);
      for (let body = reader.next(); body !== undefined; body = reader.next()) this.#take(body);
    });
  }

  ask(tool: string, args: object, session: string, call: bigint): Asked {
    const asked = new Asked();
    const id = this.#nextId;
    this.#nextId += 1n;
    if (this.#over) asked.gone();
    this.#asked.set(id, asked);
    const body: ToolRequest = { session, call, tool, arguments: JSON.stringify(args) };
    this.#socket.write(encodeFrame({ v: 1, id, final: true, msg: { kind: "tool_request", body } }));
    return asked;
  }

  answer(id: bigint, body: ToolResponse, final = true): void {
    this.#socket.write(encodeFrame({ v: 1, id, final, msg: { kind: "tool_response", body } }));
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(body: Buffer): void {
    const envelope = decodeBody(body);
    const { id, final, msg } = envelope;
    if (msg.kind === "tool_request") return this.#serve(this, { id, request: msg.body });
    const text = body.toString();
    this.#asked.get(id)?.take(envelope, text.slice(text.indexOf('"msg":')));
    if (final) this.#asked.delete(id);
  }

  #end(): void {
    this.#over = true;
    for (const asked of this.#asked.values()) asked.gone();
    this.#asked.clear();
  }
}
