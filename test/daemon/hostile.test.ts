import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ECHO } from "./configs.ts";
import { cleanUp, Daemon, onCleanUp } from "./daemon.ts";
import { frame, requestFrame, trusted } from "./frames.ts";
import { WirePeer } from "./wire_peer.ts";

// One daemon for all of them: each test leaves behind what a hostile peer leaves behind, and the next
// one finds the daemon as it was.

const LIMITS = `
[roles.agent.limits]
connects_per_second = 1000
queued_bytes_out = 2000000
`;

let daemon: Daemon;
let provider: WirePeer;
let descriptors: number;
let callId = 1000n;

beforeAll(async () => {
  daemon = await Daemon.start(ECHO + LIMITS);
  descriptors = daemon.descriptors();
});
afterAll(cleanUp);

const agent = (options = {}) => WirePeer.connect(daemon.socket("agent"), options);

async function tools(): Promise<WirePeer> {
  return WirePeer.connect(daemon.socket("tools"));
}

/** The daemon answers a call by the book, and everything that others held is given back. */
async function isSound(): Promise<void> {
  const from = daemon.lines.length;
  provider = await tools();
  const caller = await agent();
  callId += 1n;
  caller.ask(1n, "echo", {}, callId);
  provider.answer((await provider.request()).id, trusted(`sound ${callId}`));
  expect(await caller.response()).toMatchObject({ content: `sound ${callId}` });
  await Promise.all([caller.close(), provider.close()]);
  await daemon.event("peer.disconnected", ({ role }) => role === "tools", from);
  await daemon.event("peer.disconnected", ({ role }) => role === "agent", from);
  const operator = await WirePeer.connect(daemon.socket("operator"));
  operator.ask(1n, "callgate.status", {}, 1n);
  const answer = await operator.response();
  const status = JSON.parse(answer.status === "result" ? answer.content : "{}");
  expect(status).toMatchObject({ running_calls: 0 });
  for (const role of status.roles) {
    if (role.role !== "operator") expect(role).toMatchObject({ connections: 0, asking: 0, serving: 0 });
  }
  await operator.close();
  await daemon.event("peer.disconnected", ({ role }) => role === "operator", from);
  // Another's goodbye may come late: what counts is that everybody who came has gone.
  await daemon.event(
    "peer.disconnected",
    () => daemon.count("peer.connected") === daemon.count("peer.disconnected"),
    from,
  );
  // A socket that was refused at once may be closed after its line is in the log.
  await expect.poll(() => daemon.descriptors(), { timeout: 10_000 }).toBeLessThanOrEqual(descriptors);
  expect(daemon.count("broker.fault")).toBe(0);
}

describe("a peer that sends what is no frame", () => {
  it.each([
    ["a length of 4294967295", Buffer.from([255, 255, 255, 255]), "bad_frame"],
    ["a length of 0", Buffer.alloc(4), "bad_frame"],
    ["text", Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "bad_frame"],
    ["a body that is no object", Buffer.from("\0\0\0\x02[]", "latin1"), "bad_frame"],
    ["another version", Buffer.from('\0\0\0\x07{"v":2}', "latin1"), "bad_version"],
    ["no message", Buffer.from('\0\0\0\x07{"v":1}', "latin1"), "bad_message"],
  ])("(%s) is told so and let go", async (_, bytes, code) => {
    const peer = await agent();
    peer.bytes(bytes);
    expect(await peer.refused()).toBe(code);
    await peer.close();
    await isSound();
  });

  it.each([
    ["a length and then nothing", [Buffer.from([0, 0, 1, 0])]],
    ["half a length", [Buffer.from([0, 0])]],
    ["a byte now and then", Array.from({ length: 40 }, () => Buffer.from([0]))],
  ])("(%s) is let go after frame_timeout", async (_, pieces) => {
    const peer = await agent();
    const [first, ...rest] = pieces;
    peer.bytes(first!);
    const refused = peer.refused();
    // Slow bytes don't move the deadline: the length alone takes longer than that.
    const header = setInterval(() => peer.socket.writable && rest.pop() && peer.bytes(Buffer.from([1])), 100);
    expect(await refused).toBe("bad_frame");
    clearInterval(header);
    await peer.close();
    await isSound();
  });

  it("and declares a megabyte 60 times takes no memory", async () => {
    const before = daemon.memory();
    const peers = await Promise.all(Array.from({ length: 60 }, () => agent()));
    for (const peer of peers) peer.bytes(Buffer.from([0, 16, 0, 0, 123]));
    for (const peer of peers) expect(await peer.refused()).toBe("bad_frame");
    expect(daemon.memory() - before).toBeLessThan(30_000_000);
    await Promise.all(peers.map((peer) => peer.close()));
    await isSound();
  });
});

