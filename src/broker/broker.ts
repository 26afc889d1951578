// The broker: connections in, calls through the pipeline, policy replaced at a reload, an orderly end.
// The only place where a broken assumption at a call is caught.

import type { Duplex } from "node:stream";
import type { Clock, Digest, Log, ProcessFigures, Randomness } from "../base/ports.ts";
import type { ConditionCompiler } from "../policy/conditions.ts";
import { indexGrants } from "../policy/grant_index.ts";
import type { Policy } from "../policy/policy.ts";
import { Connection, type Receiver } from "../session/connection.ts";
import { type Admission, admit, type PeerCredentials } from "../session/peer.ts";
import { type Held, Quota } from "../session/quota.ts";
import { SessionTable } from "../session/sessions.ts";
import type { Store } from "../store/port.ts";
import { HOST } from "../store/records.ts";
import { encodeFrame } from "../wire/frame.ts";
import type { JsonString } from "../wire/json_string.ts";
import { type Envelope, PROTOCOL_VERSION } from "../wire/message.ts";
import { callFault, internalMessage, MAY_HAVE_RUN } from "./answer.ts";
import { Approvals } from "./approvals.ts";
import { expectsAnswer, finishIfIdle, forgetAskers, remindAskers } from "./asking.ts";
import { AuditTrail } from "./audit_trail.ts";
import { type BrokerState, stateOf } from "./broker_state.ts";
import { loadBuiltins } from "./builtin/table.ts";
import { type Core, putInForce, roleOf } from "./core.ts";
import { Definitions } from "./definitions.ts";
import { failCall } from "./deliver.ts";
import { Doubts } from "./doubts.ts";
import { LiveCalls, type Peer } from "./live.ts";
import { boundedLog } from "./log_budget.ts";
import { Metrics } from "./metrics.ts";
import { TurnTime } from "./metrics_time.ts";
import { Peers } from "./peers.ts";
import { takeRequest } from "./pipeline.ts";
import { receiveError, receiveResponse } from "./receive.ts";
import { recover } from "./recovery.ts";
import { RuntimeGrants } from "./runtime_grants.ts";
import { Turns } from "./turns.ts";
import { abandon, attempt, type Blamed, faultFields } from "./writing.ts";

export interface BrokerEffects {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: Randomness;
  readonly digest: Digest;
  readonly store: Store;
  readonly frameTimeoutMs: number;
  readonly replayForMs: number;
  /** How often the log hears where the audit stands, at most; left out: an hour. */
  readonly checkpointEveryMs?: number;
  readonly loadConditions: () => Promise<ConditionCompiler>;
  /** Reads the config again and calls `reload` or `reloadRefused`; the answer says why it was refused. */
  readonly requestReload: () => Promise<string | undefined>;
  /** Of the program, for operators. */
  readonly version?: string;
  /** What the process takes, for operators who ask; left out: all of it is 0. */
  readonly processFigures?: () => ProcessFigures;
}

const NO_FIGURES: ProcessFigures = { residentBytes: 0, heapBytes: 0, cpuSeconds: 0, loopDelayMaxMs: 0 };
const CHECKPOINT_EVERY_MS = 3_600_000;

export type Holding = Readonly<Record<Held, number>> & { readonly role: string };

export class Broker {
  readonly #core: Core;
  readonly #effects: BrokerEffects;
  readonly #quotas = new Map<string, Quota>();
  readonly #receiver: Receiver;
  #connections = 0;

  static async create(policy: Policy, effects: BrokerEffects): Promise<Broker> {
    const metrics = new Metrics((tool) => broker.#hasTool(tool));
    const approvals = new Approvals(effects.clock.nowMs(), metrics);
    const builtins = await loadBuiltins((id) => approvals.find(id));
    const broker: Broker = new Broker(policy, effects, builtins, approvals, metrics);
    await recover(broker.#core);
    broker.#core.audit.start();
    return broker;
  }

  private constructor(
    policy: Policy,
    effects: BrokerEffects,
    builtins: Core["builtins"],
    approvals: Approvals,
    metrics: Metrics,
  ) {
    this.#effects = effects;
    const log = boundedLog(effects.log, effects.clock);
    this.#core = {
      ...effects,
      log,
      metrics,
      turnTime: new TurnTime(effects.clock),
      processFigures: effects.processFigures ?? (() => NO_FIGURES),
      audit: new AuditTrail({
        ...effects,
        log,
        checkpointEveryMs: effects.checkpointEveryMs ?? CHECKPOINT_EVERY_MS,
      }),
      sessions: new SessionTable(),
      peers: new Peers(),
      live: new LiveCalls(),
      definitions: new Definitions(effects.digest),
      builtins,
      grants: new RuntimeGrants(),
      approvals,
      doubts: new Doubts(effects.store),
      turns: new Turns(effects.clock),
      quotaOf: (role) => this.#quota(role),
      startedAtMs: effects.clock.nowMs(),
      runtime: { policy, index: indexGrants(policy), stale: undefined },
      draining: undefined,
      released: undefined,
    };
    this.#receiver = {
      message: (connection, envelope) => this.#message(connection, envelope),
      ended: (connection) => this.#ended(connection),
      closed: (connection) => this.#closed(connection),
      overfull: (connection) => this.#overfull(connection),
    };
  }

