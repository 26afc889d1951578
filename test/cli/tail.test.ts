import {
  appendFileSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Flags } from "../../src/cli/command_row.ts";
import { coloured } from "../../src/cli/paint.ts";
import { runProgram } from "../../src/cli/program.ts";
import { tail } from "../../src/cli/tail.ts";
import { LineSplitter, offsetOfLast } from "../../src/cli/tail_lines.ts";
import { Desk, NOW_MS } from "./desk.ts";

let place: string;
const at = (name: string) => join(place, name);

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "callgate-tail-")));
});

afterEach(() => rmSync(place, { recursive: true, force: true }));

interface Line {
  readonly event: string;
  readonly [name: string]: unknown;
}

/** As the daemon writes it. */
function logged(line: Line, level = "info", ms = NOW_MS): string {
  return `${JSON.stringify({ level, time: new Date(ms).toISOString(), ...line })}\n`;
}

const NAMES = { role: "agent", session: "one", call: "7", tool: "read_file" } as const;
const ENDED = logged({
  event: "call.ended",
  ...NAMES,
  status: "result",
  class: "internal",
  untrusted: true,
  duration_ms: 12.34,
});
const DENIED = logged(
  {
    event: "call.denied",
    ...NAMES,
    call: "8",
    reason: "taint_too_high",
    row: "allow_above_taint",
    grant: "agent-writes",
  },
  "warn",
);
const ASKED = logged({
  event: "approval.asked",
  ...NAMES,
  session: "two",
  approval: "9f3a",
  row: "ask",
  grants: ["g1", "g2"],
});

/** What is shown of an input that ends. */
async function shown(
  text: string,
  flags: Readonly<Record<string, unknown>> = {},
  desk = new Desk(),
): Promise<Desk> {
  const input = new PassThrough();
  input.end(text);
  expect(await tail(desk, [undefined], flags as unknown as Flags, () => input)).toBe(0);
  return desk;
}

async function following(path: string, flags: Readonly<Record<string, unknown>> = {}) {
  const desk = new Desk();
  return { desk, ended: tail(desk, [path], flags as unknown as Flags) };
}

const events = ({ out_ }: Desk) =>
  out_
    .split("\n")
    .flatMap((line) => [...line.matchAll(/(?:INFO|WARN|ERROR|DEBUG) +(\S+)/g)].map(([, event]) => event));

