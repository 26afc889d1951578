// The broker's counts as `callgate.status` tells them to operators: counts, and what is held and waits at this very
// moment. Everything here is a number or a name of the policy's, so it carries no labels. The client's side of this
// shape is client/load_answers.ts (`Metrics`); a test holds one against the other.

import type { Core } from "./core.ts";
import { BOUNDS_MS, type Durations, type Metrics } from "./metrics.ts";

export function metricsReport(core: Core) {
  const { metrics, store } = core;
  return {
    started_at_ms: core.startedAtMs,
    bounds_ms: BOUNDS_MS,
    calls: endedCalls(metrics),
    decisions: decisions(metrics),
    durations: durations(metrics),
    roles: roles(core),
    refused_peers: named(metrics.refusedPeers, "why"),
    approvals: approvals(core),
    reloads: {
      taken: metrics.reloadsTaken,
      refused: metrics.reloadsRefused,
      stale_since_ms: metrics.staleSinceMs ?? null,
    },
    store: {
      condition: store.condition,
      commits: metrics.commits,
      failed_commits: metrics.failedCommits,
      commit_durations: histogram(metrics.commitDurations),
    },
    audit: { seq: store.audit.head().seq.toString() },
    process: processFigures(core),
    faults: metrics.faults,
  };
}

function endedCalls({ tools }: Metrics) {
  return [...tools].flatMap(([tool, { ended }]) =>
    [...ended].map(([outcome, count]) => ({ tool, outcome, count })),
  );
}

function decisions({ decisions }: Metrics) {
  return (["allow", "ask", "deny"] as const).flatMap((verdict) =>
    [...decisions[verdict]].map(([reason, count]) => ({ verdict, reason, count })),
  );
}

function durations({ tools }: Metrics) {
  return [...tools].flatMap(([tool, { ran }]) => (ran === undefined ? [] : [{ tool, ...histogram(ran) }]));
}

function histogram({ counts, sumMs }: Durations) {
  return { counts: [...counts], sum_ms: sumMs };
}

function named<L extends string>(counts: ReadonlyMap<string, number>, label: L) {
  return [...counts].map(
    ([name, count]) => ({ [label]: name, count }) as Record<L, string> & { count: number },
  );
}

/** Roles of the policy in force; what one holds that a reload took away is not told. */
function roles({ runtime, quotaOf }: Core) {
  return [...runtime.policy.roles.keys()].map((role) => {
    const quota = quotaOf(role);
    return {
      role,
      connections: quota.held("connections"),
      calls_in_flight: quota.held("calls_in_flight"),
      queued_bytes_in: quota.held("queued_bytes_in"),
      queued_bytes_out: quota.held("queued_bytes_out"),
    };
  });
}

function approvals({ approvals, metrics }: Core) {
  return {
    pending: approvals.pending,
    oldest_asked_at_ms: approvals.oldestAskedAtMs ?? null,
    ended: named(metrics.questions, "state"),
    waited: histogram(metrics.waited),
  };
}

function processFigures({ processFigures }: Core) {
  const { residentBytes, heapBytes, cpuSeconds, loopDelayMaxMs } = processFigures();
  return {
    resident_bytes: residentBytes,
    heap_bytes: heapBytes,
    cpu_seconds: cpuSeconds,
    loop_delay_max_ms: loopDelayMaxMs,
  };
}
