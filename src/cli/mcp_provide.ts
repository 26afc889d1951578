// `callgate mcp provide`: an MCP server's tools as a role, until a signal ends it. A second signal ends it at once; the
// server ends with it either way.

import { visibleLine } from "../base/display.ts";
import { isLoopbackHost } from "../base/loopback.ts";
import { isToolPrefix } from "../roles/mcp/definition.ts";
import { serverEnvironment } from "../roles/mcp/provide/environment.ts";
import { isHeadersText, parseHeaders } from "../roles/mcp/provide/header_lines.ts";
import { type McpProviderOptions, provideMcp } from "../roles/mcp/provide/mcp_provider.ts";
import { addressSource, commandSource } from "../roles/mcp/provide/server_source.ts";
import { addressOf, UsageFault } from "./call.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { lengthOf } from "./connector_options.ts";
import { packageVersion } from "./package_version.ts";
import type { ProcessGuard } from "./process_guard.ts";
import { readSecretFile, refuseSecretFile } from "./secret_file.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

export async function runMcpProvide(
  terminal: Dialogue,
  words: Words,
  flags: Flags,
  guard: ProcessGuard,
): Promise<number> {
  const say = (line: string) => terminal.err(`callgate: ${line}\n`);
  const source = sourceOf(words, flags);
  const prefix = textOf(flags, "prefix") ?? "";
  if (!isToolPrefix(prefix))
    throw new UsageFault(
      "--prefix must begin with a letter, then lower-case letters, digits, _, - and ., 40 at most",
    );
  if (!(await guard.sealDescriptors())) {
    say("descriptors that were passed to this process would reach the server, and can't be kept from it");
    return EXIT.failed;
  }
  if (!(await guard.forbidDumps())) say("other processes of this user may be able to read this one's memory");
  const served = await provideMcp({
    ...{ to: addressOf(flags), source, prefix, say },
    version: packageVersion(),
    concurrency: Number(flags["concurrency"]),
    idleMs: lengthOf(flags, "timeout"),
    totalMs: lengthOf(flags, "totalTimeout"),
    startMs: lengthOf(flags, "startTimeout"),
    uncheckedSchemas: flags["uncheckedSchemas"] === true,
  });
  if (!served.ok) {
    say(served.fault);
    return EXIT.connection;
  }
  const why = await Promise.race([interrupted(terminal), served.value.ended]);
  await served.value.close();
  if (why === undefined) return EXIT.ok;
  say(why.words);
  return why.isBroker ? EXIT.connection : EXIT.failed;
}

/** At the first signal; at the second the process ends, and the server's keeper ends what is left of that. */
function interrupted(terminal: Dialogue): Promise<undefined> {
  let signals = 0;
  return new Promise((resolve) => {
    terminal.onInterrupt(() => {
      signals += 1;
      if (signals > 1) process.exit(EXIT.interrupted);
      resolve(undefined);
    });
  });
}

/** @throws UsageFault */
function sourceOf(words: Words, flags: Flags): McpProviderOptions["source"] {
  const [command, ...args] = words.filter((word) => word !== undefined);
  const url = textOf(flags, "url");
  if ((command === undefined) === (url === undefined))
    throw new UsageFault("either a command, after --, or --url must be given");
  if (command === undefined) {
    const address = { url: urlOf(url ?? ""), headers: headersOf(flags) };
    return (effects) => addressSource(address, effects);
  }
  if (flags["headerFile"] !== undefined) throw new UsageFault("--header-file goes with --url");
  const given = flags["env"];
  const env = serverEnvironment(Array.isArray(given) ? (given as readonly string[]) : [], process.env);
  if (!env.ok) throw new UsageFault(`--env: ${visibleLine(env.fault)}`);
  const run = { command, args, env: env.value, cwd: textOf(flags, "cwd") };
  return (effects) => commandSource(run, effects);
}

const HEADER_FILE_BYTES_MAX = 65_536;

function headersOf(flags: Flags): Readonly<Record<string, string>> {
  const path = textOf(flags, "headerFile");
  if (path === undefined) return {};
  const bytes = readSecretFile("--header-file", path, HEADER_FILE_BYTES_MAX);
  const headers = isHeadersText(bytes) ? parseHeaders(bytes.toString("latin1")) : undefined;
  if (headers === undefined || !headers.ok)
    return refuseSecretFile("--header-file", path, headers?.fault ?? "is not plain text");
  return headers.value;
}

/** A token in a URL would stand in process lists and logs. */
function urlOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageFault("--url must be an http or https URL");
  if (url.username !== "" || url.password !== "")
    throw new UsageFault("--url must hold no user and password: --header-file is the place for such");
  if (url.protocol === "http:" && !isLoopbackHost(url.hostname))
    throw new UsageFault(
      "--url must be https, but on this machine: everybody on the way could read and change it",
    );
  return url;
}
