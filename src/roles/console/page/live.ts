// What the console's events have told, kept up to date: one stream, opened again for as long as the page is
// there. A stream that is silent for longer than its heartbeat is given up; one that the server no longer
// lets in ends it.

import { EVENTS_PATH, KEY_HEADER, type PageEvent, type Sample } from "../api.ts";
import { EventReader, type ServerEvent } from "./event_stream.ts";
import type { Live } from "./page.ts";

export const NOTHING_YET: Live = {
  connection: "connecting",
  broker: { connected: true, why: null },
  questions: undefined,
  status: undefined,
  samples: [],
};

/** An hour of samples, one every five seconds. */
const SAMPLES_MAX = 720;
/** The server says something every 15 s. */
const SILENCE_MAX_MS = 40_000;
const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 10_000;

export interface FeedEffects {
  readonly fetch: (path: string, init: RequestInit) => Promise<Response>;
  /** Calls `then` after that time, unless what it gives back is called before. */
  readonly after: (ms: number, then: () => void) => () => void;
  /** From 0 to below 1. */
  readonly random: () => number;
}

export class Feed {
  #live: Live = NOTHING_YET;
  #stop = new AbortController();
  readonly #key: string;
  readonly #effects: FeedEffects;
  readonly #changed: (live: Live) => void;

  constructor(key: string, effects: FeedEffects, changed: (live: Live) => void) {
    this.#key = key;
    this.#effects = effects;
    this.#changed = changed;
  }

  /** Resolves when the server lets us in no more, or after `stop`. */
  async run(): Promise<void> {
    let failures = 0;
    while (!this.#stop.signal.aborted) {
      const heard = await this.#stream();
      if (this.#live.connection === "logged_out" || this.#stop.signal.aborted) return;
      failures = heard ? 1 : failures + 1;
      this.#become({ connection: "lost" });
      const most = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** (failures - 1));
      await this.#pause(most * (0.5 + this.#effects.random() / 2));
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  /** One connection from its beginning to its end; whether anything came. */
  async #stream(): Promise<boolean> {
    const ended = new AbortController();
    const end = () => ended.abort();
    this.#stop.signal.addEventListener("abort", end);
    let heard = false;
    try {
      const response = await this.#effects.fetch(EVENTS_PATH, {
        headers: { [KEY_HEADER]: this.#key, accept: "text/event-stream" },
        signal: ended.signal,
      });
      if (response.status === 401) this.#become({ connection: "logged_out" });
      if (!response.ok || response.body === null) return false;
      this.#become({ connection: "open" });
      for await (const piece of this.#pieces(response.body, end)) {
        heard = true;
        this.#take(piece);
      }
    } catch {
      // cut, silent for too long, or broken: told apart by nothing that a person could act on
    } finally {
      this.#stop.signal.removeEventListener("abort", end);
      end();
    }
    return heard;
  }

  async *#pieces(body: ReadableStream<Uint8Array>, end: () => void): AsyncGenerator<readonly ServerEvent[]> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const events = new EventReader();
    for (;;) {
      const cancel = this.#effects.after(SILENCE_MAX_MS, end);
      const { done, value } = await reader.read().finally(cancel);
      if (done) return;
      yield events.take(decoder.decode(value, { stream: true }));
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#effects.after(ms, resolve);
      this.#stop.signal.addEventListener("abort", () => {
        cancel();
        resolve();
      });
    });
  }

  /** The page is drawn once for all events of one piece. */
  #take(events: readonly ServerEvent[]): void {
    let change: Partial<Live> = {};
    for (const event of events) change = { ...change, ...changeBy({ ...this.#live, ...change }, event) };
    if (events.length > 0) this.#become(change);
  }

  #become(change: Partial<Live>): void {
    this.#live = { ...this.#live, ...change };
    this.#changed(this.#live);
  }
}

function changeBy(live: Live, { event, data }: ServerEvent): Partial<Live> {
  const told = { event, data: JSON.parse(data) } as PageEvent; // our own server's
  switch (told.event) {
    case "broker":
      return { broker: told.data };
    case "approvals":
      return { questions: told.data };
    case "history":
      return { samples: latest(told.data) };
    case "sample":
      return { samples: latest([...live.samples, told.data]) };
    case "status":
      return { status: told.data };
    default:
      return {}; // of a later version
  }
}

function latest(samples: readonly Sample[]): readonly Sample[] {
  return samples.slice(-SAMPLES_MAX);
}
