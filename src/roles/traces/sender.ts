// Spans to a collector, as OTLP over HTTP with JSON. What may pass is tried again for as long as it takes, at growing
// distances or when the collector says; what it will never take is dropped, counted and said; a collector that wants none
// of it (no such path, no right) ends the sending. Redirects are not followed: headers may hold a secret.
// Invariant: when `send` resolves with numbers, every span was taken or is counted as dropped.

import { visibleLine } from "../../base/display.ts";
import { fault, ok, type Result } from "../../base/faults.ts";
import { type Origin, otlpText, type Span } from "./otlp.ts";

export interface SenderEffects {
  readonly fetch: typeof fetch;
  /** Resolves after so many ms, or when told to stop. */
  readonly wait: (ms: number, stop: AbortSignal) => Promise<void>;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly nowMs: () => number;
  /** A sentence for the person who runs this. */
  readonly say: (sentence: string) => void;
}

export interface SenderOptions {
  /** Of the traces themselves; see `collectorUrl`. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly origin: Origin;
  /** For one request, from its begin to the end of its answer. */
  readonly timeoutMs: number;
  /** What is under way when it is told to stop may take so long: what was taken should be known as taken. */
  readonly graceMs: number;
}

export interface Sent {
  readonly taken: number;
  readonly dropped: number;
}

const FIRST_DELAY_MS = 1000;
const DELAY_MS_MAX = 60_000;
/** A collector that asks for longer is asked again all the same. */
const RETRY_AFTER_MS_MAX = 600_000;
const ANSWER_BYTES_MAX = 65_536;
const WORDS_CHARS_MAX = 300;

/** By OTLP/HTTP: only these may be tried again. */
const PASSING: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** It is not this batch that is wrong. */
const UNWANTED: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 410, 415]);
const TOO_LARGE = 413;

/** `/v1/traces` where the address names no path. The fault is a sentence. */
export function collectorUrl(text: string): Result<URL> {
  if (!URL.canParse(text)) return fault("it must be a URL, such as http://127.0.0.1:4318");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    return fault("it must begin with http:// or https://");
  if (url.username !== "" || url.password !== "")
    return fault("it must not hold a name or password: use --header-file for that");
  if (url.hash !== "") return fault("it must not have a fragment (#)");
  if (url.pathname === "/") url.pathname = "/v1/traces";
  return ok(url);
}

type Attempt =
  | { readonly kind: "taken"; readonly rejected: number; readonly words: string }
  | { readonly kind: "later"; readonly why: string; readonly afterMs: number | undefined }
  | { readonly kind: "too_large" }
  | { readonly kind: "wrong"; readonly why: string }
  | { readonly kind: "unwanted"; readonly why: string };

export class Sender {
  readonly #options: SenderOptions;
  readonly #effects: SenderEffects;
  #isDown = false;

  constructor(options: SenderOptions, effects: SenderEffects) {
    this.#options = options;
    this.#effects = effects;
  }

