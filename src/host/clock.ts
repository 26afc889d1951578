// Real time, and randomness: the effects that tests replace.

import { createHash, randomBytes } from "node:crypto";
import type { Clock, Digest, Randomness } from "../base/ports.ts";

/**
 * Wall time that never goes back. When somebody sets the clock back, time goes on at its own pace from
 * where it was, so nothing outlives its length; set forward, it jumps, so nothing stays open too long.
 */
export function systemClock(wallMs = () => Date.now(), steadyMs = () => performance.now()): Clock {
  let shown = wallMs();
  let steadyAt = steadyMs();
  return {
    nowMs() {
      const steady = steadyMs();
      shown = Math.max(wallMs(), shown + (steady - steadyAt));
      steadyAt = steady;
      return Math.floor(shown);
    },
    after(ms, task) {
      const timer = setTimeout(task, ms);
      return () => clearTimeout(timer);
    },
    afterInput(task) {
      setImmediate(task);
    },
  };
}

export const systemRandomness: Randomness = (bytes) => randomBytes(bytes).toString("hex");

export const sha256: Digest = (text) => createHash("sha256").update(text).digest("hex");
