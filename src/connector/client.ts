// The client of a connector (spec: connector, 7): one turn, one connection. It never retries; sending the same invocation
// again is safe, and is how an answer that was lost is fetched. Invariant: a result that is returned was sealed by whoever
// holds the secret, and answers the invocation that was given.

import { randomBytes } from "node:crypto";
import { visibleLine } from "../base/display.ts";
import { ConnectorError, unsent } from "./client_error.ts";
import { openResponse, sealRequest } from "./client_exchange.ts";
import { type After, exchange, type Route } from "./client_socket.ts";
import type { TransportInvocation, TransportResult } from "./contract.ts";
import { frameBytesForPayload } from "./frame_arithmetic.ts";
import { FRAME_BYTES_MAX, NONCE_BYTES, PAYLOAD_BYTES_MIN } from "./limits.ts";
import { isLoopbackLiteral } from "./loopback.ts";
import { connectionKey } from "./secret.ts";

/** What the client takes from the outside world beside its socket. Tests give their own. */
export interface ConnectorEffects {
  /** 12 bytes from the system's secure generator; a nonce that comes twice gives the key away. */
  readonly nonce: () => Uint8Array;
  readonly after: After;
}

export interface ConnectorOptions {
  /** An IP literal in 127.0.0.0/8, or `::1`. */
  readonly host: string;
  readonly port: number;
  /** 32 to 1024 bytes; no control character, no space at an edge. Only the key that comes of it is kept. */
  readonly secret: string;
  /** Of a frame in either direction, without its length: 6808 to 2^32 - 1 (`frameBytesForPayload` tells what a payload needs). */
  readonly maxFrameBytes: number;
  /**
   * Bounds connecting (which never takes longer than 10 s), writing, and waiting for the whole answer, each. Without it
   * only connecting is bounded, since a turn may take as long as its model does.
   */
  readonly responseTimeoutMs?: number | undefined;
  readonly effects?: Partial<ConnectorEffects> | undefined;
}

const CONNECT_MS_MAX = 10_000;
const PORT_MAX = 65_535;
/** The longest that Node's timers wait; anything longer would fire at once. */
const TIMER_MS_MAX = 2_147_483_647;

const REAL_EFFECTS: ConnectorEffects = {
  nonce: () => randomBytes(NONCE_BYTES),
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(ms, TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};

export class ConnectorClient {
  readonly #key: Uint8Array;
  readonly #route: Route;
  readonly #effects: ConnectorEffects;

  /** @throws ConnectorError InvalidConfig */
  constructor(options: ConnectorOptions) {
    checkRoute(options);
    const key = connectionKey(options.secret);
    if (!key.ok) throw new ConnectorError(unsent("InvalidConfig", key.fault));
    const { host, port, maxFrameBytes, responseTimeoutMs: responseMs } = options;
    this.#key = key.value;
    const connectMs = Math.min(responseMs ?? CONNECT_MS_MAX, CONNECT_MS_MAX);
    this.#route = { host, port, frameBytesMax: maxFrameBytes, connectMs, responseMs };
    this.#effects = { ...REAL_EFFECTS, ...options.effects };
  }

  /**
   * Asks for the turn and waits for its one answer: a refusal or a failed turn is an answer. An abort only ends the
   * wait; the turn goes on. @throws ConnectorError of every code but InvalidConfig, or the signal's reason
   */
  async execute(
    invocation: TransportInvocation,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<TransportResult> {
    const { nonce, after } = this.#effects;
    const bounds = { key: this.#key, frameBytesMax: this.#route.frameBytesMax };
    const sealed = sealRequest(invocation, bounds, nonce);
    if (!sealed.ok) throw new ConnectorError(sealed.fault);
    const { asked, frame } = sealed.value;
    const answer = await exchange(frame, this.#route, after, signal);
    if (!answer.ok) throw new ConnectorError(answer.fault);
    const result = openResponse(answer.value, asked, this.#key);
    if (!result.ok) throw new ConnectorError(result.fault);
    return result.value;
  }
}

function checkRoute(options: ConnectorOptions): void {
  const wrong = [wrongHost, wrongPort, wrongFrameBound, wrongTimeout]
    .map((check) => check(options))
    .find((sentence) => sentence !== undefined);
  if (wrong !== undefined) throw new ConnectorError(unsent("InvalidConfig", wrong));
}

function wrongHost({ host }: ConnectorOptions): string | undefined {
  if (isLoopbackLiteral(host)) return undefined;
  return `the host ${visibleLine(String(host), 80)} is no IP literal in 127.0.0.0/8 and not ::1`;
}

function wrongPort({ port }: ConnectorOptions): string | undefined {
  return isWithin(port, 1, PORT_MAX) ? undefined : `the port must be 1 to ${PORT_MAX}`;
}

function wrongFrameBound({ maxFrameBytes }: ConnectorOptions): string | undefined {
  const least = frameBytesForPayload(PAYLOAD_BYTES_MIN);
  if (isWithin(maxFrameBytes, least, FRAME_BYTES_MAX)) return undefined;
  return `the frame bound must be ${least} to ${FRAME_BYTES_MAX} bytes`;
}

function wrongTimeout({ responseTimeoutMs }: ConnectorOptions): string | undefined {
  if (responseTimeoutMs === undefined || isWithin(responseTimeoutMs, 1, Number.MAX_SAFE_INTEGER))
    return undefined;
  return "the response timeout must be a whole number of milliseconds from 1, or none";
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most;
}
