// The accept loop over real sockets and a clock that a test moves: deadlines, places, memory, and peers that do what no
// caller would.

import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { withLength } from "../../src/connector/frame.ts";
import { frameBytesForPayload } from "../../src/connector/frame_arithmetic.ts";
import { type ConnectorServer, serve } from "../../src/connector/serve.ts";
import type { ServiceConfig } from "../../src/connector/service_config.ts";
import { randomOf } from "../seeded.ts";
import { RawPeer } from "./raw_peer.ts";
import {
  ALPHA,
  bytesOf,
  CONFIG,
  frameOf,
  invocation,
  request,
  ServiceRig,
  START_MS,
  wordsOf,
} from "./service_rig.ts";

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const action of undo.splice(0).reverse()) await action();
});

const TIMEOUT_MS = CONFIG.socket_timeout_ms;

class World {
  readonly rig: ServiceRig;
  readonly server: ConnectorServer;

  static async start(config: Partial<ServiceConfig> = {}): Promise<World> {
    const rig = await ServiceRig.open(config);
    const server = await serve(rig.service, {
      clock: rig.clock,
      log: (_, event, fields) => rig.lines.push({ ...fields, event }),
    });
    if (!server.ok) throw new Error(JSON.stringify(server.fault));
    const world = new World(rig, server.value);
    undo.push(() => world.end());
    return world;
  }

  private constructor(rig: ServiceRig, server: ConnectorServer) {
    this.rig = rig;
    this.server = server;
  }

  async peer(): Promise<RawPeer> {
    const { accepted } = this.server;
    const peer = await RawPeer.connect(this.server.port);
    undo.push(() => peer.close());
    await this.until(() => this.server.accepted > accepted);
    return peer;
  }

  /** A turn of the loop at a time. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Time passes, and its timers fire. */
  pass(ms: number): void {
    const untilMs = this.rig.clock.wallMs + ms;
    while (this.rig.clock.step(untilMs));
  }

  /** A peer that sends all of this and waits for the end. */
  async exchange(bytes: Buffer): Promise<Buffer> {
    const peer = await this.peer();
    await peer.send(bytes);
    const { bytes: answer, how } = await peer.ended;
    expect(how).toBe("end");
    peer.close();
    return answer;
  }

  async end(): Promise<void> {
    this.rig.fake.releaseAll();
    const closed = this.server.close(0);
    this.pass(0);
    await closed;
  }
}

/** The frame in what a server sent, which is one whole frame or nothing. */
function frameIn(answer: Buffer): Buffer | undefined {
  if (answer.length === 0) return undefined;
  expect(answer.readUInt32BE()).toBe(answer.length - 4);
  return answer.subarray(4);
}

const told = (answer: Buffer) => wordsOf(frameIn(answer));

describe("a request", () => {
  it("is answered by one frame and the end of the connection", async () => {
    const world = await World.start();
    expect(told(await world.exchange(withLength(request())))).toBe("Completed");
    await world.until(() => world.server.connections === 0);
  });

  it("may come a byte at a time", async () => {
    const world = await World.start();
    const peer = await world.peer();
    for (const byte of withLength(request())) await peer.send(Buffer.from([byte]));
    expect(told((await peer.ended).bytes)).toBe("Completed");
  });

  it("is answered although its sender has ended its half", async () => {
    const world = await World.start();
    const peer = await world.peer();
    peer.socket.end(withLength(request()));
    expect(told((await peer.ended).bytes)).toBe("Completed");
    await world.until(() => world.server.connections === 0);
  });

  it("is the only one of its connection: what comes after it is never read", async () => {
    const world = await World.start();
    const both = Buffer.concat([withLength(request()), withLength(request({ request_id: "second" }))]);
    expect(told(await world.exchange(both))).toBe("Completed");
    expect(world.rig.fake.calls).toBe(1);
  });

  it("that is followed by much more is answered all the same: what comes is discarded, not reset", async () => {
    const world = await World.start();
    const more = Buffer.alloc(4_000_000, 1);
    expect(told(await world.exchange(Buffer.concat([withLength(request()), more])))).toBe("Completed");
  });

  it("of a caller that went away runs to its end, and can be fetched", async () => {
    const world = await World.start();
    world.rig.fake.held = true;
    const peer = await world.peer();
    const entered = world.rig.fake.entered();
    await peer.send(withLength(request()));
    await entered;
    peer.socket.resetAndDestroy();
    world.rig.fake.held = false;
    world.rig.fake.releaseAll();
    await world.until(() => world.rig.service.figures.running === 0);
    expect(told(await world.exchange(withLength(request())))).toBe("Completed");
    expect(world.rig.fake.calls).toBe(1);
    await world.until(() => world.server.connections === 0);
  });
});

