// The broker's counts as Prometheus reads them: which metrics there are, in base units. Pure. Labels are names of the
// policy's and words of closed lists: no session, no call, no argument.
// A counter whose labels are of a closed list is there with all of them from the start: the first of a kind is a rise
// then, and not a series that begins at 1, in which Prometheus sees none.

import { DENY_REASONS, FAIL_CODES } from "../../base/faults.ts";
import type { Histogram, MeasuredStatus, Metrics } from "../../client/load_answers.ts";
import {
  type Buckets,
  expositionText,
  type Family,
  type HistogramFamily,
  type Sample,
} from "./exposition.ts";

/** Of an answer with this text. */
export const PROMETHEUS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Readonly<Record<string, string>>;

/** All metrics of one look at the broker. `nowMs`: when it was taken, in the same clock as its times. */
export function prometheusText(status: MeasuredStatus, nowMs: number): string {
  return expositionText([
    up(1),
    ...about(status, nowMs),
    ...calls(status),
    ...perRole(status),
    ...peers(status),
    ...approvals(status, nowMs),
    ...policy(status, nowMs),
    ...store(status),
    ...processFamilies(status),
  ]);
}

/** What is to be said where the broker can't be asked: that, and since when it is known. */
export function unreachableText(nowMs: number): string {
  return expositionText([up(0), taken(nowMs)]);
}

function up(value: 0 | 1): Family {
  return gauge("callgate_up", "Whether the broker told its figures when these were taken.", value);
}

function taken(nowMs: number): Family {
  const help = "When these figures were taken; old ones mean that whoever takes them has stopped.";
  return gauge("callgate_taken_time_seconds", help, nowMs / 1000);
}

function about({ metrics, draining }: MeasuredStatus, nowMs: number): readonly Family[] {
  return [
    taken(nowMs),
    gauge("callgate_start_time_seconds", "When the broker started.", metrics.started_at_ms / 1000),
    gauge("callgate_draining", "Whether the broker is stopping and takes no new calls.", draining),
    counter("callgate_faults_total", "Broken assumptions of the broker's own: bugs.", [
      { labels: {}, value: metrics.faults ?? 0 },
    ]),
  ];
}

const OUTCOMES = ["result", "denied", ...FAIL_CODES, "internal"] as const;

function calls(status: MeasuredStatus): readonly (Family | HistogramFamily)[] {
  const { calls, durations, bounds_ms } = status.metrics;
  return [
    counter(
      "callgate_outcomes_total",
      "Calls that ended, of all tools together, by how they ended.",
      withZeros(
        "outcome",
        OUTCOMES,
        calls.map(({ outcome, count }) => [outcome, count]),
      ),
    ),
    counter(
      "callgate_calls_total",
      "Calls that ended, by tool and by how: result, denied, or the code of a failure.",
      calls.map(({ tool, outcome, count }) => ({ labels: { tool, outcome }, value: count })),
    ),
    counter(
      "callgate_decisions_total",
      "Decisions, by verdict and by the row that decided or the denial's reason.",
      decisions(status.metrics),
    ),
    histograms(
      "callgate_call_duration_seconds",
      "From a call's dispatch to its recorded outcome, by tool; the wait for a person is not in it.",
      durations.map((one) => buckets(one, bounds_ms, { tool: one.tool })),
    ),
    gauges("callgate_running_calls", "Calls that run; those that wait for a person are not among them.", [
      status.running_calls,
    ]),
    gauges("callgate_unknown_calls", "Calls whose outcome nobody knows, counted up to 1000.", [
      status.unknown_calls,
    ]),
  ];
}

function decisions({ decisions }: Metrics): readonly Sample[] {
  const of = (wanted: string, reasons: readonly string[]): readonly Sample[] => {
    const counts = decisions
      .filter(({ verdict }) => verdict === wanted)
      .map(({ reason, count }): Count => [reason, count]);
    return withZeros("reason", reasons, counts).map(({ labels, value }) => ({
      labels: { verdict: wanted, ...labels },
      value,
    }));
  };
  return [...of("allow", ["allow"]), ...of("ask", []), ...of("deny", DENY_REASONS)];
}

function perRole({ metrics, roles = [] }: MeasuredStatus): readonly Family[] {
  const each = (value: (role: Metrics["roles"][number]) => number): readonly Sample[] =>
    metrics.roles.map((role) => ({ labels: { role: role.role }, value: value(role) }));
  return [
    family(
      "callgate_role_connections",
      "Open connections, by role.",
      each(({ connections }) => connections),
    ),
    family(
      "callgate_role_calls_in_flight",
      "Requests without their final answer, by the role that asked.",
      each(({ calls_in_flight }) => calls_in_flight),
    ),
    family(
      "callgate_role_queued_bytes",
      "Bytes that the broker holds for a role: received and not done with (in), or waiting to be read (out).",
      metrics.roles.flatMap(({ role, queued_bytes_in, queued_bytes_out }) => [
        { labels: { role, direction: "in" }, value: queued_bytes_in },
        { labels: { role, direction: "out" }, value: queued_bytes_out },
      ]),
    ),
    family(
      "callgate_role_frozen",
      "Whether an operator has frozen the role.",
      roles.map(({ role, frozen }) => ({ labels: { role }, value: Number(frozen) })),
    ),
  ];
}

/** Of the broker's and of the role's limits. */
const TURNED_AWAY_BY = [
  "not_named",
  "unknown_peer",
  "overflow_id",
  "draining",
  "frozen",
  "connections",
  "connects_per_second",
] as const;

