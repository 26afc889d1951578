// An MCP server for tests that speaks the protocol by hand, and misbehaves as it is told: by its arguments from the start,
// and by its tools. Every tool answers with what it was sent, byte for byte, where it does nothing else.

import { spawn } from "node:child_process";
import { appendFileSync, existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createInterface } from "node:readline";

const has = (word) => process.argv.includes(word);
const after = (word) => process.argv[process.argv.indexOf(word) + 1];
/** Lines of what happened, for the test to read. */
const note = (line) => has("--notes") && appendFileSync(after("--notes"), `${line}\n`);

note(`start ${process.pid}`);
if (has("--hang")) setInterval(() => {}, 1000);
if (has("--greet")) process.stdout.write("Welcome to the \u001b[31mrough\u001b[0m server!\n");
if (has("--stubborn")) {
  process.on("SIGTERM", () => note("SIGTERM"));
  setInterval(() => {}, 1000); // stays when its input ends
}
if (has("--children")) {
  // The last word is what the test knows them by.
  const loop = ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)", "--", after("--notes")];
  note(`child ${spawn(process.execPath, loop, { stdio: "ignore" }).pid}`);
  const daemon = spawn(process.execPath, loop, { stdio: "ignore", detached: true });
  daemon.unref();
  note(`daemon ${daemon.pid}`);
}

const tools = [
  "echo",
  "die",
  "large",
  "flood",
  "progress",
  "wait",
  "wrong_id",
  "garbage",
  "fail",
  "ask_back",
  "change",
  "odd",
  "env",
  "exact",
];
let described = "A tool.";
const send = (message) =>
  process.stdout.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
const answer = (id, result) => send({ jsonrpc: "2.0", id, result });
const say = (text) => ({ content: [{ type: "text", text }] });

/** What its descriptors are; the one that lists them is closed by then. */
function openFiles() {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

const calls = {
  echo: (id, params) => answer(id, say(JSON.stringify(params.arguments))),
  exact: (id, _, line) => answer(id, say(line)),
  die: () => process.exit(7),
  large: (id, params) => answer(id, say("é".repeat(params.arguments.chars))),
  flood: async () => {
    const line = `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x" } })}\n`;
    for (;;)
      if (!process.stdout.write(line.repeat(1000)))
        await new Promise((resolve) => process.stdout.once("drain", resolve));
  },
  progress: async (id, params) => {
    const progressToken = params._meta?.progressToken;
    for (let progress = 1; progress <= params.arguments.steps; progress++) {
      await new Promise((resolve) => setTimeout(resolve, params.arguments.stepMs));
      send({
        jsonrpc: "2.0",
        method: "notifications/progress",
        params: { progressToken, progress, message: "secret words" },
      });
    }
    answer(id, say("done"));
  },
  wait: (id) => note(`waiting ${id}`),
  wrong_id: (id) => {
    answer(id + 1000, say("for another"));
    answer(String(id), say("for a text"));
    answer(id, say("for you"));
    answer(id, say("once more"));
  },
  garbage: (id) => {
    for (const line of ["{", "[]", "null", '"x"', '{"jsonrpc":"1.0"}', "\u0000\u001b[2J"]) send(line);
    send(Buffer.from([0xff, 0xfe]).toString("latin1"));
    answer(id, say("after it"));
  },
  fail: (id) =>
    send({ jsonrpc: "2.0", id, error: { code: -32050, message: `it \u001b[31mbroke ${"x".repeat(5000)}` } }),
  ask_back: (id) => {
    for (const [index, method] of ["sampling/createMessage", "elicitation/create", "roots/list"].entries())
      send({ jsonrpc: "2.0", id: `own-${index}`, method, params: {} });
    answer(id, say("asked"));
  },
  change: (id, params) => {
    described = params.arguments.to;
    send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    answer(id, say("changed"));
  },
  odd: (id, params) => answer(id, params.arguments.result),
  env: (id) => answer(id, say(JSON.stringify({ env: process.env, files: openFiles() }))),
};

function handle(line) {
  const { id, method, params, result, error } = JSON.parse(line);
  note(
    `got ${method ?? "answer"} ${JSON.stringify(method === undefined ? (error ?? result) : (id ?? params?.requestId ?? null))}`,
  );
  if (has("--hang")) return;
  if (method === "server/discover" && has("--old-and-touchy")) process.exit(3);
  else if (method === "initialize")
    answer(id, {
      protocolVersion: has("--very-old") ? "2025-06-18" : params.protocolVersion,
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "rough", version: "1" },
    });
  else if (method === "tools/list") {
    if (has("--tools")) answer(id, JSON.parse(readFileSync(after("--tools"), "utf8")));
    else
      answer(id, {
        tools: tools.map((name) => ({ name, description: described, inputSchema: { type: "object" } })),
      });
  } else if (method === "tools/call") {
    note(`call ${params.name}`);
    calls[params.name](id, params, line);
  } else if (method === "ping") answer(id, {});
  else if (id !== undefined && method !== undefined)
    send({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
}

const lines = createInterface({ input: process.stdin });
lines.on("line", handle);
lines.on("close", () => {
  note("input ended");
  if (!has("--stubborn") && !has("--hang")) process.exit(0);
});
if (has("--die-once") && !existsSync(after("--die-once"))) {
  appendFileSync(after("--die-once"), "");
  process.exit(9);
}
