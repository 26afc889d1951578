import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, expect, it } from "vitest";
import { cleanUp, onCleanUp } from "../../daemon/daemon.ts";
import { ROUGH } from "./provide/house.ts";
import { processesWith, untilProcesses, zombiesOf } from "./provide/processes.ts";
import { WholePath } from "./whole_path.ts";

// Clients that are killed, again and again: what they leave behind. Every process is the real one.

afterEach(cleanUp);

const ROUNDS = 20;
/** In each round: those that are killed while their call runs, and those that are killed while they start. */
const CALLING = 5;
const CONNECTING = 5;

const SAID = [
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"killed","version":"0"}}}',
  '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp__progress","arguments":{"steps":1,"stepMs":300}}}',
];

/** A client: what writes to its front and what reads of it know each other by the mark, and do nothing more. */
const CLIENT = `
mark=$1 said=$2; shift 2
{ printf '%s\\n' "$said"; exec sleep 100000 "$mark"; } | "$@" 2>/dev/null | sleep 100000 "$mark"
`;

/** Of a client's: its shell, what writes and what reads. */
const PROCESSES = 3;

class Killing {
  readonly path: WholePath;
  readonly notes: string;
  #groups = 0;

  constructor(path: WholePath, notes: string) {
    this.path = path;
    this.notes = notes;
  }

  /** So many clients, under one mark; resolves when their processes are there, though their fronts are still starting. */
  async clients(count: number, said: readonly string[]): Promise<string> {
    this.#groups += 1;
    const mark = `0.${process.pid}${Date.now()}${this.#groups}`;
    onCleanUp(() => this.kill(mark));
    const front = [process.execPath, ...this.path.stdioWords];
    for (let started = 0; started < count; started++)
      spawn("sh", ["-c", CLIENT, "sh", mark, said.join("\n"), ...front], { stdio: "ignore" });
    await untilProcesses(mark, (found) => found === PROCESSES * count);
    return mark;
  }

  kill(mark: string): void {
    for (const { pid } of processesWith(mark)) process.kill(pid, "SIGKILL");
  }

  /** Resolves when the server has noted that so many calls of that tool came. */
  async came(tool: string, count: number): Promise<void> {
    const watcher = watch(dirname(this.notes));
    try {
      while (this.calls(tool) < count) await once(watcher, "change");
    } finally {
      watcher.close();
    }
  }

  calls(tool: string): number {
    if (!existsSync(this.notes)) return 0;
    return readFileSync(this.notes, "utf8")
      .split("\n")
      .filter((line) => line === `call ${tool}`).length;
  }

  /** Resolves when the broker has that many connections of the agent's. */
  async connections(count: number): Promise<void> {
    for (;;) {
      const { roles } = (await this.path.ask("callgate.status", {})) as {
        roles: readonly { role: string; connections: number }[];
      };
      if (roles.find(({ role }) => role === "agent")?.connections === count) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Fronts, and what they were started by. */
  fronts(): readonly string[] {
    return processesWith(this.path.broker.socket("agent")).map(({ words }) => words.join(" "));
  }

  servers(): readonly number[] {
    const isServer = ({ words }: { words: readonly string[] }) => words[1] === ROUGH;
    return processesWith(this.notes)
      .filter(isServer)
      .map(({ pid }) => pid);
  }
}

it("ten clients killed with -9 while they call and while they start, twenty times, leave nothing behind", async () => {
  const directory = mkdtempSync(join(tmpdir(), "callgate-kills-"));
  onCleanUp(() => rmSync(directory, { recursive: true }));
  const notes = join(directory, "notes");
  const path = await WholePath.open({ provides: ["mcp."] }, [process.execPath, ROUGH, "--notes", notes]);
  const killing = new Killing(path, notes);
  const own = new Client({ name: "own", version: "0" });
  const [command = "", ...args] = [process.execPath, ...path.stdioWords];
  await own.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
  onCleanUp(() => own.close());
  const before = { servers: killing.servers(), fronts: killing.fronts().length };
  expect(before).toEqual({ servers: [expect.any(Number)], fronts: 1 });
  const provide = processesWith(notes).find(({ words }) => words.includes("provide"));
  for (let round = 1; round <= ROUNDS; round++) {
    const calling = await killing.clients(CALLING, SAID);
    await killing.came("progress", round * CALLING);
    // These call nothing: how far a starting front has come when it is killed is chance.
    const connecting = await killing.clients(CONNECTING, SAID.slice(0, 1));
    for (const mark of [calling, connecting]) killing.kill(mark);
    const answer = await own.callTool({ name: "mcp__echo", arguments: { round } });
    expect(answer.content).toEqual([{ type: "text", text: `{"round":${round}}` }]);
    await untilProcesses(path.broker.socket("agent"), (count) => count === before.fronts);
    await killing.connections(1);
    expect(killing.servers()).toEqual(before.servers);
    for (const pid of [path.broker.pid, provide?.pid ?? 0]) expect(zombiesOf(pid)).toEqual([]);
  }
  expect(killing.calls("progress")).toBe(ROUNDS * CALLING);
  expect(killing.calls("echo")).toBe(ROUNDS);
}, 600_000);
