// The broker: connections in, calls through the pipeline, policy replaced at a reload, an orderly end.
// The only place where a broken assumption at a call is caught.

import type { Duplex } from "node:stream";
import type { Clock, Digest, Log, Randomness } from "../base/ports.ts";
import { indexGrants } from "../policy/grant_index.ts";
import type { Policy } from "../policy/policy.ts";
import { Connection, type Receiver } from "../session/connection.ts";
import { admit, type PeerCredentials } from "../session/peer.ts";
import { Quota } from "../session/quota.ts";
import { SessionTable } from "../session/sessions.ts";
import type { Store } from "../store/port.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { Envelope } from "../wire/message.ts";
import { callFault, internalMessage, MAY_HAVE_RUN } from "./answer.ts";
import { loadBuiltins } from "./builtin/table.ts";
import { type Core, LiveCalls, roleOf } from "./core.ts";
import { Definitions } from "./definitions.ts";
import { finishIfIdle } from "./deliver.ts";
import { failCall } from "./dispatch.ts";
import { type Peer, Peers } from "./peers.ts";
import { takeRequest } from "./pipeline.ts";
import { receiveError, receiveResponse } from "./receive.ts";

export interface BrokerEffects {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: Randomness;
  readonly digest: Digest;
  readonly store: Store;
  readonly frameTimeoutMs: number;
  readonly replayForMs: number;
  /** Reads the config again and calls `reload` or `reloadRefused`; the answer says why it was refused. */
  readonly requestReload: () => Promise<string | undefined>;
}

export class Broker {
  readonly #core: Core;
  readonly #effects: BrokerEffects;
  readonly #quotas = new Map<string, Quota>();
  readonly #receiver: Receiver;
  #connections = 0;
  #drained: (() => void) | undefined;

  static async create(policy: Policy, effects: BrokerEffects): Promise<Broker> {
    return new Broker(policy, effects, await loadBuiltins());
  }

