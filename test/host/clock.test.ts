import { afterEach, describe, expect, it, vi } from "vitest";
import { sha256, systemClock, systemRandomness } from "../../src/host/clock.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** A clock whose wall and steady time are set by hand. */
function made() {
  const time = { wall: 1_000_000, steady: 500 };
  const clock = systemClock(
    () => time.wall,
    () => time.steady,
  );
  const pass = (ms: number) => {
    time.wall += ms;
    time.steady += ms;
  };
  return { clock, time, pass };
}

describe("the wall clock", () => {
  it("set back by an hour goes on at its own pace, so that nothing outlives its length", () => {
    const { clock, time, pass } = made();
    pass(10);
    expect(clock.nowMs()).toBe(1_000_010);
    time.wall -= 3_600_000;
    pass(5);
    expect(clock.nowMs()).toBe(1_000_015);
    pass(3_600_000);
    expect(clock.nowMs()).toBe(4_600_015);
  });

  it("set forward by an hour jumps, so that nothing stays open too long", () => {
    const { clock, time, pass } = made();
    time.wall += 3_600_000;
    pass(1);
    expect(clock.nowMs()).toBe(4_600_001);
  });

  it("gives whole milliseconds", () => {
    const { clock, time } = made();
    time.steady += 0.7;
    expect(clock.nowMs()).toBe(1_000_000);
  });
});

describe("a timer", () => {
  it("that is longer than the runtime's longest does not fire at once", () => {
    vi.useFakeTimers();
    const task = vi.fn();
    const month = 31 * 86_400_000;
    systemClock().after(month, task);
    vi.advanceTimersByTime(month - 1);
    expect(task).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(task).toHaveBeenCalledTimes(1);
  });

  it("that was withdrawn does not fire, also after a part of a long wait", () => {
    vi.useFakeTimers();
    const task = vi.fn();
    const month = 31 * 86_400_000;
    const withdraw = systemClock().after(month, task);
    vi.advanceTimersByTime(month - 1000);
    withdraw();
    vi.advanceTimersByTime(month);
    expect(task).not.toHaveBeenCalled();
  });
});

describe("chance and digests", () => {
  it("are lower-case hex of the length that is asked for", () => {
    expect(systemRandomness(16)).toMatch(/^[0-9a-f]{32}$/);
    expect(systemRandomness(16)).not.toBe(systemRandomness(16));
    expect(sha256("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });
});