describe("silence", () => {
  const whole = withLength(request());
  const CASES: readonly (readonly [string, Buffer, boolean])[] = [
    ["a length of zero", Buffer.alloc(4), false],
    ["a length above the bound", Buffer.from([0, 0, 0x5a, 0x99]), false],
    [
      "the largest length, with a body that comes",
      Buffer.concat([Buffer.alloc(4, 0xff), Buffer.alloc(9000)]),
      false,
    ],
    ["a frame that is cut", whole.subarray(0, -1), true],
    ["nothing at all", Buffer.alloc(0), true],
    ["half a length", whole.subarray(0, 2), true],
    ["noise of the right length", withLength(randomBytes(500)), false],
    [
      "a caller that nobody knows",
      withLength(frameOf(Buffer.from("x"), { caller: { ...ALPHA, caller_runtime_id: "nobody" } })),
      false,
    ],
    ["another key", withLength(frameOf(Buffer.from("x"), { key: randomBytes(32) })), false],
  ];

  it.each(CASES)(
    "after %s is the end of the connection, and looks like every other",
    async (_, bytes, ends) => {
      const world = await World.start();
      const peer = await world.peer();
      await peer.send(bytes);
      if (ends) peer.socket.end();
      expect(await peer.ended).toEqual({ bytes: Buffer.alloc(0), how: "end" });
      if (!ends) {
        // It goes on taking what comes, for a second.
        await peer.send(Buffer.alloc(1000));
        expect(world.server.connections).toBe(1);
        world.pass(1000);
      }
      await world.until(() => world.server.connections === 0);
      expect(world.rig.clock.timers).toBeLessThanOrEqual(2); // of the two lines that the log may have
    },
  );
});

describe("time", () => {
  it("of a frame is one deadline from the first moment, however many bytes still come", async () => {
    const world = await World.start();
    const peer = await world.peer();
    const bytes = withLength(request());
    for (let i = 0; i < 10; i += 1) {
      await peer.send(bytes.subarray(i * 10, i * 10 + 10));
      if (i < 9) world.pass(TIMEOUT_MS / 10);
    }
    expect(world.server.unread.size).toBe(0);
    world.pass(TIMEOUT_MS / 10);
    expect(await peer.ended).toEqual({ bytes: Buffer.alloc(0), how: "end" });
    expect([...world.server.unread]).toEqual([["too_slow", 1]]);
  });

  it("does not run while the backend works", async () => {
    const world = await World.start();
    world.rig.fake.held = true;
    const peer = await world.peer();
    const entered = world.rig.fake.entered();
    await peer.send(withLength(request()));
    await entered;
    world.pass(1000 * TIMEOUT_MS);
    world.rig.fake.releaseAll();
    expect(told((await peer.ended).bytes)).toBe("Completed");
  });

  it("of a reply that nobody reads ends too", async () => {
    const payload = 16_777_216;
    const world = await World.start({
      max_frame_bytes: frameBytesForPayload(payload),
      callers: [{ ...ALPHA, max_payload_bytes: payload }],
    });
    const text = "x".repeat(payload - 10_000);
    const peer = await world.peer();
    peer.socket.pause();
    await peer.send(withLength(request({ input: [{ UserText: { text } }] })));
    await world.until(() => (world.rig.service.figures.ended.get("Completed") ?? 0) === 1);
    await world.until(() => world.rig.service.figures.running === 0);
    for (let i = 0; i < 50; i += 1) await new Promise((resolve) => setImmediate(resolve)); // what fits, goes
    expect(world.server.connections).toBe(1);
    world.pass(TIMEOUT_MS);
    await world.until(() => world.server.connections === 0);
  });
});

