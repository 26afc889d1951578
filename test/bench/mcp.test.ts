// The bench of MCP measures what it says it does: every path of ours gives every call its own answer, nothing of it is left
// running, and calls that go wrong are counted and not measured as fast ones.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, test } from "vitest";
import type { MeasuredCalls } from "../../bench/mcp_load.ts";
import { directPath, gatePath, type Path } from "../../bench/mcp_paths.ts";
import { startProgram } from "../../bench/processes.ts";
import { callgate, cleanUp, onCleanUp } from "../daemon/daemon.ts";

afterEach(cleanUp);

const DEPTH = 4;

/** What the bench's own client measures, in the shortest run that it makes. */
async function measured(path: Path): Promise<MeasuredCalls> {
  return path.with(async (reach) => {
    const env = { BENCH_WARM: "8" };
    const child = startProgram("mcp_load.ts", [JSON.stringify(reach), 0.05, DEPTH], env);
    const lines: string[] = [];
    if (child.stdout !== null) {
      for await (const line of createInterface({ input: child.stdout })) lines.push(line);
    }
    expect(lines[0]).toBe("warm");
    return JSON.parse(lines[1] ?? "") as MeasuredCalls;
  });
}

function directory(): string {
  const made = mkdtempSync(join(tmpdir(), "callgate-bench-"));
  onCleanUp(() => rmSync(made, { recursive: true, force: true }));
  return join(made, "gate");
}

/** Processes that have this text among their arguments. */
function running(text: string): readonly string[] {
  return readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").includes(text);
    } catch {
      return false; // it has ended
    }
  });
}

describe("the bench of MCP", () => {
  test("calls the server directly, and every call comes back right", async () => {
    const { calls, wrong } = await measured(directPath());
    expect(calls).toBeGreaterThanOrEqual(DEPTH);
    expect(wrong).toBe(0);
  });

  for (const over of ["stdio", "http"] as const) {
    for (const record of ["durable", "memory"] as const) {
      test(`calls it through callgate over ${over}, recorded ${record}, and leaves nothing behind`, async () => {
        const at = directory();
        const path = gatePath({ about: "gate", program: callgate(), directory: at, record, over });
        const { calls, wrong } = await measured(path);
        expect(calls).toBeGreaterThanOrEqual(DEPTH);
        expect(wrong).toBe(0);
        expect(running(at)).toEqual([]);
        expect(existsSync(at)).toBe(false);
      });
    }
  }

  test("counts a call as wrong where another's answer comes back", async () => {
    const echo = (text: string) =>
      `process.stdin.on("data", (chunk) => { for (const line of String(chunk).trim().split("\\n")) { const { id, method } = JSON.parse(line); if (id === undefined) continue; const result = method === "tools/list" ? { tools: [{ name: "echo" }] } : { content: [{ type: "text", text: ${JSON.stringify(text)} }] }; process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n"); } })`;
    const stale: Path = {
      name: "stale",
      with: (use) => use({ command: [process.execPath, "-e", echo("text of before")] }),
    };
    const { calls, wrong } = await measured(stale);
    expect(wrong).toBe(calls);
  });
});
