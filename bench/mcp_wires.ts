// The client's end of each path of the bench of MCP: JSON texts out and in, over a process's standard input and output or
// over HTTP, and nothing of the protocol but that. Lighter than the SDK's client, whose own cost would hide what is measured.

import { spawn } from "node:child_process";
import { connect, type Socket } from "node:net";

/** One JSON-RPC message out; `heard` is called for each message that comes, as its text. */
export interface Wire {
  send(message: string): void;
  close(): void;
}

export type Heard = (message: string) => void;

/** How a path is reached: a command that is run, or an address. */
export type Reach =
  | { readonly command: readonly string[] }
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> };

export function openWire(reach: Reach, heard: Heard): Wire {
  return "command" in reach ? new Lines(reach.command, heard) : new Requests(reach, heard);
}

class Lines implements Wire {
  readonly #child;
  #batch = "";
  #rest = "";

  constructor([command = "", ...args]: readonly string[], heard: Heard) {
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#child.stdin.on("error", () => undefined);
    this.#child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (this.#rest + chunk).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) heard(line);
    });
  }

  /** What is sent in one turn of the event loop leaves in one write, on every path alike. */
  send(message: string): void {
    if (this.#batch === "") setImmediate(() => this.#flush());
    this.#batch += `${message}\n`;
  }

  #flush(): void {
    this.#child.stdin.write(this.#batch);
    this.#batch = "";
  }

  close(): void {
    this.#child.stdin.end();
    this.#child.kill("SIGTERM");
  }
}

interface Connection {
  readonly socket: Socket;
  received: string;
}

/** One connection for each request in flight, kept. Text is ASCII here, so characters are bytes. */
class Requests implements Wire {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #heard: Heard;
  readonly #idle: Connection[] = [];
  readonly #all: Connection[] = [];
  #session = "";

  constructor({ url, headers }: Extract<Reach, { url: string }>, heard: Heard) {
    this.#url = new URL(url);
    this.#headers = headers;
    this.#heard = heard;
  }

  send(message: string): void {
    const { socket } = this.#idle.pop() ?? this.#connect();
    const own = Object.entries(this.#headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const session = this.#session === "" ? "" : `Mcp-Session-Id: ${this.#session}\r\n`;
    socket.write(
      `POST ${this.#url.pathname} HTTP/1.1\r\nHost: ${this.#url.host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n${session}${own.join("")}Content-Length: ${message.length}\r\n\r\n${message}`,
    );
  }

  close(): void {
    for (const { socket } of this.#all) socket.destroy();
  }

  #connect(): Connection {
    const socket = connect(Number(this.#url.port), this.#url.hostname).setNoDelay().setEncoding("latin1");
    const connection = { socket, received: "" };
    socket.on("data", (chunk) => this.#received(connection, String(chunk)));
    this.#all.push(connection);
    return connection;
  }

  #received(connection: Connection, chunk: string): void {
    connection.received += chunk;
    const response = wholeResponse(connection.received);
    if (response === undefined) return;
    connection.received = "";
    this.#session = /^mcp-session-id: (.*)$/im.exec(response.head)?.[1]?.trim() ?? this.#session;
    if (!/^connection: close/im.test(response.head)) this.#idle.push(connection);
    this.#heard(messageIn(response.body));
  }
}

/** undefined: more of it comes. */
function wholeResponse(text: string): { readonly head: string; readonly body: string } | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = text.slice(0, end);
  const rest = text.slice(end + 4);
  if (/^transfer-encoding: chunked/im.test(head))
    return rest.endsWith("0\r\n\r\n") ? { head, body: rest } : undefined;
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  return rest.length < length ? undefined : { head, body: rest };
}

/** The message is one line, whether it stands alone or is an event's data; beside it are lengths of chunks and such. */
function messageIn(body: string): string {
  const start = body.indexOf("{");
  return start < 0 ? "" : body.slice(start, body.lastIndexOf("}") + 1);
}
