// A connector whose backend answers at once, for the bench: the service, its store on disk and its accept loop as in the
// daemon. Prints `ready PORT`; on SIGUSR2 its batches are counted anew; on SIGTERM it prints what they were and ends.
// node bench/connector_daemon.ts DIRECTORY CALLERS PAYLOAD_BYTES

import { randomBytes } from "node:crypto";
import { Worker } from "node:worker_threads";
import { serve } from "../src/connector/serve.ts";
import { TransportService } from "../src/connector/service.ts";
import { systemClock } from "../src/host/clock.ts";
import { openReplayStore } from "../src/host/connector_replay.ts";
import { loadLibc } from "../src/host/libc.ts";
import { callerConfig, echo, FRAME_BYTES_MAX, POOL_BYTES } from "./connector_turn.ts";

const [directory = "", callers = "16", payloadBytes = "4096"] = process.argv.slice(2);
Buffer.poolSize = POOL_BYTES;
const clock = systemClock();
const log = () => undefined;
let batches = 0;
let bytes = 0;

const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (this: Worker, ...sent: Parameters<Worker["postMessage"]>) {
  const [message] = sent as [{ readonly length?: number }];
  if (message.length !== undefined) {
    batches += 1;
    bytes += message.length;
  }
  return postMessage.apply(this, sent);
} as Worker["postMessage"];

const service = await TransportService.open({
  config: {
    bind: "127.0.0.1",
    max_frame_bytes: FRAME_BYTES_MAX,
    max_connections: 256,
    socket_timeout_ms: 10_000,
    expiry_horizon_ms: 300_000,
    retention_ms: 86_400_000,
    callers: Array.from({ length: Number(callers) }, (_, i) => callerConfig(i)),
  },
  backend: { transport: "echo_v1", execute: async () => echo(Number(payloadBytes)) },
  store: async () => openReplayStore({ directory, libc: await loadLibc(), clock, log }),
  clock,
  random: randomBytes,
  log,
});
if (!service.ok) throw new Error(JSON.stringify(service.fault));
const server = await serve(service.value, { clock, log });
if (!server.ok) throw new Error(JSON.stringify(server.fault));
process.on("SIGUSR2", () => {
  batches = 0;
  bytes = 0;
});
process.once("SIGTERM", async () => {
  process.stdout.write(`${JSON.stringify({ batches, bytes })}\n`);
  await server.value.close(0);
  await service.value.close();
});
process.stdout.write(`ready ${server.value.port}\n`);
