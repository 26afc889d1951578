// The real connector for tests: its config and secrets in a directory of its own, its process, its log as events to
// wait for. Beside it a server that plays a provider's Chat Completions and counts what it was asked.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { callgate, type LogLine, onCleanUp, type Ran, run } from "../daemon/daemon.ts";

export const MODEL = "test-model";
/** Of caller `me`. */
export const SECRET = "0123456789abcdef0123456789abcdef-me";

/** A directory with a config, the secret of caller `me`, and a key. */
export class ConnectorPlace {
  readonly directory: string;

  constructor(backend: string, more = "") {
    this.directory = realpathSync(mkdtempSync(join(tmpdir(), "callgate-connector-")));
    chmodSync(this.directory, 0o755);
    onCleanUp(() => rmSync(this.directory, { recursive: true, force: true }));
    this.secret("me.secret", `${SECRET}\n`);
    this.configure(backend, more);
  }

  get config(): string {
    return this.path("connector.toml");
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  secret(name: string, content: string | Uint8Array, mode = 0o600): string {
    writeFileSync(this.path(name), content, { mode });
    chmodSync(this.path(name), mode);
    return this.path(name);
  }

  /** `connector`: more lines of `[connector]`. */
  configure(backend: string, connector = "", caller = ""): void {
    const config = `
[connector]
state_dir = "state"
port = 0
${connector}
[backend]
${backend}
[[callers]]
id = "me"
secret_file = "me.secret"
allowed_models = ["${MODEL}"]
max_output_tokens = 4096
${caller}`;
    writeFileSync(this.config, config, { mode: 0o644 });
  }
}

export interface ConnectorStart {
  /** A shell's words before the daemon's. */
  readonly shell?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Waits for `connector.ready` (default), or not. */
  readonly ready?: boolean;
}

export class Connector {
  readonly place: ConnectorPlace;
  readonly child: ChildProcess;
  readonly lines: LogLine[] = [];
  /** Everything that it wrote to standard output. */
  output = "";
  readonly errors: Promise<string>;
  readonly ended: Promise<number | NodeJS.Signals>;
  port = 0;
  #waiting: (() => void)[] = [];
  #over = false;

  static async start(place: ConnectorPlace, options: ConnectorStart = {}): Promise<Connector> {
    const connector = new Connector(place, options);
    if (options.ready === false) return connector;
    connector.port = Number((await connector.event("connector.ready"))["port"]);
    return connector;
  }

  private constructor(place: ConnectorPlace, { shell, env }: ConnectorStart) {
    this.place = place;
    const words = [process.execPath, callgate(), "connector", "serve", "--config", place.config];
    const settings = {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NODE_OPTIONS: "", ...env },
      cwd: place.directory,
    } satisfies Parameters<typeof spawn>[2];
    this.child =
      shell === undefined
        ? spawn(words[0]!, words.slice(1), settings)
        : spawn("sh", ["-c", `${shell} exec "$0" "$@"`, ...words], settings);
    onCleanUp(() => this.kill());
    this.errors = text(this.child.stderr!).catch(() => "");
    this.ended = this.#untilEnded();
    this.child.stdout!.on("data", (chunk) => {
      this.output += String(chunk);
    });
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      this.lines.push(JSON.parse(line) as LogLine);
      this.#wake();
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** The first line of that event that fits, come or to come. */
  async event(event: string, fits: (line: LogLine) => boolean = () => true): Promise<LogLine> {
    for (let next = 0; ; next += 1) {
      while (next >= this.lines.length) {
        if (this.#over) throw new Error(`it ended without ${event}: ${this.output}\n${await this.errors}`);
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
      const line = this.lines[next]!;
      if (line.event === event && fits(line)) return line;
    }
  }

  /** `callgate connector call` as caller `me`. */
  call(words: readonly string[], input?: string): Promise<Ran> {
    return run(this.callWords(words), input === undefined ? {} : { input });
  }

  callWords(words: readonly string[]): readonly string[] {
    const to = ["--connect", `127.0.0.1:${this.port}`];
    return [
      ...["connector", "call", ...to, "--caller", "me", "--secret-file", this.place.path("me.secret")],
      ...(words.includes("--model") || words.includes("--request") ? [] : ["--model", MODEL]),
      ...words,
    ];
  }

  async stop(): Promise<number | NodeJS.Signals> {
    this.child.kill("SIGTERM");
    return this.ended;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill(signal);
      await once(this.child, "exit");
    }
  }

  async #untilEnded(): Promise<number | NodeJS.Signals> {
    const [status, signal] = (await once(this.child, "close")) as [number | null, NodeJS.Signals | null];
    this.#over = true;
    this.#wake();
    return status ?? signal!;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

export interface Asked {
  readonly headers: IncomingMessage["headers"];
  readonly body: { readonly messages: readonly { readonly role: string; readonly content: string }[] };
}

/** What the server does with a request; `say` answers it as a model would. */
export type Behaviour = (asked: Asked, response: ServerResponse, say: (text: string) => void) => void;

/** Echoes the last message, unless it is told another behaviour. */
export class ModelServer {
  readonly asked: Asked[] = [];
  behave: Behaviour = ({ body }, _, say) => say(`echo: ${body.messages.at(-1)?.content}`);
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #waiting: (() => void)[] = [];

  static async start(): Promise<ModelServer> {
    const model = new ModelServer();
    model.#server.listen(0, "127.0.0.1");
    await once(model.#server, "listening");
    onCleanUp(() => model.close());
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** Lines of `[backend]` for a connector that asks this server. */
  get backend(): string {
    return `kind = "openai-chat"\nbase_url = "${this.url}"\n`;
  }

  /** Resolves when it was asked so often. */
  async askedTimes(times: number): Promise<void> {
    while (this.asked.length < times) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => undefined);
    const body = JSON.parse(await text(request).catch(() => "{}")) as Asked["body"];
    const asked = { headers: request.headers, body };
    this.asked.push(asked);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
    this.behave(asked, response, (said) => say(response, said));
  }
}

function say(response: ServerResponse, said: string): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const part of [
    { choices: [{ index: 0, delta: { role: "assistant", content: said } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    { choices: [], usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } },
  ])
    response.write(
      `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: MODEL, ...part })}\n\n`,
    );
  response.end("data: [DONE]\n\n");
}
