// HTTP on loopback: connections, bounds and time limits, the gate before everything, and requests and responses between
// Node's form and the web's, which the protocol's library knows. Invariant: no byte of a request decides anything before
// the gate has let it in, and a client that is gone leaves nothing behind.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { fault, ok, type Result } from "../../../base/faults.ts";
import { withExactArguments } from "./exact_arguments.ts";
import { type GateSettings, type Refusal, refusalOf } from "./http_gate.ts";
import { LINE_BYTES_MAX } from "./lines.ts";

/** Answers one request whose body, where it has one, is this JSON value. */
export type Fetch = (request: Request, body: unknown) => Promise<Fetched>;

export interface Fetched {
  readonly response: Response;
  /** Told once: all of the response is sent, or nobody wants the rest. */
  readonly over: () => void;
}

export interface ListenOptions {
  readonly address: "127.0.0.1" | "::1";
  /** 0: one that is free. */
  readonly port: number;
}

const CONNECTIONS_MAX = 256;
const TIMES = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 2_000,
  maxHeaderSize: 16_384,
} as const;

/** Of every response. */
const HEADERS = { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" } as const;

/** A server that listens and answers nothing yet: its port has to be known before what answers can be made. */
export class McpHttpServer {
  readonly #server: Server;
  #serving: { readonly gate: GateSettings; readonly fetch: Fetch } | undefined;

  private constructor() {
    this.#server = createServer(TIMES, (incoming, outgoing) => {
      this.#answer(incoming, outgoing).catch(() => outgoing.destroy());
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.on("connection", (socket: Socket) => socket.on("error", () => {}));
    this.#server.on("clientError", (_, socket) => refuseBytes(socket as Socket));
    this.#server.on("connect", (_, socket) => socket.destroy()); // we are nobody's proxy
    this.#server.on("upgrade", (_, socket) => socket.destroy());
  }

  /** The fault is for whoever started it. */
  static async listen({ address, port }: ListenOptions): Promise<Result<McpHttpServer>> {
    const server = new McpHttpServer();
    return new Promise((resolve) => {
      const failed = ({ code }: NodeJS.ErrnoException) =>
        resolve(fault(`can't listen on ${address} port ${port} (${code ?? "unknown error"})`));
      server.#server.once("error", failed);
      server.#server.listen({ host: address, port, exclusive: true }, () => resolve(ok(server)));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  serve(gate: GateSettings, fetch: Fetch): void {
    this.#serving = { gate, fetch };
  }

  /** At once, whatever is open. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = "", url: target = "", rawHeaders } = incoming;
    if (this.#serving === undefined)
      return refuse(outgoing, { status: 503, sentence: "The server is starting." });
    const { gate, fetch } = this.#serving;
    const refusal = refusalOf({ method, target, rawHeaders }, gate);
    if (refusal !== undefined) return refuse(outgoing, refusal);
    const gone = goneWith(outgoing);
    const body = method === "POST" ? await bodyOf(incoming) : NO_BODY;
    if (!body.ok) return refuse(outgoing, body.fault);
    const request = new Request(`http://${gate.hosts[0]}${target}`, {
      method,
      headers: headersOf(rawHeaders),
      signal: gone,
    });
    const { response, over } = await fetch(request, body.value);
    await pass(response, outgoing).finally(over);
  }
}

const NO_BODY = ok(undefined);

/** Repeated ones together, as the web's form has them. */
function headersOf(rawHeaders: readonly string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    headers.append(rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
  return headers;
}

/** The body as a message whose arguments keep their text. */
async function bodyOf(incoming: IncomingMessage): Promise<Result<unknown, Refusal>> {
  const bytes = await bytesOf(incoming);
  if (bytes === undefined) return fault(TOO_LONG);
  try {
    const text = UTF8.decode(bytes);
    const message: unknown = JSON.parse(text);
    if (Array.isArray(message)) return fault(LIST);
    return ok(withExactArguments(message, text));
  } catch {
    return fault({ status: 400, code: -32700, sentence: "The body is no JSON document." });
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** undefined: there are too many. One that breaks off is short, and whoever sent it has gone. */
function bytesOf(incoming: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(incoming.headers["content-length"] ?? 0) > LINE_BYTES_MAX) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= LINE_BYTES_MAX) return void chunks.push(chunk);
      incoming.pause();
      resolve(undefined);
    });
    const end = () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    for (const event of ["end", "close", "error"]) incoming.once(event, end);
  });
}

const TOO_LONG: Refusal = { status: 413, sentence: `The body is longer than ${LINE_BYTES_MAX} bytes.` };
const LIST: Refusal = {
  status: 400,
  code: -32600,
  sentence: "A body is one message: lists of them are not taken.",
};

/** Aborted when whoever asks goes away before all of the answer is sent. */
function goneWith(outgoing: ServerResponse): AbortSignal {
  const gone = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  return gone.signal;
}

/** So long a head waits for what follows it, to leave in one piece with it: most answers are there soon. */
const HEAD_MS = 20;

/** Sends the response as it comes, no faster than it is taken. */
async function pass(response: Response, outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed) {
    await response.body?.cancel();
    return;
  }
  outgoing.writeHead(response.status, { ...HEADERS, ...Object.fromEntries(response.headers) });
  if (response.body === null) return void outgoing.end();
  const reader = response.body.getReader();
  outgoing.once("close", () => void reader.cancel().catch(() => undefined));
  const late = setTimeout(() => outgoing.flushHeaders(), HEAD_MS);
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      clearTimeout(late);
      gather(outgoing);
      if (!outgoing.write(piece.value)) await taken(outgoing);
    }
  } finally {
    clearTimeout(late);
  }
  outgoing.end();
}

/** What is written in one turn of the event loop leaves in one piece. */
function gather(outgoing: ServerResponse): void {
  if (outgoing.writableCorked > 0) return;
  outgoing.cork();
  setImmediate(() => outgoing.uncork());
}

function taken(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      outgoing.off("drain", go);
      outgoing.off("close", go);
      resolve();
    };
    outgoing.on("drain", go);
    outgoing.on("close", go);
  });
}

/** The connection ends with it: what is left of the request is not read. */
function refuse(outgoing: ServerResponse, { status, sentence, wants, code = -32000 }: Refusal): void {
  outgoing.shouldKeepAlive = false;
  if (wants !== undefined) outgoing.setHeader("WWW-Authenticate", wants);
  const text = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message: sentence } }); // plain ASCII, as all our sentences are
  outgoing.writeHead(status, {
    ...HEADERS,
    "Content-Type": "application/json",
    "Content-Length": text.length,
  });
  outgoing.end(text);
}

/** What is no HTTP, or too much or too slow of it. */
function refuseBytes(socket: Socket): void {
  if (!socket.writable) return;
  socket.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  socket.destroySoon();
}
