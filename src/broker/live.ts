// Who asks, who serves and what runs: the shapes that join a connection with the calls on it, and the
// table of the calls that are running. What is done to them is the stages'.
// Invariant: an asker is held against its role's limits from admission until its final answer or its
// connection's end, whichever comes first, and is given back once.

import type { CallFault } from "../base/faults.ts";
import type { Labels } from "../base/labels.ts";
import type { ToolPolicy } from "../policy/policy.ts";
import type { Connection } from "../session/connection.ts";
import type { Quota } from "../session/quota.ts";
import type { Session } from "../session/sessions.ts";
import type { CallKey, CallRecord, Change } from "../store/records.ts";

/** One connection with what is open on it, in both directions. */
export interface Peer {
  readonly connection: Connection;
  readonly quota: Quota;
  /** Requests of the peer that have no final answer yet, by its id. */
  readonly asking: Map<bigint, Asker>;
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

/** Where an answer goes: one request on one connection. */
export interface Asker {
  readonly peer: Peer;
  readonly id: bigint;
  /** Bytes of its arguments, charged to its role. */
  readonly heldBytes: number;
  /** The call that it waits for; undefined while none runs for it. */
  live: LiveCall | undefined;
}

/** How far a call has come. Only forward; `ended`: its final answer is known, though perhaps not written yet. */
export type LiveStage = "recording" | "dispatched" | "ended";

/** Where it runs: on a provider's connection under an id of ours. */
export interface Serving {
  readonly peer: Peer;
  readonly id: bigint;
}

/** A call's final message and what is written down with it. */
export interface Ending {
  readonly message: Buffer;
  readonly labels: Labels;
  readonly status: "result" | "failed" | "denied";
  readonly fault?: CallFault;
  /** Nothing ran after all, so the intent is taken back: asked again, the call is decided afresh. */
  readonly withdrawn?: boolean;
  /** Written in the same transaction. */
  readonly changes?: readonly Change[];
  /** Told whether all of it was written, before anybody is answered. */
  readonly settled?: (written: boolean) => void;
}

/** A call from the moment its intent is handed to the store until its final answer is out. */
export interface LiveCall {
  readonly key: CallKey;
  readonly tool: ToolPolicy;
  /** The item of its tool's store; the parsed arguments, many times their bytes, are not kept while it runs. */
  readonly item: string | undefined;
  /** Of the role that asked. */
  readonly quota: Quota;
  readonly session: Session;
  readonly record: CallRecord;
  readonly startedAtMs: number;
  readonly askers: Asker[];
  /** What was delivered so far, for those who join. */
  readonly delivered: Buffer[];
  stage: LiveStage;
  serving: Serving | undefined;
  /** Bytes of content of the parts so far. */
  contentBytes: number;
  parts: number;
  /** Messages before the final one, those that are no part of a result too. */
  messages: number;
  /** Of those, charged to the role that asked until the call ends. */
  keptBytes: number;
  labels: Labels;
  stopTimer: (() => void) | undefined;
  /** Intent and parts that were handed to the store and are not written yet: the ending waits for them. */
  unwritten: number;
  /** Set once the call has ended; later ends find it and change nothing. */
  ending: Ending | undefined;
  /** The final message as it went out; who joined too late for it finds it here. */
  answer: Buffer | undefined;
  /** Who waits for it: its askers, and those whose joining is not written yet. */
  waiting: number;
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
    live.session.running += 1;
    this.#size += 1;
  }

  remove(live: LiveCall): void {
    const calls = this.#bySession.get(live.session);
    if (calls?.get(live.key.call) !== live) return;
    calls.delete(live.key.call);
    live.session.running -= 1;
    this.#size -= 1;
    if (calls.size === 0) this.#bySession.delete(live.session);
  }

  all(): readonly LiveCall[] {
    return [...this.#bySession.values()].flatMap((calls) => [...calls.values()]);
  }
}
