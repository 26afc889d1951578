// A console for tests, in this process, over real sockets: a broker that answers what the test wrote down, a page of three
// small files, time that the test moves; and a client that sends exactly the bytes that it is given.

import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { KEY_HEADER } from "../../../src/roles/console/api.ts";
import {
  type ConsoleOptions,
  type RunningConsole,
  startConsole,
} from "../../../src/roles/console/console.ts";
import type { ConsoleEffects } from "../../../src/roles/console/effects.ts";
import { FakeClock } from "../../broker/fake_clock.ts";
import { AnsweringBroker, type Answers, NOW_MS } from "../../cli/desk.ts";
import { randomOf } from "../../seeded.ts";
import { measured } from "./measured.ts";

const PAGE = {
  "/": Buffer.from("<!doctype html><title>fixture</title>"),
  "/app.js": Buffer.from("// fixture"),
  "/app.css": Buffer.from("/* fixture */"),
};

/** What a broker with nothing to tell answers. */
export const QUIET: Answers = {
  status: () => measured(),
  "approvals.list": { approvals: [], version: 1, more: false },
  "approvals.watch": () => new Promise<object>(() => {}),
};

export interface Answered {
  readonly status: number;
  /** Lower case; of several of one name the last. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface Login {
  readonly cookie: string;
  readonly key: string;
}

export class ConsoleRig {
  readonly broker: AnsweringBroker;
  readonly clock: FakeClock;
  readonly running: RunningConsole;
  readonly said: string[];

  static async start(answers: Answers = {}, options: Partial<ConsoleOptions> = {}): Promise<ConsoleRig> {
    const broker = await AnsweringBroker.start({ ...QUIET, ...answers });
    onTestFinished(() => broker.remove());
    const clock = new FakeClock(NOW_MS);
    const said: string[] = [];
    const started = await startConsole({
      ...{ to: { path: broker.path }, session: "console", address: "127.0.0.1", port: 0, page: PAGE },
      ...{ effects: effectsOf(clock), say: (sentence: string) => void said.push(sentence) },
      ...options,
    });
    if (!started.ok) throw new Error(started.fault);
    onTestFinished(() => started.value.close());
    return new ConsoleRig(broker, clock, started.value, said);
  }

  private constructor(broker: AnsweringBroker, clock: FakeClock, running: RunningConsole, said: string[]) {
    this.broker = broker;
    this.clock = clock;
    this.running = running;
    this.said = said;
  }

  get port(): number {
    return this.running.port;
  }

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  get origin(): string {
    return `http://${this.host}`;
  }

  /** The headers of the page's own writing. */
  ownHeaders(login?: Login): string[] {
    const own = [`Host: ${this.host}`, `Origin: ${this.origin}`, "Content-Type: application/json"];
    if (login !== undefined) own.push(`Cookie: ${login.cookie}`, `${KEY_HEADER}: ${login.key}`);
    return own;
  }

  token(): string {
    return new URL(this.running.newLink().url).hash.replace("#login=", "");
  }

  async logIn(): Promise<Login> {
    const answered = await this.post(
      "/api/login",
      this.ownHeaders(),
      JSON.stringify({ token: this.token() }),
    );
    const { key } = JSON.parse(answered.body) as { key: string };
    return { cookie: answered.headers.get("set-cookie")?.split(";")[0] ?? "", key };
  }

  /** Asks as the page does. */
  async ask(login: Login, tool: string, args: object = {}): Promise<Answered> {
    return this.post(`/api/ask/${tool}`, this.ownHeaders(login), JSON.stringify(args));
  }

  post(path: string, headers: readonly string[], body: string): Promise<Answered> {
    return send(this.port, `POST ${path} HTTP/1.1`, headers, body);
  }

  get(path: string, headers: readonly string[] = [`Host: ${this.host}`]): Promise<Answered> {
    return send(this.port, `GET ${path} HTTP/1.1`, headers);
  }

  /** Listens as the page does. */
  listen(login: Login): Listener {
    const headers = [`Host: ${this.host}`, `Cookie: ${login.cookie}`, `${KEY_HEADER}: ${login.key}`];
    return new Listener(this.port, headers);
  }
}

export function effectsOf(clock: FakeClock): ConsoleEffects {
  const random = randomOf(1);
  return {
    nowMs: () => clock.nowMs(),
    after: (ms, run) => clock.after(ms, run),
    random: (bytes) => Uint8Array.from({ length: bytes }, () => random(256)),
  };
}

/** One request on a connection of its own, and all that comes back. */
export async function send(
  port: number,
  line: string,
  headers: readonly string[],
  body?: string,
): Promise<Answered> {
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const head = [line, ...headers, ...length, "Connection: close"].join("\r\n");
  return parsed(await exchange(port, `${head}\r\n\r\n${body ?? ""}`));
}

/** Sends bytes, and reads until the other side ends. */
export async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let text = "";
  socket.on("data", (chunk) => {
    text += String(chunk);
  });
  socket.on("error", () => undefined); // told by what is missing
  socket.write(bytes);
  await new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return text;
}

export function parsed(text: string): Answered {
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [line = "", ...headers] = head.split("\r\n");
  const pairs = headers.map((one) => one.split(/: (.*)/s) as [string, string]);
  return {
    status: Number(line.split(" ")[1] ?? 0),
    headers: new Map(pairs.map(([name, value]) => [name.toLowerCase(), value])),
    body: rest.join("\r\n\r\n"),
  };
}

/** One stream of events, read as it comes. */
export class Listener {
  readonly socket: Socket;
  text = "";
  over = false;
  #waiting: (() => void)[] = [];

  constructor(port: number, headers: readonly string[]) {
    this.socket = connect(port, "127.0.0.1");
    onTestFinished(() => void this.socket.destroy());
    this.socket.write(`${["GET /api/events HTTP/1.1", ...headers].join("\r\n")}\r\n\r\n`);
    this.socket.on("data", (chunk) => {
      this.text += String(chunk);
      this.#wake();
    });
    this.socket.on("error", () => undefined);
    this.socket.on("close", () => {
      this.over = true;
      this.#wake();
    });
  }

  get answered(): Answered {
    return parsed(this.text);
  }

  /** Data of all events of that name that have come. */
  all(event: string): unknown[] {
    const found = this.text.matchAll(new RegExp(`^event: ${event}\\ndata: (.*)\\n$`, "gm"));
    return [...found].map(([, data]) => JSON.parse(data ?? "null") as unknown);
  }

  /** Waits for the text. */
  async shows(part: string): Promise<void> {
    while (!this.text.includes(part)) {
      if (this.over) throw new Error(`the stream ended without ${part}`);
      await this.#change();
    }
  }

  /** Waits until so many events of that name have come. */
  async has(event: string, count = 1): Promise<unknown[]> {
    while (this.all(event).length < count) {
      if (this.over) throw new Error(`the stream ended with ${this.all(event).length} of ${event}`);
      await this.#change();
    }
    return this.all(event);
  }

  async ended(): Promise<void> {
    while (!this.over) await this.#change();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
