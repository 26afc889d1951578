// Who may, over HTTP: what is asked of a request before anything in it is looked at. Any page in a browser can be made to
// send requests here, under any name that leads here; any user of this machine can. Invariant: pure, everything not named
// here is refused, and no sentence repeats what was sent.

import { type Digest, digestOf, isSame } from "../../tokens/secrets.ts";

/** A request as it came: names in any case, each as often as it was sent. */
export interface Knock {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, as node:http has them. */
  readonly rawHeaders: readonly string[];
}

export interface GateSettings {
  /** The names of this server, as clients write them: `127.0.0.1:4711`, `localhost:4711`. */
  readonly hosts: readonly string[];
  readonly token: Digest;
}

export interface Refusal {
  readonly status: number;
  readonly sentence: string;
  /** How to ask for it instead, for programs. */
  readonly wants?: "Bearer";
  /** Of the protocol's errors; left out, one that says nothing. */
  readonly code?: number;
}

export const MCP_PATH = "/mcp";
const METHODS = ["POST", "GET", "DELETE"];

/** undefined: let in. */
export function refusalOf(knock: Knock, { hosts, token }: GateSettings): Refusal | undefined {
  const host = only(knock, "host");
  if (host === undefined || !hosts.includes(host))
    return refused(421, "This server answers to its own names only.");
  const origins = valuesOf(knock, "origin");
  if (origins.some((origin) => !hosts.some((name) => origin === `http://${name}`)))
    return refused(403, "Pages from elsewhere are not served.");
  if (knock.target !== MCP_PATH) return refused(404, `There is nothing here but ${MCP_PATH}.`);
  if (!METHODS.includes(knock.method)) return refused(405, "Only POST, GET and DELETE are answered.");
  const given = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(only(knock, "authorization") ?? "")?.[1];
  if (given === undefined || !isSame(digestOf(given), token))
    return { status: 401, sentence: "The token is needed: Authorization: Bearer TOKEN.", wants: "Bearer" };
  return undefined;
}

function refused(status: number, sentence: string): Refusal {
  return { status, sentence };
}

/** The value of a header that was sent exactly once. */
function only(knock: Knock, name: string): string | undefined {
  const values = valuesOf(knock, name);
  return values.length === 1 ? values[0] : undefined;
}

function valuesOf({ rawHeaders }: Knock, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? "");
  }
  return values;
}