describe("a peer that does not read", () => {
  it("but sends 10,000 calls is disconnected, with the reason in the log, and memory stays bounded", async () => {
    const serving = await tools();
    const peer = await agent({ reads: false });
    const from = daemon.lines.length;
    const before = daemon.memory();
    const answers = (async () => {
      for (let answered = 0; answered < 10_000; answered += 1) {
        const envelope = await serving.next();
        if (envelope === undefined) return;
        serving.answer(envelope.id, trusted("y".repeat(20_000)));
      }
    })();
    const frames = Array.from({ length: 10_000 }, (_, i) =>
      requestFrame(BigInt(i + 1), "echo", {}, BigInt(100_000 + i)),
    );
    peer.bytes(Buffer.concat(frames));
    expect(await daemon.event("connection.too_slow", undefined, from)).toMatchObject({
      role: "agent",
      limit: expect.stringMatching(/^(queued_bytes_out|frame_timeout)$/),
    });
    await daemon.event("peer.disconnected", ({ role }) => role === "agent", from);
    expect(daemon.memory() - before).toBeLessThan(150_000_000);
    await Promise.all([peer.close(), serving.close()]);
    await answers;
    await daemon.event("peer.disconnected", ({ role }) => role === "tools", from);
    await isSound();
  });

  it("and has half-closed is disconnected after frame_timeout", async () => {
    const serving = await tools();
    const peer = await agent({ reads: false });
    const from = daemon.lines.length;
    for (let call = 1n; call <= 4n; call += 1n) peer.ask(call, "echo", {}, 200_000n + call);
    peer.socket.end();
    for (let call = 1n; call <= 4n; call += 1n) {
      const { id } = await serving.request();
      serving.answer(id, trusted("z".repeat(250_000)));
    }
    await daemon.event("connection.too_slow", undefined, from);
    await daemon.event("peer.disconnected", ({ role }) => role === "agent", from);
    await Promise.all([peer.close(), serving.close()]);
    await isSound();
  });
});

describe("a peer that floods", () => {
  it("with connections is held to its role's limits, and others connect", async () => {
    const crowd = await Promise.all(Array.from({ length: 500 }, () => agent()));
    const operator = await WirePeer.connect(daemon.socket("operator"));
    operator.ask(1n, "callgate.status", {}, 1n);
    expect(await operator.response()).toMatchObject({ status: "result" });
    await operator.close();
    await daemon.event("limit.reached");
    await Promise.all(crowd.map((peer) => peer.close()));
    await isSound();
  });
});

describe("a caller that breaks the protocol", () => {
  it("by an id in flight used again is let go, and the first call runs on", async () => {
    const serving = await tools();
    const peer = await agent();
    peer.ask(7n, "slow", {}, 300_000n);
    const { id } = await serving.request();
    peer.ask(7n, "slow", {}, 300_001n);
    expect(await peer.refused()).toBe("bad_message");
    await peer.close();
    serving.answer(id, trusted("done"));
    const again = await agent();
    again.ask(1n, "slow", {}, 300_000n);
    expect(await again.response()).toMatchObject({ content: "done" });
    await Promise.all([again.close(), serving.close()]);
    await isSound();
  });

  it("by answering is let go", async () => {
    const peer = await agent();
    peer.answer(1n, trusted("forged"));
    expect(await peer.refused()).toBe("bad_message");
    await peer.close();
    await isSound();
  });
});

describe("a provider that breaks the protocol", () => {
  it("by answering calls that nobody asked changes nothing, and is logged at growing distances", async () => {
    const serving = await tools();
    const from = daemon.lines.length;
    for (let id = 1n; id <= 1000n; id += 1n) serving.answer(id + 1_000_000n, trusted("forged"));
    await daemon.event("answer.ignored", ({ count }) => count === 512, from);
    expect(daemon.lines.slice(from).filter(({ event }) => event === "answer.ignored").length).toBeLessThan(
      12,
    );
    await serving.close();
    await isSound();
  });

  it("by answering another connection's call reaches nobody", async () => {
    const first = await tools();
    const caller = await agent();
    caller.ask(1n, "slow", {}, 400_000n);
    const { id } = await first.request();
    const second = await tools();
    second.answer(id, trusted("forged"));
    second.answer(id, { status: "failed", message: "forged" });
    await daemon.event("answer.ignored", ({ count }) => count === 2, 0);
    first.answer(id, trusted("true"));
    expect(await caller.response()).toMatchObject({ content: "true" });
    await Promise.all([first.close(), second.close(), caller.close()]);
    await isSound();
  });
});

