// What all clients of one broker's role have in common: the broker, its list of tools, the calls that are open. One
// session at the broker, whose name is ours.

import { visibleLine } from "../../../base/display.ts";
import { ok, type Result } from "../../../base/faults.ts";
import type { Address } from "../../../client/address.ts";
import { type Effects, REAL_EFFECTS } from "../../../client/effects.ts";
import type { CallgateError } from "../../../client/error.ts";
import type { McpTool } from "../definition.ts";
import { BrokerSide } from "./broker_side.ts";
import { CallBook } from "./call_book.ts";
import { headerFault } from "./header_parameters.ts";
import type { OpenCall } from "./open_call.ts";
import { CallStates } from "./request_state.ts";
import { type Answering, BAD_STATE, McpFault, type ToolReply, type ToolRequest } from "./sdk.ts";
import { answerCall, type CallSettings } from "./tool_call.ts";
import type { ServedTool } from "./tool_table.ts";

export interface FrontOptions {
  readonly to: Address;
  /** Of this program, for clients. */
  readonly version: string;
  /** Ours, chosen here. */
  readonly session: string;
  /** Seals what clients carry between rounds. */
  readonly stateKey: Uint8Array;
  readonly random: (bytes: number) => Uint8Array;
  readonly holdMs: number;
  readonly say: (sentence: string) => void;
  /** For tests. */
  readonly effects?: Effects | undefined;
}

export class Front implements Answering {
  readonly version: string;
  readonly book: CallBook;
  readonly #broker: BrokerSide;
  readonly #settings: CallSettings;
  #isClosed = false;

  private constructor(options: FrontOptions, broker: BrokerSide) {
    const { session, stateKey: key, random, holdMs, effects = REAL_EFFECTS } = options;
    this.version = options.version;
    this.#broker = broker;
    this.book = new CallBook({ caller: broker.caller, session, effects });
    const states = new CallStates({ key, session, random, nowMs: effects.epochMs });
    this.#settings = { book: this.book, states, broker, effects, holdMs };
  }

  /** The fault is a sentence for whoever started it. */
  static async start(options: FrontOptions): Promise<Result<Front>> {
    const { to, session, say, effects = REAL_EFFECTS } = options;
    const broker = await BrokerSide.connect({ to, session, effects, say });
    if (!broker.ok) return broker;
    const front = new Front(options, broker.value);
    // A client that is gone again before that would be told of as an outage.
    void broker.value.list().then((listed) => listed.ok || front.#isClosed || say(listed.fault));
    return ok(front);
  }

  /** Resolves where the broker will not be reached any more, with why. */
  get ended(): Promise<CallgateError | undefined> {
    return this.#broker.ended;
  }

  onChange(listener: () => void): () => void {
    return this.#broker.onChange(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#broker.close();
  }

  async listTools(): Promise<readonly McpTool[]> {
    const table = await this.#broker.list();
    if (!table.ok) throw new McpFault("internal", `The tools can't be listed: ${table.fault}.`);
    return [...table.value.tools.values()].map(({ shown }) => shown);
  }

  async callTool(request: ToolRequest): Promise<ToolReply> {
    const { name, ...rest } = request;
    const served = await this.#find(name);
    const answered = await answerCall(this.#settings, { ...rest, served });
    if (answered.kind === "bad_state") throw new McpFault("bad_params", BAD_STATE);
    if (answered.kind !== "result") return answered;
    if (answered.call !== undefined) this.#watchDelivery(request.lost, answered.call);
    return { kind: "result", result: answered.result, outputSchema: served.shown.outputSchema };
  }

  /** Of a tool that there is not, the call itself says so. */
  async headerFault(name: string, argumentsText: string, headers: Headers): Promise<string | undefined> {
    const found = await this.#broker.find(name);
    if (!found.ok || found.value === undefined) return undefined;
    return headerFault(found.value.headers, argumentsText, headers);
  }

  /** A client that goes while its answer is on the way has not heard it. */
  #watchDelivery(lost: AbortSignal, call: OpenCall): void {
    if (lost.aborted) this.book.undelivered(call);
    else lost.addEventListener("abort", () => this.book.undelivered(call), { once: true });
  }

  async #find(name: string): Promise<ServedTool> {
    const found = await this.#broker.find(name);
    if (!found.ok) throw new McpFault("internal", `The tool can't be looked up: ${found.fault}.`);
    if (found.value === undefined) throw new McpFault("bad_params", `Unknown tool: ${visibleLine(name, 64)}`);
    return found.value;
  }
}
