// The one connection to the broker: the list of tools as it is now, decisions explained, calls begun, and for how long
// the broker has been away. It knows no client.

import { visibleLine } from "../../../base/display.ts";
import { fault, ok, type Result } from "../../../base/faults.ts";
import type { Address } from "../../../client/address.ts";
import type { Why } from "../../../client/answers.ts";
import { type Caller, connect } from "../../../client/caller.ts";
import type { Effects } from "../../../client/effects.ts";
import type { ConnectionState } from "../../../client/endpoint.ts";
import { CallgateError } from "../../../client/error.ts";
import type { ToolResponse } from "../../../wire/message.ts";
import { NO_TOOLS, type ServedTool, type ToolTable, toolTableOf } from "./tool_table.ts";

export interface BrokerOptions {
  readonly to: Address;
  /** Ours, chosen here: no client names it. */
  readonly session: string;
  readonly effects: Effects;
  /** A sentence for whoever watches over this program. */
  readonly say: (sentence: string) => void;
}

/** Waiting requests are told after so long without a connection. */
export const OUTAGE_MS = 10_000;
/** How long a list or an explanation may take. */
const ASK_MS = 10_000;
const WHY_MS = 3000;
/** How often the list is looked at for changes. */
export const LOOK_MS = 5000;
/** A name that is not in the list makes us look again, not more often than this. */
const LOOK_AGAIN_MS = 1000;

export class BrokerSide {
  readonly session: string;
  readonly ended: Promise<CallgateError | undefined>;
  readonly #caller: Caller;
  readonly #options: BrokerOptions;
  readonly #onChange = new Set<() => void>();
  readonly #onOutage = new Set<() => void>();
  #table: ToolTable = NO_TOOLS;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<Result<ToolTable>> | undefined;
  #out: "no" | "short" | "long" = "no";
  #callOff: () => void = () => {};
  #callOffLook: () => void = () => {};
  #isClosed = false;

  private constructor(options: BrokerOptions, caller: Caller) {
    this.#options = options;
    this.#caller = caller;
    this.session = options.session;
    this.ended = caller.ended;
  }

  /** The fault is a sentence for whoever started it. */
  static async connect(options: BrokerOptions): Promise<Result<BrokerSide>> {
    let told: (state: ConnectionState) => void = () => undefined; // of the first connection we hear otherwise
    try {
      const caller = await connect({
        to: options.to,
        session: options.session,
        effects: options.effects,
        reconnect: { giveUpAfterMs: Number.POSITIVE_INFINITY },
        onConnection: (state) => told(state),
      });
      const side = new BrokerSide(options, caller);
      told = (state) => side.#connection(state);
      side.#lookLater();
      return ok(side);
    } catch (error) {
      if (!(error instanceof CallgateError)) throw error;
      return fault(error.message);
    }
  }

  get caller(): Pick<Caller, "call"> {
    return this.#caller;
  }

  get isOut(): boolean {
    return this.#out === "long";
  }

  /** Told when the broker has been away for long. The function returned calls it off. */
  onOutage(listener: () => void): () => void {
    this.#onOutage.add(listener);
    return () => this.#onOutage.delete(listener);
  }

  /** Told when a client would see another list. */
  onChange(listener: () => void): () => void {
    this.#onChange.add(listener);
    return () => this.#onChange.delete(listener);
  }

  /** The list as it is now. The fault is a sentence for the client. */
  async list(): Promise<Result<ToolTable>> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async find(name: string): Promise<Result<ServedTool | undefined>> {
    const known = this.#table.tools.get(name);
    if (known !== undefined) return ok(known);
    if (this.#options.effects.monotonicMs() - this.#lookedAtMs < LOOK_AGAIN_MS) return ok(undefined);
    const listed = await this.list();
    return listed.ok ? ok(listed.value.tools.get(name)) : listed;
  }

  /** What the broker says of a decision; undefined where this role may not hear it. */
  async why(call: bigint): Promise<Why | undefined> {
    const { session } = this;
    const answer = await this.#ask("callgate.calls.why", { session, call: String(call) }, WHY_MS);
    return answer?.status === "result" ? (JSON.parse(answer.content) as Why) : undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#callOff();
    this.#callOffLook();
    await this.#caller.close();
  }

  async #look(): Promise<Result<ToolTable>> {
    const answer = this.isOut ? undefined : await this.#ask("callgate.tools.list", {}, ASK_MS);
    if (answer === undefined) return fault("callgate's broker can't be reached now");
    if (answer.status !== "result")
      return fault(
        `the broker does not tell this role its tools (${shown(answer)}): it needs a grant for callgate.tools.list`,
      );
    const table = toolTableOf(answer.content);
    if (table.ok) this.#take(table.value);
    return table;
  }

  #take(table: ToolTable): void {
    const isOther = this.#table !== NO_TOOLS && table.digest !== this.#table.digest;
    this.#table = table;
    this.#lookedAtMs = this.#options.effects.monotonicMs();
    if (isOther) for (const listener of [...this.#onChange]) listener();
  }

  /** Only who has seen a list can be told of another: before the first one nothing is looked at. */
  #lookLater(): void {
    if (this.#isClosed) return; // closed while it looked: a timer would keep the process for ever
    this.#callOffLook = this.#options.effects.after(LOOK_MS, () => {
      const looked = this.#table === NO_TOOLS || this.#out !== "no" ? Promise.resolve() : this.list();
      void looked.then(() => this.#lookLater());
    });
  }

  async #ask(
    tool: string,
    args: Readonly<Record<string, unknown>>,
    waitMs: number,
  ): Promise<ToolResponse | undefined> {
    let callOff = () => {};
    const late = new Promise<undefined>((resolve) => {
      callOff = this.#options.effects.after(waitMs, () => resolve(undefined));
    });
    const answer = this.#caller.call(tool, args).final.catch(() => undefined);
    return Promise.race([answer, late]).finally(() => callOff());
  }

  #connection(state: ConnectionState): void {
    if (this.#isClosed || state.open === (this.#out === "no")) return;
    this.#options.say(state.open ? "the broker is there" : `the broker can't be reached (${state.why})`);
    this.#callOff();
    this.#out = state.open ? "no" : "short";
    if (!state.open) this.#callOff = this.#options.effects.after(OUTAGE_MS, () => this.#outage());
  }

  #outage(): void {
    this.#out = "long";
    for (const listener of [...this.#onOutage]) listener();
  }
}

function shown(answer: ToolResponse): string {
  if (answer.status === "denied") return `denied: ${answer.reason}`;
  return answer.status === "failed" ? visibleLine(answer.message) : answer.status;
}
