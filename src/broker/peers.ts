// The connected peers of every role, and which of a provider's connections a call goes to; what it is
// asked there is not here.

import type { Connection } from "../session/connection.ts";
import type { Quota } from "../session/quota.ts";
import type { Peer } from "./live.ts";

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
