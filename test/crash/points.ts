// Loaded into the daemon before its own program (`--import`): counts the points where state is written or
// bytes leave, and ends the process with SIGKILL at the one it was armed for. The daemon itself knows nothing of it.
// A batch for the store has four points: before the writing thread has it, while that writes, when it is
// durable and the broker does not know yet, and when it was told. Bytes for a peer have three: before they leave, when
// half of them have left, and after.

import { EventEmitter } from "node:events";
import { Socket } from "node:net";
import { Worker } from "node:worker_threads";

/** What the parent says and hears over the process's channel. */
export type Order = { readonly armAt: number; readonly lies: boolean } | "disarm";
export interface Passed {
  readonly passed: number;
}

/** How long the writing thread is let run before the end comes in the middle of its work, at most. */
const MIDDLE_MS_MAX = 3;

let passed = 0;
/** Set from the start: the recovery dies. */
let armedAt: number | undefined = Number(process.env["CRASH_AT"]) || undefined;

function point(first: () => void = () => undefined): void {
  passed += 1;
  if (passed !== armedAt) return;
  first();
  process.kill(process.pid, "SIGKILL");
}

/** The thread works on meanwhile. */
function pause(): void {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  Atomics.wait(clock, 0, 0, Math.random() * MIDDLE_MS_MAX);
}

/** The store says that all is written and writes nothing: what a test of these tests wants to see found. */
let lies = false;

const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (this: Worker, ...sent: Parameters<Worker["postMessage"]>) {
  const [message] = sent as [{ readonly buffer?: ArrayBuffer }];
  point();
  if (!lies || message.buffer === undefined) postMessage.apply(this, sent);
  else setImmediate(() => this.emit("message", { buffer: message.buffer, fault: undefined }));
  point(pause);
} as Worker["postMessage"];

Worker.prototype.emit = function (this: Worker, event: string | symbol, ...told: unknown[]) {
  if (event === "message") point();
  const heard = EventEmitter.prototype.emit.call(this, event, ...told);
  if (event === "message") point();
  return heard;
} as Worker["emit"];

const { write } = Socket.prototype;
Socket.prototype.write = function (this: Socket, chunk: Uint8Array | string, ...rest: never[]) {
  if (!("server" in this) || this.server === null || typeof chunk === "string")
    return write.call(this, chunk, ...rest);
  point();
  point(() => write.call(this, chunk.subarray(0, chunk.length >> 1)));
  const went = write.call(this, chunk, ...rest);
  point();
  return went;
} as Socket["write"];

process.on("message", (order: Order) => {
  process.send?.({ passed } satisfies Passed);
  armedAt = order === "disarm" ? undefined : order.armAt;
  lies = order !== "disarm" && order.lies;
  if (order !== "disarm") passed = 0;
});
process.channel?.unref();
