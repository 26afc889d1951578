// The library's front for those who call tools.

import type { Call } from "./call.ts";
import type { Arguments, CallOptions } from "./calls.ts";
import { Endpoint, type EndpointOptions } from "./endpoint.ts";
import type { CallgateError } from "./error.ts";

export type ConnectOptions = EndpointOptions;

export interface Caller {
  /**
   * Asks for one tool call. Never throws: what is wrong with it is told by the Call. When the connection
   * is lost the call is asked again on the next one, under the same session and id; the broker joins or
   * replays it, and each message is delivered once. Only a call of a `callgate.` tool that has already given
   * a part (a watch) ends with `lost` then: begin it anew. How many calls wait is the user's to bound.
   */
  call(tool: string, args: Arguments, options?: CallOptions): Call;
  /** Ends at once: calls that wait end with `closed`, and whether they ran is not known. */
  close(): Promise<void>;
  /** Resolves when there will be no further connection: with the reason, or undefined after `close`. Never rejects. */
  readonly ended: Promise<CallgateError | undefined>;
}

/** Connects to a broker as a caller. Keeps the process alive until closed. @throws CallgateError `unreachable`, as a rejection */
export async function connect(options: ConnectOptions): Promise<Caller> {
  const endpoint = new Endpoint(options, { tools: new Map(), handle: undefined, concurrency: 1 });
  await endpoint.start();
  return callerOf(endpoint);
}

/** An endpoint as its user may see it. */
export function callerOf(endpoint: Endpoint): Caller {
  return {
    call: (tool, args, callOptions) => endpoint.calls.start(tool, args, callOptions),
    close: () => endpoint.close(),
    ended: endpoint.ended,
  };
}
