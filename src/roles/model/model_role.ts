// The model provider as a program: calls of `model.turn` that the broker forwards become turns of a connector. It holds
// a connection secret and no provider's key, and it decides nothing about who may ask: that is the broker's.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { Address } from "../../client/address.ts";
import type { ReconnectOptions } from "../../client/backoff.ts";
import { pause } from "../../client/effects.ts";
import { CallgateError } from "../../client/error.ts";
import type { Handler } from "../../client/jobs.ts";
import { type Provider, provide } from "../../client/provider.ts";
import { ConnectorClient, type ConnectorOptions } from "../../connector/client.ts";
import { ConnectorError } from "../../connector/client_error.ts";
import { modelToolDefinition } from "./definition.ts";
import { type InvocationAt, type TurnEffects, type TurnSettings, takeTurn } from "./take_turn.ts";
import { parseTurn } from "./turn_arguments.ts";
import { invocationAt, requestIdOf } from "./turn_request.ts";
import { turnText } from "./turn_result.ts";

export interface ModelRoleOptions {
  readonly to: Address;
  readonly connector: Pick<ConnectorOptions, "host" | "port" | "secret" | "maxFrameBytes">;
  /** The id under which the connector admits this role. Of one broker's role alone: another's calls would be taken for its own. */
  readonly caller: string;
  readonly turns: TurnSettings;
  /** Turns that run at once; others wait in order. */
  readonly concurrency: number;
  /** In front of the tool's name; default none. */
  readonly prefix?: string | undefined;
  /** Whether the tool is announced, for which the role needs a grant. Default false: the config names it. */
  readonly announce?: boolean | undefined;
  /** How long, among others, a broker that is not there is waited for. */
  readonly reconnect?: ReconnectOptions | undefined;
  readonly effects?: Partial<Pick<TurnEffects, "nowMs" | "pause">> | undefined;
}

export interface ModelRole {
  /** Lets running turns finish, then leaves the broker. */
  close(): Promise<void>;
  /** Resolves when the broker will not be reached any more, with why for the owner; undefined after `close`. */
  readonly ended: Promise<string | undefined>;
}

/** Serves until closed. The fault is for the owner. */
export async function serveModel(options: ModelRoleOptions): Promise<Result<ModelRole>> {
  const client = connectorClient(options);
  if (!client.ok) return client;
  const effects: TurnEffects = {
    nowMs: Date.now,
    pause,
    ...options.effects,
    execute: (invocation, how) => client.value.execute(invocation, how),
  };
  const provider = await connect(options, handlerOf(options, effects));
  if (!provider.ok) return provider;
  return ok({
    close: () => provider.value.close(),
    ended: provider.value.ended.then((why) => why?.message),
  });
}

function connectorClient({ connector, turns }: ModelRoleOptions): Result<ConnectorClient> {
  try {
    return ok(new ConnectorClient({ ...connector, responseTimeoutMs: turns.turnMsMax }));
  } catch (error) {
    if (error instanceof ConnectorError) return fault(error.message);
    throw error;
  }
}

async function connect(options: ModelRoleOptions, handler: Handler): Promise<Result<Provider>> {
  const definition = modelToolDefinition(options.prefix);
  try {
    return ok(
      await provide({
        to: options.to,
        waitForBroker: true,
        reconnect: options.reconnect,
        concurrency: options.concurrency,
        tools: { [definition.name]: handler },
        ...(options.announce === true ? { announce: [definition] } : {}),
      }),
    );
  } catch (error) {
    if (error instanceof CallgateError) return fault(error.message);
    throw error;
  }
}

/** The library's way to say that a call failed is a thrown error, so that is done here, at its edge. */
function handlerOf({ caller, turns }: ModelRoleOptions, effects: TurnEffects): Handler {
  return async ({ session, call, arguments: text, signal }) => {
    const asked = invocationFor(caller, session, call, text);
    if (!asked.ok) throw new Error(asked.fault);
    const taken = await takeTurn(asked.value, turns, effects, signal).catch((error: unknown) => {
      // A bug of ours: the library would send its message on.
      throw new Error("the model provider met a fault of its own", { cause: error });
    });
    const told = turnText(taken);
    if (!told.ok) throw new Error(told.fault);
    // No labels: what a model says is worth what it was asked with, and that is for the tool's floor to say.
    return told.value;
  };
}

function invocationFor(caller: string, session: string, call: bigint, text: string): Result<InvocationAt> {
  const requestId = requestIdOf(session, call);
  if (!requestId.ok) return requestId;
  const parsed = parseTurn(text);
  if (!parsed.ok) return fault(`${parsed.fault}; nothing was started`);
  const { turn, digest } = parsed.value;
  const request = { ...turn, request_id: requestId.value, conversation_id: session };
  return ok(invocationAt({ caller, nativeRequestSha256: digest, request }));
}
