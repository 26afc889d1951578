// One HTTP request and its answer, over node's own client: no pool, so that no turn meets a connection that the
// server has just closed; no proxy, no redirect, no environment. Invariant: a fault says whether a byte may have
// been sent; every wait is bounded by a timer or the signal; nothing of what a peer wrote is in a fault but names.

import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { fault, ok, type Result } from "../../base/faults.ts";
import type { Clock } from "../../base/ports.ts";
import { type Failure, failure } from "./failure.ts";

export interface ExchangeRequest {
  readonly url: URL;
  /** Complete; `content-length` and `host` are added. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly connectTimeoutMs: number;
  readonly silenceTimeoutMs: number;
}

export interface Exchange {
  readonly status: number;
  /** Undefined: not there. Repeated ones are joined by node's rules. */
  header(name: string): string | undefined;
  readonly body: AnswerBody;
}

export interface AnswerBody {
  /** Null: it ended as HTTP says that it ends. After that, or after a fault, nothing more is asked. */
  next(): Promise<Result<Uint8Array | null, Failure>>;
  /** Whatever was not read is not wanted; the connection goes. May be called at any time, and again. */
  close(): void;
}

export interface SendFault {
  readonly failure: Failure;
  /** Nothing of the request left this machine, and another attempt may do better. */
  readonly again: boolean;
}

/** Why a request was ended from this side; what the socket then says is a consequence. */
type Ended = "connect" | "silence" | "signal";

/** Sends, and waits for the status line and headers. */
export function exchange(
  sent: ExchangeRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<Result<Exchange, SendFault>> {
  return new Promise((settle) => {
    if (signal.aborted) return settle(fault({ failure: endedFailure("signal", sent), again: false }));
    const attempt = new Attempt(sent, clock, signal);
    // Whatever comes first counts; a request that closes without a word, as after an upgrade, is one that broke.
    attempt.request.on("error", (error) => settle(fault(attempt.sendFault(error))));
    attempt.request.once("response", (response) => settle(ok(attempt.answered(response))));
    attempt.request.once("close", () => settle(fault({ failure: transferFailure(""), again: false })));
  });
}

class Attempt {
  readonly request: ClientRequest;
  readonly #sent: ExchangeRequest;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => this.#end("signal");
  #connected = false;
  #ended: Ended | undefined;
  #stopTimer: () => void;

  constructor(sent: ExchangeRequest, clock: Clock, signal: AbortSignal) {
    this.#sent = sent;
    this.#clock = clock;
    this.#signal = signal;
    this.request = openRequest(sent);
    this.#stopTimer = clock.after(sent.connectTimeoutMs, () => this.#end("connect"));
    signal.addEventListener("abort", this.#onAbort, { once: true });
    const secure = sent.url.protocol === "https:";
    this.request.once("socket", (socket) => {
      socket.once(secure ? "secureConnect" : "connect", () => this.#connectionStands());
    });
    this.request.once("close", () => this.#release());
    this.request.end(sent.body);
  }

  #connectionStands(): void {
    this.#connected = true;
    this.armSilence();
  }

  armSilence(): void {
    this.#stopTimer();
    this.#stopTimer = this.#clock.after(this.#sent.silenceTimeoutMs, () => this.#end("silence"));
  }

  stopTimer(): void {
    this.#stopTimer();
  }

  #release(): void {
    this.#stopTimer();
    this.#signal.removeEventListener("abort", this.#onAbort);
  }

  #end(ended: Ended): void {
    this.#ended ??= ended;
    this.request.destroy(new Error(ended));
  }

  close(): void {
    this.#release();
    this.request.destroy();
  }

  sendFault(error: Error): SendFault {
    this.#release();
    if (this.#ended !== undefined) {
      return { failure: endedFailure(this.#ended, this.#sent), again: this.#ended === "connect" };
    }
    const code = codeOf(error);
    if (this.#connected) return { failure: transferFailure(code), again: false };
    const sentence = `no connection to the provider could be made${told(code)}; nothing was sent`;
    return { failure: failure("TransportFailed", sentence), again: PASSING.has(code) };
  }

  answered(response: IncomingMessage): Exchange {
    this.stopTimer();
    response.on("error", () => {}); // whoever reads the body is told of it; without a listener it would be thrown
    const chunks = response[Symbol.asyncIterator]();
    return {
      status: response.statusCode ?? 0,
      header: (name) => headerOf(response, name),
      body: { next: () => this.#next(chunks), close: () => this.close() },
    };
  }

  async #next(chunks: AsyncIterator<Uint8Array>): Promise<Result<Uint8Array | null, Failure>> {
    this.armSilence();
    try {
      const { done, value } = await chunks.next();
      if (this.#ended !== undefined) return fault(endedFailure(this.#ended, this.#sent));
      return ok(done === true ? null : value);
    } catch (error) {
      return fault(
        this.#ended === undefined ? transferFailure(codeOf(error)) : endedFailure(this.#ended, this.#sent),
      );
    } finally {
      this.stopTimer();
    }
  }
}

function openRequest({ url, headers, body }: ExchangeRequest): ClientRequest {
  const options = {
    method: "POST",
    // A fresh agent for this one request: it keeps nothing alive, and has no proxy whatever the environment says.
    agent: false as const,
    headers: { ...headers, "content-length": `${Buffer.byteLength(body)}` },
  };
  if (url.protocol === "http:") return httpRequest(url, options);
  // Said, since NODE_TLS_REJECT_UNAUTHORIZED in the environment would turn it off.
  return httpsRequest(url, { ...options, rejectUnauthorized: true });
}

function headerOf(response: IncomingMessage, name: string): string | undefined {
  const value = response.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Of what may be otherwise in a moment. A certificate that does not hold is none of it. */
const PASSING: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EAI_AGAIN",
  "ENOTFOUND",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
]);

/** Node's name of an error, such as ECONNRESET or CERT_HAS_EXPIRED; no text of anybody's. */
function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : "";
}

const told = (code: string): string => (code === "" ? "" : ` (${code})`);

function transferFailure(code: string): Failure {
  if (code.startsWith("HPE_"))
    return failure("StreamInvalid", `the provider did not answer in HTTP (${code})`);
  return failure(
    "TransportFailed",
    `the connection broke after the request was sent${told(code)}; the provider may have run`,
  );
}

function endedFailure(ended: Ended, sent: ExchangeRequest): Failure {
  if (ended === "signal") return failure("TimedOut", "the turn was ended before the provider had answered");
  if (ended === "connect") {
    return failure(
      "TimedOut",
      `no connection to the provider stood within ${sent.connectTimeoutMs} ms; nothing was sent`,
    );
  }
  return failure("TimedOut", `the provider sent nothing for ${sent.silenceTimeoutMs} ms`);
}