describe("a line of the log", () => {
  it("tells when, who, which tool, what was decided by which rule, and how long it took", async () => {
    const { out_ } = await shown(`${ENDED}${DENIED}${ASKED}`);
    const [ended, denied, asked] = out_.split("\n").map((line) => line.replace(/^\d\d:\d\d:00\.000 /, ""));
    expect(ended).toBe(
      "INFO  call.ended  agent/one  read_file  result  12.3 ms  call=7 labels=internal,untrusted",
    );
    expect(denied).toBe(
      "WARN  call.denied  agent/one  read_file  deny taint_too_high  agent-writes (allow_above_taint)  call=8",
    );
    expect(asked).toBe(
      "INFO  approval.asked  agent/two  read_file  ask                  g1+g2 (ask)  call=7 approval=9f3a",
    );
  });

  it("about nobody's call has what it says behind its event, numbers of grants and codes too", async () => {
    const { out_ } = await shown(logged({ event: "broker.recovered", sessions: 1, grants: 2, code: "x" }));
    expect(out_).toMatch(/ INFO {2}broker\.recovered {2}sessions=1 grants=2 code=x\n$/);
  });

  it("stands below the one before it in the same columns", async () => {
    const { out_ } = await shown(`${DENIED}${ENDED}${DENIED}`);
    const columns = out_
      .trimEnd()
      .split("\n")
      .map((line) => line.indexOf("read_file"));
    expect(new Set(columns).size).toBe(1);
  });

  it("of a call that a person refused is a denial, not one that was let through", async () => {
    const refused = logged({ event: "call.ended", ...NAMES, status: "denied", duration_ms: 9 }, "warn");
    expect(events(await shown(`${ENDED}${refused}`, { decision: "allow" }))).toEqual(["call.ended"]);
    expect((await shown(`${ENDED}${refused}`, { decision: "deny" })).out_).toMatch(
      /^\S+ WARN .* deny {2}9 ms/,
    );
    expect((await shown(refused, { decision: "allow" })).out_).toBe("");
  });

  it("goes on below without a gap where the terminal is too narrow for columns", async () => {
    const desk = Object.assign(new Desk(), { columns: 80 });
    const { out_ } = await shown(`${DENIED}${ENDED}${ASKED}`, {}, desk);
    expect(out_).not.toMatch(/┆ {3}/);
    for (const line of out_.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(out_).toMatch(/call\.ended {2}agent\/one {2}read_file {2}result {2}12\.3 ms/);
  });

  it("is shown in this machine's time, and another day is announced", async () => {
    const { out_ } = await shown(`${ENDED}${logged({ event: "x" }, "info", NOW_MS + 86_400_000)}`);
    expect(out_.split("\n")[1]).toMatch(/^-- 2026-12-0\d --$/);
  });

  it("has no character of a peer's that a terminal obeys", async () => {
    const { out_ } = await shown(
      logged({
        event: "x\u001b[2J",
        role: "r\n",
        tool: "\u202e",
        "a\u0007": { b: "\u001b" },
        detail: "\u009b",
      }),
    );
    expect(out_.trimEnd()).not.toMatch(/[^\x20-\x7e…]/);
    expect(out_.match(/\n/g)).toHaveLength(1);
  });

  it("may have a syslog priority in front, or the hole of a file that was emptied", async () => {
    const { out_ } = await shown(`<4>${DENIED}${"\0".repeat(600)}${ENDED}`);
    expect(out_.split("\n")[0]).toContain("WARN  call.denied");
    expect(out_.split("\n")[1]).toContain("INFO  call.ended");
  });

  it("is coloured on a terminal, by level and outcome, and not elsewhere", async () => {
    const desk = Object.assign(new Desk(), { paint: coloured });
    expect((await shown(DENIED, {}, desk)).out_).toContain("\u001b[1;31mdeny taint_too_high\u001b[0m");
    expect((await shown(DENIED)).out_).not.toContain("\u001b");
  });

  it("does not end the tail by what it calls its event", async () => {
    const lines = ["constructor", "__proto__", "toString"].map((event) => logged({ event, ...NAMES }));
    const { out_ } = await shown(`${lines.join("")}${ENDED}`);
    expect(out_.split("\n").map((line) => /call\.ended|(?<=INFO {2})\S+/.exec(line)?.[0])).toEqual([
      ...["constructor", "__proto__", "toString", "call.ended", undefined],
    ]);
  });

  it("that is broken stays, escaped and bounded", async () => {
    const { out_ } = await shown(`no json \u001b[2J\n[1]\n"x"\n${"y".repeat(2_000_000)}\n${ENDED}`, {
      decision: "deny",
    });
    expect(out_.split("\n").slice(0, 3)).toEqual(["no json \\u{1b}[2J", "[1]", '"x"']);
    expect(out_.length).toBeLessThan(5000);
    expect(out_).not.toContain("call.ended");
  });
});

describe("the filters", () => {
  const ALL = `${ENDED}${DENIED}${ASKED}${logged({ event: "daemon.fatal" }, "error", NOW_MS + 60_000)}`;

  it.each<[Readonly<Record<string, unknown>>, readonly string[]]>([
    [{ decision: "allow" }, ["call.ended"]],
    [{ decision: "deny" }, ["call.denied"]],
    [{ decision: "ask" }, ["approval.asked"]],
    [{ role: "agent" }, ["call.ended", "call.denied", "approval.asked"]],
    [{ role: "agen" }, []],
    [{ of: "two" }, ["approval.asked"]],
    [{ tool: "read_file", call: "8" }, ["call.denied"]],
    [{ call: "008" }, ["call.denied"]],
    [{ event: "call.*" }, ["call.ended", "call.denied"]],
    [{ event: "call.ended" }, ["call.ended"]],
    [{ level: "warn" }, ["call.denied", "daemon.fatal"]],
    [{ level: "error" }, ["daemon.fatal"]],
    [{ since: new Date(NOW_MS + 1000).toISOString() }, ["daemon.fatal"]],
    [{ since: "1s" }, ["call.ended", "call.denied", "approval.asked", "daemon.fatal"]],
  ])("%o chooses %j", async (flags, names) => {
    expect(events(await shown(ALL, flags))).toEqual(names);
  });

  it("with --json give the lines themselves, and broken ones where they break nothing", async () => {
    const desk = await shown(`<4>${DENIED}broken \u001b\n${ENDED}`, { json: true, decision: "deny" });
    expect(desk.out_).toBe(DENIED);
    expect(desk.err_).toBe("broken \\u{1b}\n");
  });
});

describe("a file", () => {
  const line = (event: string) => logged({ event });

  it("is followed from its last lines on, as it grows", async () => {
    writeFileSync(at("log"), Array.from({ length: 30 }, (_, i) => line(`e${i}.x`)).join(""));
    const { desk, ended } = await following(at("log"));
    await desk.shows("e29.x");
    appendFileSync(at("log"), line("more.x"));
    await desk.shows("more.x");
    expect(events(desk)).toEqual([...Array.from({ length: 10 }, (_, i) => `e${20 + i}.x`), "more.x"]);
    desk.interrupt();
    expect(await ended).toBe(0);
  });

  it("begins with as many lines that fit as one wants", async () => {
    writeFileSync(at("log"), `${ENDED}${DENIED}${ENDED.repeat(2000)}`);
    const { desk, ended } = await following(at("log"), { last: 1, decision: "deny" });
    await desk.shows("call.denied");
    desk.interrupt();
    await ended;
    expect(events(desk)).toEqual(["call.denied"]);
  });

  it("shows a line when it has ended, not before", async () => {
    writeFileSync(at("log"), "");
    const { desk, ended } = await following(at("log"));
    const text = line("torn.x");
    appendFileSync(at("log"), text.slice(0, 20));
    appendFileSync(at("log"), text.slice(20));
    await desk.shows("torn.x");
    expect(desk.out_.trimEnd().split("\n")).toHaveLength(1);
    desk.interrupt();
    await ended;
  });

  it("is followed over its rotation, and nothing of the old one is lost", async () => {
    writeFileSync(at("log"), line("one.x"));
    const { desk, ended } = await following(at("log"));
    await desk.shows("one.x");
    renameSync(at("log"), at("log.1"));
    appendFileSync(at("log.1"), line("late.x"));
    writeFileSync(at("log"), line("new.x"));
    await desk.shows("new.x");
    expect(events(desk)).toEqual(["one.x", "late.x", "new.x"]);
    expect(desk.err_).toBe("callgate: the file was replaced; going on with the new one\n");
    appendFileSync(at("log"), line("newer.x"));
    await desk.shows("newer.x");
    desk.interrupt();
    expect(await ended).toBe(0);
  });

  it("is followed over being emptied", async () => {
    writeFileSync(at("log"), line("one.x").repeat(3));
    const { desk, ended } = await following(at("log"));
    await desk.shows("one.x");
    truncateSync(at("log"));
    await desk.shows("the file was emptied");
    appendFileSync(at("log"), line("two.x"));
    await desk.shows("two.x");
    desk.interrupt();
    await ended;
  });

  it.each([
    ["that is not there", "nothing", "does not exist"],
    ["that is a directory", ".", "is no file"],
  ])("%s is refused", async (_, name, why) => {
    const desk = new Desk();
    expect(await tail(desk, [at(name)], {} as Flags)).toBe(2);
    expect(desk.err_).toContain(why);
  });
});

describe("where the last lines begin", () => {
  it.each([
    ["", 3, 0],
    ["a\nb\nc\n", 2, 2],
    ["a\nb\nc", 2, 2],
    ["a\nb\nc\n", 9, 0],
    ["a\nb\nc\n", 0, 6],
    ["a\n\n\nc\n", 2, 0],
    ["\n\na", 1, 2],
  ])("%j, %i of them", async (text, count, offset) => {
    writeFileSync(at("log"), text);
    expect(await offsetOfLast(at("log"), count, () => true)).toBe(offset);
  });

  it("is found over pieces that cut lines and characters anywhere", async () => {
    const lines = Array.from({ length: 9000 }, (_, i) => `${i} ${"ä€😀".repeat(i % 17)}`);
    writeFileSync(at("log"), `${lines.join("\n")}\n`);
    for (const count of [1, 2, 500, 8999, 9000]) {
      const offset = await offsetOfLast(at("log"), count, () => true);
      expect(offset).toBe(
        Buffer.byteLength(
          lines
            .slice(0, 9000 - count)
            .map((line) => `${line}\n`)
            .join(""),
        ),
      );
    }
    expect(await offsetOfLast(at("log"), 1, (line) => line.startsWith("4000 "))).toBe(
      Buffer.byteLength(
        lines
          .slice(0, 4000)
          .map((line) => `${line}\n`)
          .join(""),
      ),
    );
  });
});

describe("lines out of pieces", () => {
  it("are the same wherever they were cut", () => {
    const bytes = Buffer.from("ä€\n\r\n😀 x\r\n\nlast");
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const splitter = new LineSplitter();
      const lines = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((part) => splitter.push(part));
      expect([...lines, ...splitter.end()]).toEqual(["ä€", "😀 x", "last"]);
    }
  });

  it("have a bound, and the next one is whole again", () => {
    const splitter = new LineSplitter();
    for (let i = 0; i < 40; i += 1) expect(splitter.push(Buffer.alloc(65_536, "x"))).toEqual([]);
    const [long, next] = splitter.push(Buffer.from("\nnext\n"));
    expect(long).toHaveLength(1_048_576);
    expect(next).toBe("next");
  });
});

