// The accept loop (spec: connector, 6.5): loopback peers, a bounded number of connections, and a bound on what all of them
// together have sent of frames that are not whole. Whoever was first and has not sent a frame makes room, so a local
// user can't hold all places. Invariant: what happens to one connection happens to no other.

import { createServer, type Server, type Socket } from "node:net";
import { fault, ok, type Result } from "../base/faults.ts";
import type { Clock, Log } from "../base/ports.ts";
import { isLoopbackLiteral } from "./loopback.ts";
import { Connection, type Unread } from "./serve_connection.ts";
import type { TransportService } from "./service.ts";
import { Tally } from "./service_tally.ts";
import type { StartError } from "./start_error.ts";

export interface ServeOptions {
  readonly clock: Clock;
  readonly log: Log;
}

/** What has come of frames that are not whole, all together: so many of the largest, and never less than this. */
const HELD_FRAMES_MAX = 8;
const HELD_BYTES_MIN = 16_777_216;

/** Listens where the service's configuration says. Resolves once connections are taken. */
export async function serve(
  service: TransportService,
  options: ServeOptions,
): Promise<Result<ConnectorServer, StartError>> {
  const { bind, port } = service.config;
  const sockets = createServer({ allowHalfOpen: true });
  const failed = await listening(sockets, bind, port);
  if (failed !== undefined) return fault({ kind: "Listen", code: failed, bind, port });
  const server = new ConnectorServer(sockets, service, options);
  options.log("info", "connector.listening", { bind, port: server.port });
  return ok(server);
}

/** Resolves to why it does not listen. */
function listening(sockets: Server, host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException) => resolve(error.code ?? error.name);
    sockets.once("error", failed);
    sockets.listen({ host, port, exclusive: true, ipv6Only: true }, () => {
      sockets.off("error", failed);
      resolve(undefined);
    });
  });
}

export class ConnectorServer {
  readonly #sockets: Server;
  readonly #service: TransportService;
  readonly #options: ServeOptions;
  /** The oldest first. */
  readonly #connections = new Set<Connection>();
  readonly #unread: Tally<Unread | "not_accepted">;
  readonly #heldBytesMax: number;
  #heldBytes = 0;
  #accepted = 0;

  /** Made by `serve`: `sockets` listens. */
  constructor(sockets: Server, service: TransportService, options: ServeOptions) {
    this.#sockets = sockets;
    this.#service = service;
    this.#options = options;
    this.#unread = new Tally(options.clock, options.log, "info", "connector.unread");
    this.#heldBytesMax = Math.max(HELD_BYTES_MIN, HELD_FRAMES_MAX * service.config.frameBytesMax);
    sockets.on("connection", (socket) => this.#accept(socket));
    sockets.on("error", () => this.#unread.add("not_accepted")); // no descriptor is free: it goes on when there is
  }

  /** The one that was found, where 0 was asked for. */
  get port(): number {
    const address = this.#sockets.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Since the start, those that were sent away among them. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Open now. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Connections that brought no whole frame, by why. */
  get unread(): ReadonlyMap<Unread | "not_accepted", number> {
    return this.#unread.counts;
  }

  /**
   * Takes no more connections, lets turns end for so long and their replies go out, and gives up the rest. The
   * service is to be closed after it.
   */
  async close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#sockets.close(() => resolve()));
    for (const connection of [...this.#connections]) connection.hurry();
    await this.#service.drain(graceMs);
    await closed;
    this.#unread.flush();
  }

  #accept(socket: Socket): void {
    this.#accepted += 1;
    if (!isLoopbackLiteral(socket.remoteAddress)) return this.#turnAway(socket, "not_loopback");
    if (this.#connections.size >= this.#service.config.connectionsMax) {
      const oldest = this.#first("ended") ?? this.#first("reading");
      if (oldest === undefined) return this.#turnAway(socket, "no_place");
      oldest.evict();
    }
    const { frameBytesMax, socketTimeoutMs: timeoutMs } = this.#service.config;
    const connection = new Connection(socket, {
      frameBytesMax,
      timeoutMs,
      clock: this.#options.clock,
      deliver: (frame) => this.#service.deliver(frame),
      held: (bytes) => this.#hold(bytes),
      unread: (why) => this.#unread.add(why),
      closed: (one) => this.#connections.delete(one),
    });
    this.#connections.add(connection);
  }

  #turnAway(socket: Socket, why: Unread): void {
    this.#unread.add(why);
    socket.on("error", () => undefined);
    socket.destroy();
  }

  #first(stage: Connection["stage"]): Connection | undefined {
    for (const connection of this.#connections) if (connection.stage === stage) return connection;
    return undefined;
  }

  /** Over the bound the oldest makes room, as it does for a place. */
  #hold(bytes: number): void {
    this.#heldBytes += bytes;
    if (this.#heldBytes > this.#heldBytesMax) this.#first("reading")?.evict();
  }
}