  get policy(): Policy {
    return this.#core.runtime.policy;
  }

  /** Takes a connection that came through a role's socket, or turns it away. */
  accept(roleName: string, stream: Duplex, peer: PeerCredentials | undefined): void {
    const { clock, log } = this.#core;
    stream.on("error", () => stream.destroy());
    const refusal = this.#refusal(roleName, peer);
    if (refusal !== undefined) {
      log("warn", "peer.refused", { role: roleName, why: refusal, uid: peer?.uid, pid: peer?.pid });
      this.#core.metrics.peerRefused(refusal);
      this.#core.audit.peerRefused(roleName, peer, refusal);
      stream.write(farewell(REFUSAL_SENTENCES[refusal])); // whoever waits to read before it writes learns why
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
      this.#core.metrics.peerRefused(limit);
      connection.fail("internal", `capacity: the role's limit ${limit} is reached`, limit);
      connection.close(); // at once: what is refused must not hold a descriptor
      return;
    }
    this.#core.peers.add(connection, quota);
    log("info", "peer.connected", { role: roleName, connection: number, uid: peer?.uid, pid: peer?.pid });
  }

  #refusal(roleName: string, peer: PeerCredentials | undefined): Refusal | undefined {
    const { runtime, draining, sessions } = this.#core;
    const role = runtime.policy.roles.get(roleName);
    const admission = role === undefined ? "not_named" : admit(role, peer);
    if (admission !== "admitted") return admission;
    if (draining !== undefined) return "draining";
    return sessions.isFrozen(roleName) ? "frozen" : undefined;
  }

  /** Puts a new policy into force at once: for open connections, sessions and running calls. */
  reload(policy: Policy): void {
    const core = this.#core;
    for (const role of policy.roles.values()) {
      if (role.taintScope === "role") core.sessions.widenToRole(role.name);
      const quota = this.#quotas.get(role.name);
      if (quota !== undefined) quota.limits = role.limits;
    }
    putInForce(core, policy, undefined);
    core.metrics.reloadTaken();
    core.audit.touch();
    core.store.commit(
      [{ kind: "audit", record: { kind: "change", what: "reload", by: HOST, subject: policy.version } }],
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
    this.#core.metrics.reloadRefused(this.#core.clock.nowMs());
    this.#core.runtime = { ...this.#core.runtime, stale: why };
  }

  /** Lets running calls finish; resolves when every answer is out and every connection is told, or after `timeoutMs`. */
  async drain(timeoutMs: number, late: "refused" | "left" = "refused"): Promise<{ unfinished: number }> {
    const core = this.#core;
    core.draining = late;
    core.approvals.watchers.wakeAll();
    this.#letIdleGo();
    if (this.#isBusy()) {
      await new Promise<void>((resolve) => {
        const withdraw = core.clock.after(timeoutMs, resolve);
        core.released = () => {
          this.#letIdleGo();
          if (this.#isBusy()) return;
          withdraw();
          resolve();
        };
      });
      core.released = undefined;
    }
    core.audit.drain();
    const unfinished = core.live.running;
    for (const peer of core.peers.all()) peer.connection.finish();
    return { unfinished };
  }

  /** What every role holds of its limits now; nothing at all once its connections and calls have ended. */
  holdings(): readonly Holding[] {
    return [...this.#quotas].map(([role, quota]) => ({
      role,
      connections: quota.held("connections"),
      calls_in_flight: quota.held("calls_in_flight"),
      queued_bytes_in: quota.held("queued_bytes_in"),
      queued_bytes_out: quota.held("queued_bytes_out"),
    }));
  }

  /** Calls whose final answer is not out; those that wait for a human are not among them. */
  get runningCalls(): number {
    return this.#core.live.running;
  }

  state(): BrokerState {
    return stateOf(this.#core);
  }

  /** Drops every connection. */
  close(): void {
    for (const peer of this.#core.peers.all()) peer.connection.close();
  }

  #hasTool(name: string): boolean {
    const { builtins, definitions, runtime } = this.#core;
    return builtins.has(name) || definitions.resolve(runtime.policy, name) !== undefined;
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
    const answered = envelope.msg.kind === "tool_request" ? undefined : peer.serving.get(envelope.id);
    try {
      this.#route(peer, envelope);
    } catch (error) {
      this.#fault(peer, envelope, answered, error);
    }
  }

  #route(peer: Peer, envelope: Envelope<JsonString>): void {
    const { id, final, msg } = envelope;
    this.#core.audit.touch();
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

  /** A broken assumption of ours: whoever asked is told, the call ends, and the others go on. */
  #fault(peer: Peer, envelope: Envelope<JsonString>, answered: Blamed | undefined, error: unknown): void {
    const { connection } = peer;
    const asker = envelope.msg.kind === "tool_request" ? peer.asking.get(envelope.id) : undefined;
    const blamed = answered ?? asker?.live ?? asker;
    if (blamed !== undefined) return abandon(this.#core, blamed, error);
    this.#core.metrics.faults += 1;
    this.#core.log("error", "broker.fault", { role: connection.role, ...faultFields(error) });
    connection.send(envelope.id, true, internalMessage());
    connection.finish();
  }

  /** The role's connections hold more than its limit: who reads least goes, and the others notice nothing. */
  #overfull(connection: Connection): void {
    const { quota } = this.#core.peers.of(connection) ?? {};
    while (quota !== undefined && !quota.charge("queued_bytes_out", 0)) {
      const peers = this.#core.peers.ofRole(connection.role);
      const longest = peers.reduce((a, b) => (b.connection.queuedBytes > a.connection.queuedBytes ? b : a));
      if (longest.connection.queuedBytes === 0) return;
      longest.connection.drop("queued_bytes_out");
    }
  }

  #ended(connection: Connection): void {
    const peer = this.#core.peers.of(connection);
    if (peer === undefined) return connection.close();
    this.#loseCalls(peer); // it can't answer any more
    remindAskers(peer);
    finishIfIdle(peer);
  }

  #closed(connection: Connection): void {
    const peer = this.#core.peers.of(connection);
    if (peer === undefined) return; // it was turned away; nothing was taken but its place
    this.#core.peers.remove(peer);
    peer.quota.release("connections", 1);
    this.#loseCalls(peer);
    forgetAskers(peer);
    this.#core.approvals.watchers.forget(peer);
    this.#core.log("info", "peer.disconnected", { role: connection.role, connection: connection.number });
    this.#core.released?.();
  }

  /** The calls that this connection was running. */
  #loseCalls(peer: Peer): void {
    const why = callFault("provider_lost", `The provider's connection was lost. ${MAY_HAVE_RUN}`);
    for (const live of [...peer.serving.values()]) {
      attempt(this.#core, live, () => failCall(this.#core, live, why));
    }
  }

  #isBusy(): boolean {
    return this.#core.live.running > 0 || this.#core.peers.all().some((peer) => expectsAnswer(peer));
  }

  /** While draining: who has nothing open is let go at once, a provider when no call is left; questions wait on in the store. */
  #letIdleGo(): void {
    const isNeeded = (peer: Peer) => this.#core.live.running > 0 && this.#mayProvide(peer);
    for (const peer of this.#core.peers.all()) {
      if (!expectsAnswer(peer) && peer.serving.size === 0 && !isNeeded(peer)) peer.connection.finish();
    }
  }
}

type Refusal = Exclude<Admission, "admitted"> | "draining" | "frozen";

const REFUSAL_SENTENCES: Readonly<Record<Refusal, string>> = {
  not_named: "this user may not connect as this role",
  unknown_peer: "the kernel did not say who connects, and this role names who may",
  overflow_id: "the kernel shows this user as unmapped, and this role names who may connect",
  draining: "the broker is stopping",
  frozen: "an operator has frozen this role",
};

/** The one frame that a peer gets that is turned away. */
function farewell(detail: string): Buffer {
  return encodeFrame({
    v: PROTOCOL_VERSION,
    id: 0n,
    final: true,
    msg: { kind: "error", body: { code: "internal", detail } },
  });
}
