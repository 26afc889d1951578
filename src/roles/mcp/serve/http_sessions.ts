// Sessions of the protocol's older versions over HTTP, and which of the two ways a request goes: a version of 2026 has no
// sessions. Invariant: sessions are bounded, and one that nobody uses makes room for another.

import type { Effects } from "../../../client/effects.ts";
import type { Fetched } from "./http_server.ts";
import { type Answering, type HttpSession, isOldRequest, NewHttp, newSession } from "./sdk.ts";

/** Clients of older versions at once. */
export const SESSIONS_MAX = 64;
const IDLE_MS = 1_800_000;

interface Held {
  readonly session: HttpSession;
  /** Requests and streams without their end. */
  open: number;
  usedMs: number;
}

export class HttpSessions {
  readonly #answering: Answering;
  readonly #effects: Pick<Effects, "monotonicMs">;
  readonly #new: NewHttp;
  readonly #held = new Map<string, Held>();

  constructor(answering: Answering, effects: Pick<Effects, "monotonicMs">) {
    this.#answering = answering;
    this.#effects = effects;
    this.#new = new NewHttp(answering);
  }

  get count(): number {
    return this.#held.size;
  }

  async fetch(request: Request, body: unknown): Promise<Fetched> {
    const id = request.headers.get("mcp-session-id");
    if (id !== null) {
      const held = this.#held.get(id);
      return held === undefined ? refusal(404, -32001, "Session not found") : this.#use(held, request, body);
    }
    if (request.method !== "POST") return refusal(405, -32000, "Method not allowed: there is no session.");
    if (!(await isOldRequest(request, body)))
      return { response: await this.#new.fetch(request, body), over: () => undefined };
    if (!isInitialize(body)) return refusal(400, -32000, "A session begins with `initialize`.");
    if (!this.#makeRoom()) return refusal(503, -32000, "Too many clients are connected.");
    return this.#begin(request, body);
  }

  /** Tells all clients that there is another list. */
  changed(): void {
    this.#new.changed();
    for (const { session } of this.#held.values()) session.changed();
  }

  async close(): Promise<void> {
    await Promise.all([this.#new.close(), ...[...this.#held.values()].map(({ session }) => session.close())]);
  }

  async #begin(request: Request, body: unknown): Promise<Fetched> {
    const session = await newSession(this.#answering, (id) => this.#held.delete(id));
    const held = { session, open: 0, usedMs: this.#effects.monotonicMs() };
    const fetched = await this.#use(held, request, body);
    if (session.id === undefined) await session.close();
    else this.#held.set(session.id, held);
    return fetched;
  }

  async #use(held: Held, request: Request, body: unknown): Promise<Fetched> {
    held.open += 1;
    const over = () => {
      held.open -= 1;
      held.usedMs = this.#effects.monotonicMs();
    };
    try {
      return { response: await held.session.fetch(request, body), over };
    } catch (error) {
      over();
      throw error;
    }
  }

  /** Whether there is room for one more. */
  #makeRoom(): boolean {
    const now = this.#effects.monotonicMs();
    const idle = [...this.#held.entries()]
      .filter(([, { open }]) => open === 0)
      .sort(([, a], [, b]) => a.usedMs - b.usedMs);
    for (const [id, { session, usedMs }] of idle) {
      if (this.#held.size < SESSIONS_MAX && now - usedMs < IDLE_MS) break;
      this.#held.delete(id);
      void session.close();
    }
    return this.#held.size < SESSIONS_MAX;
  }
}

function isInitialize(body: unknown): boolean {
  return typeof body === "object" && body !== null && "method" in body && body.method === "initialize";
}

function refusal(status: number, code: number, message: string): Fetched {
  const response = Response.json({ jsonrpc: "2.0", id: null, error: { code, message } }, { status });
  return { response, over: () => undefined };
}
