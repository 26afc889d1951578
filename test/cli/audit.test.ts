import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import { EMPTY_HEAD, exportLine, readBlock, sealBlock } from "../../src/store/audit_chain.ts";
import { auditEvent } from "../../src/store/audit_event.ts";
import { AnsweringBroker, type Answers, at, Desk } from "./desk.ts";

// `callgate audit …` as a person meets it: over a broker that answers what the test wrote down, and over files.

const EVENTS = [1, 2, 3, 4, 5].map((n) => auditEvent("outcome", { role: "agent", bytes: n, note: "é" }));
const { block, head } = sealBlock(EMPTY_HEAD, EVENTS, 1_796_040_000_000);
const LINES = readBlock(1n, block).map(exportLine);
const CHECKPOINT = `${head.seq}:${head.hash}`;

let place: string;
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "callgate-audit-"));
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

function file(name: string, lines: readonly string[]): string {
  const path = join(place, name);
  writeFileSync(path, lines.map((line) => `${line}\n`).join(""));
  return path;
}

async function ran(desk: Desk, ...words: string[]): Promise<number> {
  return runProgram(["audit", ...words], desk);
}

describe("callgate audit verify, without a broker", () => {
  it("says that an export holds, and how much it is", async () => {
    const desk = new Desk();
    expect(await ran(desk, "verify", "--file", file("whole.jsonl", LINES))).toBe(0);
    expect(desk.out_).toBe("the audit holds: 5 records, 1 to 5\n");
  });

  it("says exactly what is wrong, with an exit status of its own", async () => {
    const without = LINES.toSpliced(2, 1);
    const desk = new Desk();
    expect(await ran(desk, "verify", "--file", file("cut.jsonl", without))).toBe(4);
    expect(desk.out_).toContain("the audit does NOT hold: Record 3 is missing: record 4 follows record 2.");
  });

  it("finds a cut end with a checkpoint, given or read from a log", async () => {
    const cut = file("tail.jsonl", LINES.slice(0, 3));
    const log = file("callgate.log", [
      `<6>${JSON.stringify({ level: "info", event: "audit.checkpoint", seq: "2", hash: "0".repeat(64) })}`,
      `<6>${JSON.stringify({ level: "info", event: "audit.checkpoint", seq: head.seq.toString(), hash: head.hash })}`,
      `{"event":"audit.checkpoint" and no JSON`,
      "another program's line",
    ]);
    for (const options of [
      ["--checkpoint", CHECKPOINT],
      ["--log", log],
    ]) {
      const desk = new Desk();
      expect(await ran(desk, "verify", "--file", cut, ...options)).toBe(4);
      expect(desk.out_).toContain(
        "The records end at 3, but the checkpoint names record 5: the end was cut off.",
      );
    }
    const whole = new Desk();
    expect(await ran(whole, "verify", "--file", file("w.jsonl", LINES), "--log", log, "--json")).toBe(0);
    expect(JSON.parse(whole.out_)).toEqual({
      ok: true,
      records: 5,
      first_seq: "1",
      last_seq: "5",
      finding: null,
    });
  });

  it("refuses what it can't verify with a sentence that says why", async () => {
    const empty = file("empty.jsonl", []);
    for (const [words, status, sentence] of [
      [["--file", empty], 4, "is empty"],
      [["--file", join(place, "none")], 4, "ENOENT"],
      [["--state", join(place, "none")], 4, "there is no store"],
      [["--state", empty], 4, "no backup of callgate's"],
      [["--file", empty, "--state", place], 2, "not both"],
      [["--file", empty, "--checkpoint", "5"], 2, "SEQ:HASH"],
      [["--file", empty, "--log", empty], 2, "has no audit.checkpoint"],
      [["--file", empty, "--log", join(place, "none")], 2, "can't be read"],
    ] as const) {
      const desk = new Desk();
      expect(await ran(desk, "verify", ...words)).toBe(status);
      expect(desk.err_).toContain(sentence);
    }
  });
});

