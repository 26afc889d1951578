// What a broker tells an operator, for tests of what is made of it.

import type { MeasuredStatus, Metrics } from "../../../src/client/load_answers.ts";

export const STARTED_MS = 1_796_040_000_000;

export function metrics(more: Partial<Metrics> = {}): Metrics {
  const none = { counts: [0, 0, 0], sum_ms: 0 };
  return {
    started_at_ms: STARTED_MS,
    bounds_ms: [1, 1000],
    calls: [],
    decisions: [],
    durations: [],
    roles: [],
    refused_peers: [],
    approvals: { pending: 0, oldest_asked_at_ms: null, ended: [], waited: none },
    reloads: { taken: 0, refused: 0, stale_since_ms: null },
    store: { condition: "ok", commits: 0, failed_commits: 0, commit_durations: none },
    audit: { seq: "1" },
    process: { resident_bytes: 1, heap_bytes: 1, cpu_seconds: 0, loop_delay_max_ms: 0 },
    ...more,
  };
}

export function measured(more: Partial<Metrics> = {}, status: Partial<MeasuredStatus> = {}): MeasuredStatus {
  return {
    role: "operator",
    draining: false,
    policy: "abc",
    policy_stale: false,
    uptime_ms: 1000,
    ...status,
    metrics: metrics(more),
  };
}
