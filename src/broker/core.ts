// What the stages share: the effects, the tables, the policy in force, and what a tool of the broker's
// own is. One Core a daemon; only `runtime`, `draining` and `released` are ever replaced.

import type { CallFault, Result } from "../base/faults.ts";
import type { JsonObject } from "../base/json.ts";
import type { Labels } from "../base/labels.ts";
import type { Clock, Digest, Log, ProcessFigures, Randomness } from "../base/ports.ts";
import type { ConditionCompiler, ConditionInput } from "../policy/conditions.ts";
import { type GrantIndex, indexGrants } from "../policy/grant_index.ts";
import type { Policy, RolePolicy } from "../policy/policy.ts";
import type { ArgumentsSchema } from "../policy/schema.ts";
import type { Connection } from "../session/connection.ts";
import type { Quota } from "../session/quota.ts";
import type { Session, SessionTable } from "../session/sessions.ts";
import type { Store } from "../store/port.ts";
import type { CallKey, Change } from "../store/records.ts";
import type { Approvals } from "./approvals.ts";
import type { AuditTrail } from "./audit_trail.ts";
import type { Definitions } from "./definitions.ts";
import type { Doubts } from "./doubts.ts";
import type { LiveCalls, Peer } from "./live.ts";
import type { Metrics } from "./metrics.ts";
import type { TurnTime } from "./metrics_time.ts";
import type { Peers } from "./peers.ts";
import type { RuntimeGrants } from "./runtime_grants.ts";
import type { Turns } from "./turns.ts";

/** The policy in force and what was made of it at load. */
export interface Runtime {
  readonly policy: Policy;
  readonly index: GrantIndex;
  /** Why the last reload was not taken; undefined: the policy is the file's. */
  readonly stale: string | undefined;
}

export interface Core {
  readonly clock: Clock;
  /** Bounded: lines that a peer can cause at will are counted instead of repeated (log_budget.ts). */
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
  /** Runtime grants and counted uses. */
  readonly grants: RuntimeGrants;
  /** Questions to humans. */
  readonly approvals: Approvals;
  /** Calls whose outcome nobody knows. */
  readonly doubts: Doubts;
  /** Denials and refused peers, counted where they repeat; the chain's head in the log. */
  readonly audit: AuditTrail;
  /** What the broker's own tools read, one in a turn for each role. */
  readonly turns: Turns;
  /** What is counted of all that happens. */
  readonly metrics: Metrics;
  /** For measuring alone. */
  readonly turnTime: TurnTime;
  /** Read where an operator asks for the counts, and nowhere else. */
  readonly processFigures: () => ProcessFigures;
  /** What a role of the policy in force may take. */
  readonly quotaOf: (role: string) => Quota;
  /** Loaded when a grant that somebody adds, or one from the store, has a condition. */
  readonly loadConditions: () => Promise<ConditionCompiler>;
  /** Asks the host to read the config again; says what came of it. */
  readonly requestReload: () => Promise<string | undefined>;
  /** Of the program. */
  readonly version?: string;
  runtime: Runtime;
  /**
   * On the way to the end. What is asked now is `refused`; or `left`, unanswered, for the daemon that comes next on the same
   * sockets: its connection ends, and whoever asks again there is answered.
   */
  draining: "refused" | "left" | undefined;
  /** Told of every answer that is out, while somebody waits for the last one. */
  released: (() => void) | undefined;
}

export interface BuiltinCall {
  readonly peer: Peer;
  readonly role: RolePolicy;
  readonly session: Session;
  readonly key: CallKey;
  readonly args: JsonObject;
}

/** What it shows, as a value for JSON (bigint as decimal string), and the labels of that. */
export interface Shown {
  readonly content: unknown;
  readonly labels: Labels;
  /** What it changed, written in the transaction of its outcome. Not for a `read`. */
  readonly changes?: readonly Change[];
  /** Told whether that was written, before the caller is answered: what waited for it takes effect, or is undone. */
  readonly settled?: (written: boolean) => void;
}

export type BuiltinOutcome = Result<Shown, CallFault>;

/** A tool of the broker's own: decided, labelled and answered like any other, but run here. */
export interface Builtin {
  readonly name: string;
  readonly description: string;
  /** A `read` is neither recorded for replay nor replayed. */
  readonly effect: "read" | "write";
  readonly schema: ArgumentsSchema;
  /** What it acts on: conditions of grants can look at it. Arguments are not validated yet. */
  target(args: JsonObject, role: string): ConditionInput["target"];
  run(core: Core, call: BuiltinCall): BuiltinOutcome | Promise<BuiltinOutcome>;
}

/** Puts a policy into force, with the runtime grants beside it: whoever has decided by the one before decides again. */
export function putInForce(core: Core, policy: Policy, stale: string | undefined): void {
  const grants = [...policy.grants, ...core.grants.all()];
  core.runtime = { policy, index: indexGrants({ grants, tools: policy.tools }), stale };
}

/** The role of a connection as the policy in force has it; undefined once a reload took it away. */
export function roleOf(core: Core, connection: Connection): RolePolicy | undefined {
  return core.runtime.policy.roles.get(connection.role);
}
