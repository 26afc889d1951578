// HTTP headers as lines of a file: `Name: value`. Faults name a line and nothing in it, for it holds tokens.

import { fault, ok, type Result } from "../../../base/faults.ts";

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible ASCII, spaces and tabs within. */
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;
/** What the protocol itself sets. */
const OURS = new Set(
  "accept connection content-length content-type cookie2 host last-event-id mcp-method mcp-name mcp-protocol-version mcp-session-id te trailer transfer-encoding upgrade".split(
    " ",
  ),
);

/** Whether the protocol sets it, whatever a client's config says. */
export function isProtocolHeader(name: string): boolean {
  return OURS.has(name.toLowerCase());
}

/** Whether it can be a file of headers at all. */
export function isHeadersText(bytes: Uint8Array): boolean {
  return bytes.every(
    (byte) => byte === 0x09 || byte === 0x0a || byte === 0x0d || (byte >= 0x20 && byte < 0x7f),
  );
}

/** Empty lines and such that begin with `#` are passed over. Names in lower case. */
export function parseHeaders(text: string): Result<Readonly<Record<string, string>>> {
  const headers = new Map<string, string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0)).toLowerCase();
    const value = line.slice(colon + 1).trim();
    const where = `line ${index + 1}`;
    if (!NAME.test(name) || !VALUE.test(value)) return fault(`${where} is not a \`Name: value\``);
    if (OURS.has(name)) return fault(`${where}: ${name} is set by the protocol`);
    if (headers.has(name)) return fault(`${where}: ${name} is given twice`);
    headers.set(name, value);
  }
  return ok(Object.fromEntries(headers));
}
