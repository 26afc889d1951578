// The limit to compare with: a process that splits frames and forwards their bytes, nothing else.
// Answers go back in the order of the requests, so it need not look into them either.
// node bench/relay.ts DIR

import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { gatherer, splitFrames } from "./frames.ts";

const directory = process.argv[2] ?? ".";
const waiting: ((frame: Buffer) => void)[] = [];
let taken = 0;
let toProvider: ((frame: Buffer) => void) | undefined;

createServer((provider: Socket) => {
  toProvider = gatherer(provider);
  provider.on("error", () => undefined);
  splitFrames(provider, (frame) => {
    waiting[taken]?.(frame);
    taken += 1;
    if (taken === 4096) {
      waiting.splice(0, taken);
      taken = 0;
    }
  });
}).listen(join(directory, "files.sock"));

createServer((agent: Socket) => {
  const answer = gatherer(agent);
  agent.on("error", () => undefined);
  splitFrames(agent, (frame) => {
    waiting.push(answer);
    toProvider?.(frame);
  });
}).listen(join(directory, "agent.sock"), () => process.stdout.write("ready\n"));
