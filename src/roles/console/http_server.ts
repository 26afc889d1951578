// The console's HTTP server: connections and their owners, bounds and time limits, the gate before everything, and what is
// said where there is nothing to answer with. Invariant: no byte of a request decides anything before the gate has let it in.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { fault, ok, type Result } from "../../base/faults.ts";
import { EVENTS_PATH } from "./api.ts";
import type { EventStreams } from "./event_streams.ts";
import { type GateSettings, judge, NOT_LOGGED_IN, type Refusal } from "./gate.ts";
import type { Login, Logins } from "./logins.ts";
import { EVERY_HEADER } from "./response_headers.ts";
import type { Admitted, Routes } from "./routes.ts";
import type { Ends } from "./socket_owner.ts";

export interface ServerParts {
  readonly routes: Routes;
  readonly logins: Logins;
  readonly streams: EventStreams;
  /** What a page is told when it begins to listen. */
  readonly greet: (response: ServerResponse, login: Login) => void;
  readonly gate: GateSettings;
}

export interface ListenOptions {
  readonly address: "127.0.0.1" | "::1";
  /** 0: one that is free. */
  readonly port: number;
  /** The one user who is served. */
  readonly uid: number;
  readonly ownerOf: (ends: Ends) => Promise<number | undefined>;
}

export const BODY_BYTES_MAX = 1_048_576;
const CONNECTIONS_MAX = 256;
/** Of other users together: they may read the figures, and have to be told no. */
const STRANGERS_MAX = 32;
/** Requests of one connection that are not answered yet. */
const PIPELINED_MAX = 16;

const TIMES = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 2_000,
  maxHeaderSize: 16_384,
} as const;

/** A server that listens and answers nothing yet: its port has to be known before what answers can be made. */
export class HttpServer {
  readonly #server: Server;
  readonly #options: ListenOptions;
  readonly #owners = new WeakMap<Socket, Promise<boolean>>();
  readonly #unanswered = new WeakMap<Socket, number>();
  readonly #admitted = new WeakMap<IncomingMessage, Admitted>();
  #strangers = 0;
  #parts: ServerParts | undefined;
  #listener: ((incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>) | undefined;

