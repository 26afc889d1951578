// A collector on loopback for tests: keeps what it is sent, and answers as the test says.

import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** As OTLP has them. */
  readonly spans: readonly ReceivedSpan[];
}

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

export interface CollectorAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Says nothing at all. */
  readonly hangs?: true;
}

export class Collector {
  readonly received: Received[] = [];
  /** Answers to come, in order; then all is taken. */
  readonly answers: CollectorAnswer[] = [];
  readonly #server: Server;
  #waiting: (() => void)[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<Collector> {
    const server = createServer();
    const collector = new Collector(server);
    server.on("request", async (request, response) => {
      const body = JSON.parse(await text(request)) as {
        readonly resourceSpans: readonly {
          readonly scopeSpans: readonly { readonly spans: ReceivedSpan[] }[];
        }[];
      };
      const spans = body.resourceSpans.flatMap(({ scopeSpans }) =>
        scopeSpans.flatMap((scope) => scope.spans),
      );
      collector.received.push({ path: request.url ?? "", headers: request.headers, spans });
      const answer = collector.answers.shift() ?? { status: 200, body: "{}" };
      if (answer.hangs !== true) {
        response.writeHead(answer.status, answer.headers);
        response.end(answer.body);
      }
      collector.#wake();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** All spans that came, also those that it did not take. */
  get spans(): readonly ReceivedSpan[] {
    return this.received.flatMap(({ spans }) => spans);
  }

  /** Resolves when what came fits. */
  async receives(fits: (collector: Collector) => boolean): Promise<void> {
    while (!fits(this)) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
