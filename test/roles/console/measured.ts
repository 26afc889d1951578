// An operator's status with figures, as a broker gives it, for tests that need one.

import type { MeasuredStatus, Metrics } from "../../../src/client/load_answers.ts";

const BOUNDS_MS = [1, 10, 100];
const NONE = { counts: [0, 0, 0, 0], sum_ms: 0 };

export function measured(metrics: Partial<Metrics> = {}): MeasuredStatus {
  return {
    ...{ role: "operator", draining: false, policy: "p", policy_stale: false, uptime_ms: 1, roles: [] },
    metrics: {
      started_at_ms: 1000,
      bounds_ms: BOUNDS_MS,
      ...{ calls: [], decisions: [], durations: [], roles: [], refused_peers: [] },
      approvals: { pending: 0, oldest_asked_at_ms: null, ended: [], waited: NONE },
      reloads: { taken: 0, refused: 0, stale_since_ms: null },
      store: { condition: "ok", commits: 0, failed_commits: 0, commit_durations: NONE },
      audit: { seq: "0" },
      process: { resident_bytes: 1, heap_bytes: 1, cpu_seconds: 0, loop_delay_max_ms: 0 },
      ...metrics,
    },
  };
}
