// What becomes of calls when processes go: callers, approvers and the daemon itself. Real processes and
// sockets, on one disk.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { ECHO } from "./configs.ts";
import { cleanUp, Daemon, onCleanUp, Place, type StartOptions } from "./daemon.ts";
import { requestFrame, trusted } from "./frames.ts";
import { WirePeer } from "./wire_peer.ts";

afterEach(cleanUp);

/** Beside ECHO: `asked` asks a human, everybody is one user, and `shortly` ends at a time that is left open. */
function config(shortlyUntilMs = Date.UTC(2100, 0)): string {
  return `${ECHO}
[tools.asked]
role = "tools"
effect = "write"
untrusted = false
store = false
[tools.shortly]
role = "tools"
effect = "read"
untrusted = false
[[grants]]
id = "agent-asks"
role = "agent"
tools = ["asked"]
effect = "ask"
taint_max = "restricted"
taint_untrusted = true
approval_ttl = "10m"
[[grants]]
id = "agent-shortly"
role = "agent"
tools = ["shortly"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
expires = ${new Date(shortlyUntilMs).toISOString()}
[[gives]]
role = "operator"
to = ["agent"]
tools = ["free"]
taint_max = "restricted"
taint_untrusted = true
longest = "1d"
effects = ["allow"]
[tools.free]
role = "tools"
effect = "read"
untrusted = false
`;
}

/** A daemon that is started again and again on the same disk, and a provider that counts. */
class World {
  readonly place = new Place("");
  daemon!: Daemon;
  provider!: WirePeer;

  static async start(text = config(), options: StartOptions = {}): Promise<World> {
    const world = new World();
    const daemon = `[daemon]\nsockets = "run"\nstate = "state"\n`;
    writeFileSync(world.place.config, `allow_same_user = true\n${daemon}${text}`, { mode: 0o644 });
    await world.start(options);
    return world;
  }

  async start(options: StartOptions = {}): Promise<void> {
    this.daemon = await Daemon.start(this.place, options);
    this.provider = await this.peer("tools");
  }

  peer(role: string): Promise<WirePeer> {
    return WirePeer.connect(this.daemon.socket(role));
  }

  /** Kills it with -9, and starts another. */
  async kill(options: StartOptions = {}): Promise<void> {
    this.daemon.signal("SIGKILL");
    await this.daemon.ended;
    await this.start(options);
  }

  /** The final answer to a call of the agent's, in short words. */
  async ends(tool: string, call: bigint, args: object = {}): Promise<string> {
    const agent = await this.peer("agent");
    agent.ask(1n, tool, args, call);
    const body = await final(agent);
    await agent.close();
    if (body.status === "result") return body.content;
    if (body.status === "denied") return body.reason;
    return body.status === "failed" ? body.message.replace(/:.*/s, "") : body.status;
  }

