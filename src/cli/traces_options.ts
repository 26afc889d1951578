// What `callgate traces` is told: where the collector is, with which headers, as whom, and where to begin. A header's value
// may be a secret, so no message quotes one.

import { readFile, stat } from "node:fs/promises";
import { visibleLine } from "../base/display.ts";
import { U64_MAX } from "../base/ids.ts";
import { isLoopbackHost } from "../base/loopback.ts";
import { collectorUrl } from "../roles/traces/sender.ts";
import { UsageFault } from "./call.ts";
import type { Flags } from "./command_row.ts";
import { codeOf } from "./replace_file.ts";

export interface TracesOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: Readonly<Record<string, string>>;
  readonly from: bigint | undefined;
  readonly position: string | undefined;
  readonly pollMs: number;
  /** What the person should know before it begins. */
  readonly warnings: readonly string[];
}

const POLL_MS = 2000;

/** @throws UsageFault */
export async function readTracesOptions(flags: Flags): Promise<TracesOptions> {
  const url = collectorUrl(textOf(flags, "to") ?? "");
  if (!url.ok) throw new UsageFault(`--to: ${url.fault}`);
  const headerFile = textOf(flags, "headerFile");
  const fromFile = headerFile === undefined ? [] : await headersOfFile(headerFile);
  const given = listOf(flags, "header").map((text, at) => pairOf(text, "=", `--header number ${at + 1}`));
  const headers = headersOf([...fromFile, ...given]);
  const seconds = flags["every"];
  return {
    url: url.value,
    headers,
    resource: resourceOf(listOf(flags, "resource")),
    from: recordOf(textOf(flags, "from")),
    position: textOf(flags, "position"),
    pollMs: typeof seconds === "number" ? seconds * 1000 : POLL_MS,
    warnings: [
      ...(isPlain(url.value) ? [PLAIN] : []),
      ...(headerFile !== undefined && (await isOpenToOthers(headerFile)) ? [OPEN_FILE] : []),
    ],
  };
}

const PLAIN =
  "the collector is on another machine and reached by http: whoever is in between reads roles, sessions and headers";
const OPEN_FILE = "the file of --header-file can be read by other users";

function textOf(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === "string" ? value : undefined;
}

function listOf(flags: Flags, name: string): readonly string[] {
  const value = flags[name];
  return Array.isArray(value) ? value : [];
}

type Pair = readonly [name: string, value: string];

function pairOf(text: string, mark: string, where: string): Pair {
  const at = text.indexOf(mark);
  if (at <= 0) throw new UsageFault(`${where}: it must be NAME${mark}VALUE`);
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

/** `NAME: VALUE` a line, as curl has it; empty lines and those that begin with # are none. */
async function headersOfFile(path: string): Promise<readonly Pair[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new UsageFault(`--header-file ${visibleLine(JSON.stringify(path), 300)}: ${codeOf(error)}`);
  }
  return text.split("\n").flatMap((line, at) => {
    const trimmed = line.trim();
    return trimmed === "" || trimmed.startsWith("#")
      ? []
      : [pairOf(trimmed, ":", `--header-file, line ${at + 1}`)];
  });
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible ASCII, spaces and tabs within. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;
/** What the request itself says. */
const OWN_HEADERS = new Set(["content-type", "content-length", "host", "connection", "transfer-encoding"]);

function headersOf(pairs: readonly Pair[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>();
  for (const [name, value] of pairs) {
    const shown = visibleLine(name, 60);
    if (!HEADER_NAME.test(name)) throw new UsageFault(`"${shown}" is no name of a header`);
    if (OWN_HEADERS.has(name.toLowerCase())) throw new UsageFault(`the header ${shown} is not yours to set`);
    if (!HEADER_VALUE.test(value)) throw new UsageFault(`the value of the header ${shown} can't be sent`);
    headers.set(name.toLowerCase(), value);
  }
  return Object.fromEntries(headers);
}

const RESOURCE_NAME = /^[a-z][a-z0-9_.]{0,63}$/;

function resourceOf(texts: readonly string[]): Readonly<Record<string, string>> {
  const pairs = texts.map((text, at) => pairOf(text, "=", `--resource number ${at + 1}`));
  for (const [name] of pairs)
    if (!RESOURCE_NAME.test(name))
      throw new UsageFault(`--resource: "${visibleLine(name, 60)}" is no name such as host.name`);
  return { "service.name": "callgate", ...Object.fromEntries(pairs) };
}

function recordOf(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9][0-9]{0,19}$/.test(text) || BigInt(text) > U64_MAX)
    throw new UsageFault("--from must be the number of an audit record, from 1");
  return BigInt(text);
}

function isPlain({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && !isLoopbackHost(hostname);
}

async function isOpenToOthers(path: string): Promise<boolean> {
  return ((await stat(path)).mode & 0o077) !== 0;
}
