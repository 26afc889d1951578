// One look at the load out of the broker's whole status: sums over tools and roles, for the page's charts. Pure.

import type { Histogram, MeasuredStatus } from "../../client/load_answers.ts";
import type { Sample } from "./api.ts";

export function sampleOf({ metrics }: MeasuredStatus, nowMs: number): Sample {
  const { calls, decisions, roles, bounds_ms } = metrics;
  const ended = (fits: (outcome: string) => boolean) =>
    sum(calls.filter(({ outcome }) => fits(outcome)).map(({ count }) => count));
  const decided = (verdict: string) =>
    sum(decisions.filter((one) => one.verdict === verdict).map(({ count }) => count));
  return {
    at_ms: nowMs,
    started_at_ms: metrics.started_at_ms,
    ended: {
      result: ended((outcome) => outcome === "result"),
      failed: ended((outcome) => outcome !== "result" && outcome !== "denied"),
      denied: ended((outcome) => outcome === "denied"),
    },
    decisions: { allow: decided("allow"), ask: decided("ask"), deny: decided("deny") },
    bounds_ms,
    durations: together(metrics.durations, bounds_ms.length + 1),
    commit_durations: metrics.store.commit_durations.counts,
    in_flight: sum(roles.map(({ calls_in_flight }) => calls_in_flight)),
    queued_bytes: sum(roles.map((role) => role.queued_bytes_in + role.queued_bytes_out)),
    pending: metrics.approvals.pending,
    loop_delay_max_ms: metrics.process.loop_delay_max_ms,
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

function together(histograms: readonly Histogram[], length: number): number[] {
  return Array.from({ length }, (_, i) => sum(histograms.map(({ counts }) => counts[i] ?? 0)));
}
