// The console as a program: one broker, one HTTP server on loopback, one user. It joins the parts and decides nothing itself.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { Address } from "../../client/address.ts";
import type { ConnectionState } from "../../client/endpoint.ts";
import type { MeasuredStatus } from "../../client/load_answers.ts";
import { prometheusText, unreachableText } from "../metrics/prometheus.ts";
import type { Digest } from "../tokens/secrets.ts";
import { readToken } from "../tokens/token_file.ts";
import { loadPage } from "./assets.ts";
import { BrokerLink } from "./broker_link.ts";
import type { PageFiles } from "./bundle.ts";
import { type ConsoleEffects, realEffects } from "./effects.ts";
import { EventStreams } from "./event_streams.ts";
import { HttpServer, type ServerParts } from "./http_server.ts";
import { Logins } from "./logins.ts";
import { makeRoutes } from "./routes.ts";
import { type Ends, OVERFLOW_UID, SocketOwners } from "./socket_owner.ts";
import { BrokerWatch } from "./watch.ts";

export interface ConsoleOptions {
  readonly to: Address;
  /** Of the console's calls. */
  readonly session: string;
  readonly address: "127.0.0.1" | "::1";
  /** 0: a free one. */
  readonly port: number;
  /** The user who is served; undefined: the one that this process runs as. */
  readonly uid?: number | undefined;
  /** Figures are given to who has the token in this file; undefined: to nobody. */
  readonly metricsTokenFile?: string | undefined;
  /** Takes a sentence for whoever watches over the console. No secret is in it. */
  readonly say: (sentence: string) => void;
  /** For tests. */
  readonly effects?: ConsoleEffects | undefined;
  readonly page?: PageFiles | undefined;
  readonly ownerOf?: ((ends: Ends) => Promise<number | undefined>) | undefined;
}

export interface RunningConsole {
  readonly port: number;
  /** An address that logs in whoever opens it first, and until when. */
  newLink(): { readonly url: string; readonly expiresAtMs: number };
  /** Ends at once, with all that is open. */
  close(): Promise<void>;
  /** Resolves where the broker will not be reached any more, with why. */
  readonly ended: Promise<string | undefined>;
}

/** The fault is a sentence for whoever started it. */
export async function startConsole(options: ConsoleOptions): Promise<Result<RunningConsole>> {
  const uid = servedUser(options.uid);
  if (!uid.ok) return uid;
  const token = await tokenOf(options.metricsTokenFile);
  if (!token.ok) return token;
  const page = options.page === undefined ? await loadPage() : ok(options.page);
  if (!page.ok) return page;
  const owners = new SocketOwners();
  const server = await HttpServer.listen({
    address: options.address,
    port: options.port,
    uid: uid.value,
    ownerOf: options.ownerOf ?? ((ends) => owners.ownerOf(ends)),
  });
  if (!server.ok) return server;
  return ok(joined(options, server.value, page.value, token.value));
}

/** Root may do as it likes with the console anyway, but nobody logs in as it by accident. */
function servedUser(given: number | undefined): Result<number> {
  const own = process.getuid?.();
  if (own === undefined) return fault("the console needs to know its own user: it runs on Linux only");
  const uid = given ?? own;
  if (uid === OVERFLOW_UID)
    return fault(`uid ${OVERFLOW_UID} stands for any unknown user: nobody can be told by it`);
  if (uid === 0 && own !== 0) return fault("root is served only where the console runs as root itself");
  return ok(uid);
}

async function tokenOf(path: string | undefined): Promise<Result<Digest | undefined>> {
  return path === undefined ? ok(undefined) : readToken(path, process.getuid?.() ?? 0, "the metrics token");
}

function joined(
  options: ConsoleOptions,
  server: HttpServer,
  page: PageFiles,
  metricsToken: Digest | undefined,
): RunningConsole {
  const effects = options.effects ?? realEffects();
  const host = hostOf(options.address, server.port);
  const cookie = `callgate_${server.port}`;
  const logins = new Logins(effects);
  const { link, watch, streams } = joinBroker(options, effects);
  const routes = makeRoutes({
    ...{ page, logins, cookie, metricsToken },
    ask: (tool, args, stop) => link.ask(tool, args, stop),
    hasRoom: () => link.hasRoom,
    figures: (status) => figuresText(status, effects.nowMs()),
    onWrongToken: () => options.say(WRONG_LINK),
  });
  const greet: ServerParts["greet"] = (response, login) => streams.open(response, login, watch.greeting());
  server.serve({
    ...{ routes, logins, streams, greet },
    gate: { host, cookie, metrics: metricsToken !== undefined },
  });
  link.start();
  return {
    port: server.port,
    newLink: () => linkOf(host, logins),
    ended: link.ended.then((why) => why?.message),
    close: async () => {
      watch.close();
      logins.close();
      streams.close();
      await Promise.all([server.close(), link.close()]);
    },
  };
}

const WRONG_LINK = "somebody of this user opened a link that is no longer good, or never was";

interface BrokerParts {
  readonly link: BrokerLink;
  readonly watch: BrokerWatch;
  readonly streams: EventStreams;
}

/** The broker, what is known of it, and who is told. */
function joinBroker(options: ConsoleOptions, effects: ConsoleEffects): BrokerParts {
  const told = new ToldOnce(options.say);
  const streams = new EventStreams(effects, () => watch.watched());
  const link = new BrokerLink({
    ...{ to: options.to, session: options.session, effects },
    onChange: (state) => {
      told.connection(state);
      watch.connection(state.open, state.open ? null : whyNot(state.why));
    },
  });
  const watch = new BrokerWatch({
    ask: (tool, args, stop) => link.ask(tool, args, stop),
    effects,
    tell: (event) => streams.tell(event),
    isWatched: () => streams.listening > 0,
    onRole: (wrong) => told.role(wrong),
  });
  return { link, watch, streams };
}

function figuresText(status: MeasuredStatus | undefined, nowMs: number): string {
  return status === undefined ? unreachableText(nowMs) : prometheusText(status, nowMs);
}

/** As browsers write it in Host and Origin: the default port is left out. */
function hostOf(address: string, port: number): string {
  const name = address === "::1" ? "[::1]" : address;
  return port === 80 ? name : `${name}:${port}`;
}

/** The part behind # is never sent anywhere; the page gives it back, once. */
function linkOf(host: string, logins: Logins): { readonly url: string; readonly expiresAtMs: number } {
  const { token, expiresAtMs } = logins.newLink();
  return { url: `http://${host}/#login=${token}`, expiresAtMs };
}

function whyNot(why: string): string {
  return `The broker can't be reached (${why}); it is tried again and again.`;
}

/** Says each change once: attempts fail by the dozen. */
class ToldOnce {
  readonly #say: (sentence: string) => void;
  #connected: boolean | undefined;
  #wrong: string | null = null;

  constructor(say: (sentence: string) => void) {
    this.#say = say;
  }

  connection(state: ConnectionState): void {
    const before = this.#connected;
    this.#connected = state.open;
    if (before === state.open) return;
    if (!state.open) this.#say(whyNot(state.why));
    else if (before !== undefined) this.#say("The broker is there.");
  }

  role(wrong: string | null): void {
    if (wrong !== this.#wrong && wrong !== null) this.#say(wrong);
    this.#wrong = wrong;
  }
}
