// Series for the charts out of samples: counts become rates, histograms percentiles, each from the difference of
// two samples. Pure. Invariants: nothing is drawn across a restart of the broker or a time without samples, and
// a difference that can't be (a count that fell) is no value.

import type { Sample } from "../api.ts";

/** One value a moment; null: none, so the line breaks there. */
export type Values = readonly (number | null)[];

export interface LoadSeries {
  /** Seconds since 1970, ascending. */
  readonly atSeconds: readonly number[];
  readonly calls: Readonly<Record<"result" | "failed" | "denied", Values>>;
  readonly decisions: Readonly<Record<"allow" | "ask" | "deny", Values>>;
  readonly durations: Percentiles;
  readonly commits: Percentiles;
  readonly inFlight: Values;
  readonly queuedBytes: Values;
  readonly pending: Values;
  readonly loopDelayMs: Values;
}

export interface Percentiles {
  readonly p50: Values;
  readonly p99: Values;
}

/** Samples that are further apart than this many times the usual have a gap between them. */
const GAP_TIMES = 3;
const USUAL_MS = 5000;

/** A moment of the charts: a sample with the one before, where they belong together; or a gap. */
interface Point {
  readonly atSeconds: number;
  readonly now: Sample | undefined;
  readonly before: Sample | undefined;
}

export function loadSeries(samples: readonly Sample[]): LoadSeries {
  const points = pointsOf(samples);
  const gauge = (of: (sample: Sample) => number): Values =>
    points.map(({ now }) => (now === undefined ? null : of(now)));
  const rate = (of: (sample: Sample) => number): Values => points.map((point) => rateAt(point, of));
  return {
    atSeconds: points.map(({ atSeconds }) => atSeconds),
    calls: {
      result: rate(({ ended }) => ended.result),
      failed: rate(({ ended }) => ended.failed),
      denied: rate(({ ended }) => ended.denied),
    },
    decisions: {
      allow: rate(({ decisions }) => decisions.allow),
      ask: rate(({ decisions }) => decisions.ask),
      deny: rate(({ decisions }) => decisions.deny),
    },
    durations: percentiles(points, ({ durations }) => durations),
    commits: percentiles(points, ({ commit_durations: counts }) => counts),
    inFlight: gauge((sample) => sample.in_flight),
    queuedBytes: gauge((sample) => sample.queued_bytes),
    pending: gauge((sample) => sample.pending),
    loopDelayMs: gauge((sample) => sample.loop_delay_max_ms),
  };
}

function pointsOf(samples: readonly Sample[]): readonly Point[] {
  const points: Point[] = [];
  let before: Sample | undefined;
  for (const now of samples) {
    if (before !== undefined && now.at_ms <= before.at_ms) continue;
    const follows = before !== undefined && belong(before, now);
    if (before !== undefined && !follows)
      points.push({ atSeconds: (before.at_ms + now.at_ms) / 2000, now: undefined, before: undefined });
    points.push({ atSeconds: now.at_ms / 1000, now, before: follows ? before : undefined });
    before = now;
  }
  return points;
}

function belong(before: Sample, now: Sample): boolean {
  return before.started_at_ms === now.started_at_ms && now.at_ms - before.at_ms <= GAP_TIMES * USUAL_MS;
}

/** Each second. */
function rateAt({ now, before }: Point, of: (sample: Sample) => number): number | null {
  if (now === undefined || before === undefined) return null;
  const counted = of(now) - of(before);
  return counted < 0 ? null : (counted * 1000) / (now.at_ms - before.at_ms);
}

function percentiles(points: readonly Point[], of: (sample: Sample) => readonly number[]): Percentiles {
  const at = (share: number): Values => points.map((point) => percentileAt(point, of, share));
  return { p50: at(0.5), p99: at(0.99) };
}

function percentileAt(
  { now, before }: Point,
  of: (sample: Sample) => readonly number[],
  share: number,
): number | null {
  if (now === undefined || before === undefined) return null;
  const old = of(before);
  return quantile(
    now.bounds_ms,
    of(now).map((count, i) => count - (old[i] ?? 0)),
    share,
  );
}

/**
 * Where that share of the values lies, in ms: within its bucket as if values were spread evenly; of values above
 * all bounds the highest bound. null: no values.
 */
export function quantile(bounds: readonly number[], counts: readonly number[], share: number): number | null {
  if (counts.some((count) => count < 0)) return null;
  const wanted = share * counts.reduce((sum, count) => sum + count, 0);
  if (wanted === 0) return null;
  let below = 0;
  for (const [i, count] of counts.entries()) {
    const [from, to] = [bounds[i - 1] ?? 0, bounds[i]];
    if (to === undefined) break;
    if (count > 0 && below + count >= wanted) return from + ((to - from) * (wanted - below)) / count;
    below += count;
  }
  return bounds.at(-1) ?? null;
}

/** The last value that there is. */
export function latest(values: Values): number | null {
  return values.findLast((value) => value !== null) ?? null;
}

export function highest(values: Values): number | null {
  return values.reduce(
    (most, value) => (value === null || (most !== null && most >= value) ? most : value),
    null,
  );
}

/** Short enough for an axis: `1.2k`, `0.05`. */
export function short(value: number): string {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1_000_000) return `${trimmed(value / 1_000_000)}M`;
  if (Math.abs(value) >= 1000) return `${trimmed(value / 1000)}k`;
  return trimmed(value);
}

function trimmed(value: number): string {
  return String(Number(value.toPrecision(value >= 100 ? 3 : 2)));
}

export function shortMs(ms: number): string {
  return ms >= 1000 ? `${trimmed(ms / 1000)} s` : `${trimmed(ms)} ms`;
}

export function shortBytes(bytes: number): string {
  if (bytes < 1024) return `${Math.round(bytes)} B`;
  return bytes < 1_048_576 ? `${trimmed(bytes / 1024)} KiB` : `${trimmed(bytes / 1_048_576)} MiB`;
}