describe("a process killed with -9", () => {
  /**
   * A process that connects and sends `first`, and `then` when it hears something. `said` resolves when all of
   * that is sent.
   */
  async function victim(role: string, first: Buffer, then?: Buffer) {
    const script = `
      const [path, first, then] = process.argv.slice(1);
      const socket = require("node:net").connect(path);
      const send = (hex, word) => socket.write(Buffer.from(hex, "hex"), () => console.log(word));
      socket.on("connect", () => send(first, "sent"));
      socket.once("data", () => send(then, "answered"));
      socket.on("error", () => undefined);
      setInterval(() => undefined, 60000);`;
    const words = ["-e", script, daemon.socket(role), first.toString("hex"), then?.toString("hex") ?? ""];
    const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
    onCleanUp(() => child.kill("SIGKILL"));
    await once(child.stdout, "data");
    const answered = once(child.stdout, "data");
    const kill = async () => {
      child.kill("SIGKILL");
      await once(child, "exit");
    };
    return { answered, kill };
  }

  it.each([
    ["before it asks", (_: bigint) => Buffer.alloc(0)],
    ["inside a length", () => Buffer.from([0, 0])],
    ["inside its request", (call: bigint) => requestFrame(1n, "slow", {}, call).subarray(0, 40)],
  ])("as a caller, %s, is forgotten", async (_, bytes) => {
    callId += 1n;
    const { kill } = await victim("agent", bytes(callId));
    await kill();
    await isSound();
  });

  it("as a caller, while its call runs, gets its answer when it comes back", async () => {
    const serving = await tools();
    const { kill } = await victim("agent", requestFrame(1n, "slow", {}, 500_000n));
    const { id } = await serving.request();
    const from = daemon.lines.length;
    await kill();
    serving.answer(id, trusted("kept"));
    // Until then it may be one that has half-closed and waits.
    await daemon.event("peer.disconnected", ({ role }) => role === "agent", from);
    const back = await agent();
    back.ask(1n, "slow", {}, 500_000n);
    expect(await back.response()).toMatchObject({ content: "kept" });
    await Promise.all([back.close(), serving.close()]);
    await isSound();
  });

  it.each([
    ["with the call in its hands", 600_000n, undefined],
    ["inside its answer", 600_001n, answerFrame(1n, true).subarray(0, 40)],
    ["after a part of its answer", 600_002n, answerFrame(1n, false)],
  ])("as a provider, %s, fails the call once and for good", async (_, call, bytes) => {
    const { answered, kill } = await victim("tools", Buffer.alloc(0), bytes);
    const caller = await agent();
    const args = { call: String(call) }; // one equal to a lost call would be asked about
    caller.ask(1n, "slow", args, call);
    await answered;
    await kill();
    const first = await finalOf(caller);
    const message = expect.stringMatching(/^provider_lost: .*may have run/);
    expect(first).toMatchObject({ status: "failed", message });
    caller.ask(2n, "slow", args, call);
    expect(await finalOf(caller)).toEqual(first);
    await caller.close();
    await isSound();
  });
});

function answerFrame(id: bigint, final: boolean): Buffer {
  return frame(
    id,
    { kind: "tool_response", body: trusted("some content that is long enough to cut") },
    final,
  );
}

async function finalOf(peer: WirePeer) {
  for (;;) {
    const envelope = await peer.next();
    if (envelope === undefined) throw new Error("the connection ended");
    if (envelope.final && envelope.msg.kind === "tool_response") return envelope.msg.body;
  }
}

describe("afterwards", () => {
  it("the daemon rests: it uses no processor time while nothing is asked", async () => {
    await isSound();
    const before = daemon.cpu();
    // A quiet second, told by the daemon's own clock: a frame that never ends, three times.
    for (let round = 0; round < 3; round += 1) {
      const peer = await agent();
      peer.bytes(Buffer.from([0]));
      expect(await peer.refused()).toBe("bad_frame");
      await peer.close();
    }
    expect(daemon.cpu() - before).toBeLessThan(40);
  });
});
