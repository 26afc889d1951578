// What the broker counts of itself: calls, decisions, questions, peers, reloads, commits. Plain numbers from zero at
// the start; nothing of them is stored, and no timer runs for them. Where they are counted is the stages'; how they
// are told is metrics_report.ts.
// Invariant: labels are of closed lists or names that a policy had; nothing that a peer writes makes one, and
// tools that reloads have removed are kept up to a bound, then go into one sum.
//
// A call is counted once, when it ends. Whoever joins a running call or gets the answer of one that has ended is no
// new call. A decision is counted where it takes effect: `allow` when the intent is handed to the store (or a read of
// the broker's own begins), `ask` when the question is put or would be but for a limit, `deny` when a call is denied,
// also later: one that was asked and then refused is in both.

import type { FailCode } from "../base/faults.ts";
import type { CallStatus } from "../store/records.ts";

/** Upper bounds of all histograms, in ms; questions wait for hours, calls for less than the first. */
export const BOUNDS_MS: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 3_600_000,
];

/** How a call ended. `internal`: an assumption of the broker's own was broken. */
export type CallOutcome = "result" | "denied" | FailCode | "internal";

/** In place of a name that neither the policy nor the broker has. */
export const UNKNOWN_TOOL = "(unknown)";
/** All tools together that reloads removed too long ago to be kept by name. */
export const REMOVED_TOOLS = "(removed)";
const REMOVED_KEPT = 256;

/** Of a message that ends a call: what it is counted as. */
export function outcomeOf(status: CallStatus, code: FailCode | undefined): CallOutcome {
  return status === "failed" ? (code ?? "internal") : status;
}

/** How long things took, by `BOUNDS_MS`; the last count is of what took longer than all of them. */
export class Durations {
  readonly counts: number[] = new Array<number>(BOUNDS_MS.length + 1).fill(0);
  sumMs = 0;

  add(ms: number): void {
    let at = 0;
    while (at < BOUNDS_MS.length && ms > (BOUNDS_MS[at] ?? 0)) at += 1;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sumMs += ms;
  }

  addAll({ counts, sumMs }: Durations): void {
    for (const [at, count] of counts.entries()) this.counts[at] = (this.counts[at] ?? 0) + count;
    this.sumMs += sumMs;
  }
}

/** Counts by a name of a closed list. */
export type Counts<N extends string> = Map<N, number>;

function count<N extends string>(counts: Counts<N>, name: N, by = 1): void {
  counts.set(name, (counts.get(name) ?? 0) + by);
}

class ToolCounts {
  readonly ended: Counts<CallOutcome> = new Map();
  /** undefined: no provider has run it yet. */
  ran: Durations | undefined;
}

export class Metrics {
  readonly decisions = {
    allow: new Map<string, number>(),
    ask: new Map<string, number>(),
    deny: new Map<string, number>(),
  } as const;
  readonly refusedPeers: Counts<string> = new Map();
  readonly questions: Counts<string> = new Map();
  /** Until a person answered. */
  readonly waited = new Durations();
  readonly commitDurations = new Durations();
  commits = 0;
  failedCommits = 0;
  reloadsTaken = 0;
  reloadsRefused = 0;
  staleSinceMs: number | undefined;
  /** Broken assumptions of the broker's own, whether a call ended by them or not. */
  faults = 0;
  readonly #isKnown: (tool: string) => boolean;
  readonly #tools = new Map<string, ToolCounts>();
  /** Of those, the ones that no policy has any more, the longest removed first. */
  readonly #removed = new Set<string>();

  /** `isKnown`: whether policy in force or broker have a tool of that name. */
  constructor(isKnown: (tool: string) => boolean) {
    this.#isKnown = isKnown;
  }

  get tools(): ReadonlyMap<string, ToolCounts> {
    return this.#tools;
  }

  ended(tool: string, outcome: CallOutcome, calls = 1): void {
    count(this.#of(tool).ended, outcome, calls);
  }

  /** A provider has run a call, to whatever end. */
  ran(tool: string, ms: number): void {
    const counts = this.#of(tool);
    counts.ran ??= new Durations();
    counts.ran.add(ms);
  }

  /** `reason`: of a denial its code, else the row that decided. */
  decided(verdict: "allow" | "ask" | "deny", reason: string, calls = 1): void {
    count(this.decisions[verdict], reason, calls);
  }

  /** `why`: of a closed list, or a limit's name. */
  peerRefused(why: string): void {
    count(this.refusedPeers, why);
  }

  /** A question that no longer waits. */
  questionClosed(state: string, waitedMs: number): void {
    count(this.questions, state);
    if (state === "approved" || state === "refused") this.waited.add(waitedMs);
  }

  /** A commit was called back. `ms`: how long it waited for the disk; undefined: it did not wait. */
  committed(written: boolean, ms: number | undefined): void {
    this.commits += 1;
    if (!written) this.failedCommits += 1;
    else if (ms !== undefined) this.commitDurations.add(ms);
  }

  /** Another policy is in force. */
  reloadTaken(): void {
    this.reloadsTaken += 1;
    this.staleSinceMs = undefined;
    for (const tool of this.#tools.keys()) {
      if (tool === UNKNOWN_TOOL || tool === REMOVED_TOOLS) continue;
      if (this.#isKnown(tool)) this.#removed.delete(tool);
      else this.#removed.add(tool);
    }
    for (const tool of this.#removed) {
      if (this.#removed.size <= REMOVED_KEPT) break;
      this.#forget(tool);
    }
  }

  reloadRefused(nowMs: number): void {
    this.reloadsRefused += 1;
    this.staleSinceMs ??= nowMs;
  }

  #of(tool: string): ToolCounts {
    const counts = this.#tools.get(tool);
    if (counts !== undefined) return counts;
    return this.#entry(this.#isKnown(tool) ? tool : UNKNOWN_TOOL);
  }

  #entry(name: string): ToolCounts {
    let counts = this.#tools.get(name);
    if (counts === undefined) {
      counts = new ToolCounts();
      this.#tools.set(name, counts);
    }
    return counts;
  }

  /** What it counted stays in the sums, so that no sum over tools ever falls. */
  #forget(tool: string): void {
    const { ended, ran } = this.#entry(tool);
    const sum = this.#entry(REMOVED_TOOLS);
    for (const [outcome, calls] of ended) count(sum.ended, outcome, calls);
    if (ran !== undefined) {
      sum.ran ??= new Durations();
      sum.ran.addAll(ran);
    }
    this.#tools.delete(tool);
    this.#removed.delete(tool);
  }
}
