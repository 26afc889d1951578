// What callgate adds to CEL: functions that get right what string prefixes get wrong (spec: broker,
// Conditions). Each answers true or false only about a value that can be read in one way; anything
// else is a Fault, so that neither an allow nor an escape from a deny rests on it.

import { fault, ok, type Result } from "../base/faults.ts";
import { Fault } from "./condition_values.ts";

/** Linux's PATH_MAX. */
const PATH_CHARS_MAX = 4096;
const URL_CHARS_MAX = 8192;
const ADDRESS_CHARS_MAX = 254;
const LOCAL_PART_CHARS_MAX = 64;
const HOST_CHARS_MAX = 253;
/** Of a word that `inRequest` looks for. */
export const TOKEN_CHARS_MAX = 1024;

/** Controls, formats (bidirectional, zero width), line separators, lone surrogates, what never shows. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;
const PERCENT_ENCODED = /%[0-9a-fA-F]{2}/;
const PATH_STRUCTURE = /[/\\.%]/g;

function isUnprintable(text: string): boolean {
  return !PRINTABLE_ASCII.test(text) && UNPRINTABLE.test(text);
}

/** Why a text is no absolute path that can be read in one way only; undefined where it is one. */
export function pathFlaw(path: string): string | undefined {
  if (path === "") return "the path is empty";
  if (path.length > PATH_CHARS_MAX) return "the path is too long";
  if (!path.startsWith("/")) return "the path is not absolute";
  if (isUnprintable(path)) return "the path holds an unprintable character";
  if (path.includes("\\")) return "the path holds a backslash";
  if (PERCENT_ENCODED.test(path)) return "the path is percent-encoded";
  if (holdsLookAlike(path)) return "the path holds a look-alike of `/`, `.` or `%`";
  return segmentsFlaw(path);
}

/** A wide slash or an ellipsis becomes structure where somebody normalises. */
function holdsLookAlike(path: string): boolean {
  return !PRINTABLE_ASCII.test(path) && structureSize(path) !== structureSize(path.normalize("NFKC"));
}

function structureSize(path: string): number {
  return path.match(PATH_STRUCTURE)?.length ?? 0;
}

/** A slash at the end names the same directory and is let through. */
function segmentsFlaw(path: string): string | undefined {
  const segments = withoutEndSlash(path).split("/").slice(1);
  for (const segment of segments) {
    if (segment === "." || segment === "..") return "the path holds a `.` or `..` segment";
    if (segment.endsWith(".")) return "a segment of the path ends in a dot";
    if (segment === "" && path !== "/") return "the path holds an empty segment";
  }
  return undefined;
}

function withoutEndSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

/** Whether `path` is `dir` or lies below it, by segments. Symbolic links are the provider's matter. */
export function under(path: string, dir: string): boolean | Fault {
  const flaw = pathFlaw(path);
  if (flaw !== undefined) return new Fault(flaw);
  const dirFlaw = pathFlaw(dir);
  if (dirFlaw !== undefined) return new Fault(`the directory is unusable: ${dirFlaw}`);
  const above = withoutEndSlash(dir);
  const below = withoutEndSlash(path);
  return above === "/" || below === above || below.startsWith(`${above}/`);
}

const HOST_NAME = /^[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?)*$/;

/** Hosts that a list names: `host` is that host alone, `*.host` every name below it and not itself. */
export interface HostList {
  readonly exact: ReadonlySet<string>;
  /** With the dot in front. */
  readonly suffixes: readonly string[];
}

export function parseHosts(entries: readonly string[]): Result<HostList> {
  const exact = new Set<string>();
  const suffixes: string[] = [];
  for (const entry of entries) {
    const wildcard = entry.startsWith("*.");
    const host = wildcard ? entry.slice(2) : entry;
    if (!isHost(host) || (wildcard && isNumericHost(host)))
      return fault(
        "a host is written as `host.example` or `*.host.example`: lower case, no scheme, port or path",
      );
    if (wildcard) suffixes.push(`.${host}`);
    else exact.add(host);
  }
  return ok({ exact, suffixes });
}

/** A name in ASCII, or an address as the URL standard writes it. */
function isHost(host: string): boolean {
  if (host.length > HOST_CHARS_MAX || (!HOST_NAME.test(host) && !host.startsWith("["))) return false;
  return parseUrl(`http://${host}/`)?.hostname === host;
}