  private constructor(policy: Policy, effects: BrokerEffects, builtins: Core["builtins"]) {
    this.#effects = effects;
    this.#core = {
      ...effects,
      sessions: new SessionTable(),
      peers: new Peers(),
      live: new LiveCalls(),
      definitions: new Definitions(effects.digest),
      builtins,
      startedAtMs: effects.clock.nowMs(),
      runtime: { policy, index: indexGrants(policy), stale: undefined },
      draining: false,
    };
    this.#receiver = {
      message: (connection, envelope) => this.#message(connection, envelope),
      ended: (connection) => this.#ended(connection),
      closed: (connection) => this.#closed(connection),
    };
  }

  get policy(): Policy {
    return this.#core.runtime.policy;
  }

  /** Takes a connection that came through a role's socket, or turns it away. */
  accept(roleName: string, stream: Duplex, peer: PeerCredentials | undefined): void {
    const { clock, log } = this.#core;
    stream.on("error", () => stream.destroy());
    const role = this.#core.runtime.policy.roles.get(roleName);
    const admission = role === undefined ? "not_named" : admit(role, peer);
    if (
      role === undefined ||
      admission !== "admitted" ||
      this.#core.sessions.isFrozen(roleName) ||
      this.#core.draining
    ) {
      const why = admission === "admitted" ? (this.#core.draining ? "draining" : "frozen") : admission;
      log("warn", "peer.refused", { role: roleName, why, uid: peer?.uid, pid: peer?.pid });
      stream.destroy();
      return;
    }
    const quota = this.#quota(roleName);
    const number = ++this.#connections;
    const limit = quota.connect(clock.nowMs());
    const connection = new Connection(stream, {
      number,
      role: roleName,
      peer,
      quota,
      clock,
      log,
      frameTimeoutMs: this.#effects.frameTimeoutMs,
      receiver: this.#receiver,
    });
    if (limit !== undefined) {
      connection.fail("internal", `capacity: the role's limit ${limit} is reached`, "limit.reached");
      connection.close(); // at once: what is refused must not hold a descriptor
      return;
    }
    this.#core.peers.add(connection, quota);
    log("info", "peer.connected", { role: roleName, connection: number, uid: peer?.uid, pid: peer?.pid });
  }

  /** Puts a new policy into force at once: for open connections, sessions and running calls. */
  reload(policy: Policy): void {
    const core = this.#core;
    for (const role of policy.roles.values()) {
      if (role.taintScope === "role") core.sessions.widenToRole(role.name);
      const quota = this.#quotas.get(role.name);
      if (quota !== undefined) quota.limits = role.limits;
    }
    core.runtime = { policy, index: indexGrants(policy), stale: undefined };
    core.store.commit(
      [{ kind: "audit", record: { kind: "change", what: "reload", by: "host", subject: policy.version } }],
      () => undefined,
    );
    for (const { connection } of core.peers.all()) {
      const role = roleOf(core, connection);
      if (role !== undefined && admit(role, connection.peer) === "admitted") continue;
      core.log("warn", "peer.disallowed", { role: connection.role, connection: connection.number });
      connection.fail("internal", "this peer may no longer connect as this role");
    }
  }

  /** A reload that was not taken: the policy stays, and status says so. `why` holds no secret. */
  reloadRefused(why: string): void {
    this.#core.runtime = { ...this.#core.runtime, stale: why };
  }

  /** Lets running calls finish; resolves when none is left and every connection is told, or after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<{ readonly unfinished: number }> {
    const core = this.#core;
    core.draining = true;
    if (core.live.size > 0) {
      await new Promise<void>((resolve) => {
        const withdraw = core.clock.after(timeoutMs, resolve);
        this.#drained = () => {
          withdraw();
          resolve();
        };
        this.#letIdleGo();
      });
    }
    const unfinished = core.live.size;
    for (const peer of core.peers.all()) peer.connection.finish();
    return { unfinished };
  }

  /** Drops every connection. */
  close(): void {
    for (const peer of this.#core.peers.all()) peer.connection.close();
  }

  #quota(role: string): Quota {
    let quota = this.#quotas.get(role);
    if (quota === undefined) {
      const policy = this.#core.runtime.policy.roles.get(role);
      if (policy === undefined) throw new Error("a quota is asked for a role that the policy does not have");
      quota = new Quota(policy.limits);
      this.#quotas.set(role, quota);
    }
    return quota;
  }

  #message(connection: Connection, envelope: Envelope<JsonString>): void {
    const peer = this.#core.peers.of(connection);
    if (peer === undefined) return;
    try {
      this.#route(peer, envelope);
    } catch (error) {
      this.#fault(peer, envelope, error);
    }
    if (this.#core.draining) this.#letIdleGo();
  }

  #route(peer: Peer, envelope: Envelope<JsonString>): void {
    const { id, final, msg } = envelope;
    switch (msg.kind) {
      case "tool_request":
        takeRequest(this.#core, peer, id, final, msg.body);
        return;
      case "tool_response":
        if (this.#mayProvide(peer)) receiveResponse(this.#core, peer, id, final, msg.body);
        else peer.connection.fail("bad_message", "this role provides no tools, so it has nothing to answer");
        return;
      case "error":
        receiveError(this.#core, peer, id, msg.body);
    }
  }

  /** Whether answers from that role can mean anything: it owns a tool, may announce one, or was given a call. */
  #mayProvide(peer: Peer): boolean {
    if (peer.serving.size > 0 || peer.nextId > 1n) return true;
    const { policy } = this.#core.runtime;
    const { role } = peer.connection;
    if ((policy.roles.get(role)?.provides.length ?? 0) > 0) return true;
    for (const tool of policy.tools.values()) if (tool.role === role) return true;
    return false;
  }

  /** A broken assumption of ours: the peer is told, the call is ended, the connection is let go; the others go on. */
  #fault(peer: Peer, envelope: Envelope<JsonString>, error: unknown): void {
    const { connection } = peer;
    const stack = error instanceof Error ? (error.stack ?? "").split("\n    at ").slice(1, 6) : [];
    this.#core.log("error", "broker.fault", {
      role: connection.role,
      connection: connection.number,
      fault: error instanceof Error ? error.name : "unknown",
      stack,
    });
    const serving = peer.serving.get(envelope.id);
    if (envelope.msg.kind !== "tool_request" && serving !== undefined) {
      failCall(
        this.#core,
        serving,
        callFault("provider", `The broker could not take the provider's answer. ${MAY_HAVE_RUN}`),
      );
      return;
    }
    connection.send(envelope.id, true, internalMessage());
    connection.fail("internal", "the broker met a fault of its own on this connection");
  }

  #ended(connection: Connection): void {
    const peer = this.#core.peers.of(connection);
    if (peer === undefined) return connection.close();
    this.#loseCalls(peer); // it can't answer any more
    finishIfIdle(peer);
  }

  #closed(connection: Connection): void {
    const peer = this.#core.peers.of(connection);
    if (peer === undefined) return; // it was turned away; nothing was taken but its place
    this.#core.peers.remove(peer);
    peer.quota.release("connections", 1);
    this.#loseCalls(peer);
    this.#leaveCalls(peer);
    this.#core.log("info", "peer.disconnected", { role: connection.role, connection: connection.number });
    if (this.#core.draining) this.#letIdleGo();
  }

  /** The calls that this connection was running. */
  #loseCalls(peer: Peer): void {
    for (const live of [...peer.serving.values()]) {
      failCall(
        this.#core,
        live,
        callFault("provider_lost", `The provider's connection was lost. ${MAY_HAVE_RUN}`),
      );
    }
  }

  /** The calls that this connection was asking for go on: their outcome is recorded, and who asks again joins. */
  #leaveCalls(peer: Peer): void {
    for (const [, live] of peer.asking) {
      if (live === undefined) continue;
      const at = live.askers.findIndex((asker) => asker.peer === peer);
      if (at >= 0) live.askers.splice(at, 1);
      peer.quota.release("queued_bytes_in", live.argumentsBytes);
    }
    peer.quota.release("calls_in_flight", peer.asking.size);
    peer.asking.clear();
  }

  /** While draining: who has nothing open is let go, and the last call ends the wait. */
  #letIdleGo(): void {
    for (const peer of this.#core.peers.all()) {
      const serves = peer.serving.size > 0;
      if (peer.asking.size === 0 && !serves) peer.connection.finish();
    }
    if (this.#core.live.size === 0) this.#drained?.();
  }
}
