import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ProcessWatch } from "../../src/host/process_figures.ts";

describe("the figures of the process", () => {
  let nowMs = 0;

  beforeEach(() => {
    nowMs = 0;
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  /** The loop turns as it should for so long. */
  function pass(ms: number): void {
    for (let passed = 0; passed < ms; passed += 20) {
      nowMs += 20;
      vi.advanceTimersByTime(20);
    }
  }

  it("are this process's own", () => {
    const watch = new ProcessWatch();
    const { residentBytes, heapBytes, cpuSeconds } = watch.read();
    expect(residentBytes).toBeGreaterThan(heapBytes);
    expect(heapBytes).toBeGreaterThan(1_000_000);
    expect(cpuSeconds).toBeGreaterThan(0);
    watch.stop();
  });

  it("say how long the loop was held up since they were read last, also in the moment after that", () => {
    const watch = new ProcessWatch(60_000, () => nowMs);
    expect(watch.read().loopDelayMaxMs).toBe(0);
    nowMs += 320; // nothing of ours ran meanwhile
    vi.advanceTimersByTime(20);
    pass(200);
    expect(watch.read().loopDelayMaxMs).toBe(300);
    pass(200);
    expect(watch.read().loopDelayMaxMs).toBe(0);
    watch.stop();
  });

  it("see what holds the loop up at this very moment", () => {
    const watch = new ProcessWatch(60_000, () => nowMs);
    watch.read();
    nowMs += 520;
    expect(watch.read().loopDelayMaxMs).toBe(500);
    watch.stop();
  });

  it("are measured only while somebody asks: a minute later no timer runs", () => {
    const watch = new ProcessWatch(60_000, () => nowMs);
    expect([watch.watches, vi.getTimerCount()]).toEqual([false, 0]);
    watch.read();
    expect([watch.watches, vi.getTimerCount()]).toEqual([true, 1]);
    pass(50_000);
    watch.read();
    pass(50_000);
    expect(watch.watches).toBe(true);
    pass(20_000);
    expect([watch.watches, vi.getTimerCount()]).toEqual([false, 0]);
    expect(watch.read().loopDelayMaxMs).toBe(0);
    watch.stop();
  });
});