function isNumericHost(host: string): boolean {
  return host.startsWith("[") || /(?:^|\.)[0-9]+$/.test(host);
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** The URL's host is compared in its ASCII form; the port does not matter. */
export function hostIn(text: string, hosts: HostList): boolean | Fault {
  if (text.length > URL_CHARS_MAX) return new Fault("the URL is too long");
  const url = parseUrl(text);
  if (url === undefined) return new Fault("it is no absolute URL");
  if (url.protocol !== "https:" && url.protocol !== "http:") return new Fault("the URL is not http or https");
  if (url.username !== "" || url.password !== "") return new Fault("the URL carries credentials");
  if (url.href !== text) return new Fault("the URL is not written in its normal form");
  const host = url.hostname;
  if (host.endsWith(".")) return new Fault("the URL's host ends in a dot");
  return hosts.exact.has(host) || hosts.suffixes.some((suffix) => host.endsWith(suffix));
}

const LOCAL_PART = /^[A-Za-z0-9_+'=&~](?:[A-Za-z0-9_+'=&~-]*[A-Za-z0-9_+'=&~-])?(?:\.[A-Za-z0-9_+'=&~-]+)*$/;

interface Address {
  readonly local: string;
  /** Lower case. */
  readonly domain: string;
}

/** Exactly one address of the plain kind: no name, comment, quotes, group, list, routing, no other script. */
function parseAddress(text: string): Address | undefined {
  // The Kelvin sign in lower case is `k`: only ASCII may be lowered.
  if (text.length > ADDRESS_CHARS_MAX || !PRINTABLE_ASCII.test(text)) return undefined;
  const at = text.indexOf("@");
  const local = text.slice(0, at);
  const domain = text.slice(at + 1).toLowerCase();
  if (at < 1 || local.length > LOCAL_PART_CHARS_MAX || !LOCAL_PART.test(local)) return undefined;
  return isMailDomain(domain) ? { local, domain } : undefined;
}

function isMailDomain(domain: string): boolean {
  return domain.length <= HOST_CHARS_MAX && HOST_NAME.test(domain) && !isNumericHost(domain);
}

/** Addresses that a list names: `user@host` is that address, `@host` every one at that very host. */
export interface AddressList {
  readonly exact: ReadonlySet<string>;
  /** `exact` in lower case. */
  readonly anyCase: ReadonlySet<string>;
  readonly domains: ReadonlySet<string>;
}

export function parseAddresses(entries: readonly string[]): Result<AddressList> {
  const exact = new Set<string>();
  const domains = new Set<string>();
  for (const entry of entries) {
    const address = parseAddress(entry);
    if (address !== undefined) exact.add(`${address.local}@${address.domain}`);
    else if (entry.startsWith("@") && isMailDomain(entry.slice(1))) domains.add(entry.slice(1));
    else return fault("an address is written as `user@host.example` or, for a whole host, `@host.example`");
  }
  return ok({ exact, anyCase: new Set([...exact].map((entry) => entry.toLowerCase())), domains });
}

/**
 * Case of the domain never matters. Case of the local part does to some servers and not to others,
 * so an address that differs from a listed one only there can't be judged.
 */
export function addressIn(text: string, addresses: AddressList): boolean | Fault {
  const address = parseAddress(text);
  if (address === undefined) return new Fault("it is not exactly one plain mail address");
  if (addresses.domains.has(address.domain)) return true;
  const written = `${address.local}@${address.domain}`;
  if (addresses.exact.has(written)) return true;
  if (addresses.anyCase.has(written.toLowerCase()))
    return new Fault("the address differs from a listed one only in upper and lower case");
  return false;
}

/** What may surround a word without being part of it. A dot in front (`.env`) is part of it. */
const OPENING = new Set("\"'`([{<«‹“”„‘’‚¿¡（「『【《");
const CLOSING = new Set("\"'`)]}>»›“”‘’.,;:!?…）」』】》。，、；：！？");
const SPACE = /\s/u;

/**
 * Whether `value` is one whole word of the request, as written, once the punctuation around that
 * word is taken off. A value that itself begins or ends with such punctuation never is.
 */
export function inRequest(value: string, request: string | undefined): boolean | Fault {
  if (request === undefined) return new Fault("the session was opened without a request");
  if (value === "") return new Fault("the value is empty");
  if (value.length > TOKEN_CHARS_MAX) return new Fault("the value is too long to be a word");
  if (SPACE.test(value)) return new Fault("the value holds white space");
  if (isUnprintable(value)) return new Fault("the value holds an unprintable character");
  if (OPENING.has(value[0] ?? "") || CLOSING.has(value.at(-1) ?? "")) return false;
  for (let at = request.indexOf(value); at >= 0; at = request.indexOf(value, at + value.length)) {
    if (opensWord(request, at) && closesWord(request, at + value.length)) return true;
  }
  return false;
}

/** Whether nothing but opening punctuation stands between this place and the white space before it. */
function opensWord(request: string, from: number): boolean {
  let at = from - 1;
  while (at >= 0 && OPENING.has(request[at] ?? "")) at--;
  return at < 0 || SPACE.test(request[at] ?? "");
}

function closesWord(request: string, from: number): boolean {
  let at = from;
  while (at < request.length && CLOSING.has(request[at] ?? "")) at++;
  return at === request.length || SPACE.test(request[at] ?? "");
}
