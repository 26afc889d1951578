// A connection to a broker with both of its directions: calls of ours, requests of the broker's. Their
// ids are two namespaces. `connect` and `provide` are this with one side or the other in front.

import { visibleLine } from "../base/display.ts";
import type { Envelope, WireError } from "../wire/message.ts";
import type { Address } from "./address.ts";
import { normalReconnect, type ReconnectOptions } from "./backoff.ts";
import { Calls } from "./calls.ts";
import { type Effects, REAL_EFFECTS } from "./effects.ts";
import { CallgateError } from "./error.ts";
import { Jobs, type JobsSettings } from "./jobs.ts";
import { Link } from "./link.ts";

/** `why`: an error code of the system's, or what the broker said as it hung up: escaped, bounded. */
export type ConnectionState = { readonly open: true } | { readonly open: false; readonly why: string };

export interface EndpointOptions {
  readonly to: Address;
  /** Session of calls that name none. Default `default`. */
  readonly session?: string | undefined;
  /** How a lost connection is made again; over a descriptor or stdio it never is. */
  readonly reconnect?: ReconnectOptions | undefined;
  /** Keep trying for the first connection as for a lost one, instead of failing at once. Default false. */
  readonly waitForBroker?: boolean | undefined;
  /** Told when a connection is there, and whenever there is none while another is tried for. */
  readonly onConnection?: ((state: ConnectionState) => void) | undefined;
  /** UTF-16 units of one call's answer, with 64 for each message; a larger one ends the call. Default 67,108,864. */
  readonly resultCharsMax?: number | undefined;
  /** How long an aborted call waits for the broker's answer. Default 5,000. */
  readonly cancelWaitMs?: number | undefined;
  /** Clocks, chance and timer, for tests. */
  readonly effects?: Partial<Effects> | undefined;
}

const RESULT_CHARS_MAX = 67_108_864;
const CANCEL_WAIT_MS = 5_000;

export class Endpoint {
  readonly calls: Calls;
  readonly jobs: Jobs;
  readonly effects: Effects;
  /** Resolves when there will be no further connection: with the reason, or undefined after `close`. Never rejects. */
  readonly ended: Promise<CallgateError | undefined>;
  readonly #link: Link;
  readonly #onOpened: () => unknown;
  readonly #onConnection: (state: ConnectionState) => void;
  #onFirst: () => void = () => {};
  #onEnded!: (why: CallgateError | undefined) => void;

  /** `onOpened` is told of each new connection, after the waiting calls were sent again. */
  constructor(options: EndpointOptions, jobs: JobsSettings, onOpened: () => unknown = () => {}) {
    const effects = { ...REAL_EFFECTS, ...options.effects };
    this.effects = effects;
    this.ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
    this.#onOpened = onOpened;
    this.#onConnection = options.onConnection ?? (() => {});
    const reconnect = normalReconnect(options.reconnect);
    const waitForBroker = options.waitForBroker ?? false;
    this.#link = new Link(
      { to: options.to, reconnect, waitForBroker, effects },
      {
        opened: () => this.#opened(),
        received: (envelope) => this.#received(envelope),
        lost: () => this.#lost(),
        waiting: (why) => this.#onConnection({ open: false, why: visibleLine(why) }),
        ended: (why) => this.#end(why),
      },
    );
    const { session = "default", resultCharsMax = RESULT_CHARS_MAX, cancelWaitMs = CANCEL_WAIT_MS } = options;
    this.calls = new Calls(this.#link, { session, resultCharsMax, cancelWaitMs, effects });
    this.jobs = new Jobs(jobs, this.#link);
  }

  /** Connects for the first time. @throws CallgateError unreachable */
  async start(): Promise<void> {
    const first = new Promise<undefined>((resolve) => {
      this.#onFirst = () => resolve(undefined);
    });
    this.#link.start();
    const why = await Promise.race([first, this.ended]);
    if (why !== undefined) throw why;
  }

  /** Ends the calls that wait (`closed`) and aborts the requests that run; sends what was written. */
  async close(): Promise<void> {
    await this.#link.finish(new CallgateError("closed", "this client was closed"));
  }

  #opened(): void {
    this.calls.opened();
    this.#onOpened();
    this.#onConnection({ open: true });
    this.#onFirst();
  }

  #lost(): void {
    this.jobs.lost();
    this.calls.lost();
  }

  #end(why: CallgateError): void {
    this.jobs.lost();
    this.calls.ended(why);
    this.#onEnded(why.code === "closed" ? undefined : why);
  }

  #received(envelope: Envelope): void {
    const { id, final, msg } = envelope;
    if (msg.kind === "tool_response") this.calls.received(id, msg.body, final);
    else if (msg.kind === "error") this.#refused(id, msg.body);
    else {
      const wrong = this.jobs.received(id, msg.body, final);
      if (wrong !== undefined) this.#link.refuse("bad_message", wrong);
    }
  }

  /**
   * `internal` is the broker's own trouble with one call, or under id 0 with the whole connection, which it then
   * ends; anything else says that we are at fault, and would be again.
   */
  #refused(id: bigint, { code: wireCode, detail }: WireError): void {
    const context = { wireCode, mayHaveRun: true, brokerSaid: detail };
    const why = new CallgateError("refused", `the broker answered ${wireCode}`, context);
    if (wireCode !== "internal") void this.#link.finish(why);
    else if (id !== 0n) this.calls.ended(why, id);
  }
}