describe("places", () => {
  it("are made by the oldest connection that has brought no frame, again and again", async () => {
    const world = await World.start({ max_connections: 3 });
    const silent = [await world.peer(), await world.peer(), await world.peer()];
    expect(told(await world.exchange(withLength(request())))).toBe("Completed");
    expect((await silent[0]!.ended).bytes).toHaveLength(0);
    await world.until(() => world.server.connections === 2);
    await world.peer();
    expect(world.server.connections).toBe(3);
    const late = await RawPeer.connect(world.server.port);
    undo.push(() => late.close());
    expect((await silent[1]!.ended).bytes).toHaveLength(0);
    expect(world.server.unread.get("evicted")).toBe(2);
  });

  it("of turns that run are not taken: who comes then is sent away unread", async () => {
    const world = await World.start({ max_connections: 2 });
    world.rig.fake.held = true;
    const working: RawPeer[] = [];
    for (const id of ["r1", "r2"]) {
      const peer = await world.peer();
      const entered = world.rig.fake.entered();
      await peer.send(withLength(request({ request_id: id })));
      await entered;
      working.push(peer);
    }
    const late = await world.peer();
    expect((await late.ended).bytes).toHaveLength(0);
    expect(world.server.unread.get("no_place")).toBe(1);
    world.rig.fake.releaseAll();
    for (const peer of working) expect(told((await peer.ended).bytes)).toBe("Completed");
  });

  it("of connections that are over are given first", async () => {
    const world = await World.start({ max_connections: 2 });
    const silent = await world.peer();
    const over = await world.peer();
    await over.send(Buffer.alloc(4));
    expect((await over.ended).how).toBe("end");
    expect(told(await world.exchange(withLength(request())))).toBe("Completed");
    expect(world.server.unread.get("evicted")).toBeUndefined();
    await silent.send(withLength(request()));
    expect(told((await silent.ended).bytes)).toBe("Completed");
  });
});

describe("memory", () => {
  it("for frames that never become whole has a bound over all connections, and the oldest makes room", async () => {
    const world = await World.start({ max_connections: 64, max_frame_bytes: 2_000_000 });
    const part = Buffer.alloc(1_900_000);
    part.writeUInt32BE(2_000_000);
    const peers: RawPeer[] = [];
    for (let i = 0; i < 9; i += 1) {
      const peer = await RawPeer.connect(world.server.port);
      undo.push(() => peer.close());
      peers.push(peer);
      void peer.send(part);
    }
    await world.until(() => (world.server.unread.get("evicted") ?? 0) > 0);
    expect((await peers[0]!.ended).bytes).toHaveLength(0);
    expect(told(await world.exchange(withLength(request())))).toBe("Completed");
  });
});

describe("a hostile peer", () => {
  it("that resets at any point of its frame harms nobody, and leaves nothing behind", async () => {
    const world = await World.start();
    const bytes = withLength(request());
    for (let at = 0; at <= bytes.length; at += 37) {
      const peer = await RawPeer.connect(world.server.port);
      await peer.send(bytes.subarray(0, at));
      peer.socket.resetAndDestroy();
    }
    expect(told(await world.exchange(withLength(request())))).toBe("Completed");
    await world.until(() => world.server.connections === 0);
    expect(world.rig.service.figures.running).toBe(0);
    expect(world.rig.fake.calls).toBe(1);
  });

  it("that resets while its reply goes out harms nobody", async () => {
    const world = await World.start();
    for (let i = 0; i < 50; i += 1) {
      const peer = await RawPeer.connect(world.server.port);
      peer.socket.once("data", () => peer.socket.resetAndDestroy());
      await peer.send(withLength(request({ request_id: `r${i}` })));
      await peer.ended;
    }
    expect(told(await world.exchange(withLength(request())))).toBe("Completed");
    await world.until(() => world.server.connections === 0);
  });

  it("with 300 changed frames hears nothing, or one sealed answer", async () => {
    const world = await World.start({ max_connections: 64 });
    const random = randomOf(7);
    for (let i = 0; i < 300; i += 1) {
      const frame = changedFrame(random);
      const peer = await RawPeer.connect(world.server.port);
      peer.socket.end(withLength(frame));
      const { bytes } = await peer.ended;
      expect(told(bytes)).toMatch(/^(?:dropped|refused|Completed|Failed)/);
      peer.close();
    }
    expect(told(await world.exchange(withLength(request({ request_id: "another" }))))).toBe("Completed");
  });
});

