// A connector as a process for crash tests: the store on disk, the fake backend, the accept loop. Prints its port, and writes
// down each entry of the backend before it answers, in a file that outlives it. node crash_daemon.ts DIRECTORY

import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import type { ProviderBackend } from "../../src/connector/backend.ts";
import { serve } from "../../src/connector/serve.ts";
import { TransportService } from "../../src/connector/service.ts";
import { systemClock } from "../../src/host/clock.ts";
import { openReplayStore } from "../../src/host/connector_replay.ts";
import { loadLibc } from "../../src/host/libc.ts";
import { turnOf } from "./fake_backend.ts";
import { CONFIG } from "./service_rig.ts";

const [directory = ""] = process.argv.slice(2);
const clock = systemClock();
const log = () => undefined;
const libc = await loadLibc();

/** `held` in the request's conversation: it never answers. */
const backend: ProviderBackend = {
  transport: "fake_v1",
  execute: async (invocation) => {
    appendFileSync(join(directory, "calls"), `${invocation.request.request_id}\n`);
    if (invocation.request.conversation_id === "held") {
      process.stdout.write("entered\n");
      return new Promise(() => undefined);
    }
    return turnOf(invocation);
  },
};

const service = await TransportService.open({
  config: CONFIG,
  backend,
  store: () => openReplayStore({ directory: join(directory, "state"), libc, clock, log }),
  clock,
  random: randomBytes,
  log,
});
if (!service.ok) throw new Error(JSON.stringify(service.fault));
const server = await serve(service.value, { clock, log });
if (!server.ok) throw new Error(JSON.stringify(server.fault));
process.stdout.write(`port ${server.value.port}\n`);
process.once("SIGTERM", async () => {
  await server.value.close(0);
  await service.value.close();
  process.exit(0); // the parent's channel would hold it
});
