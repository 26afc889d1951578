// Loaded into the daemon before its own program (`--import`): what it hands to its store, and how long its
// event loop was held up. SIGUSR2 begins anew, once it is warm; the report is written when it exits.

import { writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Worker } from "node:worker_threads";

export interface Observed {
  readonly batches: number;
  readonly batchBytes: number;
  /** Milliseconds for which the loop did not come round. */
  readonly delayP99: number;
  readonly delayMax: number;
}

const RESOLUTION_MS = 2;
const NANOSECONDS = 1e6;

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
let batches = 0;
let batchBytes = 0;

const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (this: Worker, ...sent: Parameters<Worker["postMessage"]>) {
  const [message] = sent as [{ readonly length?: number }];
  if (message.length !== undefined) {
    batches += 1;
    batchBytes += message.length;
  }
  postMessage.apply(this, sent);
} as Worker["postMessage"];

delay.enable();
process.on("SIGUSR2", () => {
  delay.reset();
  batches = 0;
  batchBytes = 0;
});
process.on("exit", () => {
  const past = (nanoseconds: number) => Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS);
  const report: Observed = {
    batches,
    batchBytes,
    delayP99: past(delay.percentile(99)),
    delayMax: past(delay.max),
  };
  writeFileSync(process.env["BENCH_REPORT"] ?? "/dev/null", JSON.stringify(report));
});