  /** Returns when all of it is dealt with, or it was told to stop (`stopped`). The fault ends the sending: a sentence. */
  async send(spans: readonly Span[], stop: AbortSignal): Promise<Result<Sent | "stopped">> {
    if (spans.length === 0) return ok({ taken: 0, dropped: 0 });
    const body = otlpText(this.#options.origin, spans);
    for (let tries = 0; !stop.aborted; tries += 1) {
      const attempt = await this.#attempt(body, stop);
      if (stop.aborted && attempt.kind !== "taken") break;
      if (attempt.kind !== "later") return this.#settle(attempt, spans, stop);
      if (!this.#isDown)
        this.#effects.say(`the collector takes no spans now (${attempt.why}); they are kept and sent later`);
      this.#isDown = true;
      await this.#effects.wait(attempt.afterMs ?? this.#delayMs(tries), stop);
    }
    return ok("stopped");
  }

  async #settle(
    attempt: Exclude<Attempt, { kind: "later" }>,
    spans: readonly Span[],
    stop: AbortSignal,
  ): Promise<Result<Sent | "stopped">> {
    switch (attempt.kind) {
      case "unwanted":
        return fault(`the collector does not take spans here: ${attempt.why}`);
      case "taken":
        return ok(this.#taken(attempt, spans.length));
      case "wrong":
        return ok(this.#dropped(spans.length, attempt.why));
      case "too_large":
        return spans.length === 1
          ? ok(this.#dropped(1, "it is too large for the collector"))
          : this.#sendHalves(spans, stop);
    }
  }

  async #sendHalves(spans: readonly Span[], stop: AbortSignal): Promise<Result<Sent | "stopped">> {
    const middle = Math.ceil(spans.length / 2);
    const first = await this.send(spans.slice(0, middle), stop);
    if (!first.ok || first.value === "stopped") return first;
    const second = await this.send(spans.slice(middle), stop);
    if (!second.ok || second.value === "stopped") return second;
    return ok({
      taken: first.value.taken + second.value.taken,
      dropped: first.value.dropped + second.value.dropped,
    });
  }

  #taken({ rejected, words }: Extract<Attempt, { kind: "taken" }>, count: number): Sent {
    if (this.#isDown) this.#effects.say("the collector takes spans again");
    this.#isDown = false;
    const dropped = Math.min(rejected, count);
    if (dropped > 0) this.#dropped(dropped, words === "" ? "the collector has rejected them" : words);
    return { taken: count - dropped, dropped };
  }

  #dropped(count: number, why: string): Sent {
    this.#effects.say(`${count} span${count === 1 ? "" : "s"} dropped: ${why}`);
    return { taken: 0, dropped: count };
  }

  /** Between half of it and all, so that many exporters don't come back in step. */
  #delayMs(tries: number): number {
    const full = Math.min(DELAY_MS_MAX, FIRST_DELAY_MS * 2 ** Math.min(tries, 20));
    return Math.ceil(full * (0.5 + this.#effects.random() / 2));
  }

  async #attempt(body: string, stop: AbortSignal): Promise<Attempt> {
    const { url, headers, timeoutMs } = this.#options;
    const given = this.#untilLate(stop);
    try {
      const response = await this.#effects.fetch(url, {
        method: "POST",
        headers: { "user-agent": "callgate-traces", ...headers, "content-type": "application/json" },
        body,
        redirect: "manual",
        signal: AbortSignal.any([given.up, AbortSignal.timeout(timeoutMs)]),
      });
      return await this.#read(response);
    } catch (error) {
      return { kind: "later", why: faultWords(error), afterMs: undefined };
    } finally {
      given.end();
    }
  }

  /** Aborts a while after it was told to stop. */
  #untilLate(stop: AbortSignal): { readonly up: AbortSignal; readonly end: () => void } {
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const stopped = () => {
      timer = setTimeout(() => late.abort(), this.#options.graceMs);
    };
    stop.addEventListener("abort", stopped);
    const end = () => {
      clearTimeout(timer);
      stop.removeEventListener("abort", stopped);
    };
    return { up: late.signal, end };
  }

  async #read(response: Response): Promise<Attempt> {
    const { status } = response;
    const text = await boundedText(response);
    if (status >= 200 && status < 300) return { kind: "taken", ...partialSuccess(text) };
    if (PASSING.has(status))
      return { kind: "later", why: `HTTP ${status}`, afterMs: this.#retryAfterMs(response) };
    if (status >= 300 && status < 400)
      return { kind: "unwanted", why: `HTTP ${status}, a redirect, which is not followed` };
    if (UNWANTED.has(status)) return { kind: "unwanted", why: `HTTP ${status}` };
    if (status === TOO_LARGE) return { kind: "too_large" };
    return { kind: "wrong", why: `the collector answers HTTP ${status}` };
  }

  /** Seconds, or a date. */
  #retryAfterMs({ headers }: Response): number | undefined {
    const text = headers.get("retry-after")?.trim();
    if (text === undefined || text === "") return undefined;
    const ms = /^[0-9]{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - this.#effects.nowMs();
    return Number.isFinite(ms) ? Math.min(RETRY_AFTER_MS_MAX, Math.max(0, ms)) : undefined;
  }
}

async function boundedText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const chunks: Uint8Array[] = [];
  for (let bytes = 0; bytes <= ANSWER_BYTES_MAX; ) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks).toString("utf8");
    chunks.push(value);
    bytes += value.length;
  }
  await reader.cancel();
  return "";
}

/** What the collector took of a batch that it took: its words are shown to a person, so they are escaped. */
function partialSuccess(text: string): { readonly rejected: number; readonly words: string } {
  try {
    const { partialSuccess } = JSON.parse(text) as {
      partialSuccess?: { rejectedSpans?: unknown; errorMessage?: unknown } | null;
    };
    const rejected = Number(partialSuccess?.rejectedSpans ?? 0); // a number, or its decimal text
    const words = partialSuccess?.errorMessage;
    return {
      rejected: Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0,
      words: typeof words === "string" ? `the collector says: ${visibleLine(words, WORDS_CHARS_MAX)}` : "",
    };
  } catch {
    return { rejected: 0, words: "" }; // an answer that nobody can read says nothing against it
  }
}

function faultWords(error: unknown): string {
  const { name, cause } = (error ?? {}) as { name?: unknown; cause?: { code?: unknown } };
  if (name === "TimeoutError") return "it does not answer in time";
  const code = cause?.code;
  return typeof code === "string" ? visibleLine(code, 60) : "no connection";
}
