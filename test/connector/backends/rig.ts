// What the backends' tests share: an invocation, a provider that answers as a test says and keeps what it was asked,
// and a clock whose timers a test lets fire.

import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../../../src/base/ports.ts";
import type { ProviderBackend, ProviderTurn } from "../../../src/connector/backend.ts";
import { loadBackend } from "../../../src/connector/backends/load_backend.ts";
import type { BackendKind, BackendSettings } from "../../../src/connector/backends/settings.ts";
import type {
  Completed,
  EventPayload,
  Failed,
  ProviderRequest,
  TransportInvocation,
} from "../../../src/connector/contract.ts";

/** In no output of any test but the header that it belongs into. */
export const CANARY = "sk-canary-Zq81-Kx72-Vb63-Ny54";

export const KINDS: readonly BackendKind[] = ["anthropic", "openai-responses", "openai-chat"];

export function invocation(request: Partial<ProviderRequest> = {}): TransportInvocation {
  return {
    schema_id: "gamecult.model.transport_invocation.v3",
    caller_runtime_id: "caller-alpha",
    expires_at_unix_ms: 1_900_000_000_000,
    native_request_sha256: new Uint8Array(32).fill(1),
    provider_request_sha256: new Uint8Array(32).fill(2),
    request: providerRequest(request),
  };
}

export function providerRequest(request: Partial<ProviderRequest> = {}): ProviderRequest {
  return {
    schema_id: "gamecult.model.provider_request.v3",
    request_id: "request-0001",
    conversation_id: "conversation-1",
    model: "model-1",
    instructions: "Answer briefly.",
    input: [{ UserText: { text: "hello" } }],
    reasoning_effort: null,
    output_format_name: null,
    tools: [],
    tool_choice: "auto",
    parallel_tool_calls: true,
    output_schema_json: null,
    max_output_tokens: 1000,
    ...request,
  };
}

export const READ_TOOL = {
  name: "read",
  description: "Reads a file.",
  parameters_json: '{"type":"object","properties":{"path":{"type":"string"}}}',
};

export interface Asked {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export class TestProvider {
  readonly asked: Asked[] = [];
  /** Taken one by one; the last one stays. */
  answers: ((response: ServerResponse) => void)[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("error", () => {});
      response.on("error", () => {});
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString("utf8");
        this.asked.push({ path: request.url ?? "", headers: request.headers, body });
        const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
        answer?.(response);
      });
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** As the kind's SDK wants it. */
  baseUrl(kind: BackendKind): string {
    return `http://127.0.0.1:${this.port}${kind === "anthropic" ? "" : "/v1"}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

/** A 200 that says all of `text`, and ends. */
export function streams(text: string): (response: ServerResponse) => void {
  return (response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(text);
}

/** A 200 whose connection breaks behind `text`. */
export function breaksAfter(text: string): (response: ServerResponse) => void {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text, () => response.socket?.destroy());
  };
}

export function says(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): (response: ServerResponse) => void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(text);
}

/** Its timers fire when `isDue` says so of their length, in the turn of the loop after they were set; no other does. */
export class PickedClock implements Clock {
  /** Lengths of all that were set. */
  readonly set: number[] = [];
  readonly #isDue: (ms: number) => boolean;
  open = 0;

  constructor(isDue: (ms: number) => boolean = () => false) {
    this.#isDue = isDue;
  }

  nowMs(): number {
    return Date.parse("2026-12-01T00:00:00Z");
  }

  after(ms: number, task: () => void): () => void {
    this.set.push(ms);
    this.open++;
    let over = false;
    const close = (): void => {
      if (!over) this.open--;
      over = true;
    };
    if (this.#isDue(ms)) {
      setImmediate(() => {
        if (over) return;
        close();
        task();
      });
    }
    return close;
  }

  afterInput(task: () => void): void {
    setImmediate(task);
  }
}

export async function backend(
  settings: Pick<BackendSettings, "kind" | "baseUrl"> & Partial<BackendSettings>,
  clock: Clock = new PickedClock(),
): Promise<ProviderBackend> {
  const loaded = await loadBackend({ key: async () => CANARY, ...settings }, { clock });
  if (!loaded.ok) throw new Error(loaded.fault);
  return loaded.value;
}

export function take(
  one: ProviderBackend,
  request: Partial<ProviderRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<ProviderTurn> {
  return one.execute(invocation(request), signal);
}

export function failedOf({ outcome }: ProviderTurn): Failed {
  if (!("Failed" in outcome)) throw new Error(`the turn was completed: ${JSON.stringify(outcome)}`);
  return outcome.Failed;
}

export function completedOf({ outcome }: ProviderTurn): Completed {
  if (!("Completed" in outcome)) throw new Error(`the turn failed: ${JSON.stringify(outcome)}`);
  return outcome.Completed;
}

/** Each as its tag and what matters of it. */
export function told(events: readonly EventPayload[]): unknown[] {
  return events.map((event) => {
    if ("TextDelta" in event) return event.TextDelta.text;
    if ("ToolCall" in event) return [event.ToolCall.call_id, event.ToolCall.name, event.ToolCall.arguments];
    return JSON.parse(Buffer.from(event.ReasoningState.opaque).toString("utf8")).item;
  });
}
