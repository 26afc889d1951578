// The connected peers of every role: what each is asking, what each is serving, and which tools a
// connection announced. Choosing a provider's connection is here; what it is asked is not.

import type { Connection } from "../session/connection.ts";
import type { Quota } from "../session/quota.ts";
import type { LiveCall } from "./core.ts";

/** One connection with what is open on it, in both directions. */
export interface Peer {
  readonly connection: Connection;
  readonly quota: Quota;
  /** Requests of the peer that have no final answer yet, by its id; undefined while a record is replayed. */
  readonly asking: Map<bigint, LiveCall | undefined>;
  /** Calls that it was given to run, by our id. */
  readonly serving: Map<bigint, LiveCall>;
  /** Digest of the definition it announced, by tool. */
  readonly announced: Map<string, string>;
  /** Said when announcing: it can be told that a call was cancelled. */
  cancellable: boolean;
  /** With an isolated role: the only session that it may speak for. */
  boundSession: string | undefined;
  nextId: bigint;
  /** Answers that belonged to no call of its own. */
  strayAnswers: number;
}

export class Peers {
  readonly #byConnection = new Map<Connection, Peer>();
  readonly #byRole = new Map<string, Set<Peer>>();

  add(connection: Connection, quota: Quota): Peer {
    const peer: Peer = {
      connection,
      quota,
      asking: new Map(),
      serving: new Map(),
      announced: new Map(),
      cancellable: false,
      boundSession: undefined,
      nextId: 1n,
      strayAnswers: 0,
    };
    this.#byConnection.set(connection, peer);
    const ofRole = this.#byRole.get(connection.role);
    if (ofRole === undefined) this.#byRole.set(connection.role, new Set([peer]));
    else ofRole.add(peer);
    return peer;
  }

  remove(peer: Peer): void {
    this.#byConnection.delete(peer.connection);
    this.#byRole.get(peer.connection.role)?.delete(peer);
  }

  of(connection: Connection): Peer | undefined {
    return this.#byConnection.get(connection);
  }

  ofRole(role: string): readonly Peer[] {
    return [...(this.#byRole.get(role) ?? [])];
  }

  all(): readonly Peer[] {
    return [...this.#byConnection.values()];
  }

  /**
   * The least loaded connection of a role that can still answer, and that announced exactly `digest`
   * where the tool's definition is pinned.
   */
  leastLoaded(role: string, tool: string, digest: string | undefined): Peer | undefined {
    let best: Peer | undefined;
    for (const peer of this.#byRole.get(role) ?? []) {
      if (!peer.connection.readable) continue;
      if (digest !== undefined && peer.announced.get(tool) !== digest) continue;
      if (best === undefined || peer.serving.size < best.serving.size) best = peer;
    }
    return best;
  }
}
