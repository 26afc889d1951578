// `callgate mcp provide`: an MCP server's tools as a role, until a signal ends it. A second signal ends it at once; the
// server ends with it either way.

import { visibleLine } from "../base/display.ts";
import { isToolPrefix } from "../roles/mcp/definition.ts";
import type { Confinement } from "../roles/mcp/provide/confinement.ts";
import { serverEnvironment } from "../roles/mcp/provide/environment.ts";
import { isHeadersText, parseHeaders } from "../roles/mcp/provide/header_lines.ts";
import { type McpProviderOptions, provideMcp } from "../roles/mcp/provide/mcp_provider.ts";
import { addressSource, commandSource } from "../roles/mcp/provide/server_source.ts";
import { addressOf, UsageFault } from "./call.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { lengthOf } from "./connector_options.ts";
import { urlFault } from "./mcp_server_entry.ts";
import { spelledOut } from "./mcp_server_file.ts";
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
  const source = sourceOf(words, flags);
  const prefix = textOf(flags, "prefix") ?? "";
  if (!isToolPrefix(prefix))
    throw new UsageFault(
      "--prefix must begin with a letter, then lower-case letters, digits, _, - and ., 40 at most",
    );
  const say = (line: string) => terminal.err(`callgate: ${speaker(prefix)}${line}\n`);
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

/** Several of these often share one log, and each tells of its server. */
function speaker(prefix: string): string {
  const name = prefix.replace(/[._-]+$/, "");
  return name === "" ? "" : `${name}: `;
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
function sourceOf(given: Words, options: Flags): McpProviderOptions["source"] {
  const { words, flags, headers } = spelledOut(given, options);
  const [command, ...args] = words.filter((word) => word !== undefined);
  const url = textOf(flags, "url");
  if ((command === undefined) === (url === undefined))
    throw new UsageFault("one of a command, after --, --url and --server-file must be given");
  if (command === undefined) {
    if (flags["unconfined"] === true || hiddenPaths(flags).length > 0)
      throw new UsageFault("--hide and --unconfined go with a command");
    const address = { url: urlOf(url ?? ""), headers: headers ?? headersOf(flags) };
    return (effects) => addressSource(address, effects);
  }
  if (flags["headerFile"] !== undefined) throw new UsageFault("--header-file goes with --url");
  const variables = flags["env"];
  const env = serverEnvironment(
    Array.isArray(variables) ? (variables as readonly string[]) : [],
    process.env,
  );
  if (!env.ok) throw new UsageFault(`--env: ${visibleLine(env.fault)}`);
  const run = {
    command,
    args,
    env: env.value,
    cwd: textOf(flags, "cwd"),
    confinement: confinementOf(options),
  };
  return (effects) => commandSource(run, effects);
}

function confinementOf(flags: Flags): Confinement | "none" {
  const paths = hiddenPaths(flags);
  if (flags["unconfined"] === true) {
    if (paths.length > 0) throw new UsageFault("--hide does not go with --unconfined, which hides nothing");
    return "none";
  }
  const to = addressOf(flags);
  const serverFile = textOf(flags, "serverFile");
  const hidden = serverFile === undefined ? paths : [...paths, serverFile];
  return { socket: "path" in to ? to.path : undefined, hidden };
}

function hiddenPaths(flags: Flags): readonly string[] {
  const paths = flags["hide"];
  return Array.isArray(paths) ? (paths as readonly string[]) : [];
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

function urlOf(text: string): URL {
  const wrong = urlFault(text);
  if (wrong !== undefined) throw new UsageFault(`--url ${wrong}`);
  return new URL(text);
}
