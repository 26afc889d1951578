// The shapes of what the built-in tools answer about load and policy as a whole: the broker's counts
// (`callgate.status` with `metrics`) and what a policy comes to (`callgate.grants.explain` without a tool).
// Counts begin at zero when the broker starts. Names of tools and roles are the policy's, never a peer's.

import type { Labelled, Status } from "./answers.ts";

/** A histogram: `counts[i]` values are at most `bounds[i]` and above `bounds[i - 1]`; the last count is of those above all bounds. */
export interface Histogram {
  readonly counts: readonly number[];
  /** Of all values together. */
  readonly sum_ms: number;
}

/** What `callgate.status` adds for operators with `{"metrics": true}`. */
export interface Metrics {
  readonly started_at_ms: number;
  /** Upper bounds of every histogram here, in ms, ascending. */
  readonly bounds_ms: readonly number[];
  /**
   * Calls that ended, each once: who joins one or has its answer again is no new call. `outcome`: `result`, `denied`, a code of
   * `failed`, or `internal` (a fault of the broker's own). `tool` that the policy does not have: `(unknown)`; those that reloads
   * removed keep their names for a while, then are `(removed)` together.
   */
  readonly calls: readonly { readonly tool: string; readonly outcome: string; readonly count: number }[];
  /**
   * Every decision. `reason`: of a denial its code, else the row that decided. A call that was asked and then refused, or denied at
   * its release, is under both; an approval is no further decision.
   */
  readonly decisions: readonly {
    readonly verdict: "allow" | "ask" | "deny";
    readonly reason: string;
    readonly count: number;
  }[];
  /** From dispatch (of a question: from its release) to the recorded outcome, of calls that a provider ran. */
  readonly durations: readonly ({ readonly tool: string } & Histogram)[];
  readonly roles: readonly {
    readonly role: string;
    readonly connections: number;
    /** Requests without their final answer: what runs, waits for a human, or is being written. */
    readonly calls_in_flight: number;
    readonly queued_bytes_in: number;
    readonly queued_bytes_out: number;
  }[];
  /** Peers that were turned away, by why: a word of the log's `peer.refused`, or the limit that was reached. */
  readonly refused_peers: readonly { readonly why: string; readonly count: number }[];
  readonly approvals: {
    readonly pending: number;
    /** null: none waits. */
    readonly oldest_asked_at_ms: number | null;
    /** What became of questions: `approved`, `refused`, `expired`, `withdrawn`, `void`. */
    readonly ended: readonly { readonly state: string; readonly count: number }[];
    /** From question to answer, of those that a person answered. */
    readonly waited: Histogram;
  };
  readonly reloads: {
    readonly taken: number;
    readonly refused: number;
    /** Since when the file and the policy in force differ; null: they do not. */
    readonly stale_since_ms: number | null;
  };
  readonly store: {
    readonly condition: string;
    /** Of calls and their answers; audit records that nobody waits for are not among them. */
    readonly commits: number;
    readonly failed_commits: number;
    /** From the hand-over to the store until it is durable, of those that waited for that. */
    readonly commit_durations: Histogram;
  };
  readonly audit: { readonly seq: string };
  readonly process: {
    readonly resident_bytes: number;
    readonly heap_bytes: number;
    readonly cpu_seconds: number;
    /** The longest that the loop was held up since anybody asked for this last, in ms; 0 where nobody did within a minute. */
    readonly loop_delay_max_ms: number;
  };
  /** Broken assumptions of the broker's own (`broker.fault` in the log): a bug, whoever caused it. */
  readonly faults?: number;
}

export type Reachable = "allow" | "conditional" | "ask" | "deny";

/** What a role's calls of one tool come to, as far as the grants alone tell. */
export interface ToolReach {
  readonly tool: string;
  readonly provider: string;
  readonly effect: string;
  /** What its results are at least. */
  readonly brings: Labelled;
  /**
   * By taint, from the cleanest: `conditional` where only calls for which a condition holds are let through without a
   * human, `ask` where nothing is let through without one. `by`: the grants that it comes from.
   */
  readonly at: readonly (Labelled & { readonly verdict: Reachable; readonly by: readonly string[] })[];
}

/** A way from untrusted content to an effect without a human in it. */
export interface OpenPath {
  /** The role whose session reads the content. */
  readonly role: string;
  /** The tool that brings it. */
  readonly source: string;
  /** Where it goes through a store (or a role that calls in turn) first: in order. */
  readonly through: readonly PathHop[];
  /** The role that has the effect: `role`, or the last one that it went through. */
  readonly sink_role: string;
  readonly sink: string;
  readonly effect: string;
  /** The taint at which the sink is reached. */
  readonly taint: Labelled;
  /** The highest class of what the sink's role may have read by then, with the sink still open. */
  readonly carries: string;
  /** `allow` where no step of it depends on a condition. */
  readonly verdict: "allow" | "conditional";
  /** The grants that open the sink. */
  readonly by: readonly string[];
}

/** How content goes from `role` to the next role of a path (after the last hop: `sink_role`). */
export interface PathHop {
  /**
   * `store`: the role puts it into `store` with `tool`, the next takes it out with `taken_with`. `call`: the role calls
   * `tool`, whose provider is the next and calls in turn. `answer`: the role is the provider of `tool`, and answers the next with it.
   */
  readonly by: "store" | "call" | "answer";
  readonly role: string;
  readonly tool: string;
  /** Empty where there is none in between. */
  readonly store: string;
  readonly taken_with: string | null;
}

/** What `callgate check --json` has under `reach`, and `callgate.grants.explain` answers without a tool. */
export interface PolicyReach {
  readonly roles: readonly { readonly role: string; readonly tools: readonly ToolReach[] }[];
  readonly paths: readonly OpenPath[];
  /** There is more than is shown. */
  readonly more: boolean;
}

/** An operator's answer to `callgate.status` with `{"metrics": true}`. */
export interface MeasuredStatus extends Status {
  readonly metrics: Metrics;
}
