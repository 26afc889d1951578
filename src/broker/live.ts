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
import type {
  Actor,
  ApprovalRecord,
  ApprovalState,
  CallKey,
  CallRecord,
  CallStatus,
  Change,
} from "../store/records.ts";
import type { Used } from "./runtime_grants.ts";
import type { LiveStage } from "./stages.ts";

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

/** The user in a role that a connection speaks for. */
export function actorOf({ connection }: Peer): Actor {
  return { role: connection.role, uid: connection.peer?.uid };
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

/** Where it runs: on a provider's connection under an id of ours. */
export interface Serving {
  readonly peer: Peer;
  readonly id: bigint;
}

/** A call's final message and what is written down with it. */
export interface Ending {
  readonly message: Buffer;
  readonly labels: Labels;
  readonly status: CallStatus;
  readonly fault?: CallFault;
  /** Nothing ran after all, so the intent is taken back: asked again, the call is decided afresh. */
  readonly withdrawn?: boolean;
  /** Where it ends a question: how. Left out: `withdrawn`. */
  readonly closes?: Extract<ApprovalState, "expired" | "void" | "withdrawn">;
  /** Written in the same transaction. */
  readonly changes?: readonly Change[];
  /** Told whether all of it was written, before anybody is answered. */
  readonly settled?: (written: boolean) => void;
}

/**
 * A call from the moment its question or its intent is handed to the store until its final answer is out.
 * One that waits for a human is here too: it is joined, cancelled and frozen like one that runs.
 */
export interface LiveCall {
  readonly key: CallKey;
  /** As it was when the call was asked; a release takes the tool as it is then. */
  tool: ToolPolicy;
  /** The item of its tool's store; the parsed arguments, many times their bytes, are not kept while it waits or runs. */
  item: string | undefined;
  /** Of the role that asked. */
  readonly quota: Quota;
  readonly session: Session;
  readonly record: CallRecord;
  /** Equal calls under other ids that follow its question, by id: they hear what it hears. */
  readonly aliases: Map<bigint, CallRecord>;
  /** What a human was asked about it; undefined: nobody was. */
  question: ApprovalRecord | undefined;
  /** Whose answer is being written. */
  answering: Actor | undefined;
  /** Whether its intent is written or being written: what ends without one leaves no call behind. */
  hasIntent: boolean;
  /** The uses of grants that it has made; given back where nothing ran. */
  used: Used | undefined;
  readonly startedAtMs: number;
  /** When a provider was given it; undefined: none was yet. */
  dispatchedAtMs: number | undefined;
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
  /** Of its question's expiry, or of its provider's timeout. */
  stopTimer: (() => void) | undefined;
  /** Until when a broker behind its provider may keep it waiting for a human. */
  humanUntilMs: number | undefined;
  waitsForHuman: boolean;
  /** Question, answer, intent and parts that were handed to the store and are not written yet: the ending waits for them. */
  unwritten: number;
  /** Set once the call has ended; later ends find it and change nothing. */
  ending: Ending | undefined;
  /** The final message as it went out; who joined too late for it finds it here. */
  answer: Buffer | undefined;
  /** Who waits for it: its askers, and those whose joining is not written yet. */
  waiting: number;
}

/** The record of a call by its own id: the live call's, or that of an equal one that follows it. */
export function recordOf(live: LiveCall, call: bigint): CallRecord | undefined {
  return live.key.call === call ? live.record : live.aliases.get(call);
}

/** The call's own record, and those of the calls that follow it. */
export function recordsOf(live: LiveCall): readonly CallRecord[] {
  return [live.record, ...live.aliases.values()];
}

/** The calls that wait for a human or run, by session and call. */
export class LiveCalls {
  readonly #bySession = new Map<Session, Map<bigint, LiveCall>>();
  readonly #all = new Set<LiveCall>();

  find(session: Session, call: bigint): LiveCall | undefined {
    return this.#bySession.get(session)?.get(call);
  }

  add(live: LiveCall): void {
    this.#put(live, live.key.call);
    live.session.running += 1;
    this.#all.add(live);
  }

  /** Lets an equal call, under its own id, wait for the same answer. */
  follow(live: LiveCall, record: CallRecord): void {
    live.aliases.set(record.key.call, record);
    this.#put(live, record.key.call);
  }

  remove(live: LiveCall): void {
    if (!this.#all.delete(live)) return;
    live.session.running -= 1;
    const calls = this.#bySession.get(live.session);
    for (const call of [live.key.call, ...live.aliases.keys()]) {
      if (calls?.get(call) === live) calls.delete(call);
    }
    if (calls?.size === 0) this.#bySession.delete(live.session);
  }

  all(): readonly LiveCall[] {
    return [...this.#all];
  }

  /** Calls that don't wait for a human. */
  get running(): number {
    let running = 0;
    for (const live of this.#all) if (live.stage !== "asking") running += 1;
    return running;
  }

  /** Those that wait for a human too. */
  get size(): number {
    return this.#all.size;
  }

  #put(live: LiveCall, call: bigint): void {
    const calls = this.#bySession.get(live.session);
    if (calls === undefined) this.#bySession.set(live.session, new Map([[call, live]]));
    else calls.set(call, live);
  }
}
