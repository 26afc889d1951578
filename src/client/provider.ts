// The library's front for those who serve tools: announcing them, and closing without dropping what runs.

import type { ToolResponse } from "../wire/message.ts";
import { type Caller, callerOf } from "./caller.ts";
import { Endpoint, type EndpointOptions } from "./endpoint.ts";
import { CallgateError } from "./error.ts";
import type { Handler } from "./jobs.ts";

/** As the broker pins it. `schema` is the JSON Schema (2020-12) of the arguments; `annotations` are hints that decide nothing. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
}

export interface ProvideOptions extends EndpointOptions {
  /** Handlers by the tool's name. */
  readonly tools?: Readonly<Record<string, Handler>> | undefined;
  /** For every name that is not in `tools`. */
  readonly handle?: Handler | undefined;
  /** Handlers that run at once, at least 1; others wait in order. Default 64. */
  readonly concurrency?: number | undefined;
  /** Announced on every connection (`callgate.tools.announce`, which the role must be granted). */
  readonly announce?: readonly ToolDefinition[] | undefined;
  /** What came of an announcement after a reconnection; the first one's is `provide`'s own. */
  readonly onAnnounced?: ((answer: Announced) => void) | undefined;
}

/** The broker's answer, or why none came. */
export type Announced = ToolResponse | CallgateError;

export interface Provider extends Caller {
  /**
   * Takes no further request and waits for the handlers that run, at most `drainMs` (default 30,000);
   * then their signals abort and the connection ends.
   */
  close(options?: { readonly drainMs?: number | undefined }): Promise<void>;
}

const CONCURRENCY = 64;
const DRAIN_MS = 30_000;

/**
 * Connects to a broker as a provider, and as a caller on the same connection. Requests that are in
 * progress when a connection is lost are lost with it: their signals abort and nothing of them is sent.
 * @throws CallgateError `unreachable`, or `not_announced` where the broker does not take `announce`, as a rejection
 */
export async function provide(options: ProvideOptions): Promise<Provider> {
  const tools = new Map(Object.entries(options.tools ?? {}));
  const concurrency = options.concurrency ?? CONCURRENCY;
  let answered: (answer: Announced) => void = () => {};
  const announced = new Promise<Announced>((resolve) => {
    answered = resolve;
  });
  const endpoint = new Endpoint(options, { tools, handle: options.handle, concurrency }, async () => {
    if (options.announce === undefined) return;
    const answer = await announce(endpoint, options.announce);
    answered(answer);
    answered = options.onAnnounced ?? (() => {});
  });
  await endpoint.start();
  if (options.announce !== undefined) await checkAnnounced(endpoint, await announced);
  return { ...callerOf(endpoint), close: (how) => close(endpoint, how?.drainMs ?? DRAIN_MS) };
}

function announce(endpoint: Endpoint, tools: readonly ToolDefinition[]): Promise<Announced> {
  const { final } = endpoint.calls.startHere("callgate.tools.announce", { tools, cancellable: true });
  return final.catch((error: CallgateError) => error);
}

async function checkAnnounced(endpoint: Endpoint, answer: Announced): Promise<void> {
  if (!(answer instanceof CallgateError) && answer.status === "result") return;
  await endpoint.close();
  const { word, brokerSaid } = objectionIn(answer);
  const sentence = `the broker did not take the announced tools (${word})`;
  throw new CallgateError("not_announced", sentence, { brokerSaid });
}

function objectionIn(answer: Announced): { readonly word: string; readonly brokerSaid?: string | undefined } {
  if (answer instanceof CallgateError) return { word: answer.code, brokerSaid: answer.brokerSaid };
  if (answer.status === "failed") return { word: answer.status, brokerSaid: answer.message };
  return { word: answer.status === "denied" ? answer.reason : answer.status };
}

async function close(endpoint: Endpoint, drainMs: number): Promise<void> {
  let callOff = () => {};
  const late = new Promise<void>((resolve) => {
    callOff = endpoint.effects.after(drainMs, resolve);
  });
  await Promise.race([endpoint.jobs.drain(), late]);
  callOff();
  await endpoint.close();
}
