// Run in the guest as a caller's user: asks for `TOOL` all the time, WORKERS at once, each with a text of its own that the
// answer must be, until its standard input ends or SIGTERM comes; then prints one JSON line of what came of it.
// load_caller.ts SOCKET TOOL WORKERS

import { connect } from "../../src/client/caller.ts";

const [path = "", tool = "", workers = "1"] = process.argv.slice(2);
const told = { asked: 0, answered: 0, crossed: 0, longestMs: 0, failed: {} as Record<string, number> };
let isOver = false;
process.on("SIGTERM", () => {
  isOver = true;
});

const caller = await connect({
  to: { path },
  session: "load",
  waitForBroker: true,
  reconnect: { delayMsMax: 500, giveUpAfterMs: 120_000 },
});

async function work(worker: number): Promise<void> {
  for (let count = 0; !isOver; count += 1) {
    const text = `${process.pid}-${worker}-${count}`;
    told.asked += 1;
    const began = performance.now();
    const answer = await caller.call(tool, { text }).final.catch((error: Error) => error.message);
    told.longestMs = Math.max(told.longestMs, Math.round(performance.now() - began));
    if (typeof answer === "string") count_(answer);
    else if (answer.status !== "result") count_(JSON.stringify(answer));
    else if (answer.content !== text) told.crossed += 1;
    else told.answered += 1;
  }
}

function count_(why: string): void {
  told.failed[why] = (told.failed[why] ?? 0) + 1;
}

await Promise.all(Array.from({ length: Number(workers) }, (_, worker) => work(worker)));
await caller.close();
process.stdout.write(`${JSON.stringify(told)}\n`);
