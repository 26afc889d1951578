import { execFileSync } from "node:child_process";
import {
  closeSync,
  constants,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { isJournal, openLog } from "../../src/host/logs.ts";

const undo: (() => void)[] = [];
afterEach(() => {
  for (const action of undo.splice(0).reverse()) action();
});

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "callgate-log-"));
  undo.push(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function opened(path: string, flags: string | number): number {
  const fd = openSync(path, flags);
  undo.push(() => closeSync(fd));
  return fd;
}

function logFile() {
  const path = join(scratch(), "log");
  return { fd: opened(path, "a"), lines: () => readFileSync(path, "utf8").split("\n").slice(0, -1) };
}

/** A pipe whose reader reads when it is told to. */
function pipe() {
  const path = join(scratch(), "pipe");
  execFileSync("mkfifo", [path]);
  const from = opened(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const fd = opened(path, constants.O_WRONLY);
  const read = (): string => {
    const chunks: Buffer[] = [];
    for (;;) {
      const chunk = Buffer.alloc(65_536);
      try {
        const bytes = readSync(from, chunk);
        if (bytes === 0) break;
        chunks.push(chunk.subarray(0, bytes));
      } catch {
        break; // empty
      }
    }
    return Buffer.concat(chunks).toString();
  };
  return { fd, read };
}

type Line = Record<string, unknown>;
const parsed = (lines: readonly string[]) => lines.map((line) => JSON.parse(line) as Line);

describe("the log", () => {
  it("is one JSON object a line, with level, time and event", () => {
    const { fd, lines } = logFile();
    const sink = openLog({ level: "info", fd, journal: false });
    sink.log("warn", "call.denied", { role: "agent", text: 'a"\n\u2028b', left_out: undefined });
    sink.log("debug", "not.said", {});
    sink.flush();
    expect(parsed(lines())).toEqual([
      {
        level: "warn",
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
        event: "call.denied",
        role: "agent",
        text: 'a"\n\u2028b',
      },
    ]);
  });

  it("says from the moment of a reload what the new level says", () => {
    const { fd, lines } = logFile();
    const sink = openLog({ level: "info", fd, journal: false });
    sink.setLevel("debug");
    sink.log("debug", "a", {});
    sink.setLevel("error");
    sink.log("warn", "b", {});
    sink.log("error", "c", {});
    sink.flush();
    expect(parsed(lines()).map(({ event }) => event)).toEqual(["a", "c"]);
  });

  it("begins each line with its priority where it goes to the journal", () => {
    const { fd, lines } = logFile();
    const sink = openLog({ level: "debug", fd, journal: true });
    for (const level of ["debug", "info", "warn", "error"] as const) sink.log(level, level, {});
    sink.flush();
    expect(lines().map((line) => line.slice(0, 4))).toEqual(["<7>{", "<6>{", "<4>{", "<3>{"]);
  });

  it("keeps to its bound where nobody reads, and tells of the lines that are missing, in their place", () => {
    const { fd, read } = pipe();
    const sink = openLog({ level: "info", fd, journal: false, heldBytesMax: 100_000 });
    for (let n = 0; n < 5000; n += 1) sink.log("info", "line", { n });
    let text = "";
    for (let round = 0; round < 5; round += 1) {
      // Each flush waits for the reader, who is this very test: so it gives up, and we read.
      sink.flush();
      text += read();
    }
    sink.log("info", "after", {});
    sink.flush();
    const lines = parsed((text + read()).split("\n").slice(0, -1));
    const kept = lines.filter(({ event }) => event === "line");
    const dropped = lines.filter(({ event }) => event === "log.dropped");
    expect(kept.map(({ n }) => n)).toEqual(kept.map((_, index) => index));
    expect(dropped).toHaveLength(1);
    expect(kept.length + Number(dropped[0]?.["lines"])).toBe(5000);
    expect(lines.slice(-2).map(({ event }) => event)).toEqual(["log.dropped", "after"]);
  });

  it("goes on without a reader, and without a descriptor", () => {
    const { fd } = pipe();
    const reader = undo[undo.length - 2]!;
    undo.splice(undo.length - 2, 1);
    reader(); // closes the reading end
    const gone = openLog({ level: "info", fd, journal: false });
    for (let n = 0; n < 100; n += 1) gone.log("info", "line", { n });
    expect(() => gone.flush()).not.toThrow();
    const none = openLog({ level: "info", fd: 9999, journal: false });
    none.log("info", "line", {});
    expect(() => none.flush()).not.toThrow();
  });
});

describe("the journal", () => {
  it("is told by its device and inode alone", () => {
    const { fd } = logFile();
    const stat = fstatSync(fd);
    expect(isJournal(`${stat.dev}:${stat.ino}`, stat)).toBe(true);
    expect(isJournal(`${stat.dev}:${stat.ino + 1}`, stat)).toBe(false);
    expect(isJournal(undefined, stat)).toBe(false);
  });
});
