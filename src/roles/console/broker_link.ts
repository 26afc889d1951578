// The console's one connection to its broker, made again for ever. Invariant: nothing that a person asked is sent later than
// they were told of it: without a connection nothing is taken, and what got no answer in time is given up.

import { visibleLine } from "../../base/display.ts";
import type { Address } from "../../client/address.ts";
import { type Caller, callerOf } from "../../client/caller.ts";
import { type ConnectionState, Endpoint } from "../../client/endpoint.ts";
import { CallgateError } from "../../client/error.ts";
import type { ToolResponse } from "../../wire/message.ts";
import type { Asked } from "./api.ts";
import type { ConsoleEffects } from "./effects.ts";

export interface LinkOptions {
  readonly to: Address;
  readonly session: string;
  readonly effects: ConsoleEffects;
  /** Told at each change: connected, or why not. */
  readonly onChange: (state: ConnectionState) => void;
}

/** How long an answer is waited for across a broker's restart; a question to a human about the asking itself takes its time. */
const OUTAGE_MS_MAX = 15_000;
/** Characters of one answer. */
const ANSWER_CHARS_MAX = 16_777_216;
/** Asks without their answer, of all pages together. */
export const ASKS_MAX = 64;

const NOT_YET: ConnectionState = { open: false, why: "it is being connected to" };

export class BrokerLink {
  readonly #endpoint: Endpoint;
  readonly #caller: Caller;
  readonly #options: LinkOptions;
  readonly #running = new Set<AbortController>();
  #state: ConnectionState = NOT_YET;
  #callOffGivingUp: () => void = () => {};

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#endpoint = new Endpoint(
      {
        to: options.to,
        session: options.session,
        reconnect: { giveUpAfterMs: Number.POSITIVE_INFINITY },
        waitForBroker: true,
        resultCharsMax: ANSWER_CHARS_MAX,
        cancelWaitMs: 0, // who has left waits for nothing
        onConnection: (state) => this.#changed(state),
      },
      { tools: new Map(), handle: undefined, concurrency: 1 },
    );
    this.#caller = callerOf(this.#endpoint);
  }

  /** Begins to connect. `onChange` tells what comes of it. */
  start(): void {
    this.#endpoint.start().catch(() => {}); // `ended` says so too
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Resolves when no further connection will be made, with why; undefined after `close`. */
  get ended(): Promise<CallgateError | undefined> {
    return this.#endpoint.ended;
  }

  /** What was asked already is still sent. */
  async close(): Promise<void> {
    this.#callOffGivingUp();
    await this.#endpoint.close();
  }

  /** Whether one more may be asked now. */
  get hasRoom(): boolean {
    return this.#running.size < ASKS_MAX;
  }

  /**
   * Asks once. `args`: the text of a JSON object, which goes on as it is. `stop` gives up a read; a write is not to be
   * given one.
   */
  async ask(tool: string, args: string, stop?: AbortSignal): Promise<Asked> {
    if (!this.#state.open) return unreachable(this.#state.why);
    const giveUp = new AbortController();
    const stopped = () => giveUp.abort();
    stop?.addEventListener("abort", stopped, { once: true });
    this.#running.add(giveUp);
    try {
      return askedOf(await this.#caller.call(tool, args, { signal: giveUp.signal }).final);
    } catch (error) {
      if (!(error instanceof CallgateError)) throw error;
      return failedOf(error);
    } finally {
      stop?.removeEventListener("abort", stopped);
      this.#running.delete(giveUp);
    }
  }

  #changed(state: ConnectionState): void {
    const was = this.#state;
    this.#state = state;
    if (state.open) this.#callOffGivingUp();
    else if (was.open)
      this.#callOffGivingUp = this.#options.effects.after(OUTAGE_MS_MAX, () => this.#giveUp());
    this.#options.onChange(state);
  }

  #giveUp(): void {
    for (const one of this.#running) one.abort();
  }
}

function askedOf(message: ToolResponse): Asked {
  switch (message.status) {
    case "result":
      return {
        status: "result",
        content: message.content,
        class: message.class,
        untrusted: message.untrusted,
      };
    case "denied":
      return { status: "denied", reason: message.reason };
    case "failed":
      return { status: "failed", message: visibleLine(message.message, 2000) };
    case "pending_approval": // never final, by the client's own rule
      return unreachable("the broker's answer is no answer");
  }
}

function failedOf(error: CallgateError): Asked {
  if (error.code === "too_large")
    return { status: "failed", message: "too_large: the answer is too long for this page" };
  if (!error.mayHaveRun) return unreachable(error.brokerSaid ?? error.code);
  return {
    status: "unreachable",
    message:
      "The broker went away before it answered: whether this was done is not known. Look before you ask again.",
  };
}

function unreachable(why: string): Asked {
  return { status: "unreachable", message: `Nothing was sent (${why}).` };
}