  private constructor(options: ListenOptions) {
    this.#options = options;
    this.#server = createServer(TIMES, (incoming, outgoing) => {
      this.#answer(incoming, outgoing).catch(() => outgoing.destroy());
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.on("connection", (socket: Socket) => this.#meet(socket));
    this.#server.on("clientError", (_, socket) => refuseBytes(socket as Socket));
    this.#server.on("connect", (_, socket) => socket.destroy()); // we are nobody's proxy
  }

  /** The fault is for whoever started the console. */
  static async listen(options: ListenOptions): Promise<Result<HttpServer>> {
    const server = new HttpServer(options);
    return new Promise((resolve) => {
      server.#server.once("error", (error: NodeJS.ErrnoException) =>
        resolve(fault(cannotListen(error, options))),
      );
      server.#server.listen({ host: options.address, port: options.port, exclusive: true }, () =>
        resolve(ok(server)),
      );
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  serve(parts: ServerParts): void {
    this.#parts = parts;
    this.#listener = getRequestListener(
      (request, { incoming }) => {
        const admitted = this.#admitted.get(incoming as IncomingMessage);
        return admitted === undefined ? new Response(null, { status: 500 }) : parts.routes(request, admitted);
      },
      { overrideGlobalObjects: false, errorHandler: () => new Response(null, { status: 500 }) },
    );
  }

  /** At once, whatever is open. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  /** Looks up whose it is, once: a connection does not change hands by itself. */
  #meet(socket: Socket): void {
    const { localAddress, localPort, remoteAddress, remotePort } = socket;
    socket.on("error", () => {});
    if (!localAddress || !localPort || !remoteAddress || !remotePort) {
      socket.destroy();
      return;
    }
    const owner = this.#options.ownerOf({ localAddress, localPort, remoteAddress, remotePort });
    const isOwner = owner.then(
      (uid) => uid === this.#options.uid,
      () => false,
    );
    this.#owners.set(socket, isOwner);
    void isOwner.then((is) => is || this.#bound(socket));
  }

  #bound(socket: Socket): void {
    if (socket.destroyed) return; // it left before we knew whose it was, and its end has been told
    if (this.#strangers >= STRANGERS_MAX) {
      socket.destroy();
      return;
    }
    this.#strangers += 1;
    socket.once("close", () => {
      this.#strangers -= 1;
    });
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { socket } = incoming;
    for (const [name, value] of Object.entries(EVERY_HEADER)) outgoing.setHeader(name, value);
    if (!this.#charge(socket, outgoing)) return;
    const isOwner = (await this.#owners.get(socket)) === true;
    if (!isOwner) outgoing.shouldKeepAlive = false;
    if (incoming.headers["service-worker"] !== undefined) outgoing.setHeader("Clear-Site-Data", '"storage"');
    const parts = this.#parts;
    if (parts === undefined) return refuse(outgoing, { status: 503, sentence: "The console is starting." });
    const { method = "", url = "", rawHeaders } = incoming;
    const verdict = judge({ method, target: url, rawHeaders, isOwner }, parts.gate);
    if (!verdict.ok) return refuse(outgoing, verdict);
    const login = verdict.to === "api" ? parts.logins.find(verdict.cookie, verdict.key) : undefined;
    if (verdict.to === "api" && login === undefined) return refuse(outgoing, NOT_LOGGED_IN);
    if (url === EVENTS_PATH && login !== undefined) return listen(parts, outgoing, login);
    const body = method === "POST" ? await bodyOf(incoming) : "";
    if (typeof body !== "string") return refuse(outgoing, body);
    const token = verdict.to === "metrics" ? verdict.token : undefined;
    this.#admitted.set(incoming, { login, token, body, gone: goneWith(outgoing) });
    await this.#listener?.(incoming, outgoing);
  }

  /** Whether the connection may have one more request unanswered. */
  #charge(socket: Socket, outgoing: ServerResponse): boolean {
    const unanswered = (this.#unanswered.get(socket) ?? 0) + 1;
    this.#unanswered.set(socket, unanswered);
    outgoing.once("close", () => this.#unanswered.set(socket, (this.#unanswered.get(socket) ?? 1) - 1));
    if (unanswered <= PIPELINED_MAX) return true;
    socket.destroy();
    return false;
  }
}

function listen({ streams, greet }: ServerParts, outgoing: ServerResponse, login: Login): void {
  if (streams.hasRoom(login)) greet(outgoing, login);
  else refuse(outgoing, { status: 429, sentence: "Too many pages of this login listen already." });
}

/** The body as text, or why it is not taken. */
async function bodyOf(incoming: IncomingMessage): Promise<string | Refusal> {
  const declared = Number(incoming.headers["content-length"] ?? 0);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    if (declared > BODY_BYTES_MAX) return TOO_LONG;
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) return TOO_LONG;
      chunks.push(chunk);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    return { status: 400, sentence: "The body is no whole text." };
  }
}

const TOO_LONG: Refusal = { status: 413, sentence: `The body is longer than ${BODY_BYTES_MAX} bytes.` };

function goneWith(outgoing: ServerResponse): AbortSignal {
  const gone = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  return gone.signal;
}

/** The connection ends with it: what is left of the request is not read. */
function refuse(outgoing: ServerResponse, { status, sentence, wants }: Refusal): void {
  outgoing.shouldKeepAlive = false;
  if (wants !== undefined) outgoing.setHeader("WWW-Authenticate", wants);
  const text = JSON.stringify({ error: sentence }); // plain ASCII, as all our sentences are
  outgoing.writeHead(status, { "Content-Type": "application/json", "Content-Length": text.length });
  outgoing.end(text);
}

/** What is no HTTP, or too much or too slow of it. */
function refuseBytes(socket: Socket): void {
  if (!socket.writable) return;
  const headers = Object.entries(EVERY_HEADER).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 400 Bad Request\r\n${headers.join("")}Content-Length: 0\r\nConnection: close\r\n\r\n`);
  socket.destroySoon();
}

function cannotListen({ code }: NodeJS.ErrnoException, { address, port }: ListenOptions): string {
  const where = `${address} port ${port}`;
  if (code === "EADDRINUSE") return `${where} is in use: give another --port, or none for a free one`;
  if (code === "EACCES") return `this user may not listen on ${where}: give a --port above 1023`;
  return `can't listen on ${where} (${code ?? "unknown error"})`;
}
