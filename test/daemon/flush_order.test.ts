// Ending a process with SIGKILL does not test a loss of power: what counts then is what was flushed, and when.
// Here strace looks at a real daemon: what is relied on is written to the store's file, flushed, and made valid by a
// flushed write of the file's head, before the bytes that rely on it leave.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { describeWith } from "../needs.ts";
import { cleanUp, Daemon, Place } from "./daemon.ts";
import { trusted } from "./frames.ts";
import { parseTrace, type SystemCall, Trace } from "./strace.ts";
import { WirePeer } from "./wire_peer.ts";

afterEach(cleanUp);

const STORE_FILE = /\/state\/state\.mdb$/;
const O_DSYNC = 0o10000;

const CONFIG = `
allow_same_user = true
[daemon]
sockets = "run"
state = "state"
[roles.agent]
anyone = true
[roles.tools]
anyone = true
[roles.operator]
anyone = true
operator = true
[tools.run]
role = "tools"
effect = "write"
untrusted = false
class = "public"
[tools.asked]
role = "tools"
effect = "write"
untrusted = false
class = "public"
[[grants]]
id = "runs"
role = "agent"
tools = ["run"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "asks"
role = "agent"
tools = ["asked"]
effect = "ask"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "cancels"
role = "agent"
tools = ["callgate.calls.cancel"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "operates"
role = "operator"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;

describeWith(["strace"], "the trace", () => {
  it("tells a call that another thread came in between of, and its end", () => {
    const text = [
      '7 pwrite64(28</s/state/state.mdb>, "ab\\0", 3, 0) = 3',
      "8 fdatasync(28</s/state/state.mdb> <unfinished ...>",
      '7 write(9<UNIX-STREAM:[1->2,"/s/run/agent.sock"]>, "x>, y", 5) = 5',
      "8 <... fdatasync resumed>)               = 0",
      "7 fdatasync(28</s/state/state.mdb>) = -1 EIO (Input/output error)",
    ].join("\n");
    expect(parseTrace(text)).toMatchObject([
      { name: "pwrite64", fd: 28, of: "/s/state/state.mdb", beganAt: 0, endedAt: 0, result: 3 },
      { name: "write", fd: 9, of: 'UNIX-STREAM:[1->2,"/s/run/agent.sock"]', beganAt: 2, result: 5 },
      { name: "fdatasync", beganAt: 1, endedAt: 3, result: 0 },
      { name: "fdatasync", result: -1 },
    ]);
  });
});

describe("the order in a trace", () => {
  const written = '7 pwrite64(28</s/state/state.mdb>, "MARK", 4, 0) = 4';
  const head = '7 pwrite64(29</s/state/state.mdb>, "head", 4, 0) = 4';
  const left = '6 write(9<UNIX-STREAM:[1->2,"/s/run/agent.sock"]>, "MARK", 4) = 4';
  const of = (...lines: readonly string[]) =>
    orderOf(parseTrace(lines.join("\n")), new Set([29]), "MARK", "agent");

  it("tells bytes that left before they were written, flushed or made valid", () => {
    const flush = "7 fdatasync(28</s/state/state.mdb>) = 0";
    expect(of(written, flush, head, left)).toEqual(["written", "flushed", "valid", "left"]);
    expect(of(left, written, flush, head)).toEqual(["left"]);
    expect(of(written, left, flush, head)).toEqual(["written", "left"]);
    expect(of(flush, written, head, left)).toEqual(["written", "left"]);
    expect(of(written, flush, left, head)).toEqual(["written", "flushed", "left"]);
    expect(of(written, flush, head)).toEqual(["never left"]);
  });

  it("takes no flush that was still under way, and none that failed", () => {
    const under = "7 fdatasync(28</s/state/state.mdb> <unfinished ...>";
    expect(of(written, under, left, "7 <... fdatasync resumed>) = 0", head)).toEqual(["written", "left"]);
    const failed = "7 fdatasync(28</s/state/state.mdb>) = -1 EIO (Input/output error)";
    expect(of(written, failed, head, left)).toEqual(["written", "left"]);
  });
});

/** A daemon that is watched, with everybody who takes part. */
class Watched {
  readonly daemon: Daemon;
  readonly agent: WirePeer;
  readonly tools: WirePeer;
  readonly operator: WirePeer;
  readonly #trace: Trace;
  #nextId = 0n;

  static async start(): Promise<Watched> {
    const place = new Place("");
    writeFileSync(place.config, CONFIG, { mode: 0o644 });
    const daemon = await Daemon.start(place);
    const roles = ["agent", "tools", "operator"].map((role) => WirePeer.connect(daemon.socket(role)));
    const [agent, tools, operator] = (await Promise.all(roles)) as [WirePeer, WirePeer, WirePeer];
    await daemon.event("peer.connected", ({ role }) => role === "tools");
    return new Watched(daemon, { agent, tools, operator }, await Trace.of(daemon));
  }

  private constructor(daemon: Daemon, peers: Pick<Watched, "agent" | "tools" | "operator">, trace: Trace) {
    this.daemon = daemon;
    this.agent = peers.agent;
    this.tools = peers.tools;
    this.operator = peers.operator;
    this.#trace = trace;
  }

  ask(tool: string, mark: string): void {
    this.#nextId += 1n;
    this.agent.ask(this.#nextId, tool, { mark }, this.#nextId);
  }

  async operate(name: string, args: object): Promise<Readonly<Record<string, unknown>>> {
    this.#nextId += 1n;
    this.operator.ask(this.#nextId, `callgate.${name}`, args, this.#nextId);
    const answer = await this.operator.response();
    if (answer.status !== "result") throw new Error(`no result but ${JSON.stringify(answer)}`);
    return JSON.parse(answer.content) as Record<string, unknown>;
  }

  /** The question that the agent is told of, and the digest of what an approver is shown. */
  async question(): Promise<{ readonly approval: string; readonly digest: unknown }> {
    const answer = await this.agent.response();
    if (answer.status !== "pending_approval") throw new Error(`no question but ${answer.status}`);
    const { approval } = answer;
    return { approval, digest: (await this.operate("approvals.show", { approval }))["digest"] };
  }

  /** Each mark stands in something that must have been flushed before it left for that role. */
  async expectFlushed(marks: readonly (readonly [mark: string, toRole: string])[]): Promise<void> {
    const heads = headDescriptors(this.daemon.pid);
    const calls = await this.#trace.end();
    for (const [mark, role] of marks) {
      const order = orderOf(calls, heads, mark, role);
      expect({ mark, role, order }).toEqual({ mark, role, order: ["written", "flushed", "valid", "left"] });
    }
  }
}

/** Descriptors whose writes are flushed when they return: the head of the store's file goes through one. */
function headDescriptors(pid: number): ReadonlySet<number> {
  const all = readdirSync(`/proc/${pid}/fd`).map(Number);
  return new Set(all.filter((fd) => (flagsOf(pid, fd) & O_DSYNC) !== 0));
}

function flagsOf(pid: number, fd: number): number {
  const info = readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8");
  return Number.parseInt(/^flags:\s+(\d+)/m.exec(info)?.[1] ?? "0", 8);
}

/** How far it came before the first bytes with the mark left: each step began when the one before had ended. */
function orderOf(
  calls: readonly SystemCall[],
  heads: ReadonlySet<number>,
  mark: string,
  role: string,
): readonly string[] {
  const socket = new RegExp(`/${role}\\.sock"`);
  const left = calls.find(({ of, data }) => socket.test(of) && data.includes(mark));
  if (left === undefined) return ["never left"];
  const before = calls.filter(
    ({ of, endedAt, result }) => STORE_FILE.test(of) && endedAt < left.beganAt && result >= 0,
  );
  const written = before.findLast(({ data, name }) => data.includes(mark) && !name.endsWith("sync"));
  if (written === undefined) return ["left"];
  const flushed = before.find(
    ({ name, fd, beganAt }) => name === "fdatasync" && fd === written.fd && beganAt > written.endedAt,
  );
  if (flushed === undefined) return ["written", "left"];
  const valid = before.find(
    ({ name, fd, beganAt }) => name === "pwrite64" && heads.has(fd) && beganAt > flushed.endedAt,
  );
  return valid === undefined ? ["written", "flushed", "left"] : ["written", "flushed", "valid", "left"];
}

