// The way to the broker over time: one connection after another to the same address. It owns the
// reconnection and nothing of calls; what must be said again on a new connection is its listener's.
// At most one connection is open; after `ended` there is none any more.

import type { FrameFault } from "../wire/fault.ts";
import type { Envelope, ErrorCode } from "../wire/message.ts";
import { type Address, canReopen, openTransport, type Transport } from "./address.ts";
import { type Reconnect, retryDelayMs } from "./backoff.ts";
import { Connection } from "./connection.ts";
import type { Effects } from "./effects.ts";
import { CallgateError } from "./error.ts";

export interface LinkListener {
  /** A connection is there; the first too. */
  opened(): void;
  received(envelope: Envelope): void;
  /** The connection is gone and another is being tried for. */
  lost(): void;
  /** There is no connection now, but another attempt is to come; why, in the broker's words or the system's. */
  waiting(why: string): void;
  /** There will be no further connection. Told once, without `lost` before it. */
  ended(why: CallgateError): void;
}

export interface LinkSettings {
  readonly to: Address;
  readonly reconnect: Reconnect;
  /** Whether the first connection is tried for as long as a lost one. */
  readonly waitForBroker: boolean;
  readonly effects: Effects;
}

type State =
  | {
      readonly at: "open";
      readonly connection: Connection;
      readonly sinceMs: number;
      /** Whether anything came that a broker says to those whom it serves. */
      served: boolean;
    }
  | { readonly at: "connecting" }
  | { readonly at: "waiting"; readonly callOff: () => void }
  | { readonly at: "ended"; readonly why: CallgateError };

export class Link {
  readonly #settings: LinkSettings;
  readonly #listener: LinkListener;
  #state: State = { at: "connecting" };
  /** Since the last connection that was good; undefined while there is one. */
  #outage: { readonly sinceMs: number; attempts: number } | undefined;
  #everOpen = false;
  #lastFault = "";
  /** Why the broker was about to hang up, in its own words; of the present outage. */
  #words: string | undefined;

  constructor(settings: LinkSettings, listener: LinkListener) {
    this.#settings = settings;
    this.#listener = listener;
  }

  /** Begins. Leads to `opened` or `ended`. */
  start(): void {
    void this.#attempt();
  }

  /** Why there is no further connection; undefined while there is one or may be. */
  get endedBy(): CallgateError | undefined {
    return this.#state.at === "ended" ? this.#state.why : undefined;
  }

  /** Whether the frame is on its way. Without a connection it is not, and nothing keeps it. */
  write(frame: Buffer): boolean {
    if (this.#state.at !== "open") return false;
    this.#state.connection.write(frame);
    return true;
  }

  async drained(): Promise<void> {
    if (this.#state.at === "open") await this.#state.connection.drained();
  }

  /** The broker broke the protocol in a way that only calls can tell: tell it, and end. */
  refuse(code: ErrorCode, detail: string): void {
    if (this.#state.at !== "open") return;
    const { connection } = this.#state;
    this.#end(new CallgateError("protocol", detail));
    connection.refuse(code, detail);
  }

  /** Sends what was written and ends; no reconnection. */
  async finish(why: CallgateError): Promise<void> {
    const state = this.#state;
    if (state.at === "waiting") state.callOff();
    this.#end(why);
    if (state.at === "open") await state.connection.finish();
  }

  async #attempt(): Promise<void> {
    this.#state = { at: "connecting" };
    const opened = await openTransport(this.#settings.to);
    if (this.#state.at !== "connecting") {
      if (opened.ok) discard(opened.value);
      return;
    }
    if (opened.ok) {
      this.#adopt(opened.value);
      return;
    }
    this.#lastFault = opened.fault;
    const mayWait = this.#settings.waitForBroker || this.#outage !== undefined;
    if (mayWait && canReopen(this.#settings.to)) this.#retry();
    else this.#end(new CallgateError("unreachable", `no connection to the broker (${opened.fault})`));
  }

  #adopt(transport: Transport): void {
    const { effects } = this.#settings;
    const connection = new Connection(
      transport,
      {
        received: (envelope) => this.#received(envelope),
        closed: (why) => this.#closed(why),
      },
      effects,
    );
    this.#everOpen = true;
    this.#state = { at: "open", connection, sinceMs: effects.monotonicMs(), served: false };
    this.#listener.opened();
  }

  #received(envelope: Envelope): void {
    if (this.#state.at !== "open") return;
    const { id, msg } = envelope;
    // Whoever is turned away hears so too: it must not look like a connection that was good.
    if (msg.kind === "error" && id === 0n) this.#words = msg.body.detail;
    else {
      this.#state.served = true;
      this.#words = undefined;
    }
    this.#listener.received(envelope);
  }

  #closed(why: FrameFault | undefined): void {
    const state = this.#state;
    if (state.at !== "open") return;
    const fatal = this.#fatal(why);
    if (fatal !== undefined) {
      this.#end(fatal);
      return;
    }
    const lastedMs = this.#settings.effects.monotonicMs() - state.sinceMs;
    // A broker that accepts and hangs up at once is still the same outage: else we would spin.
    if (state.served || lastedMs >= this.#settings.reconnect.stableAfterMs) this.#outage = undefined;
    this.#lastFault = "it hung up";
    this.#state = { at: "connecting" };
    this.#listener.lost();
    this.#retry();
  }

  #fatal(why: FrameFault | undefined): CallgateError | undefined {
    if (why !== undefined)
      return new CallgateError("protocol", `the broker sent what is no envelope (${why.outcome})`);
    if (canReopen(this.#settings.to)) return undefined;
    return new CallgateError("lost", "the connection is gone", { brokerSaid: this.#words });
  }

  #retry(): void {
    if (this.#state.at === "ended") return;
    const { effects, reconnect } = this.#settings;
    this.#outage ??= { sinceMs: effects.monotonicMs(), attempts: 0 };
    const outageMs = effects.monotonicMs() - this.#outage.sinceMs;
    const delayMs = retryDelayMs(reconnect, this.#outage.attempts, outageMs, effects.random());
    if (delayMs === undefined) {
      const code = this.#everOpen ? "lost" : "unreachable";
      const sentence = `the broker did not come back (${this.#lastFault})`;
      this.#end(new CallgateError(code, sentence, { brokerSaid: this.#words }));
      return;
    }
    this.#outage.attempts += 1;
    this.#state = { at: "waiting", callOff: effects.after(delayMs, () => void this.#attempt()) };
    this.#listener.waiting(this.#words ?? this.#lastFault);
  }

  #end(why: CallgateError): void {
    if (this.#state.at === "ended") return;
    this.#state = { at: "ended", why };
    this.#listener.ended(why);
  }
}

function discard(transport: Transport): void {
  for (const stream of [transport.input, transport.output]) stream.on("error", () => {}).destroy();
}
