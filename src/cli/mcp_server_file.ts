// `callgate mcp provide --server-file`: what a file says of a server, in the words and options that say the same. So whatever
// holds for those holds for the file; only headers have no option that could hold them.

import { UsageFault } from "./call.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { type McpServerReach, parseServerFile, variablesOf } from "./mcp_server_entry.ts";
import { readSecretFile, refuseSecretFile } from "./secret_file.ts";

export interface SpelledOut {
  readonly words: Words;
  readonly flags: Flags;
  /** Of the file; undefined where there is none. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

const OPTION = "--server-file";
const BYTES_MAX = 1_048_576;

/** @throws UsageFault */
export function spelledOut(words: Words, flags: Flags): SpelledOut {
  const path = textOf(flags, "serverFile");
  if (path === undefined) return { words, flags, headers: undefined };
  if (
    words.some((word) => word !== undefined) ||
    flags["url"] !== undefined ||
    flags["headerFile"] !== undefined
  )
    throw new UsageFault(
      `${OPTION} says how the server is reached: a command, --url and --header-file go without it`,
    );
  const read = parseServerFile(readSecretFile(OPTION, path, BYTES_MAX).toString("utf8"));
  return read.ok ? inOptions(read.value, flags) : refuseSecretFile(OPTION, path, read.fault);
}

/** What is given beside the file goes before what it says. */
function inOptions(reach: McpServerReach, flags: Flags): SpelledOut {
  if (reach.kind === "url") {
    return { words: [], flags: { ...flags, url: reach.url }, headers: reach.headers };
  }
  const { command, args, env, cwd } = reach;
  const given = flags["env"];
  const more = Array.isArray(given) ? (given as readonly string[]) : [];
  const place = textOf(flags, "cwd") ?? cwd;
  return {
    words: [command, ...args],
    flags: {
      ...flags,
      env: [...variablesOf(env), ...more],
      ...(place === undefined ? {} : { cwd: place }),
    },
    headers: undefined,
  };
}
