import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/caller.ts";
import { provide } from "../../src/client/provider.ts";
import { describeWith } from "../needs.ts";
import { Collector } from "../roles/traces/collector.ts";
import { ECHO } from "./configs.ts";
import { callgate, cleanUp, Daemon, onCleanUp, Place, run } from "./daemon.ts";

// Figures and spans of a real daemon, and the alert rules and the dashboard that stand on them.

afterEach(cleanUp);

const EXAMPLES = join(import.meta.dirname, "../../examples");
const read = (path: string): string => readFileSync(join(EXAMPLES, path), "utf8");

/** A daemon whose calls have ended in several ways. */
async function busy(): Promise<Daemon> {
  const daemon = await Daemon.start(ECHO);
  const provider = await provide({
    to: { path: daemon.socket("tools") },
    tools: {
      echo: ({ arguments: text }) => text,
      slow: () => {
        throw new Error("CANARY failure");
      },
    },
  });
  onCleanUp(() => provider.close({ drainMs: 0 }));
  const agent = await connect({ to: { path: daemon.socket("agent") } });
  onCleanUp(() => agent.close());
  for (const tool of ["echo", "echo", "slow", "nowhere"])
    await agent.call(tool, { text: "CANARY" }, { session: "CANARY-session" }).final;
  return daemon;
}

async function figures(daemon: Daemon): Promise<string> {
  const { status, out } = await run(["metrics", "--socket", daemon.socket("operator")]);
  expect(status).toBe(0);
  return out;
}

function promtool(
  words: readonly string[],
  input = "",
): Promise<{ readonly status: unknown; readonly said: string }> {
  return new Promise((resolve) => {
    const child = execFile("promtool", words, (error, out, err) =>
      resolve({ status: error === null ? 0 : (error.code ?? error.signal), said: `${out}${err}` }),
    );
    child.stdin?.end(input);
  });
}

/** Every metric that a text of PromQL names, without the endings of histograms. */
function named(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/\bcallgate_[a-z_]+/g)].map(([name]) => name));
}

/** Every name that a sample can have. */
function sampled(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/^(callgate_[a-z_]+)[{ ]/gm)].map(([, name]) => name ?? ""));
}

