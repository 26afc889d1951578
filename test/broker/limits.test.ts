import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { BASIC } from "./configs.ts";
import { FRAME_TIMEOUT_MS, withRig } from "./rig.ts";

/** What is reachable, after a collection. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().heapUsed;
}

/** The basic config with limits of the agent's. */
function limited(limits: string, role = ""): string {
  return BASIC.replace('users = ["agent"]', `users = ["agent"]\n${role}\n[roles.agent.limits]\n${limits}\n`);
}

describe("each limit is named where it is hit, and free again after", () => {
  it.each<[string, string]>([
    ["calls_per_second", "calls_per_second = 2"],
    ["calls_in_flight", "calls_in_flight = 2"],
    ["queued_bytes_in", "queued_bytes_in = 4096"],
    ["sessions", "sessions = 2"],
  ])("%s", (limit, set) =>
    withRig(limited(set), async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const args = { text: "x".repeat(1500) };
      const replies = ["a", "b", "c"].map((session) => agent.ask("free", args, { session }));
      await rig.settle();
      expect(replies.map(({ end }) => end)).toEqual(["nothing yet", "nothing yet", "failed capacity"]);
      expect(replies[2]?.sentence).toContain(`limit ${limit} is reached`);
      for (const request of files.requests.splice(0)) request.result("x");
      await rig.pass(limit === "sessions" ? 86_401_000 : 1000);
      const next = agent.ask("free", args, { session: "d" });
      await rig.settle();
      files.take().result("again");
      await rig.settle();
      expect(next.end).toBe("result public again");
    }),
  );

  it("queued_bytes_in, also by the parts of answers that are kept for those who may join", () =>
    withRig(limited("queued_bytes_in = 8192"), async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      const reply = agent.ask("free");
      await rig.settle();
      const request = files.take();
      for (let i = 0; i < 100; i += 1) request.part("");
      await rig.settle();
      expect(reply.end).toBe("failed capacity");
      expect(reply.sentence).toContain("limit queued_bytes_in");
      expect(reply.sentence).toContain("may have run");
      expect(reply.envelopes.length).toBeLessThan(25);
      const next = agent.ask("free");
      const status = operator.ask("callgate.status");
      await rig.settle();
      files.take().result("again");
      await rig.settle();
      expect([next.end, status.end.slice(0, 13)]).toEqual(["result public again", "result public"]);
    }));

  it("bounds memory too: calls in flight don't hold the parsed form of their arguments", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const args = `{"a":[${"{},".repeat(60_000)}{}]}`;
      const before = heapBytes();
      const replies = Array.from({ length: 10 }, () => agent.ask("free", args));
      await rig.settle();
      expect(files.requests).toHaveLength(10);
      expect(heapBytes() - before).toBeLessThan(10 * 8 * args.length);
      for (const request of files.requests.splice(0)) request.result("x");
      await rig.settle();
      expect(replies.every(({ end }) => end === "result public x")).toBe(true);
    }));

  it("bounds memory too: what is kept of denials holds no tool name of a megabyte", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      const before = heapBytes();
      for (let i = 0; i < 200; i += 1) {
        const reply = agent.ask(`x${i}`.padEnd(200_000, "y"));
        if (i % 20 === 0) await rig.settle();
        if (i === 0) expect(reply.end).toBe("denied no_grant");
      }
      await rig.settle();
      expect(rig.events("call.denied")).toHaveLength(200);
      expect(heapBytes() - before).toBeLessThan(10_000_000);
    }));

  it("joins", () =>
    withRig(limited("joins = 2"), async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      rig.store.mode = "held";
      const replies = [1, 2, 3, 4].map(() => agent.ask("free", {}, { call: 1n }));
      await rig.settle();
      expect(replies[3]?.sentence).toMatch(/^capacity: The role's limit joins is reached.*may have run\.$/);
      await rig.releaseAll();
      files.take().result("x");
      await rig.releaseAll();
      expect(replies.map(({ end }) => end)).toEqual([...Array(3).fill("result public x"), "failed capacity"]);
    }));

  it.each<[string, string]>([
    ["connections", limited("joins = 2", "connections = 2")],
    ["connects_per_second", limited("connects_per_second = 2")],
  ])("%s", (limit, config) =>
    withRig(config, async (rig) => {
      const [first, second, third] = [rig.peer("agent"), rig.peer("agent"), rig.peer("agent")];
      await rig.settle();
      expect([first, second, third].map(({ gone }) => gone)).toEqual([false, false, true]);
      expect(rig.events("limit.reached")).toMatchObject([{ fields: { role: "agent", limit } }]);
      if (limit === "connections") first.reset();
      await rig.pass(1000);
      const fourth = rig.peer("agent");
      await rig.settle();
      expect([second.gone, fourth.gone]).toEqual([false, false]);
    }),
  );

  it("peers that are refused count against no limit, and don't flood the log", () =>
    withRig(limited("connects_per_second = 2", "connections = 2"), async (rig) => {
      for (let i = 0; i < 5000; i += 1) rig.peer("agent", { uid: 4000 });
      const agent = rig.peer("agent");
      await rig.pass(1000);
      rig.peer("agent", { uid: 4000 });
      expect(agent.gone).toBe(false);
      expect(rig.events("peer.refused").length).toBeLessThan(110);
      expect(rig.events("log.suppressed")).toMatchObject([{ fields: { of: "peer.refused", lines: 4900 } }]);
    }));

  it("a lowered limit holds for what comes, a raised one at once", () =>
    withRig(limited("calls_in_flight = 2"), async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      agent.ask("free");
      agent.ask("free");
      await rig.settle();
      await rig.reloadWith(limited("calls_in_flight = 1"));
      files.take().result("x");
      await rig.settle();
      const lowered = agent.ask("free");
      await rig.settle();
      await rig.reloadWith(limited("calls_in_flight = 3"));
      agent.ask("free");
      await rig.settle();
      expect([lowered.end, files.requests.length]).toEqual(["failed capacity", 2]);
    }));
});