function peers({ metrics }: MeasuredStatus): readonly Family[] {
  return [
    counter(
      "callgate_refused_peers_total",
      "Connections that were turned away, by why.",
      withZeros(
        "why",
        TURNED_AWAY_BY,
        metrics.refused_peers.map(({ why, count }) => [why, count]),
      ),
    ),
  ];
}

const ENDS_OF_QUESTIONS = ["approved", "refused", "expired", "withdrawn", "void"] as const;

function approvals({ metrics }: MeasuredStatus, nowMs: number): readonly (Family | HistogramFamily)[] {
  const { pending, oldest_asked_at_ms: oldestMs, ended, waited } = metrics.approvals;
  const ageMs = oldestMs === null ? 0 : Math.max(0, nowMs - oldestMs);
  return [
    gauge("callgate_approvals_pending", "Questions that wait for a person.", pending),
    gauge(
      "callgate_approvals_oldest_age_seconds",
      "How long the question that waits longest has waited; 0 where none waits.",
      ageMs / 1000,
    ),
    counter(
      "callgate_approvals_ended_total",
      "Questions that no longer wait, by what became of them.",
      withZeros(
        "state",
        ENDS_OF_QUESTIONS,
        ended.map(({ state, count }) => [state, count]),
      ),
    ),
    histograms(
      "callgate_approval_wait_seconds",
      "From a question to its answer, of those that a person answered.",
      [buckets(waited, metrics.bounds_ms, {})],
    ),
  ];
}

function policy({ metrics, policy_stale }: MeasuredStatus, nowMs: number): readonly Family[] {
  const { taken, refused, stale_since_ms: staleMs } = metrics.reloads;
  const forMs = staleMs === null ? 0 : Math.max(0, nowMs - staleMs);
  return [
    counter("callgate_reloads_total", "Reloads of the config, by what came of them.", [
      { labels: { result: "taken" }, value: taken },
      { labels: { result: "refused" }, value: refused },
    ]),
    gauge(
      "callgate_policy_stale",
      "Whether the config file was refused, so that the policy before it is in force.",
      policy_stale,
    ),
    gauge("callgate_policy_stale_seconds", "For how long that has been so; 0 where it is not.", forMs / 1000),
  ];
}

const CONDITIONS = ["ok", "failing", "stalled"] as const;

function store({ metrics }: MeasuredStatus): readonly (Family | HistogramFamily)[] {
  const { condition, commits, failed_commits, commit_durations } = metrics.store;
  return [
    family(
      "callgate_store_condition",
      "1 for the condition that the store is in: ok, failing (it can't be written) or stalled (it is too slow).",
      CONDITIONS.map((name) => ({ labels: { condition: name }, value: Number(name === condition) })),
    ),
    counter("callgate_store_commits_total", "Commits of calls and their answers, failed ones too.", [
      { labels: {}, value: commits },
    ]),
    counter("callgate_store_failed_commits_total", "Commits of which nothing was written.", [
      { labels: {}, value: failed_commits },
    ]),
    histograms(
      "callgate_store_commit_duration_seconds",
      "From the hand-over of a commit until it is durable, of those that waited for that.",
      [buckets(commit_durations, metrics.bounds_ms, {})],
    ),
    counter("callgate_audit_records_total", "The number of the last audit record, since the store began.", [
      { labels: {}, value: metrics.audit.seq },
    ]),
  ];
}

function processFamilies({ metrics }: MeasuredStatus): readonly Family[] {
  const { resident_bytes, heap_bytes, cpu_seconds, loop_delay_max_ms } = metrics.process;
  return [
    gauge("callgate_process_resident_memory_bytes", "Memory of the broker's process.", resident_bytes),
    gauge("callgate_process_heap_bytes", "Of that, its JavaScript heap in use.", heap_bytes),
    counter("callgate_process_cpu_seconds_total", "Processor time of the broker's process.", [
      { labels: {}, value: cpu_seconds },
    ]),
    gauge(
      "callgate_event_loop_delay_max_seconds",
      "The longest that the broker's event loop was held up since anybody asked last.",
      loop_delay_max_ms / 1000,
    ),
  ];
}

type Count = readonly [name: string, count: number];

/** Sums by name; each of `names` is there. */
function withZeros(label: string, names: readonly string[], counts: readonly Count[]): readonly Sample[] {
  const sums = new Map(names.map((name) => [name, 0]));
  for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count);
  return [...sums].map(([name, value]) => ({ labels: { [label]: name }, value }));
}

function family(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, type: "gauge", help, samples };
}

function gauge(name: string, help: string, value: number | boolean): Family {
  return family(name, help, [{ labels: {}, value: Number(value) }]);
}

/** A figure that the broker may not have told. */
function gauges(name: string, help: string, values: readonly (number | undefined)[]): Family {
  return family(
    name,
    help,
    values.flatMap((value) => (value === undefined ? [] : [{ labels: {}, value }])),
  );
}

function counter(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, type: "counter", help, samples };
}

function histograms(name: string, help: string, all: readonly Buckets[]): HistogramFamily {
  return { name, type: "histogram", help, histograms: all };
}

function buckets({ counts, sum_ms }: Histogram, boundsMs: readonly number[], labels: Labels): Buckets {
  return { labels, bounds: boundsMs.map((bound) => bound / 1000), counts, sum: sum_ms / 1000 };
}