describe("the figures of a real daemon", () => {
  it("count what happened, and have no session, call or argument in them", async () => {
    const text = await figures(await busy());
    for (const line of [
      "callgate_up 1",
      'callgate_calls_total{tool="echo",outcome="result"} 2',
      'callgate_calls_total{tool="slow",outcome="provider"} 1',
      'callgate_calls_total{tool="(unknown)",outcome="denied"} 1',
      'callgate_decisions_total{verdict="deny",reason="no_grant"} 1',
      'callgate_call_duration_seconds_count{tool="echo"} 2',
      'callgate_role_connections{role="tools"} 1',
      'callgate_store_condition{condition="ok"} 1',
    ])
      expect(text).toContain(`${line}\n`);
    expect(text).not.toMatch(/CANARY|nowhere/);
    expect(Number(/^callgate_process_resident_memory_bytes (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(
      10_000_000,
    );
    expect(Number(/^callgate_store_commit_duration_seconds_count (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(
      5,
    );
  });

  it("are all that the alert rules and the dashboard ask for", async () => {
    const there = sampled(await figures(await busy()));
    const rules = read("prometheus/callgate_rules.yml").replace(/^\s*#.*$/gm, "");
    const dashboard = read("grafana/callgate.json");
    for (const text of [rules, dashboard]) {
      const asked = named(text);
      expect(asked.size).toBeGreaterThan(10);
      expect([...asked].filter((name) => !there.has(name) && name !== "callgate_rules")).toEqual([]);
    }
  });

  it("begin at zero again with the next daemon", async () => {
    const daemon = await busy();
    await daemon.stop();
    const again = await Daemon.start(daemon.place);
    const text = await figures(again);
    expect(text).not.toContain('tool="echo"');
    expect(Number(/^callgate_audit_records_total (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(3); // the audit goes on
  });
});

describe("the dashboard", () => {
  interface Panel {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  }
  const panels = (JSON.parse(read("grafana/callgate.json")) as { readonly panels: readonly Panel[] }).panels;

  it("has panels that each ask something, have an id of their own, and do not lie on one another", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { type, title, targets, gridPos } of panels) {
      if (type !== "row") expect(targets?.length, title).toBeGreaterThan(0);
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken.has(`${x} ${y}`), title).toBe(false);
          taken.add(`${x} ${y}`);
        }
    }
  });

  describeWith(["promtool"], "asks in PromQL that", () => {
    it("promtool can read", async () => {
      const rules = panels
        .flatMap(({ targets = [] }) => targets)
        .map(({ expr }, at) => ({
          record: `panel_${at}`,
          expr: expr.replaceAll("$__rate_interval", "5m").replaceAll(/\$(?:job|instance)/g, ".*"),
        }));
      const place = new Place("");
      const file = join(place.directory, "panels.json"); // JSON is YAML
      writeFileSync(file, JSON.stringify({ groups: [{ name: "panels", rules }] }));
      expect(await promtool(["check", "rules", file])).toMatchObject({ status: 0 });
    });
  });
});

describeWith(["promtool"], "promtool", () => {
  it("finds nothing wrong with the figures", async () => {
    expect(await promtool(["check", "metrics"], await figures(await busy()))).toEqual({
      status: 0,
      said: "",
    });
    const none = await run(["metrics", "--socket", "/nonexistent/none.sock"]);
    expect(none).toMatchObject({ status: 1, out: "" });
  });

  it("takes the alert rules and the scrape config, and each alert fires when it should and not else", async () => {
    const rules = join(EXAMPLES, "prometheus/callgate_rules.yml");
    expect(await promtool(["check", "rules", rules])).toMatchObject({ status: 0 });
    const config = join(EXAMPLES, "prometheus/prometheus.yml");
    expect(await promtool(["check", "config", "--syntax-only", config])).toMatchObject({ status: 0 });
    const test = join(EXAMPLES, "prometheus/callgate_rules_test.yml");
    expect(await promtool(["test", "rules", test])).toMatchObject({ status: 0 });
  });

  it("is given a test for each alert, and each alert has two sentences for a person", () => {
    const rules = read("prometheus/callgate_rules.yml");
    const tests = read("prometheus/callgate_rules_test.yml");
    const alerts = [...rules.matchAll(/- alert: (\w+)\n([\s\S]*?)(?=\n +- alert:|\n*$(?![\s\S]))/g)];
    expect(alerts.length).toBeGreaterThan(20);
    for (const [, alert = "", body = ""] of alerts) {
      expect(tests, alert).toContain(`alertname="${alert}"`);
      expect(body, alert).toMatch(/summary: \S.*\.\n/);
      expect(body, alert).toMatch(/description: (?:>-\n\s+)?[A-Z0-9a-z]/);
      expect(body, alert).toContain("severity:");
    }
  });
});

describe("the spans of a real daemon", () => {
  /** `callgate traces`, from the first record on. */
  function traces(daemon: Daemon, collector: Collector): ChildProcess {
    const words = ["traces", "--to", collector.url, "--from", "1", "--every", "1s"];
    const position = join(daemon.place.directory, "position.json");
    const child = spawn(
      process.execPath,
      [callgate(), ...words, "--position", position, "--socket", daemon.socket("operator")],
      { stdio: ["ignore", "inherit", "pipe"], env: { ...process.env, NODE_OPTIONS: "" } },
    );
    onCleanUp(() => child.kill("SIGKILL"));
    return child;
  }

  it("come once each, over restarts of the daemon, of the exporter and of the collector's good will", async () => {
    const collector = await Collector.start();
    onCleanUp(() => collector.close());
    collector.answers.push({ status: 503, headers: { "retry-after": "0" } });
    const daemon = await busy();
    const first = traces(daemon, collector);
    const ofCalls = () =>
      collector.received
        .slice(1) // the first was not taken
        .flatMap(({ spans }) => spans)
        .filter(({ name }) => name.startsWith("execute_tool"));
    await collector.receives(() => ofCalls().length >= 4);
    await daemon.stop();
    const again = await Daemon.start(daemon.place);
    await run(["call", "nowhere", "--socket", again.socket("agent"), "--session", "two"]);
    await collector.receives(() => ofCalls().length >= 5);
    first.kill("SIGTERM");
    const [status] = await once(first, "close");
    expect(status).toBe(0);
    await run(["call", "nowhere", "--socket", again.socket("agent"), "--session", "three"]);
    const second = traces(again, collector);
    await collector.receives(() => ofCalls().length >= 6);
    second.kill("SIGTERM");
    await once(second, "close");
    const ids = ofCalls().map(({ spanId }) => spanId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ofCalls().map(({ name }) => name)).toEqual([
      "execute_tool echo",
      "execute_tool echo",
      "execute_tool slow",
      "execute_tool",
      "execute_tool",
      "execute_tool",
    ]);
    expect(JSON.stringify(collector.received)).not.toMatch(/CANARY failure|CANARY"/);
    expect(readdirSync(daemon.place.directory).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});
