// Load: what the broker is doing now and over the last hour, as charts, and its roles as a table.

import { useMemo } from "preact/hooks";
import { span } from "../../../base/time_text.ts";
import type { RoleLine } from "../../../client/answers.ts";
import type { MeasuredStatus } from "../../../client/load_answers.ts";
import { Chart, type ChartProps } from "./charts.tsx";
import { type LoadSeries, loadSeries, type Percentiles, short, shortBytes, shortMs } from "./load_series.ts";
import type { PageProps } from "./page.ts";
import { Badge, Empty, Labels, Loading, Panel, PeerText } from "./parts.tsx";
import { type Column, Table } from "./table.tsx";

export function LoadPage({ live }: PageProps) {
  const series = useMemo(() => loadSeries(live.samples), [live.samples]);
  const { status } = live;
  return (
    <>
      <header class="page-head">
        <h1 tabIndex={-1}>Load</h1>
        {status === undefined ? null : <span class="muted">up {span(status.uptime_ms)}</span>}
      </header>
      {status === undefined ? (
        <Waiting connected={live.broker.connected} why={live.broker.why} />
      ) : (
        <Now status={status} />
      )}
      {series.atSeconds.length < 2 ? (
        <Empty>Charts begin with the second sample, a few seconds after the console has started.</Empty>
      ) : (
        <Charts series={series} />
      )}
      {status?.roles === undefined ? null : <Roles status={status} roles={status.roles} />}
    </>
  );
}

function Waiting({ connected, why }: { connected: boolean; why: string | null }) {
  if (connected) return <Loading what="the broker's figures" />;
  return <Empty>{why === null ? "There is no broker to ask now." : <PeerText text={why} />}</Empty>;
}

/** Figures that are no course over time. */
function Now({ status }: { status: MeasuredStatus }) {
  const { store, reloads, process, audit, refused_peers: refused, faults } = status.metrics;
  const turnedAway = refused.reduce((sum, { count }) => sum + count, 0);
  return (
    <Panel title="Now">
      <div class="figures">
        <Figure name="Running" value={status.running_calls ?? 0} />
        <Figure name="Questions" value={status.pending_approvals ?? 0} />
        <Figure
          name="Outcome unknown"
          value={status.unknown_calls ?? 0}
          warn={(status.unknown_calls ?? 0) > 0}
        />
        <Figure name="Audit record" value={audit.seq} />
        <Figure name="Store" value={store.condition} warn={store.condition !== "ok"} />
        <Figure name="Failed commits" value={store.failed_commits} warn={store.failed_commits > 0} />
        <Figure name="Refused peers" value={turnedAway} />
        <Figure name="Reloads taken" value={reloads.taken} />
        <Figure name="Reloads refused" value={reloads.refused} />
        <Figure name="Memory" value={shortBytes(process.resident_bytes)} />
        {faults === undefined ? null : <Figure name="Faults" value={faults} warn={faults > 0} />}
      </div>
    </Panel>
  );
}

function Figure({ name, value, warn }: { name: string; value: number | string; warn?: boolean }) {
  const text = typeof value === "number" ? value.toLocaleString("en-US") : value;
  return (
    <dl class="figure">
      <dt>{name}</dt>
      <dd>{warn === true ? <Badge tone="bad">{text}</Badge> : text}</dd>
    </dl>
  );
}

function Charts({ series }: { series: LoadSeries }) {
  const charts = useMemo(() => chartsOf(series), [series]);
  return (
    <div class="charts">
      {charts.map((chart) => (
        <Chart key={chart.title} atSeconds={series.atSeconds} {...chart} />
      ))}
    </div>
  );
}

function chartsOf(series: LoadSeries): readonly Omit<ChartProps, "atSeconds">[] {
  const { calls, decisions, durations, commits } = series;
  return [
    {
      title: "Calls that ended",
      unit: "each second",
      format: short,
      lines: [
        { name: "result", values: calls.result, tone: "good" },
        { name: "failed", values: calls.failed, tone: "warn" },
        { name: "denied", values: calls.denied, tone: "bad" },
      ],
    },
    {
      title: "Decisions",
      unit: "each second",
      format: short,
      lines: [
        { name: "allow", values: decisions.allow, tone: "good" },
        { name: "ask", values: decisions.ask, tone: "warn" },
        { name: "deny", values: decisions.deny, tone: "bad" },
      ],
    },
    { title: "Duration of calls", unit: "dispatch to outcome", format: shortMs, lines: shares(durations) },
    { title: "Duration of commits", unit: "until on disk", format: shortMs, lines: shares(commits) },
    {
      title: "In flight",
      unit: "calls without their answer",
      format: short,
      lines: [{ name: "calls", values: series.inFlight, tone: "info" }],
    },
    {
      title: "Questions",
      unit: "that wait for a person",
      format: short,
      lines: [{ name: "questions", values: series.pending, tone: "warn" }],
    },
    {
      title: "Queued",
      unit: "bytes that wait",
      format: shortBytes,
      lines: [{ name: "bytes", values: series.queuedBytes, tone: "info" }],
    },
    {
      title: "Loop held up",
      unit: "at most, by sample",
      format: shortMs,
      lines: [{ name: "longest", values: series.loopDelayMs, tone: "info" }],
    },
  ];
}

function shares({ p50, p99 }: Percentiles): ChartProps["lines"] {
  return [
    { name: "half within", values: p50, tone: "info" },
    { name: "99 % within", values: p99, tone: "warn" },
  ];
}

function Roles({ status, roles }: { status: MeasuredStatus; roles: readonly RoleLine[] }) {
  const measured = new Map(status.metrics.roles.map((one) => [one.role, one]));
  const columns: readonly Column<RoleLine>[] = [
    { head: "Role", cell: ({ role }) => <PeerText text={role} chars={60} /> },
    { head: "State", cell: (role) => <RoleState role={role} /> },
    { head: "Taint", cell: ({ taint }) => <Labels labels={taint} /> },
    { head: "Connections", cell: ({ connections }) => connections, kind: "number" },
    { head: "Asking", cell: ({ asking }) => asking, kind: "number" },
    { head: "Serving", cell: ({ serving }) => serving, kind: "number" },
    { head: "In flight", cell: ({ role }) => measured.get(role)?.calls_in_flight ?? 0, kind: "number" },
    {
      head: "Queued in",
      cell: ({ role }) => shortBytes(measured.get(role)?.queued_bytes_in ?? 0),
      kind: "number",
    },
    {
      head: "Queued out",
      cell: ({ role }) => shortBytes(measured.get(role)?.queued_bytes_out ?? 0),
      kind: "number",
    },
  ];
  return (
    <Panel title="Roles">
      <Table caption="Roles and their load" columns={columns} rows={roles} idOf={({ role }) => role} />
    </Panel>
  );
}

function RoleState({ role: { frozen, frozen_sessions: sessions = 0, connections } }: { role: RoleLine }) {
  if (frozen) return <Badge tone="bad">frozen</Badge>;
  if (sessions > 0) return <Badge tone="warn">{sessions} sessions frozen</Badge>;
  return connections === 0 ? <span class="muted">not connected</span> : <Badge tone="good">connected</Badge>;
}
