// Who may: what is asked of a request before anything in it is looked at. A browser can be made to send requests
// by any page, under any name that leads here, with its cookies; another user of this machine can send any bytes. Invariant:
// pure, everything not named here is refused, and no sentence repeats what was sent.

import { ASK_PATH, EVENTS_PATH, KEY_HEADER, LOGIN_PATH, LOGOUT_PATH } from "./api.ts";

/** A request as it came: names in any case, each as often as it was sent. */
export interface Knock {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, as node:http has them. */
  readonly rawHeaders: readonly string[];
  /** Whether the other end is the user whom the console serves. */
  readonly isOwner: boolean;
}

export interface GateSettings {
  /** The one name of this server, as browsers write it: `127.0.0.1:4711`. */
  readonly host: string;
  /** Of the login's cookie. */
  readonly cookie: string;
  /** Whether figures are given out to whoever has the token. */
  readonly metrics: boolean;
}

export type Admission =
  | { readonly to: "page" | "login" }
  | { readonly to: "metrics"; readonly token: string }
  | { readonly to: "api"; readonly cookie: string; readonly key: string };

export interface Refusal {
  readonly status: number;
  readonly sentence: string;
  /** How to ask for it instead, for programs. */
  readonly wants?: "Bearer";
}

export type Verdict = ({ readonly ok: true } & Admission) | ({ readonly ok: false } & Refusal);

export const METRICS_PATH = "/metrics";
const PAGE_PATHS = ["/", "/app.js", "/app.css"];
const JSON_TYPE = "application/json";

export function judge(knock: Knock, settings: GateSettings): Verdict {
  if (!isPlainTarget(knock.target)) return refused(400, "The address is not one of this console's.");
  if (only(knock, "host") !== settings.host)
    return refused(421, "This console answers to one name only: open the link that its command printed.");
  if (knock.target === METRICS_PATH) return judgeMetrics(knock, settings);
  if (!knock.isOwner)
    return refused(403, "This console serves another user of this machine, and nobody else.");
  if (has(knock, "authorization")) return refused(403, "A token opens the figures only.");
  if (knock.method === "GET") return judgeReading(knock, settings);
  if (knock.method === "POST") return judgeWriting(knock, settings);
  return refused(405, "Only GET and POST are answered.");
}

function judgeMetrics(knock: Knock, settings: GateSettings): Verdict {
  if (!settings.metrics)
    return refused(404, "No figures are given out here: start the console with --metrics-token-file.");
  if (knock.method !== "GET") return refused(405, "Figures are read with GET.");
  const token = /^Bearer ([\x21-\x7e]+)$/i.exec(only(knock, "authorization") ?? "")?.[1];
  if (token === undefined) {
    const sentence = "The figures need the token: Authorization: Bearer TOKEN.";
    return { ok: false, status: 401, sentence, wants: "Bearer" };
  }
  return { ok: true, to: "metrics", token };
}

function judgeReading(knock: Knock, settings: GateSettings): Verdict {
  const { target } = knock;
  const site = siteOf(knock);
  if (target === "/") return { ok: true, to: "page" }; // nothing secret, and it can't be framed: a link from anywhere may lead there
  if (PAGE_PATHS.includes(target)) {
    if (site === "same-origin" || site === "none" || site === "not sent") return { ok: true, to: "page" };
    return refused(403, FOREIGN);
  }
  if (target !== EVENTS_PATH) return refused(isWriting(target) ? 405 : 404, "There is nothing here to read.");
  if (site !== "same-origin" && site !== "not sent") return refused(403, FOREIGN);
  return judgeLogin(knock, settings);
}

function judgeWriting(knock: Knock, settings: GateSettings): Verdict {
  if (!isWriting(knock.target)) return refused(404, "There is nothing here to write to.");
  const site = siteOf(knock);
  if (site !== "same-origin" && site !== "not sent") return refused(403, FOREIGN);
  if (only(knock, "origin") !== `http://${settings.host}`) return refused(403, FOREIGN);
  if (only(knock, "content-type") !== JSON_TYPE)
    return refused(415, `The body must be ${JSON_TYPE}, and be said to be so.`);
  return knock.target === LOGIN_PATH ? { ok: true, to: "login" } : judgeLogin(knock, settings);
}

const FOREIGN = "The request does not come from this console's own page.";
/** The page tells a person what to do by 401 alone. */
const LOGGED_OUT = "Not logged in, or not any more: the console's command prints a link.";

function judgeLogin(knock: Knock, settings: GateSettings): Verdict {
  const key = only(knock, KEY_HEADER);
  const cookie = cookieOf(only(knock, "cookie"), settings.cookie);
  if (key === undefined || cookie === undefined) return refused(401, LOGGED_OUT);
  return { ok: true, to: "api", cookie, key };
}

export const NOT_LOGGED_IN: Refusal = { status: 401, sentence: LOGGED_OUT };

function isWriting(target: string): boolean {
  return target === LOGIN_PATH || target === LOGOUT_PATH || /^[a-z_.]+$/.test(askedOf(target) ?? "");
}

/** The tool that is asked by this address. */
export function askedOf(target: string): string | undefined {
  return target.startsWith(ASK_PATH) ? target.slice(ASK_PATH.length) : undefined;
}

/** Origin form, without query, escape, dot segment or doubled slash: there is one way to write each address. */
function isPlainTarget(target: string): boolean {
  return target.length <= 200 && /^\/(?:[a-z_]+(?:[/.][a-z_]+)*)?$/.test(target);
}

function siteOf(knock: Knock): string {
  return has(knock, "sec-fetch-site") ? (only(knock, "sec-fetch-site") ?? "several") : "not sent";
}

/** The value of a header that was sent exactly once. */
function only(knock: Knock, name: string): string | undefined {
  const values = valuesOf(knock, name);
  return values.length === 1 ? values[0] : undefined;
}

function has(knock: Knock, name: string): boolean {
  return valuesOf(knock, name).length > 0;
}

function valuesOf({ rawHeaders }: Knock, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? "");
  }
  return values;
}

/** Pages of other ports set cookies here too: with two of one name there is no telling which is ours. */
function cookieOf(header: string | undefined, name: string): string | undefined {
  const ours = (header ?? "").split(";").map((pair) => pair.trim());
  const values = ours
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 && /^[\w-]{1,200}$/.test(values[0] ?? "") ? values[0] : undefined;
}

function refused(status: number, sentence: string): Verdict {
  return { ok: false, status, sentence };
}
