// What the stages share: the effects, the tables and the policy in force. One Core a daemon; only
// `runtime` and `draining` are ever replaced.

import type { JsonObject } from "../base/json.ts";
import type { Labels } from "../base/labels.ts";
import type { Clock, Digest, Log, Randomness } from "../base/ports.ts";
import type { GrantIndex } from "../policy/grant_index.ts";
import type { Policy, RolePolicy, ToolPolicy } from "../policy/policy.ts";
import type { Connection } from "../session/connection.ts";
import type { Session, SessionTable } from "../session/sessions.ts";
import type { Store } from "../store/port.ts";
import type { CallKey, CallRecord } from "../store/records.ts";
import type { Builtin } from "./builtin/builtin.ts";
import type { Definitions } from "./definitions.ts";
import type { Peer, Peers } from "./peers.ts";

/** The policy in force and what was made of it at load. */
export interface Runtime {
  readonly policy: Policy;
  readonly index: GrantIndex;
  /** Why the last reload was not taken; undefined: the policy is the file's. */
  readonly stale: string | undefined;
}

export interface Core {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: Randomness;
  readonly digest: Digest;
  readonly store: Store;
  readonly sessions: SessionTable;
  readonly peers: Peers;
  readonly live: LiveCalls;
  readonly definitions: Definitions;
  readonly builtins: ReadonlyMap<string, Builtin>;
  readonly startedAtMs: number;
  readonly replayForMs: number;
  /** Asks the host to read the config again; says what came of it. */
  readonly requestReload: () => Promise<string | undefined>;
  runtime: Runtime;
  draining: boolean;
}

/** Where an answer goes: one request on one connection. */
export interface Asker {
  readonly peer: Peer;
  readonly id: bigint;
}

/** How far a call has come. Only forward. */
export type LiveStage = "recording" | "dispatched" | "ended";

/** Where it runs: on a provider's connection under an id of ours, or in the broker itself. */
export interface Serving {
  readonly peer: Peer;
  readonly id: bigint;
}

/** A call from the moment its intent is written until its final answer is out. */
export interface LiveCall {
  readonly key: CallKey;
  readonly tool: ToolPolicy;
  readonly args: JsonObject;
  readonly session: Session;
  readonly record: CallRecord;
  readonly startedAtMs: number;
  readonly argumentsBytes: number;
  readonly askers: Asker[];
  /** What was delivered so far, for those who join. */
  readonly delivered: Buffer[];
  stage: LiveStage;
  serving: Serving | undefined;
  /** Bytes of content of the parts so far. */
  contentBytes: number;
  parts: number;
  labels: Labels;
  stopTimer: (() => void) | undefined;
}

/** The calls that are running, by session and call. */
export class LiveCalls {
  readonly #bySession = new Map<Session, Map<bigint, LiveCall>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  find(session: Session, call: bigint): LiveCall | undefined {
    return this.#bySession.get(session)?.get(call);
  }

  add(live: LiveCall): void {
    const calls = this.#bySession.get(live.session);
    if (calls === undefined) this.#bySession.set(live.session, new Map([[live.key.call, live]]));
    else calls.set(live.key.call, live);
    this.#size += 1;
  }

  remove(live: LiveCall): void {
    const calls = this.#bySession.get(live.session);
    if (calls?.delete(live.key.call) !== true) return;
    this.#size -= 1;
    if (calls.size === 0) this.#bySession.delete(live.session);
  }

  of(session: Session): readonly LiveCall[] {
    return [...(this.#bySession.get(session)?.values() ?? [])];
  }

  all(): readonly LiveCall[] {
    return [...this.#bySession.values()].flatMap((calls) => [...calls.values()]);
  }
}

/** The role of a connection as the policy in force has it; undefined once a reload took it away. */
export function roleOf(core: Core, connection: Connection): RolePolicy | undefined {
  return core.runtime.policy.roles.get(connection.role);
}
