// Serving the one client that has started this program and holds the other ends of its standard input and output. Its
// session at the broker is as random and as short as the connection.

import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { ok, type Result } from "../../../base/faults.ts";
import type { Address } from "../../../client/address.ts";
import { type Effects, REAL_EFFECTS } from "../../../client/effects.ts";
import { Front } from "./front.ts";
import { LineTransport } from "./lines.ts";
import { STATE_KEY_BYTES } from "./request_state.ts";
import { serveConnection } from "./sdk.ts";

export interface StdioOptions {
  readonly to: Address;
  readonly version: string;
  readonly holdMs: number;
  readonly say: (sentence: string) => void;
  /** For tests; left out, the process's own. */
  readonly input?: Readable | undefined;
  readonly output?: Writable | undefined;
  readonly effects?: Effects | undefined;
}

export interface RunningFront {
  /** Resolves when the client has gone (undefined), or the broker will not come back, with why. */
  readonly ended: Promise<string | undefined>;
  close(): Promise<void>;
}

const SESSION_BYTES = 16;

/** The fault is a sentence for whoever started it. */
export async function serveOverStdio(options: StdioOptions): Promise<Result<RunningFront>> {
  const { to, version, holdMs, say, effects = REAL_EFFECTS } = options;
  const front = await Front.start({
    ...{ to, version, holdMs, say, effects, random: randomBytes },
    session: `mcp-${randomBytes(SESSION_BYTES).toString("hex")}`,
    stateKey: randomBytes(STATE_KEY_BYTES),
  });
  if (!front.ok) return front;
  const transport = new LineTransport(options.input ?? process.stdin, options.output ?? ownOutput(), effects);
  const served = serveConnection(front.value, transport);
  const quiet = front.value.onChange(() => served.changed());
  return ok({
    ended: Promise.race([transport.ended, front.value.ended.then((why) => why?.message)]),
    close: async () => {
      quiet();
      await served.close();
      await transport.finish();
      await front.value.close();
    },
  });
}

/** Writing to process.stdout would hold up the whole process for a client that does not read. A file has no such trouble. */
function ownOutput(): Writable {
  try {
    return new Socket({ fd: 1, readable: false, writable: true });
  } catch {
    return process.stdout;
  }
}
