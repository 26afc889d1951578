// Serving clients over HTTP on loopback, all with the one token of this program's. Their session at the broker belongs to
// the token: it is made of it, so it is as random, stays the same over a restart, and nobody else can name it.

import { hkdfSync, randomBytes } from "node:crypto";
import { fault, ok, type Result } from "../../../base/faults.ts";
import type { Address } from "../../../client/address.ts";
import { type Effects, REAL_EFFECTS } from "../../../client/effects.ts";
import type { Digest } from "../../tokens/secrets.ts";
import { readToken } from "../../tokens/token_file.ts";
import { Front } from "./front.ts";
import { MCP_PATH } from "./http_gate.ts";
import { type ListenOptions, McpHttpServer } from "./http_server.ts";
import { HttpSessions } from "./http_sessions.ts";
import { STATE_KEY_BYTES } from "./request_state.ts";
import type { RunningFront } from "./stdio_front.ts";

export interface HttpOptions {
  readonly to: Address;
  readonly version: string;
  readonly holdMs: number;
  readonly say: (sentence: string) => void;
  readonly listen: ListenOptions;
  readonly tokenFile: string;
  readonly effects?: Effects | undefined;
}

export interface RunningHttp extends RunningFront {
  readonly url: string;
}

const SESSION_BYTES = 16;

/** The fault is a sentence for whoever started it. */
export async function serveOverHttp(options: HttpOptions): Promise<Result<RunningHttp>> {
  const token = await readToken(options.tokenFile, process.getuid?.() ?? 0, "the token");
  if (!token.ok) return token;
  const server = await McpHttpServer.listen(options.listen);
  if (!server.ok) return server;
  const front = await frontOf(options, token.value);
  if (!front.ok) {
    await server.value.close();
    return front;
  }
  return ok(joined(options, server.value, front.value, token.value));
}

function frontOf({ to, version, holdMs, say, effects }: HttpOptions, token: Digest): Promise<Result<Front>> {
  return Front.start({
    ...{ to, version, holdMs, say, effects, random: randomBytes },
    session: `mcp-${derived(token, "session", SESSION_BYTES).toString("hex")}`,
    stateKey: derived(token, "state", STATE_KEY_BYTES),
  });
}

/** Of the digest, which is all that is kept of the token. */
function derived(token: Digest, use: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync("sha256", token, "", `callgate mcp ${use}`, bytes));
}

function joined(
  { listen, effects = REAL_EFFECTS }: HttpOptions,
  server: McpHttpServer,
  front: Front,
  token: Digest,
): RunningHttp {
  const sessions = new HttpSessions(front, effects);
  const name = listen.address === "::1" ? "[::1]" : listen.address;
  const hosts = [name, "localhost"].map((host) => (server.port === 80 ? host : `${host}:${server.port}`));
  server.serve({ hosts, token }, (request, body) => sessions.fetch(request, body));
  const quiet = front.onChange(() => sessions.changed());
  return {
    url: `http://${hosts[0]}${MCP_PATH}`,
    ended: front.ended.then((why) => why?.message),
    close: async () => {
      quiet();
      await sessions.close();
      await server.close();
      await front.close();
    },
  };
}

/** `127.0.0.1:4711`; the fault is a sentence. */
export function listenOptionsOf(text: string): Result<ListenOptions> {
  const [, name, digits] = /^(127\.0\.0\.1|localhost|\[::1\]):([0-9]{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (name === undefined || port > 65_535)
    return fault("--http takes 127.0.0.1:PORT or [::1]:PORT: only programs of this machine are served");
  return ok({ address: name === "[::1]" ? "::1" : "127.0.0.1", port });
}
