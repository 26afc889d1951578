// `callgate mcp serve`: the tools of a role for MCP clients, until the client goes or a signal ends it.

import type { Result } from "../base/faults.ts";
import { listenOptionsOf, serveOverHttp } from "../roles/mcp/serve/http_front.ts";
import { type RunningFront, serveOverStdio } from "../roles/mcp/serve/stdio_front.ts";
import { addressOf, hintNone, UsageFault } from "./call.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { packageVersion } from "./package_version.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

/** Eleven times it is ten minutes, and once it is less than a minute: what clients of 2026 and older ones have patience for. */
const WAIT_SECONDS = 55;

export async function runMcpServe(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const say = (sentence: string) => terminal.err(`callgate: ${sentence}\n`);
  const served = await start(flags, say);
  if (!served.ok) {
    terminal.err(`callgate: ${served.fault}\n${hintNone(served.fault, flags)}`);
    return EXIT.connection;
  }
  let restore = (): void => undefined;
  const signalled = new Promise<undefined>((resolve) => {
    restore = terminal.onInterrupt(() => resolve(undefined));
  });
  const why = await Promise.race([signalled, served.value.ended]);
  restore();
  await served.value.close();
  if (why === undefined) return EXIT.ok;
  say(why);
  return EXIT.connection;
}

/** @throws UsageFault */
async function start(flags: Flags, say: (sentence: string) => void): Promise<Result<RunningFront>> {
  const wait = flags["wait"];
  const holdMs = 1000 * (typeof wait === "number" ? wait : WAIT_SECONDS);
  const options = { to: addressOf(flags), version: packageVersion(), say, holdMs };
  const http = textOf(flags, "http");
  const tokenFile = textOf(flags, "tokenFile");
  if (http === undefined) {
    if (tokenFile !== undefined) throw new UsageFault("--token-file goes with --http");
    return serveOverStdio(options);
  }
  const listen = listenOptionsOf(http);
  if (!listen.ok) throw new UsageFault(listen.fault);
  if (tokenFile === undefined)
    throw new UsageFault("--http needs --token-file: without a token nobody is served");
  const served = await serveOverHttp({ ...options, listen: listen.value, tokenFile });
  if (served.ok) say(`serving MCP at ${served.value.url}`);
  return served;
}