describe("a slow peer", () => {
  it("that never reads is first not read from, then let go; nobody else notices", () =>
    withRig(BASIC, async (rig) => {
      const [agent, other, files] = [rig.peer("agent"), rig.peer("agent"), rig.peer("files")];
      files.serve = (request) => request.result("x".repeat(20_000));
      agent.pause();
      for (let i = 0; i < 10_000; i += 1) agent.ask("free");
      await rig.settle();
      const held = rig.broker.holdings().find(({ role }) => role === "agent");
      expect(held?.queued_bytes_out).toBeLessThan(33_554_432);
      const good = other.ask("free");
      await rig.settle();
      expect([good.end.length, agent.gone]).toEqual([20_014, false]);
      await rig.pass(FRAME_TIMEOUT_MS);
      expect([agent.gone, other.gone]).toEqual([true, false]);
      expect(rig.events("connection.too_slow")).toMatchObject([{ fields: { limit: "frame_timeout" } }]);
    }));

  it("that reads in the end gets every answer", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      files.serve = (request) => request.result("x".repeat(20_000));
      agent.pause();
      const replies = Array.from({ length: 400 }, () => agent.ask("free"));
      await rig.settle();
      expect(replies[399]?.end).toBe("nothing yet");
      agent.resume();
      await rig.settle();
      expect(replies.filter(({ finals }) => finals === 1)).toHaveLength(400);
    }));

  it("that takes long for much, but always takes some, is let be", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      files.serve = (request) => request.result("x".repeat(200_000));
      agent.pause();
      const replies = Array.from({ length: 5 }, () => agent.ask("free"));
      await rig.settle();
      for (let i = 0; i < 4; i += 1) {
        await rig.pass(FRAME_TIMEOUT_MS - 1);
        agent.readSome(262_144);
        await rig.settle();
      }
      expect([agent.ended, replies.map(({ finals }) => finals)]).toEqual([false, [1, 1, 1, 1, 1]]);
    }));

  it("that replays much in one burst is slowed, not thrown out", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      files.serve = (request) => request.result("x".repeat(260_000));
      agent.ask("free", {}, { call: 1n });
      await rig.settle();
      const replies = Array.from({ length: 300 }, () => agent.ask("free", {}, { call: 1n }));
      await rig.settle();
      expect(replies.filter(({ finals }) => finals === 1)).toHaveLength(300);
    }));

  it("whose queue fills its role's limit goes, and not its neighbour that reads", () =>
    withRig(limited("queued_bytes_out = 700000"), async (rig) => {
      const [slow, quick, files] = [rig.peer("agent"), rig.peer("agent"), rig.peer("files")];
      files.serve = (request) => request.result("x".repeat(100_000));
      slow.pause();
      for (let i = 0; i < 6; i += 1) slow.ask("free");
      await rig.settle();
      const replies = Array.from({ length: 4 }, () => quick.ask("free"));
      await rig.settle();
      expect([slow.gone, quick.gone, ...replies.map(({ finals }) => finals)]).toEqual([
        true,
        false,
        1,
        1,
        1,
        1,
      ]);
      expect(rig.events("connection.too_slow")).toMatchObject([{ fields: { limit: "queued_bytes_out" } }]);
    }));

  it("a provider that writes before it reads is read from, whatever is queued to it", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const first = agent.ask("free");
      await rig.settle();
      files.pause();
      for (let i = 0; i < 30; i += 1) agent.ask("free", { text: "x".repeat(90_000) });
      await rig.settle();
      files.take().result("first");
      await rig.settle();
      expect(first.end).toBe("result public first");
    }));
});

