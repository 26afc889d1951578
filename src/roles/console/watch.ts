// What the console knows of its broker without being asked: the load, every few seconds, and the questions that wait, as
// they change, while somebody looks. Told as events; the latest of each is kept for who comes later.

import type { Questions } from "../../client/answers.ts";
import type { MeasuredStatus } from "../../client/load_answers.ts";
import type { Asked, PageEvent, Sample } from "./api.ts";
import type { ConsoleEffects } from "./effects.ts";
import { sampleOf } from "./samples.ts";

/** As BrokerLink asks. */
export type AskBroker = (tool: string, args: string, stop?: AbortSignal) => Promise<Asked>;

export interface WatchOptions {
  readonly ask: AskBroker;
  readonly effects: ConsoleEffects;
  readonly tell: (event: PageEvent) => void;
  /** Whether anybody looks. */
  readonly isWatched: () => boolean;
  /** Told once the broker has said what this role is there, and whenever that changes: what is wrong with it, or null. */
  readonly onRole: (wrong: string | null) => void;
}

const STATUS_MS = 5000;
/** An hour of them. */
export const SAMPLES_MAX = 720;
/** Questions may come by hundreds; eyes take four lists a second at most. */
const LIST_MS_MIN = 250;
const WATCH_SECONDS = 30;
/** Until a broker that can't answer is asked again. */
const RETRY_MS = 2000;

export class BrokerWatch {
  readonly #options: WatchOptions;
  readonly #samples: Sample[] = [];
  #over = new AbortController();
  #connected = false;
  #why: string | null = null;
  #status: MeasuredStatus | undefined;
  #questions: Questions | undefined;
  #following = false;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** There is a broker, or there is none and why. */
  connection(connected: boolean, why: string | null): void {
    const changed = connected !== this.#connected || why !== this.#why;
    const came = connected && !this.#connected;
    this.#connected = connected;
    this.#why = why;
    if (!changed) return;
    this.#options.tell(this.#broker());
    if (!came) return;
    this.#over.abort(); // what the last connection's loops still wait for
    this.#over = new AbortController();
    this.#following = false;
    this.#questions = undefined;
    void this.#poll(this.#over.signal);
    this.watched();
  }

  /** Somebody has begun to look. */
  watched(): void {
    if (this.#following || !this.#connected || !this.#options.isWatched()) return;
    this.#following = true;
    void this.#follow(this.#over.signal);
  }

  /** All that is known, for who begins to listen. */
  greeting(): readonly PageEvent[] {
    return [
      this.#broker(),
      { event: "history", data: this.#samples },
      ...(this.#status === undefined ? [] : [{ event: "status", data: this.#status } as const]),
      ...(this.#questions === undefined ? [] : [{ event: "approvals", data: this.#questions } as const]),
    ];
  }

  close(): void {
    this.#over.abort();
    this.#connected = false;
  }

  #broker(): PageEvent {
    return { event: "broker", data: { connected: this.#connected, why: this.#why } };
  }

  async #poll(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const asked = await this.#options.ask("callgate.status", `{"metrics":true}`, over);
      if (over.aborted) return;
      if (asked.status === "result") this.#look(JSON.parse(asked.content));
      else this.#wrong(wrongWith(asked));
      await this.#pause(STATUS_MS, over);
    }
  }

  #look(status: Partial<MeasuredStatus>): void {
    if (!isMeasured(status)) return this.#wrong(NO_OPERATOR);
    this.#wrong(null);
    const sample = sampleOf(status, this.#options.effects.nowMs());
    this.#samples.push(sample);
    if (this.#samples.length > SAMPLES_MAX) this.#samples.shift();
    this.#status = status;
    this.#options.tell({ event: "status", data: status });
    this.#options.tell({ event: "sample", data: sample });
  }

  #wrong(wrong: string | null): void {
    this.#options.onRole(wrong);
    if (this.#connected) this.connection(true, wrong);
  }

  /** Ends when nobody looks any more. */
  async #follow(over: AbortSignal): Promise<void> {
    let version: unknown;
    while (!over.aborted && this.#options.isWatched()) {
      const asked = await this.#askQuestions(version, over);
      if (over.aborted) return;
      if (asked.status === "result") {
        const questions = JSON.parse(asked.content) as Questions;
        if (version === undefined || questions.version !== version) {
          this.#questions = questions;
          this.#options.tell({ event: "approvals", data: questions });
        }
        version = questions.version;
      } else version = undefined;
      await this.#pause(asked.status === "result" ? LIST_MS_MIN : RETRY_MS, over);
    }
    if (over.aborted) return;
    this.#following = false;
    this.#questions = undefined; // old by the time that somebody looks again
  }

  #askQuestions(version: unknown, over: AbortSignal): Promise<Asked> {
    if (version === undefined) return this.#options.ask("callgate.approvals.list", "{}", over);
    const args = JSON.stringify({ version, timeout_seconds: WATCH_SECONDS });
    return this.#options.ask("callgate.approvals.watch", args, over);
  }

  #pause(ms: number, over: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        callOff();
        over.removeEventListener("abort", done);
        resolve();
      };
      const callOff = this.#options.effects.after(ms, done);
      over.addEventListener("abort", done);
      if (over.aborted) done();
    });
  }
}

const NO_OPERATOR =
  "This role is no operator: it sees little here and decides nothing. Connect by the socket of a role with operator = true.";

/** Whether it is an operator's, with the figures. */
export function isMeasured(status: Partial<MeasuredStatus>): status is MeasuredStatus {
  return status.metrics !== undefined && status.roles !== undefined;
}

/** null: the connection's own change says so. */
function wrongWith(asked: Exclude<Asked, { status: "result" }>): string | null {
  if (asked.status === "unreachable") return null;
  if (asked.status === "denied")
    return `This role may not ask for callgate.status (${asked.reason}): the console needs a role with operator = true and a grant of callgate.*`;
  return asked.message.startsWith("bad_arguments") ? NO_OPERATOR : asked.message;
}