describeWith(["strace"], "what is relied on is on disk before bytes leave", () => {
  it("for a result: the intent before the provider has it, the outcome before the caller has it", async () => {
    const watched = await Watched.start();
    watched.ask("run", "MARK-ARGUMENTS");
    watched.tools.answer((await watched.tools.request()).id, trusted("MARK-RESULT"));
    await watched.agent.response();
    await watched.expectFlushed([
      ["MARK-ARGUMENTS", "tools"],
      ["MARK-RESULT", "agent"],
    ]);
  });

  it("for each part of a result", async () => {
    const watched = await Watched.start();
    watched.ask("run", "MARK-ARGUMENTS");
    const { id } = await watched.tools.request();
    for (const part of ["MARK-ONE", "MARK-TWO"]) {
      watched.tools.answer(id, trusted(part), false);
      await watched.agent.response();
    }
    watched.tools.answer(id, trusted("MARK-LAST"));
    await watched.agent.response();
    await watched.expectFlushed([
      ["MARK-ONE", "agent"],
      ["MARK-TWO", "agent"],
      ["MARK-LAST", "agent"],
    ]);
  });

  it("for a failure of the provider", async () => {
    const watched = await Watched.start();
    watched.ask("run", "MARK-ARGUMENTS");
    const { id } = await watched.tools.request();
    watched.tools.answer(id, { status: "failed", message: "MARK-FAILURE" });
    await watched.agent.response();
    await watched.expectFlushed([["MARK-FAILURE", "agent"]]);
  });

  it("for a provider that was lost", async () => {
    const watched = await Watched.start();
    watched.ask("run", "MARK-ARGUMENTS");
    await watched.tools.request();
    await watched.tools.close();
    await watched.agent.response();
    await watched.expectFlushed([["provider_lost", "agent"]]);
  });

  it("for a question, its approval, and the call that it releases", async () => {
    const watched = await Watched.start();
    watched.ask("asked", "MARK-ARGUMENTS");
    const { approval, digest } = await watched.question();
    const approved = await watched.operate("approvals.approve", { approval, digest });
    expect(approved["approved"]).toBe(true);
    watched.tools.answer((await watched.tools.request()).id, trusted("MARK-RESULT"));
    await watched.agent.response();
    await watched.expectFlushed([
      [approval, "agent"],
      ["MARK-ARGUMENTS", "tools"],
      ["approved\\", "operator"],
      ["MARK-RESULT", "agent"],
    ]);
  });

  it("for a refusal, before either side hears of it", async () => {
    const watched = await Watched.start();
    watched.ask("asked", "MARK-ARGUMENTS");
    const { approval } = await watched.question();
    await watched.operate("approvals.refuse", { approval });
    expect((await watched.agent.response()).status).toBe("denied");
    await watched.expectFlushed([
      ["refused\\", "operator"],
      ["approval_refused", "agent"],
    ]);
  });

  it("for a question that its caller withdraws", async () => {
    const watched = await Watched.start();
    watched.ask("asked", "MARK-ARGUMENTS");
    await watched.question();
    watched.agent.ask(99n, "callgate.calls.cancel", { call: "1" }, 99n);
    await watched.agent.response();
    await watched.agent.response();
    await watched.expectFlushed([["cancelled", "agent"]]);
  });
});
