import { describe, expect, it } from "vitest";
import { expositionText } from "../../../src/roles/metrics/exposition.ts";
import { prometheusText, unreachableText } from "../../../src/roles/metrics/prometheus.ts";
import { measured, STARTED_MS } from "./statuses.ts";

const NOW_MS = STARTED_MS + 60_000;

/** Samples of one metric, without its comments. */
function samples(text: string, name: string): readonly string[] {
  return text.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

describe("the broker's counts as Prometheus' text", () => {
  it("have cumulative buckets in seconds, a sum and a count", () => {
    const text = prometheusText(
      measured({ durations: [{ tool: "read", counts: [3, 4, 5], sum_ms: 12_345 }] }),
      NOW_MS,
    );
    expect(text.split("\n").filter((line) => line.startsWith("callgate_call_duration_seconds"))).toEqual([
      'callgate_call_duration_seconds_bucket{tool="read",le="0.001"} 3',
      'callgate_call_duration_seconds_bucket{tool="read",le="1"} 7',
      'callgate_call_duration_seconds_bucket{tool="read",le="+Inf"} 12',
      'callgate_call_duration_seconds_sum{tool="read"} 12.345',
      'callgate_call_duration_seconds_count{tool="read"} 12',
    ]);
  });

  it("have each family once, with HELP and TYPE before its samples, and end with a line feed", () => {
    const text = prometheusText(
      measured({
        calls: [
          { tool: "a", outcome: "result", count: 2 },
          { tool: "b", outcome: "denied", count: 1 },
        ],
      }),
      NOW_MS,
    );
    const names = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name]) => name ?? "");
    expect(new Set(names).size).toBe(names.length);
    expect([...text.matchAll(/^# HELP (\S+) \S.*$/gm)].map(([, name]) => name)).toEqual(names);
    for (const line of text.split("\n").filter((one) => one !== "" && !one.startsWith("#"))) {
      const name = /^[a-z_]+/.exec(line)?.[0].replace(/_(?:bucket|sum|count)$/, "");
      expect(names.includes(name ?? "") || names.includes(/^[a-z_]+/.exec(line)?.[0] ?? ""), line).toBe(true);
    }
    expect(text.endsWith("\n")).toBe(true);
    for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm))
      expect(name?.endsWith("_total"), name).toBe(type === "counter");
  });

  it("sum all tools by outcome, and have every outcome, reason and end from the start", () => {
    const text = prometheusText(
      measured({
        calls: [
          { tool: "a", outcome: "result", count: 2 },
          { tool: "b", outcome: "result", count: 3 },
        ],
        decisions: [{ verdict: "ask", reason: "doubt", count: 4 }],
      }),
      NOW_MS,
    );
    expect(samples(text, "callgate_outcomes_total")).toContain('callgate_outcomes_total{outcome="result"} 5');
    expect(samples(text, "callgate_outcomes_total")).toHaveLength(14);
    expect(samples(text, "callgate_outcomes_total")).toContain(
      'callgate_outcomes_total{outcome="provider_lost"} 0',
    );
    expect(samples(text, "callgate_decisions_total")).toEqual([
      'callgate_decisions_total{verdict="allow",reason="allow"} 0',
      'callgate_decisions_total{verdict="ask",reason="doubt"} 4',
      ...[
        "no_grant",
        "grant_expired",
        "taint_too_high",
        "denied_by_grant",
        "approval_refused",
        "approval_expired",
      ].map((reason) => `callgate_decisions_total{verdict="deny",reason="${reason}"} 0`),
    ]);
    expect(samples(text, "callgate_approvals_ended_total")).toHaveLength(5);
    expect(samples(text, "callgate_refused_peers_total")).toHaveLength(7);
  });

  it("tell ages against the time they were taken, never a negative one", () => {
    const approvals = {
      pending: 1,
      oldest_asked_at_ms: NOW_MS - 90_500,
      ended: [],
      waited: { counts: [0, 0, 0], sum_ms: 0 },
    };
    const reloads = { taken: 0, refused: 1, stale_since_ms: NOW_MS + 5 };
    const text = prometheusText(measured({ approvals, reloads }, { policy_stale: true }), NOW_MS);
    expect(samples(text, "callgate_approvals_oldest_age_seconds")).toEqual([
      "callgate_approvals_oldest_age_seconds 90.5",
    ]);
    expect(samples(text, "callgate_policy_stale")).toEqual(["callgate_policy_stale 1"]);
    expect(samples(text, "callgate_policy_stale_seconds")).toEqual(["callgate_policy_stale_seconds 0"]);
    expect(samples(text, "callgate_taken_time_seconds")).toEqual([
      `callgate_taken_time_seconds ${NOW_MS / 1000}`,
    ]);
  });

  it.each(["ok", "failing", "stalled"])(
    "have a 1 for the store's condition (%s), and no other",
    (condition) => {
      const store = {
        condition,
        commits: 0,
        failed_commits: 0,
        commit_durations: { counts: [0, 0, 0], sum_ms: 0 },
      };
      const lines = samples(prometheusText(measured({ store }), NOW_MS), "callgate_store_condition");
      expect(lines.filter((line) => line.endsWith(" 1"))).toEqual([
        `callgate_store_condition{condition="${condition}"} 1`,
      ]);
      expect(lines).toHaveLength(3);
    },
  );

  it("have the number of the audit as exactly as it was told", () => {
    const text = prometheusText(measured({ audit: { seq: "18446744073709551615" } }), NOW_MS);
    expect(samples(text, "callgate_audit_records_total")).toEqual([
      "callgate_audit_records_total 18446744073709551615",
    ]);
  });

  it("leave out what an older broker does not tell", () => {
    const text = prometheusText(measured(), NOW_MS);
    expect(samples(text, "callgate_running_calls")).toEqual([]);
    expect(samples(text, "callgate_faults_total")).toEqual(["callgate_faults_total 0"]);
  });

  it("are none where the broker can't be asked, but for that", () => {
    const lines = unreachableText(NOW_MS)
      .split("\n")
      .filter((line) => !line.startsWith("#") && line !== "");
    expect(lines).toEqual(["callgate_up 0", `callgate_taken_time_seconds ${NOW_MS / 1000}`]);
  });
});

describe("a label's value", () => {
  it.each([
    ['a"} 1\nforged{x="y', 'm{l="a\\"} 1\\nforged{x=\\"y"} 1'],
    ["back\\slash", 'm{l="back\\\\slash"} 1'],
    ["ends with \\", 'm{l="ends with \\\\"} 1'],
    ["ä \u202e", 'm{l="ä \u202e"} 1'],
    ["half \ud800", 'm{l="half \ufffd"} 1'],
  ])("can't end its quotes or its line: %j", (value, line) => {
    const text = expositionText([
      { name: "m", type: "gauge", help: "h\nelp \\", samples: [{ labels: { l: value }, value: 1 }] },
    ]);
    expect(text).toBe(`# HELP m h\\nelp \\\\\n# TYPE m gauge\n${line}\n`);
  });

  it("is not needed, and numbers are as Prometheus reads them", () => {
    const values = [0, -1.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    const text = expositionText([
      { name: "m", type: "gauge", help: "h", samples: values.map((value) => ({ labels: {}, value })) },
    ]);
    expect(text.split("\n").slice(2, -1)).toEqual(["m 0", "m -1.5", "m 1e+21", "m NaN", "m +Inf", "m -Inf"]);
  });

  it("and a family without samples leaves nothing behind", () => {
    expect(expositionText([{ name: "m", type: "gauge", help: "h", samples: [] }])).toBe("");
  });
});
