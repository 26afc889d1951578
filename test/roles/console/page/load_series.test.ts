import { describe, expect, it } from "vitest";
import type { Sample } from "../../../../src/roles/console/api.ts";
import {
  highest,
  latest,
  loadSeries,
  quantile,
  short,
  shortBytes,
  shortMs,
} from "../../../../src/roles/console/page/load_series.ts";

function sample(atMs: number, results: number, more: Partial<Sample> = {}): Sample {
  return {
    at_ms: atMs,
    started_at_ms: 1000,
    ended: { result: results, failed: 0, denied: 0 },
    decisions: { allow: results, ask: 0, deny: 0 },
    bounds_ms: [1, 10, 100],
    durations: [results, 0, 0, 0],
    commit_durations: [0, 0, 0, 0],
    in_flight: 1,
    queued_bytes: 2,
    pending: 3,
    loop_delay_max_ms: 4,
    ...more,
  };
}

describe("the charts' series", () => {
  it("are rates between two samples, and nothing for the first", () => {
    const { atSeconds, calls } = loadSeries([sample(10_000, 5), sample(15_000, 15), sample(20_000, 15)]);
    expect(atSeconds).toEqual([10, 15, 20]);
    expect(calls.result).toEqual([null, 2, 0]);
  });

  it("break where the broker was started anew, instead of falling", () => {
    const again = sample(15_000, 3, { started_at_ms: 12_000 });
    const { atSeconds, calls, pending } = loadSeries([
      sample(10_000, 500),
      again,
      sample(20_000, 3, { started_at_ms: 12_000 }),
    ]);
    expect(atSeconds).toEqual([10, 12.5, 15, 20]);
    expect(calls.result).toEqual([null, null, null, 0]);
    expect(pending).toEqual([3, null, 3, 3]);
  });

  it("break where there were no samples for a while", () => {
    const { calls, inFlight } = loadSeries([sample(10_000, 0), sample(100_000, 900)]);
    expect([calls.result, inFlight]).toEqual([
      [null, null, null],
      [1, null, 1],
    ]);
  });

  it("have no value where a count fell, and pass over a sample that comes twice", () => {
    const { calls } = loadSeries([sample(10_000, 5), sample(10_000, 5), sample(15_000, 4)]);
    expect(calls.result).toEqual([null, null]);
  });

  it("are percentiles of what came between two samples, and not of all time", () => {
    const slow = sample(15_000, 0, { durations: [1000, 0, 10, 0] });
    const { durations } = loadSeries([sample(10_000, 0, { durations: [1000, 0, 0, 0] }), slow]);
    expect(durations.p50).toEqual([null, 55]);
    expect(durations.p99[1]).toBeCloseTo(99.1);
  });

  it("are empty without samples", () => {
    expect(loadSeries([]).atSeconds).toEqual([]);
  });
});

describe("a percentile", () => {
  it.each([
    [[4, 0, 0, 0], 0.5, 0.5],
    [[0, 10, 0, 0], 1, 10],
    [[0, 0, 0, 3], 0.5, 100],
    [[1, 1, 0, 0], 0.99, 1 + 9 * 0.98],
    [[0, 0, 0, 0], 0.5, null],
    [[2, -1, 0, 0], 0.5, null],
  ])("of %j at %d", (counts, share, value) => {
    const found = quantile([1, 10, 100], counts, share);
    if (value === null) expect(found).toBeNull();
    else expect(found).toBeCloseTo(value);
  });
});

describe("what a table says of a series", () => {
  it("is the latest and the highest value that there are", () => {
    expect([latest([1, 5, null]), highest([1, 5, null]), latest([null]), highest([])]).toEqual([
      5,
      5,
      null,
      null,
    ]);
  });

  it("is short", () => {
    expect([0, 0.0512, 7.25, 123.4, 1234, 2_500_000].map(short)).toEqual([
      "0",
      "0.051",
      "7.3",
      "123",
      "1.2k",
      "2.5M",
    ]);
    expect([0.5, 12, 1500].map(shortMs)).toEqual(["0.5 ms", "12 ms", "1.5 s"]);
    expect([12, 2048, 3_145_728].map(shortBytes)).toEqual(["12 B", "2 KiB", "3 MiB"]);
  });
});