/** A request of which something was changed: its bytes, or what was sealed. */
function changedFrame(random: (below: number) => number): Buffer {
  if (random(2) === 0) return changed(request(), random);
  const plaintext = changed(bytesOf(invocation({ request_id: "request-0001" })), random);
  return frameOf(plaintext.length === 0 ? Buffer.from([0]) : plaintext);
}

function changed(bytes: Buffer, random: (below: number) => number): Buffer {
  const copy = Buffer.from(bytes);
  const at = random(copy.length);
  switch (random(5)) {
    case 0:
      copy[at] = (copy[at] ?? 0) ^ (1 << random(8));
      return copy;
    case 1:
      copy[at] = random(256);
      return copy;
    case 2:
      return copy.subarray(0, at);
    case 3:
      return Buffer.concat([copy.subarray(0, at), randomBytes(1 + random(9)), copy.subarray(at)]);
    default:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.min(copy.length, at + 1 + random(20)))]);
  }
}

describe("10,000 changed frames", () => {
  it("get silence or one sealed answer each, and run the backend only where they are whole requests", async () => {
    const rig = await ServiceRig.open();
    const random = randomOf(11);
    const heard = new Map<string, number>();
    for (let i = 0; i < 10_000; i += 1) {
      const words = await rig.tell(changedFrame(random));
      heard.set(words, (heard.get(words) ?? 0) + 1);
    }
    expect(heard.get("dropped") ?? 0).toBeGreaterThan(4000);
    expect(heard.get("refused Malformed") ?? 0).toBeGreaterThan(1000);
    expect(rig.service.figures.dropped.get("internal")).toBeUndefined();
    expect(rig.service.figures.running).toBe(0);
    expect(await rig.ask({ request_id: "another" })).toBe("Completed");
  });
});

describe("an address", () => {
  it("that is taken is a start error", async () => {
    const world = await World.start();
    const rig = await ServiceRig.open({ port: world.server.port });
    const second = await serve(rig.service, { clock: rig.clock, log: () => undefined });
    expect(second).toMatchObject({ ok: false, fault: { kind: "Listen", code: "EADDRINUSE" } });
  });

  it("may be that of IPv6", async () => {
    const world = await World.start({ bind: "::1" });
    const peer = await RawPeer.connect(world.server.port, "::1");
    undo.push(() => peer.close());
    await peer.send(withLength(request()));
    expect(told((await peer.ended).bytes)).toBe("Completed");
    await expect(RawPeer.connect(world.server.port, "127.0.0.1")).rejects.toThrow("ECONNREFUSED");
  });
});

describe("a server that ends", () => {
  it("lets a turn end and its reply go out, and everything else go at once", async () => {
    const world = await World.start();
    const silent = await world.peer();
    world.rig.fake.held = true;
    const working = await world.peer();
    const entered = world.rig.fake.entered();
    await working.send(withLength(request()));
    await entered;
    const closed = world.server.close(60_000);
    expect((await silent.ended).bytes).toHaveLength(0);
    await expect(RawPeer.connect(world.server.port)).rejects.toThrow();
    world.rig.fake.releaseAll();
    expect(told((await working.ended).bytes)).toBe("Completed");
    await closed;
    expect(world.rig.clock.wallMs).toBe(START_MS);
  });
});
