// What is answered to a request that the gate has let in: the page's files, the logins, asking the broker, the figures. It
// looks at no header and opens no stream.

import { Hono } from "hono";
import type { MeasuredStatus } from "../../client/load_answers.ts";
import { PROMETHEUS_CONTENT_TYPE } from "../metrics/prometheus.ts";
import { type Digest, digestOf, isSame } from "../tokens/secrets.ts";
import { ASK_PATH, LOGIN_PATH, LOGOUT_PATH, type LoggedIn } from "./api.ts";
import { kindOf } from "./asked_tools.ts";
import type { PageFiles } from "./bundle.ts";
import { METRICS_PATH } from "./gate.ts";
import { LOGIN_MS, type Login, type Logins } from "./logins.ts";
import { type AskBroker, isMeasured } from "./watch.ts";

export interface RouteSettings {
  readonly page: PageFiles;
  readonly logins: Logins;
  /** The cookie's name. */
  readonly cookie: string;
  readonly ask: AskBroker;
  /** Whether the broker may be asked one more thing now. */
  readonly hasRoom: () => boolean;
  readonly metricsToken: Digest | undefined;
  /** Prometheus' text; undefined: the broker can't be asked. */
  readonly figures: (status: MeasuredStatus | undefined) => string;
  /** Told of each wrong token. */
  readonly onWrongToken: () => void;
}

/** What the gate has found out, and what came with the request. */
export interface Admitted {
  readonly login: Login | undefined;
  /** Of /metrics. */
  readonly token: string | undefined;
  /** Whole, within the bound. */
  readonly body: string;
  /** Aborted when whoever asks goes away. */
  readonly gone: AbortSignal;
}

interface Bindings {
  readonly Bindings: Admitted;
}

export type Routes = (request: Request, admitted: Admitted) => Response | Promise<Response>;

export function makeRoutes(settings: RouteSettings): Routes {
  const app = new Hono<Bindings>();
  for (const path of ["/", "/app.js", "/app.css"] as const) {
    app.get(path, () => file(settings.page[path], TYPES[path]));
  }
  app.post(LOGIN_PATH, ({ env }) => login(settings, env));
  app.post(LOGOUT_PATH, ({ env }) => logout(settings, env));
  app.post(`${ASK_PATH}:tool`, ({ env, req }) => ask(settings, req.param("tool"), env));
  app.get(METRICS_PATH, ({ env }) => metrics(settings, env));
  app.notFound(() => sentence(404, "There is nothing here."));
  app.onError(() => sentence(500, "The console failed at this; its terminal says more."));
  return (request, admitted) => app.fetch(request, admitted);
}

const TYPES = {
  "/": "text/html; charset=utf-8",
  "/app.js": "text/javascript; charset=utf-8",
  "/app.css": "text/css; charset=utf-8",
} as const;

function file(bytes: Uint8Array, type: string): Response {
  return new Response(Buffer.from(bytes), { headers: { "Content-Type": type } });
}

function login({ logins, cookie, onWrongToken }: RouteSettings, { body }: Admitted): Response {
  const token = objectOf(body)?.["token"];
  const opened = typeof token === "string" ? logins.redeem(token) : "wrong";
  if (opened === "wrong") {
    onWrongToken();
    return sentence(
      401,
      "This link was used already, or is too old: the console's command prints a new one.",
    );
  }
  if (opened === "limited") return sentence(429, "Too many wrong links: wait a minute.");
  const value = `${cookie}=${opened.cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${LOGIN_MS / 1000}`;
  return Response.json({ key: opened.key } satisfies LoggedIn, { headers: { "Set-Cookie": value } });
}

function logout({ logins, cookie }: RouteSettings, { login }: Admitted): Response {
  if (login !== undefined) logins.end(login);
  const value = `${cookie}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`;
  return Response.json({}, { headers: { "Set-Cookie": value } });
}

async function ask(settings: RouteSettings, tool: string, { body, gone }: Admitted): Promise<Response> {
  const kind = kindOf(tool);
  if (kind === undefined) return sentence(404, "The console asks for no such tool.");
  if (objectOf(body) === undefined) return sentence(400, "The body must be one JSON object.");
  if (!settings.hasRoom()) return sentence(429, "Too much is asked at once: wait for some of it.");
  return Response.json(await settings.ask(tool, body, kind === "read" ? gone : undefined));
}

async function metrics(settings: RouteSettings, { token, gone }: Admitted): Promise<Response> {
  const { metricsToken, figures } = settings;
  if (metricsToken === undefined || token === undefined || !isSame(digestOf(token), metricsToken))
    return sentence(401, "This is not the token.", { "WWW-Authenticate": "Bearer" });
  if (!settings.hasRoom()) return sentence(503, "Too much is asked at once.");
  const asked = await settings.ask("callgate.status", `{"metrics":true}`, gone);
  if (asked.status === "unreachable") return new Response(figures(undefined), { headers: FIGURES_TYPE });
  const status = asked.status === "result" ? (JSON.parse(asked.content) as Partial<MeasuredStatus>) : {};
  if (!isMeasured(status)) return sentence(503, "The broker gives this role no figures.");
  return new Response(figures(status), { headers: FIGURES_TYPE });
}

const FIGURES_TYPE = { "Content-Type": PROMETHEUS_CONTENT_TYPE };

/** The members of a text that is one JSON object. */
function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return value as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

function sentence(status: number, error: string, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json({ error }, { status, headers });
}