  async does(tool: string, args: object): Promise<Readonly<Record<string, unknown>>> {
    const operator = await this.peer("operator");
    operator.ask(1n, `callgate.${tool}`, args, BigInt(Date.now()) * 1000n + BigInt(this.#asked++));
    const body = await final(operator);
    await operator.close();
    if (body.status !== "result") throw new Error(`${tool}: ${JSON.stringify(body)}`);
    return JSON.parse(body.content) as Record<string, unknown>;
  }

  #asked = 0;

  async approve(): Promise<void> {
    const { approvals } = await this.does("approvals.list", {});
    const [{ approval }] = approvals as [{ approval: string }];
    const { digest } = await this.does("approvals.show", { approval });
    await this.does("approvals.approve", { approval, digest });
  }
}

async function final(peer: WirePeer) {
  for (;;) {
    const envelope = await peer.next();
    if (envelope?.msg.kind !== "tool_response") throw new Error("the connection ended");
    if (envelope.final) return envelope.msg.body;
  }
}

/** A process that asks and then does nothing, until it is killed with -9. */
async function caller(path: string, request: Buffer, halfCloses = false) {
  const script = `
    const [path, hex, half] = process.argv.slice(1);
    const socket = require("node:net").connect({ path, allowHalfOpen: true });
    socket.on("error", () => undefined);
    socket.write(Buffer.from(hex, "hex"), () => { if (half) socket.end(); console.log("sent"); });
    setInterval(() => undefined, 60000);`;
  const words = ["-e", script, path, request.toString("hex"), halfCloses ? "half" : ""];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  onCleanUp(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
  };
}

describe("a caller killed with its call pending", () => {
  it.each([false, true])(
    "(half-closed: %s) finds its outcome after the daemon was killed as well",
    async (half) => {
      const world = await World.start();
      const kill = await caller(world.daemon.socket("agent"), requestFrame(1n, "slow", {}, 7n), half);
      const { id } = await world.provider.request();
      await kill();
      world.provider.answer(id, trusted("kept"));
      await world.daemon.event("call.ended", ({ call }) => call === "7");
      await world.kill();
      expect(await world.ends("slow", 7n)).toBe("kept");
      expect(world.provider.received).toEqual([]);
    },
  );

  it("that waits for a human runs once it is approved, after both were killed", async () => {
    const world = await World.start();
    const kill = await caller(world.daemon.socket("agent"), requestFrame(1n, "asked", {}, 7n));
    await world.daemon.event("approval.asked");
    await kill();
    await world.kill();
    const outcome = world.ends("asked", 7n); // it has come back, and waits on
    await world.approve();
    const { id } = await world.provider.request();
    world.provider.answer(id, trusted("run"));
    expect(await outcome).toBe("run");
    await world.kill();
    expect(await world.ends("asked", 7n)).toBe("run");
    expect(world.provider.received).toEqual([]);
  });
});

describe("SIGTERM", () => {
  it("with a call that does not end in time ends in bounded time, and leaves the call recorded: it is not run again", async () => {
    const world = await World.start(config().replace('drain_timeout = "5s"', 'drain_timeout = "200ms"'));
    const agent = await world.peer("agent");
    agent.ask(1n, "slow", {}, 7n);
    await world.provider.request();
    expect(await world.daemon.stop()).toBe(0);
    expect(world.daemon.lines.at(-1)).toMatchObject({ event: "daemon.stopped", unfinished: 1 });
    await world.start();
    // Its provider's connection was closed with the daemon, and that it may have run is written down.
    expect(await world.ends("slow", 7n)).toBe("provider_lost");
    expect(world.provider.received).toEqual([]);
  });

  it("with a caller that waits for a human ends at once, and the question outlives it", async () => {
    const world = await World.start(config().replace('drain_timeout = "5s"', 'drain_timeout = "1h"'));
    const agent = await world.peer("agent");
    agent.ask(1n, "asked", {}, 7n);
    await world.daemon.event("approval.asked");
    expect(await world.daemon.stop()).toBe(0);
    await world.start();
    const outcome = world.ends("asked", 7n);
    await world.approve();
    const { id } = await world.provider.request();
    world.provider.answer(id, trusted("run"));
    expect(await outcome).toBe("run");
  });
});

describe("a peer that is gone during a write", () => {
  it("as a caller that is given much costs nobody anything, and its outcome is there when it comes back", async () => {
    const world = await World.start();
    const content = "x".repeat(250_000);
    for (let call = 1n; call <= 8n; call += 1n) {
      const agent = await world.peer("agent");
      agent.socket.pause();
      agent.ask(1n, "slow", {}, call);
      const { id } = await world.provider.request();
      world.provider.answer(id, trusted(content));
      agent.socket.destroy();
      await world.daemon.event("call.ended", (line) => line["call"] === String(call));
    }
    expect(await world.ends("slow", 8n)).toBe(content);
    expect(await world.daemon.stop()).toBe(0);
  });

  it("as a provider that is given much loses its call, and no other", async () => {
    const world = await World.start();
    const [agent, leaving] = [await world.peer("agent"), world.provider];
    leaving.socket.pause();
    for (let call = 1n; call <= 4n; call += 1n) agent.ask(call, "slow", { text: "x".repeat(200_000) }, call);
    await world.daemon.event("peer.connected", ({ role }) => role === "agent");
    leaving.socket.destroy();
    const ends = [];
    for (let call = 1n; call <= 4n; call += 1n) ends.push((await final(agent)).status);
    expect(ends).toEqual(Array(4).fill("failed"));
    const seen = world.daemon.lines.length;
    const next = await world.peer("tools");
    await world.daemon.event("peer.connected", ({ role }) => role === "tools", seen);
    agent.ask(9n, "echo", {}, 9n);
    const { id } = await next.request();
    next.answer(id, trusted("goes on"));
    expect(await final(agent)).toMatchObject({ content: "goes on" });
  });
});

/** Starts the daemon with the machine's clock set by so much. */
function setBy(ms: number): StartOptions {
  const script = `const now = Date.now; Date.now = () => now() + ${ms};`;
  return { node: ["--import", `data:text/javascript,${encodeURIComponent(script)}`] };
}

describe("a daemon that starts with the clock set back by an hour", () => {
  const HOUR_MS = 3_600_000;

  it("keeps what was over: grants of the config and of run time, questions and sessions", async () => {
    const world = await World.start(config(Date.now() + HOUR_MS / 2));
    const agent = await world.peer("agent");
    agent.ask(1n, "asked", {}, 7n);
    await world.daemon.event("approval.asked");
    const given = { role: "agent", tools: ["free"], effect: "allow", reason: "for a while" };
    const until = { taint_max: "public", taint_untrusted: false, expires_in_seconds: HOUR_MS / 2000 };
    await world.does("grants.add", { ...given, ...until });
    await world.kill(setBy(HOUR_MS));
    const over = ["grant_expired", "grant_expired", "approval_expired"];
    const ends = async (from: bigint) => [
      await world.ends("shortly", from),
      await world.ends("free", from + 1n),
      await world.ends("asked", 7n),
    ];
    expect(await ends(10n)).toEqual(over);
    await world.kill();
    expect(await ends(20n)).toEqual(over);
    expect(world.provider.received).toEqual([]);
  });
});
