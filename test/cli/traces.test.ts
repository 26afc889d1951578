import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Collector } from "../roles/traces/collector.ts";
import { AnsweringBroker, type Answers, at, Desk } from "./desk.ts";

// `callgate traces` between a broker that answers what the test wrote down and a collector on loopback.

const HASH = "0".repeat(64);

function line(seq: number, record: object): string {
  return JSON.stringify({ hash: HASH, record: { seq: String(seq), at_ms: seq, ...record } });
}

function call(seq: number, id: string): readonly string[] {
  const name = { role: "agent", session: "s", call: id, tool: "read" };
  return [
    line(seq, {
      kind: "dispatch",
      ...name,
      provider: "files",
      decision: "allow",
      row: "allow",
      args: { path: "CANARY" },
    }),
    line(seq + 1, { kind: "outcome", ...name, status: "result", class: "public", untrusted: false }),
  ];
}

describe("callgate traces", () => {
  let broker: AnsweringBroker | undefined;
  let collector: Collector;
  let directory = "";
  let lines: string[] = [];

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "callgate-traces-"));
    collector = await Collector.start();
    lines = [];
  });

  afterEach(async () => {
    await broker?.remove();
    broker = undefined;
    await collector.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function answering(more: Answers = {}): Promise<AnsweringBroker> {
    broker = await AnsweringBroker.start({
      status: () => ({ role: "operator", audit: { seq: String(lines.length) } }),
      "audit.export": (args) => ({ lines: lines.slice(Number(args["from_seq"]) - 1), next_seq: null }),
      ...more,
    });
    return broker;
  }

  const traces = (desk: Desk, ...words: string[]) =>
    at(desk, broker as AnsweringBroker, "traces", "--to", collector.url, "--every", "1s", ...words);

  it("sends what comes from now on, as who it is told to be, and says how much when it is stopped", async () => {
    lines = [...call(1, "1")];
    await answering();
    const desk = new Desk();
    const running = traces(desk, "--header", "x-team=a=b", "--resource", "host.name=gate1");
    await desk.shows("following the audit from record 3 on");
    lines.push(...call(3, "2"));
    await collector.receives(({ spans }) => spans.length === 2);
    desk.interrupt();
    expect(await running).toBe(0);
    expect(collector.spans.map(({ name }) => name)).toEqual(["execute_tool read", "callgate.run read"]);
    expect(collector.received[0]).toMatchObject({ path: "/v1/traces", headers: { "x-team": "a=b" } });
    expect(JSON.stringify(collector.received)).not.toContain("CANARY");
    expect(desk.err_).toContain("2 spans sent");
    expect(desk.out_).toBe("");
  });

  it("goes on where it was with --position, in a file that is nobody else's", async () => {
    lines = [...call(1, "1"), ...call(3, "2").slice(0, 1)];
    await answering();
    const position = join(directory, "position.json");
    const first = new Desk();
    const before = traces(first, "--from", "1", "--position", position);
    await collector.receives(({ spans }) => spans.length === 2);
    first.interrupt();
    expect(await before).toBe(0);
    expect(statSync(position).mode & 0o777).toBe(0o600);
    expect(readFileSync(position, "utf8")).not.toContain("CANARY");
    lines.push(...call(3, "2").slice(1));
    const second = new Desk();
    const after = traces(second, "--from", "1", "--position", position);
    await collector.receives(({ spans }) => spans.length === 4);
    second.interrupt();
    expect(await after).toBe(0);
    const ids = collector.spans
      .filter(({ name }) => name === "execute_tool read")
      .map(
        ({ attributes }) => attributes.find(({ key }) => key === "gen_ai.tool.call.id")?.value["stringValue"],
      );
    expect(ids).toEqual(["1", "2"]);
  });

  it("reads headers from a file, and says so where others can read it; no message has a value", async () => {
    lines = [...call(1, "1")];
    await answering();
    const secret = join(directory, "headers");
    writeFileSync(secret, "# of the collector\n\nAuthorization: Bearer SECRET\n");
    chmodSync(secret, 0o644);
    const desk = new Desk();
    const running = traces(desk, "--from", "1", "--header-file", secret);
    await collector.receives(({ spans }) => spans.length === 2);
    desk.interrupt();
    await running;
    expect(collector.received[0]?.headers["authorization"]).toBe("Bearer SECRET");
    expect(desk.err_).toContain("can be read by other users");
    expect(desk.err_).not.toContain("SECRET");
  });

  it("ends where the collector wants none of it, and has not moved on", async () => {
    lines = [...call(1, "1")];
    await answering();
    collector.answers.push({ status: 404 });
    const position = join(directory, "position.json");
    const desk = new Desk();
    expect(await traces(desk, "--from", "1", "--position", position)).toBe(4);
    expect(desk.err_).toContain("HTTP 404");
    expect(() => statSync(position)).toThrow();
  });

  it("ends where the role may not, and where it is no operator", async () => {
    broker = await AnsweringBroker.start({});
    expect(await traces(new Desk())).toBe(3);
    await broker.remove();
    broker = await AnsweringBroker.start({ status: { role: "agent" } });
    const desk = new Desk();
    expect(await traces(desk)).toBe(4);
    expect(desk.err_).toContain("operators");
  });

  it("asks a broker again that can't answer now", async () => {
    lines = [...call(1, "1")];
    let asked = 0;
    await answering({
      "audit.export": () => {
        asked += 1;
        return asked === 1
          ? { status: "failed", message: "unavailable: not now" }
          : { lines, next_seq: null };
      },
    });
    const desk = new Desk();
    const running = traces(desk, "--from", "1");
    await collector.receives(({ spans }) => spans.length === 2);
    desk.interrupt();
    expect(await running).toBe(0);
  });

  it.each([
    [["--to", "collector:4318"], "--to: it must begin with http"],
    [["--to", "nonsense"], "--to: it must be a URL"],
    [["--to", "http://a:SECRET@b/"], "--header-file"],
    [["--header", "no-value"], "it must be NAME=VALUE"],
    [["--header", "sp ace=SECRET"], "is no name of a header"],
    [["--header", "content-length=5"], "is not yours to set"],
    [["--header", "a=SECRET\r\nb: c"], "can't be sent"],
    [["--header-file", "/nonexistent/headers"], "ENOENT"],
    [["--resource", "Host=x"], "is no name such as"],
    [["--from", "0"], "--from must be the number"],
    [["--from", "99999999999999999999"], "--from must be the number"],
    [["--position", "/"], "EISDIR"],
  ])("refuses %j with a sentence, and without a secret", async (words, sentence) => {
    await answering();
    const desk = new Desk();
    expect(await traces(desk, ...words)).toBe(2);
    expect(desk.err_).toContain(sentence);
    expect(desk.err_).not.toContain("SECRET");
    expect(collector.received).toEqual([]);
  });

  it("refuses a file of --position that holds none", async () => {
    await answering();
    const position = join(directory, "position.json");
    writeFileSync(position, "{}");
    const desk = new Desk();
    expect(await traces(desk, "--position", position)).toBe(2);
    expect(desk.err_).toContain("holds no position");
  });

  it("warns of plain http to another machine, before anything is sent", async () => {
    broker = await AnsweringBroker.start({});
    const desk = new Desk();
    expect(await at(desk, broker, "traces", "--to", "http://192.0.2.1:4318")).toBe(3);
    expect(desk.err_).toContain("WARNING: the collector is on another machine");
  });
});