describe("docs/audit.md", () => {
  it("has a script that verifies an export with sha256sum alone", () => {
    const document = readFileSync(new URL("../../docs/audit.md", import.meta.url), "utf8");
    const [, script = ""] = /^```sh\n([\s\S]*?)^```$/m.exec(document) ?? [];
    const run = () => spawnSync("bash", ["-c", script], { cwd: place, encoding: "utf8" });
    file("audit.jsonl", LINES);
    expect(run().stdout).toBe(`holds: ${head.hash}\n`);
    file("audit.jsonl", LINES.with(3, (LINES[3] ?? "").replace('"bytes":4', '"bytes":5')));
    expect(run().stdout).toContain('does not hold: {"seq":"4"');
  });

  it("names every kind of finding and of record", () => {
    const document = readFileSync(new URL("../../docs/audit.md", import.meta.url), "utf8");
    const source = (name: string) =>
      readFileSync(new URL(`../../src/store/${name}.ts`, import.meta.url), "utf8");
    const findings = [...source("audit_findings").matchAll(/\bfinding\("([a-z_]+)"/g)];
    const events = ["audit_events", "audit_state_events", "audit_segments"].flatMap((name) => [
      ...source(name).matchAll(/auditEvent\("([a-z_]+)"/g),
    ]);
    expect(findings.length).toBeGreaterThan(8);
    expect(events.length).toBeGreaterThan(15);
    const missing = [...findings, ...events].filter(([, name]) => !document.includes(`\`${name}\``));
    expect(missing.map(([, name]) => name)).toEqual([]);
  });
});

describe("callgate audit, with a broker", () => {
  let broker: AnsweringBroker | undefined;
  afterEach(() => broker?.remove());

  async function asked(desk: Desk, answers: Answers, ...words: string[]): Promise<number> {
    broker = await AnsweringBroker.start(answers);
    return at(desk, broker, "audit", ...words);
  }

  it("export writes all pages in order, and asks only for what was asked for", async () => {
    const pages = (args: Readonly<Record<string, unknown>>) =>
      args["from_seq"] === "0"
        ? { lines: LINES.slice(0, 2), next_seq: "3" }
        : { lines: LINES.slice(2), next_seq: null };
    const desk = new Desk();
    const words = ["export", "--since", "2026-11-30T08:00:00Z", "--role", "agent", "--decision", "deny"];
    expect(await asked(desk, { "audit.export": pages }, ...words)).toBe(0);
    expect(desk.out_).toBe(LINES.map((line) => `${line}\n`).join(""));
    expect(broker?.asked.map(({ args }) => args)).toMatchObject([
      { from_seq: "0", limit: 1000, since_ms: 1_796_025_600_000, role: "agent", decision: "deny" },
      { from_seq: "3" },
    ]);
  });

  it("export stops at a limit, and refuses a time that is none", async () => {
    const desk = new Desk();
    const answers = { "audit.export": { lines: LINES.slice(0, 2), next_seq: "3" } };
    expect(await asked(desk, answers, "export", "--limit", "2")).toBe(0);
    expect(desk.out_.trimEnd().split("\n")).toHaveLength(2);
    const wrong = new Desk();
    expect(await ran(wrong, "export", "--since", "yesterday", "--socket", "/none")).toBe(2);
    expect(wrong.err_).toContain("--since must be a time");
  });

  it("verify and checkpoint say what the broker says", async () => {
    const finding = { kind: "altered", seq: "3", sentence: "Record 3 has been altered." };
    const verdict = { ok: false, records: 2, first_seq: "1", last_seq: "2", finding };
    const desk = new Desk();
    expect(await asked(desk, { "audit.verify": verdict }, "verify", "--checkpoint", CHECKPOINT)).toBe(4);
    expect(desk.out_).toContain(
      "does NOT hold: Record 3 has been altered. (2 records, 1 to 2 before it hold)",
    );
    expect(broker?.asked[0]?.args).toEqual({ checkpoint: CHECKPOINT });
    await broker?.remove();
    const noted = new Desk();
    const answers = { "audit.checkpoint": { seq: "5", hash: head.hash, at_ms: 1_796_040_000_000 } };
    expect(await asked(noted, answers, "checkpoint")).toBe(0);
    expect(noted.out_).toBe(`${CHECKPOINT}\n`);
  });
});
