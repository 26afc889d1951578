// A server over time: it is opened, it ends, it is opened again after a pause that grows. At most one opening at a time;
// whoever asks gets the session that there is, or none. No call is ever asked twice of it.

import { retryDelayMs } from "../../../client/backoff.ts";
import type { Effects } from "../../../client/effects.ts";
import type { McpSession, SessionSettings } from "./mcp_client.ts";
import type { Gone, Opening, ServerSource } from "./server_source.ts";

export interface LifeSettings {
  readonly source: ServerSource;
  readonly session: Pick<SessionSettings, "version" | "stepMs">;
  readonly effects: Pick<Effects, "monotonicMs" | "random" | "after">;
  readonly say: (line: string) => void;
  /** There is a session. Rejects or resolves false where it is of no use: then it is ended. */
  readonly onUp: (session: McpSession) => Promise<boolean>;
  readonly onToolsChanged: () => void;
}

const RETRY = {
  delayMs: 1000,
  delayMsMax: 60_000,
  giveUpAfterMs: Number.POSITIVE_INFINITY,
  stableAfterMs: 60_000,
} as const;
/** Of what a server does that is odd, told in its life. */
const TROUBLES_TOLD_MAX = 20;

export class ServerLife {
  /** Resolves when it is over for good: with why, or undefined after `close`. Never rejects. */
  readonly ended: Promise<string | undefined>;
  readonly #settings: LifeSettings;
  #session: McpSession | undefined;
  #opening: Opening | undefined;
  #attempts = 0;
  #ends = 0;
  #oldOnly = false;
  #closed = false;
  #wake = () => {};

  constructor(settings: LifeSettings) {
    this.#settings = settings;
    this.ended = this.#live();
  }

  get session(): McpSession | undefined {
    return this.#session;
  }

  /** A call found that this session is no more. */
  lost(session: McpSession): void {
    if (this.#session === session) void this.#opening?.stop();
  }

  /** Ends a server that could see by now what is to be hidden from it: it is started again with that hidden. */
  checkHidden(): void {
    if (this.#opening === undefined || this.#opening.isHidden()) return;
    this.#settings.say(
      "the directory of the role's socket was replaced: the server, which could see the new one, is ended",
    );
    void this.#opening.stop("atOnce");
  }

  /** Ends the server and everything that it started. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    await this.#opening?.stop();
    await this.ended;
  }

  async #live(): Promise<string | undefined> {
    while (!this.#closed) {
      const wasOldOnly = this.#oldOnly;
      const gone = await this.#once();
      if (this.#closed) return undefined;
      if (gone.neverStarted) return `the server can't be started: ${notStarted(gone.words)}`;
      // It ended at a question of the newest protocol: an old one is asked as of old, at once.
      if (this.#oldOnly && !wasOldOnly) continue;
      await this.#pause(gone);
    }
    return undefined;
  }

  async #once(): Promise<Gone> {
    const { source, session: own, say, onToolsChanged } = this.#settings;
    let told = 0;
    const opening = source.open({
      ...own,
      oldOnly: this.#oldOnly,
      onToolsChanged,
      onTrouble: (words) => {
        told += 1;
        if (told <= TROUBLES_TOLD_MAX) say(words);
      },
    });
    this.#opening = opening;
    const opened = await opening.session;
    if (!opened.ok) {
      await opening.stop();
      const gone = await opening.gone;
      if (gone.byItself && !this.#oldOnly && !gone.neverStarted) this.#oldOnly = true;
      const isWhy = gone.byItself || gone.neverStarted || gone.words === opened.fault;
      return { ...gone, words: isWhy ? gone.words : `${opened.fault}; ${gone.words}` };
    }
    await this.#serve(opening, opened.value);
    return opening.gone;
  }

  async #serve(opening: Opening, session: McpSession): Promise<void> {
    const { effects, onUp } = this.#settings;
    const sinceMs = effects.monotonicMs();
    if (!this.#closed && (await onUp(session).catch(() => false))) this.#session = session;
    else void opening.stop();
    await opening.gone;
    this.#session = undefined;
    if (effects.monotonicMs() - sinceMs >= RETRY.stableAfterMs) this.#attempts = 0;
  }

  async #pause({ words }: Gone): Promise<void> {
    const { effects, say } = this.#settings;
    const delayMs = retryDelayMs(RETRY, this.#attempts, 0, effects.random()) ?? RETRY.delayMsMax;
    this.#attempts += 1;
    this.#ends += 1;
    say(
      `the server is gone (${words}), end ${this.#ends}; it is started again in ${Math.ceil(delayMs / 1000)} s`,
    );
    await new Promise<void>((resolve) => {
      const callOff = effects.after(delayMs, resolve);
      this.#wake = () => {
        callOff();
        resolve();
      };
    });
  }
}

/** `words`: of a server that never started. An error code of the system's is said in words too. */
export function notStarted(words: string): string {
  if (words === "ENOENT") return "there is no such program (ENOENT)";
  return words === "EACCES" ? "it is no program that this user may run (EACCES)" : words;
}