describe("an input that does not end", () => {
  it("is left at the second ctrl-C", async () => {
    const input = new PassThrough();
    const desk = new Desk();
    const ended = tail(desk, [undefined], {} as Flags, () => input);
    input.write(ENDED);
    await desk.shows("call.ended");
    desk.interrupt();
    input.write(DENIED);
    await desk.shows("call.denied"); // the daemon's last words
    desk.interrupt();
    expect(await ended).toBe(0);
  });
});

describe("wrong use", () => {
  it.each([
    ["a file and --audit", ["tail", "x", "--audit"]],
    ["--level of the audit", ["tail", "--audit", "--level", "warn"]],
    ["--last of standard input", ["tail", "--last", "3"]],
    ["a time that is none", ["tail", "x", "--since", "yesterday"]],
    ["a call's id that is none", ["tail", "x", "--call", "-1"]],
    ["a decision that is none", ["tail", "x", "--decision", "maybe"]],
    ["a level that is none", ["tail", "x", "--level", "loud"]],
  ])("%s is refused", async (_, words) => {
    const desk = new Desk();
    expect(await runProgram(words, desk)).toBe(2);
    expect(desk.err_).not.toBe("");
  });

  it("a terminal in place of a log is refused, with what could be meant", async () => {
    const desk = new Desk([]);
    expect(await runProgram(["tail"], desk)).toBe(2);
    expect(desk.err_).toContain("callgate serve … | callgate tail");
  });
});
