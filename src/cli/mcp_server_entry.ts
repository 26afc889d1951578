// How one MCP server is reached, as an entry of a client's config file says it: a command with its arguments and
// environment, or an address with its headers. `callgate init --from-mcp` reads such entries and writes each into a file of
// its own, which `callgate mcp provide --server-file` reads. Invariant: an entry holds secrets, so no fault quotes a value.

import { fault, ok, type Result } from "../base/faults.ts";
import { isLoopbackHost } from "../base/loopback.ts";
import { serverEnvironment } from "../roles/mcp/provide/environment.ts";
import { isProtocolHeader, parseHeaders } from "../roles/mcp/provide/header_lines.ts";
import { parseJsonc } from "./jsonc.ts";

export type McpServerReach = McpCommand | McpAddress;

export interface McpCommand {
  readonly kind: "command";
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
}

export interface McpAddress {
  readonly kind: "url";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type Members = Readonly<Record<string, unknown>>;

const TEXT_CHARS_MAX = 32_768;
const ITEMS_MAX = 256;
/** What of an entry says how the server is reached, or that it is. */
const READ: ReadonlySet<string> = new Set(
  "args command cwd disabled enabled env environment envFile headers httpUrl serverUrl source transport type url".split(
    " ",
  ),
);

/** The fault is half a sentence: "has neither a command nor a url". */
export function readEntry(entry: Members): Result<McpServerReach> {
  const { url, serverUrl, httpUrl, command } = entry;
  // Gemini's `url` is of the old transport, and stands beside the new one's.
  const address = [httpUrl, serverUrl, url].find((one) => typeof one === "string");
  const old = oldTransport(entry);
  if (old !== undefined) return fault(old);
  if (typeof address === "string") return readAddress(address, entry["headers"]);
  // opencode has the command and its arguments in one list, Zed once had all in an object of its own.
  if (Array.isArray(command)) return readCommand({ ...entry, command: command[0], args: command.slice(1) });
  const nested = membersOf(command);
  return nested === undefined ? readCommand(entry) : readCommand({ ...nested, command: nested["path"] });
}

/** Members of an entry that are the client's own affair, and mean nothing here. */
export function unreadMembers(entry: Members): readonly string[] {
  return Object.keys(entry).filter((name) => !READ.has(name));
}

function oldTransport({ type, transport }: Members): string | undefined {
  const kind = typeof type === "string" ? type : (membersOf(transport)?.["type"] ?? transport);
  if (kind === "sse")
    return "speaks the old transport of HTTP and SSE, which callgate does not: give it its newer URL";
  if (kind === "ws" || kind === "websocket") return "speaks WebSocket, which callgate does not";
  return undefined;
}

function readCommand({ command, args = [], env, environment, cwd }: Members): Result<McpServerReach> {
  if (typeof command !== "string" || command === "") return fault("has neither a command nor a url");
  if (!isTexts(args)) return fault("has args that are no list of texts");
  const variables = textsByName(env ?? environment ?? {});
  if (variables === undefined) return fault("has an env that is not texts by their names");
  if (cwd !== undefined && (typeof cwd !== "string" || cwd === "")) return fault("has a cwd that is no path");
  if (![command, cwd ?? "", ...args, ...Object.values(variables)].every(isPassable))
    return fault("has a text with a NUL in it, or a very long one");
  const passed = serverEnvironment(variablesOf(variables), {});
  if (!passed.ok) return fault(`has an env that can't be passed on: ${passed.fault}`);
  return ok({ kind: "command", command, args, env: variables, cwd });
}

/** As `serverEnvironment` takes them. */
export function variablesOf(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

function readAddress(url: string, given: unknown = {}): Result<McpServerReach> {
  const headers = textsByName(given);
  if (headers === undefined) return fault("has headers that are not texts by their names");
  const wrong = urlFault(url);
  if (wrong !== undefined) return fault(`has a url that ${wrong}`);
  const own = Object.entries(headers).filter(([name]) => !isProtocolHeader(name));
  for (const [name, value] of own) {
    const isOneLine = !name.startsWith("#") && !/[\r\n]/.test(name + value);
    const parsed = isOneLine ? parseHeaders(`${name}: ${value}`) : fault("");
    if (!parsed.ok) return fault("has a header that is none: a name, and a value of visible ASCII");
  }
  if (new Set(own.map(([name]) => name.toLowerCase())).size < own.length)
    return fault("has one header twice");
  return ok({ kind: "url", url, headers: Object.fromEntries(own) });
}

/** Half a sentence. A token in a URL would stand in process lists and logs. */
export function urlFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return "must be an http or https URL";
  if (url.username !== "" || url.password !== "")
    return "must hold no user and password: headers are the place for such";
  if (url.protocol === "http:" && !isLoopbackHost(url.hostname))
    return "must be https, but on this machine: everybody on the way could read and change it";
  return undefined;
}

/** The entry as a file of its own, in the form that clients have it in. */
export function serverFileText(reach: McpServerReach): string {
  const { kind, ...members } = reach;
  return `${JSON.stringify(kind === "url" ? { type: "http", ...members } : members, undefined, 2)}\n`;
}

/** The fault is half a sentence about the file. */
export function parseServerFile(text: string): Result<McpServerReach> {
  const parsed = parseJsonc(text);
  if (!parsed.ok) return parsed;
  const entry = membersOf(parsed.value.value);
  if (entry === undefined) return fault("holds no object");
  if (parsed.value.repeated.length > 0) return fault("has one member twice");
  const unread = unreadMembers(entry);
  if (unread.length > 0) return fault("has members beside command, args, env and cwd, or url and headers");
  const read = readEntry(entry);
  if (!read.ok) return read;
  const [hole] = holesIn(read.value);
  if (hole === undefined) return read;
  return fault(`still has ${hole}, which its client filled in: write the value there`);
}

/**
 * What a client fills in and callgate does not, by name: `${input:token}`, `${env:TOKEN}`. A bare `${NAME}` may as well be for
 * a shell that the server is started with, so only where no shell reads, in the environment and in headers, it counts.
 */
export function holesIn(reach: McpServerReach): readonly string[] {
  const quoted = reach.kind === "url" ? [reach.url] : [reach.command, reach.cwd ?? "", ...reach.args];
  const unread = Object.values(reach.kind === "url" ? reach.headers : reach.env);
  const names = (texts: readonly string[], form: RegExp) =>
    texts.flatMap((text) => [...text.matchAll(form)].map(([, name]) => `\${${name}}`));
  return [...new Set([...names([...quoted, ...unread], CLIENTS_OWN), ...names(unread, BARE)])];
}

const CLIENTS_OWN =
  /\$\{((?:input|env|config|command|secret):[\w.-]{1,100}|workspaceFolder(?:Basename)?|userHome|pathSeparator)\}/g;
const BARE = /\$\{([A-Za-z_]\w{0,100})(?::-[^}]*)?\}/g;

export function membersOf(value: unknown): Members | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Members) // any JSON object is one
    : undefined;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= ITEMS_MAX && value.every((one) => typeof one === "string");
}

/** Numbers and truth values are written as the texts that they become; null says that there is none. */
function textsByName(value: unknown): Readonly<Record<string, string>> | undefined {
  const entries = Object.entries(membersOf(value) ?? {}).filter(([, one]) => one !== null);
  if (membersOf(value) === undefined || entries.length > ITEMS_MAX) return undefined;
  const isScalar = (one: unknown) => ["string", "number", "boolean"].includes(typeof one);
  if (!entries.every(([, one]) => isScalar(one))) return undefined;
  return Object.fromEntries(entries.map(([name, one]) => [name, String(one)]));
}

function isPassable(text: string): boolean {
  return text.length <= TEXT_CHARS_MAX && !text.includes("\0");
}
