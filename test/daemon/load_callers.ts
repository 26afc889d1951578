// Run as a child by load.test.ts: CONNECTIONS connections with DEPTH calls in flight each, CALLS calls in all, every
// one with a content of its own, which its answer must name. Prints one JSON line.
// load_callers.ts SOCKET CONNECTIONS DEPTH CALLS IDLE

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { decodeBody } from "../../src/wire/envelope.ts";
import { FrameReader } from "../../src/wire/frame.ts";
import { requestFrame } from "./frames.ts";

const [path = "", ...numbers] = process.argv.slice(2);
const [connections = 0, depth = 0, calls = 0, idle = 0] = numbers.map(Number);
let asked = 0;
const told = { answered: 0, crossed: 0, failed: 0 };
let done: () => void = () => undefined;
const all = new Promise<void>((resolve) => {
  done = resolve;
});

async function open(): Promise<Socket> {
  const socket = connect(path);
  await once(socket, "connect");
  return socket;
}

function drive(socket: Socket): void {
  const waiting = new Map<bigint, number>();
  let id = 0n;
  const next = () => {
    if (asked === calls) return;
    asked += 1;
    id += 1n;
    waiting.set(id, asked);
    socket.write(requestFrame(id, "echo", { text: `call ${asked}` }, BigInt(asked)));
  };
  const reader = new FrameReader();
  socket.on("data", (chunk: Buffer) => {
    socket.cork();
    reader.push(chunk);
    for (let body = reader.next(); body !== undefined; body = reader.next()) {
      const envelope = decodeBody(body);
      if (envelope.msg.kind !== "tool_response") throw new Error(JSON.stringify(envelope.msg));
      const answer = envelope.msg.body;
      const number = waiting.get(envelope.id);
      waiting.delete(envelope.id);
      if (answer.status !== "result") told.failed += 1;
      else if (answer.content !== `call ${number}`) told.crossed += 1;
      told.answered += 1;
      next();
    }
    socket.uncork();
    if (told.answered === calls) done();
  });
  socket.cork();
  for (let i = 0; i < depth; i += 1) next();
  socket.uncork();
}

const resting = await Promise.all(Array.from({ length: idle }, open));
const busy = await Promise.all(Array.from({ length: connections }, open));
for (const socket of busy) drive(socket);
await all;
const lost = resting.filter((socket) => socket.destroyed || !socket.writable).length;
process.stdout.write(`${JSON.stringify({ ...told, lost })}\n`);
process.exit(0);
