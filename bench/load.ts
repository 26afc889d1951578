// Callers: CONNECTIONS connections with DEPTH calls in flight each, CALLS calls in all, every call
// with an id of its own. Prints one JSON line: calls per second, p50 and p99 in milliseconds.
// node bench/load.ts SOCKET CONNECTIONS DEPTH CALLS FIRST_CALL SESSION

import { connect } from "node:net";
import { fixedNumber, framed, gatherer, idOf, splitFrames } from "./frames.ts";

const [path = "", connections = "1", depth = "1", calls = "1000", first = "0", session = "bench"] =
  process.argv.slice(2);
const total = Number(calls);
let asked = 0;
let answered = 0;
let wrong = 0;
const latencies = new Float64Array(total);
let startedAt = 0;

function request(id: number): Buffer {
  asked += 1;
  const call = fixedNumber(Number(first) + asked);
  return framed(
    `{"v":1,"id":${id},"final":true,"msg":{"kind":"tool_request","body":{"session":"${session}","call":${call},"tool":"read_file","arguments":"{\\"path\\":\\"/srv/docs/plan.txt\\"}"}}}`,
  );
}

function finished(): void {
  const seconds = (performance.now() - startedAt) / 1000;
  const sorted = latencies.subarray(0, answered).sort();
  const at = (share: number) => sorted[Math.min(answered - 1, Math.floor(answered * share))] ?? 0;
  process.stdout.write(`${JSON.stringify({ rate: total / seconds, p50: at(0.5), p99: at(0.99), wrong })}\n`);
  process.exit(0);
}

function open(): Promise<() => void> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      const send = gatherer(socket);
      const sentAt = new Map<string, number>();
      const next = (id: number) => {
        if (asked >= total) return;
        sentAt.set(String(id), performance.now());
        send(request(id));
      };
      splitFrames(socket, (frame) => {
        const id = idOf(frame);
        latencies[answered] = performance.now() - (sentAt.get(id) ?? 0);
        if (frame.indexOf('"status":"result"') < 0) wrong += 1;
        answered += 1;
        next(Number(id));
        if (answered === total) finished();
      });
      resolve(() => {
        for (let id = 1; id <= Number(depth); id += 1) next(id);
      });
    });
    socket.on("error", () => process.exit(1));
  });
}

const starts = await Promise.all(Array.from({ length: Number(connections) }, open));
startedAt = performance.now();
for (const start of starts) start();