describe("a frame", () => {
  const head = Buffer.from([0, 0, 1, 0]);

  it("that comes byte by byte must be complete by its deadline", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      agent.write(head.subarray(0, 3));
      for (let i = 0; i < 29; i += 1) {
        await rig.pass(1000);
        agent.write(Buffer.from("{"));
      }
      await rig.pass(999);
      expect(agent.errors).toEqual([]);
      await rig.pass(1);
      expect(agent.errors).toMatchObject([{ code: "bad_frame" }]);
      await rig.pass(2000);
      expect(agent.gone).toBe(true);
    }));

  it("that is announced and never comes takes no memory, and no other connection's time", () =>
    withRig(BASIC, async (rig) => {
      const [agent, other, files] = [rig.peer("agent"), rig.peer("agent"), rig.peer("files")];
      agent.write(Buffer.from([0, 0x10, 0, 0]));
      await rig.settle();
      expect(rig.broker.holdings()).toMatchObject([{ role: "agent", queued_bytes_in: 4 }, {}]);
      const reply = other.ask("free");
      await rig.settle();
      files.take().result("x");
      await rig.settle();
      expect(reply.end).toBe("result public x");
    }));

  it("in pieces is charged to its role", () =>
    withRig(limited("queued_bytes_in = 4096"), async (rig) => {
      const agents = [rig.peer("agent"), rig.peer("agent")];
      for (const agent of agents) {
        agent.write(Buffer.concat([Buffer.from([0, 0x10, 0, 0]), Buffer.alloc(3000, " ")]));
        await rig.settle();
      }
      expect(agents.map(({ ended }) => ended)).toEqual([false, true]);
      expect(rig.events("limit.reached")).toMatchObject([{ fields: { limit: "queued_bytes_in" } }]);
    }));

  it("cut off by the end of the stream is told", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      agent.write(head);
      agent.halfClose();
      await rig.settle();
      expect(agent.errors).toMatchObject([{ code: "bad_frame" }]);
    }));
});
