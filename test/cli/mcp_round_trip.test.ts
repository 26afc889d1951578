import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callgate, cleanUp, onCleanUp, run } from "../daemon/daemon.ts";
import { program } from "../roles/mcp/provide/house.ts";

// From a client's config file to the client with its tools behind the gate, each step as a person does it.

let place: string;
const at = (...names: string[]) => join(place, ...names);

/** Every line that the start script's programs print, come or to come. */
class Started {
  readonly child: ChildProcess;
  readonly lines: string[] = [];
  #waiting: (() => void)[] = [];

  constructor(script: string) {
    this.child = spawn(script, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    for (const stream of [this.child.stdout!, this.child.stderr!])
      createInterface({ input: stream }).on("line", (line) => {
        this.lines.push(line);
        for (const wake of this.#waiting.splice(0)) wake();
      });
  }

  async count(part: string, times: number): Promise<void> {
    while (this.lines.filter((line) => line.includes(part)).length < times)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

/** Processes whose command line has the directory in it. */
function processesOf(directory: string): readonly string[] {
  return readdirSync("/proc")
    .filter((one) => /^[0-9]+$/.test(one) && Number(one) !== process.pid)
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return line.includes(directory) ? [line] : [];
      } catch {
        return [];
      }
    });
}

beforeAll(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "callgate-round-")));
  mkdirSync(at("docs"));
  writeFileSync(at("docs/plan.txt"), "We ship on Friday.");
  const server = (name: string, ...args: string[]) => ({
    command: process.execPath,
    args: [program(`@modelcontextprotocol/server-${name}`), ...args],
  });
  const servers = {
    files: server("filesystem", at("docs")),
    memory: { ...server("memory"), env: { MEMORY_FILE_PATH: at("memory.json") } },
  };
  writeFileSync(at("client.mcp"), JSON.stringify({ mcpServers: servers }));
});

afterAll(async () => {
  await cleanUp();
  rmSync(place, { recursive: true, force: true });
});

it("a client's servers go behind the gate: a read goes through, a write waits for a person, and all ends together", async () => {
  const operator = ["--socket", at("gate/run/operator.sock")];
  const made = await run(["init", at("gate"), "--from-mcp", at("client.mcp")]);
  expect(made).toMatchObject({ status: 0 });
  expect((await run(["check", "--config", at("gate/callgate.toml")])).status).toBe(0);

  const started = new Started(at("gate/start.sh"));
  onCleanUp(() => started.child.exitCode === null && process.kill(-started.child.pid!, "SIGKILL"));
  await started.count("waiting for an operator", 2);

  for (const [prefix, many] of [
    ["files.*", 14],
    ["memory.*", 9],
  ]) {
    const shown = await run(["tools", "diff", String(prefix), ...operator]);
    const words = shown.out.trimEnd().split("\n").at(-1)!.trim().replaceAll("'", "").split(" ");
    expect(words.slice(0, 4)).toEqual(["callgate", "tools", "accept", String(prefix)]);
    const accepted = await run([...words.slice(1), ...operator]);
    expect(accepted.out).toBe(`accepted: ${many} definitions, in service as they were shown\n`);
  }

  const config = readFileSync(at("gate/callgate.toml"), "utf8");
  const agreed = config.replace(/^##[^\n]*\n#\[\[grants\]\](?:\n#[^\n]*)+/gm, (block) =>
    block.replace(/^#/gm, ""),
  );
  writeFileSync(at("gate/callgate.toml"), agreed);
  expect((await run(["reload", ...operator])).status).toBe(0);

  const { mcpServers } = JSON.parse(readFileSync(at("gate/client.json"), "utf8"));
  expect(mcpServers.callgate.args).toContain(callgate());
  const client = new Client({ name: "test", version: "0" });
  await client.connect(new StdioClientTransport(mcpServers.callgate));
  onCleanUp(() => client.close());
  const { tools } = await client.listTools();
  expect(tools).toHaveLength(23);
  const read = await client.callTool({
    name: "files__read_text_file",
    arguments: { path: at("docs/plan.txt") },
  });
  expect(read).toMatchObject({ content: [{ type: "text", text: "We ship on Friday." }] });

  const written = client.callTool(
    { name: "files__write_file", arguments: { path: at("docs/new.txt"), content: "Monday." } },
    { onprogress: () => undefined, resetTimeoutOnProgress: true },
  );
  await started.count('"event":"approval.asked"', 1);
  expect(readdirSync(at("docs"))).toEqual(["plan.txt"]);
  const asked = JSON.parse((await run(["approvals", "list", "--json", ...operator])).out);
  const approved = await run(["approvals", "approve", asked.approvals[0].approval, "--yes", ...operator]);
  expect(approved.status).toBe(0);
  expect((await written).isError ?? false).toBe(false);
  expect(readFileSync(at("docs/new.txt"), "utf8")).toBe("Monday.");

  await client.close();
  started.child.kill("SIGTERM");
  expect((await once(started.child, "close"))[0]).toBe(0);
  expect(processesOf(place)).toEqual([]);
}, 120_000);
