// Real time, and randomness: the effects that tests replace.

import { createHash, randomBytes } from "node:crypto";
import type { Clock, Digest, Randomness } from "../base/ports.ts";

/**
 * Wall time that never goes back. When somebody sets the clock back, time goes on at its own pace from
 * where it was, so nothing outlives its length; set forward, it jumps, so nothing stays open too long.
 * `floorMs`: a time that was shown before this process began; it goes on from there where it is later.
 */
export function systemClock(
  wallMs = () => Date.now(),
  steadyMs = () => performance.now(),
  floorMs = 0,
): Clock {
  let shown = Math.max(wallMs(), floorMs);
  let steadyAt = steadyMs();
  return {
    nowMs() {
      const steady = steadyMs();
      shown = Math.max(wallMs(), shown + (steady - steadyAt));
      steadyAt = steady;
      return Math.floor(shown);
    },
    after,
    afterInput: oncePerTurn(),
  };
}

/**
 * The same, but for a time that goes back where the machine's does: for who holds it against times of other processes, and
 * knows without it what has been. One that was set ahead and put right would refuse them all until it is reached again.
 */
export function wallClock(wallMs = () => Date.now()): Clock {
  return { ...systemClock(), nowMs: wallMs };
}

/** All that is asked for in one turn of the event loop runs in one callback of it. */
function oncePerTurn(): Clock["afterInput"] {
  let waiting: (() => void)[] = [];
  const runAll = () => {
    const tasks = waiting;
    waiting = [];
    for (const task of tasks) task();
  };
  return (task) => {
    if (waiting.length === 0) setImmediate(runAll);
    waiting.push(task);
  };
}

/** Of a timer; a longer one would fire at once. */
const TIMER_MS_MAX = 2_147_483_647;

/** What still waits, a question for hours, does not keep a process alive whose sockets and store are closed. */
function after(ms: number, task: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    const next = leftMs > TIMER_MS_MAX ? () => wait(leftMs - TIMER_MS_MAX) : task;
    timer = setTimeout(next, Math.min(leftMs, TIMER_MS_MAX)).unref();
  };
  wait(ms);
  return () => clearTimeout(timer);
}

export const systemRandomness: Randomness = (bytes) => randomBytes(bytes).toString("hex");

export const sha256: Digest = (text) => createHash("sha256").update(text).digest("hex");
