import { beforeAll, describe, expect, it } from "vitest";
import type { CallLine, CallsPage } from "../../src/client/answers.ts";
import type { FoundCall } from "../../src/store/port.ts";
import { randomOf } from "../seeded.ts";
import { allow, BASIC } from "./configs.ts";
import { DurableLives } from "./durable_lives.ts";
import { type Put, putCalls } from "./many_calls.ts";
import { Rig, withRig } from "./rig.ts";
import type { Reply, RigPeer } from "./rig_peer.ts";

// `callgate.calls.list`, page by page: over many calls, while they come and go, and by who may not see all of them.

const KEPT = 100_000;
const OTHER = `[roles.other]
users = ["agent"]
${allow("other-looks", "other", '["callgate.calls.*"]')}`;
const CONFIG = `${BASIC}${OTHER}`;

interface World {
  settle(): Promise<void>;
}

async function page(world: World, peer: RigPeer, args: object = {}): Promise<CallsPage> {
  return (await asked(world, peer, args)).json as unknown as CallsPage;
}

async function asked(world: World, peer: RigPeer, args: object = {}): Promise<Reply> {
  const reply = peer.ask("callgate.calls.list", args);
  await world.settle();
  return reply;
}

/** All pages; `between` runs before each but the first, and may say who asks from then on. */
async function pages(
  world: World,
  asker: RigPeer,
  args: object = {},
  between: () => Promise<RigPeer | undefined> = async () => undefined,
): Promise<readonly CallsPage[]> {
  let peer = asker;
  const got = [await page(world, peer, args)];
  for (let next = got[0]?.next; next !== null; next = got.at(-1)?.next) {
    expect(next).toBeTypeOf("string");
    peer = (await between()) ?? peer;
    got.push(await page(world, peer, { ...args, before: next }));
  }
  return got;
}

function rowsOf(got: readonly CallsPage[]): readonly CallLine[] {
  return got.flatMap(({ calls }) => calls);
}

function nameOf({ role, session, call }: CallLine): string {
  return `${role} ${session} ${call}`;
}

function callsOf(got: readonly CallsPage[]): readonly number[] {
  return rowsOf(got).map(({ call }) => Number(call));
}

describe("among 100,000 calls", () => {
  let rig: Rig;
  let nowMs: number;
  const sessions = 50;

  beforeAll(async () => {
    rig = await Rig.of(CONFIG);
    nowMs = rig.clock.nowMs();
    const put = (n: number): Put => ({
      role: n % 4 === 0 ? "other" : "agent",
      session: `s${n % sessions}`,
      call: BigInt(n),
      tool: n === 7 ? "search" : "read",
      status: n % 1000 === 1 ? "failed" : "result",
      askedAtMs: nowMs - 3_600_000 + n * 10,
      endedAtMs: nowMs - 3_600_000 + n * 10 + 5,
    });
    await putCalls(
      rig.store,
      Array.from({ length: KEPT }, (_, index) => put(index + 1)),
    );
  }, 120_000);

  it("every one of a role is told once, the newest first, and no answer is longer than was asked for", async () => {
    const got = await pages(rig, rig.peer("operator"), { role: "agent", limit: 500 });
    const calls = callsOf(got);
    expect(calls).toHaveLength((KEPT * 3) / 4);
    expect(calls).toEqual([...new Set(calls)].sort((a, b) => b - a));
    expect(Math.max(...got.map((one) => one.calls.length))).toBe(500);
    expect(got.map((one) => one.all_seen)).toEqual(got.map(({ next }) => next === null));
  });

  it("the only one of a tool is found, in answers that each look at a bounded number", async () => {
    const got = await pages(rig, rig.peer("operator"), { tool: "search" });
    expect(callsOf(got)).toEqual([7]);
    expect(got.length).toBeGreaterThan(2);
    expect(got.length).toBeLessThan(20);
    expect(got[0]).toMatchObject({ calls: [], all_seen: false });
  });

  it("those of a session are found without reading others", async () => {
    const read = countReads(rig);
    const got = await pages(rig, rig.peer("operator"), { session: "s3", limit: 500 });
    read.stop();
    expect(callsOf(got)).toHaveLength(KEPT / sessions);
    expect(read.most()).toBeGreaterThan(0);
    expect(read.all()).toBeLessThan((KEPT / sessions) * 1.1);
  });

  it("no turn of the loop reads more than a few, however much is asked at once", async () => {
    const read = countReads(rig);
    const operator = rig.peer("operator");
    const replies = ["search", "write", "none"].map((tool) => operator.ask("callgate.calls.list", { tool }));
    await rig.settle();
    read.stop();
    expect(replies.map(({ finals }) => finals)).toEqual([1, 1, 1]);
    expect(read.all()).toBeGreaterThan(10_000);
    expect(read.most()).toBeLessThanOrEqual(256);
  });

  it("a time of an hour ago is gone to at once, and what is older is not looked at", async () => {
    const read = countReads(rig);
    const from = nowMs - 3_600_000;
    const args = { since_ms: from + 1000, until_ms: from + 2000, role: "agent", limit: 500 };
    const got = await pages(rig, rig.peer("operator"), args);
    read.stop();
    const wanted = Array.from({ length: 100 }, (_, index) => 100 + index).filter((n) => n % 4 !== 0);
    expect([...callsOf(got)].reverse()).toEqual(wanted);
    expect(read.all()).toBeLessThan(200);
  });

  it("status and code choose among those that ended", async () => {
    const operator = rig.peer("operator");
    const failed = await pages(rig, operator, { status: "failed", limit: 500 });
    expect(callsOf(failed)).toHaveLength(KEPT / 1000);
    expect(await pages(rig, operator, { code: "timeout", limit: 500 })).toEqual(failed);
    expect(callsOf(await pages(rig, operator, { code: "conflict" }))).toEqual([]);
    expect(callsOf(await pages(rig, operator, { status: "failed", state: "running" }))).toEqual([]);
  });
});

/** How many calls are read from the store, in all and in the busiest turn. */
function countReads(rig: Rig) {
  const { ended } = rig.store;
  const turns: number[] = [0];
  let counting = true;
  const next = () => {
    if (!counting) return;
    turns.push(0);
    setImmediate(next);
  };
  next();
  const counted = (found: FoundCall): FoundCall => ({
    ...found,
    read: () => {
      turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1;
      return found.read();
    },
  });
  rig.store.ended = function* (wanted) {
    for (const found of ended.call(rig.store, wanted)) yield counted(found);
  };
  return {
    all: () => turns.reduce((sum, count) => sum + count, 0),
    most: () => Math.max(...turns),
    stop: () => {
      counting = false;
      rig.store.ended = ended;
    },
  };
}

describe("while somebody pages", () => {
  it("nothing is left out or told twice in one state, whatever comes, ends and is pruned meanwhile", async () => {
    for (let seed = 1; seed <= 20; seed += 1) await changing(seed);
  });

  async function changing(seed: number): Promise<void> {
    const rig = await Rig.of(CONFIG);
    const random = randomOf(seed);
    const nowMs = rig.clock.nowMs();
    const dayMs = 86_400_000;
    let last = 0n;
    const some = (count: number, ms: number): Put[] =>
      Array.from({ length: count }, () => {
        last += 1n;
        const role = random(2) === 0 ? "agent" : "other";
        // Many end in the same millisecond.
        const atMs = ms + Number(last / 8n);
        return { role, session: `s${random(3)}`, call: last, askedAtMs: atMs, endedAtMs: atMs };
      });
    const [agent, files] = [rig.peer("agent"), rig.peer("files")];
    const first = some(200, nowMs - dayMs + 10);
    await putCalls(rig.store, first);
    for (let n = 0; n < 10; n += 1) agent.ask("free", {}, { call: BigInt(100_000 + n) });
    await rig.settle();
    const pruned = new Set<string>();
    const got = await pages(rig, rig.peer("operator"), { limit: 1 + random(9) }, async () => {
      const what = random(4);
      if (what === 0) await putCalls(rig.store, some(3, rig.clock.nowMs()));
      if (what === 1 && files.requests.length > 0) files.take().result("x");
      if (what === 2) await rig.pass(1); // and the oldest go
      await rig.settle();
      for (const { role = "", session = "", call } of first)
        if (rig.store.findCall({ role, session, call }) === undefined)
          pruned.add(`${role} ${session} ${call}`);
    });
    const told = rowsOf(got);
    const names = told.map((one) => `${nameOf(one)} ${one.state}`);
    expect(names).toEqual([...new Set(names)]);
    const known = new Set(told.map(nameOf));
    const kept = first.map(({ role, session, call }) => `${role} ${session} ${call}`);
    expect(kept.filter((name) => !known.has(name) && !pruned.has(name))).toEqual([]);
    for (let n = 0; n < 10; n += 1) expect(known).toContain(`agent s ${100_000 + n}`);
    await rig.end();
  }

  it("a restart in between changes nothing, and calls of unknown outcome are told like all", async () => {
    const lives = await DurableLives.begin(CONFIG);
    const nowMs = lives.clock.nowMs();
    const put = (n: number): Put => ({
      call: BigInt(n),
      session: `s${n % 3}`,
      askedAtMs: nowMs,
      endedAtMs: n % 5 === 0 ? undefined : nowMs,
    });
    const putting = putCalls(
      lives.store,
      Array.from({ length: 60 }, (_, index) => put(index + 1)),
    );
    await lives.settle();
    await putting;
    const seen = await pages(lives, lives.peer("operator"), { limit: 7 }, async () => {
      await lives.restart();
      return lives.peer("operator");
    });
    const names = rowsOf(seen).map(({ call, state }) => `${call} ${state}`);
    expect(names).toHaveLength(60);
    expect(new Set(names).size).toBe(60);
    expect(names.filter((name) => name.endsWith("unknown"))).toHaveLength(12);
    expect(names.slice(0, 12).every((name) => name.endsWith("unknown"))).toBe(true);
  });
});

describe("a role that is no operator", () => {
  async function world(test: (rig: Rig, agent: RigPeer) => Promise<void>): Promise<void> {
    await withRig(CONFIG, async (rig) => {
      const nowMs = rig.clock.nowMs();
      const at = (n: number) => ({ askedAtMs: nowMs - 1000 + n, endedAtMs: nowMs - 1000 + n });
      await putCalls(rig.store, [
        { call: 1n, ...at(1) },
        { call: 2n, uid: 4242, ...at(2) },
        { call: 3n, role: "other", ...at(3) },
        { call: 4n, ...at(4) },
        ...Array.from({ length: 500 }, (_, n) => ({ call: BigInt(1000 + n), uid: 4242, ...at(10 + n) })),
        { call: 5n, ...at(900) },
      ]);
      await test(rig, rig.peer("agent"));
    });
  }

  it("is told its own user's calls, and not by a pause that others' were in between", async () => {
    await world(async (rig, agent) => {
      const first = await page(rig, agent, { limit: 1 });
      expect(callsOf([first])).toEqual([5]);
      const second = await page(rig, agent, { limit: 2, before: first.next });
      expect([callsOf([second]), second.next, second.all_seen]).toEqual([[4, 1], null, true]);
    });
  });

  it("learns nothing from a cursor about how much others do", async () => {
    await world(async (rig, agent) => {
      const { next } = await page(rig, agent, { limit: 1 });
      expect(Buffer.from(next ?? "", "base64url").toString()).toMatch(/^ended \d+ 0 5 agent s$/);
    });
  });

  it("is not told by a made-up cursor whether another user's call is there, or when it was", async () => {
    await world(async (rig, agent) => {
      const nowMs = rig.clock.nowMs();
      const cursor = (call: number, atMs: number) =>
        Buffer.from(`ended ${atMs} 0 ${call} agent s`).toString("base64url");
      for (const atMs of [nowMs, nowMs - 998, nowMs - 996]) {
        const there = await asked(rig, agent, { before: cursor(2, atMs) });
        const absent = await asked(rig, agent, { before: cursor(77, atMs) });
        expect(there.end).toBe(absent.end);
      }
    });
  });

  it.each([
    ["another role's call", "ended 5 0 3 other s"],
    ["a phase that there is not", "later 5 0 3 agent s"],
    ["no words", ""],
    ["a call beyond u64", `ended 5 0 ${2n ** 64n} agent s`],
    ["a session that is none", "ended 5 0 3 agent ../s"],
  ])("is refused a cursor with %s, in the same words", async (_, words) => {
    await world(async (rig, agent) => {
      const before = Buffer.from(words).toString("base64url") || "%%%";
      const reply = await asked(rig, agent, { before });
      expect(reply.sentence).toBe(
        "bad_arguments: `before` is no `next` of a list that the caller may look at. Nothing ran.",
      );
    });
  });

  it("carries the taint of every session that a filter could tell of, also where nothing fits", async () => {
    const inSessions = '[roles.agent]\nsessions = "opened"\ntaint_scope = "session"';
    const opened = `${CONFIG.replace("[roles.agent]", inSessions)}[roles.frontend]
users = ["callgate-frontend"]
${allow("opens", "frontend", '["callgate.sessions.*"]')}`;
    await withRig(opened, async (rig) => {
      const frontend = rig.peer("frontend");
      const filters = [
        { tool: "none" },
        { status: "denied" },
        { since_ms: 9e14 },
        { session: "dirty", tool: "x" },
      ];
      for (const session of ["dirty", ...filters.map((_, n) => `clean-${n}`)])
        frontend.ask("callgate.sessions.open", { role: "agent", session, expires_in_seconds: 100 });
      await rig.settle();
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      agent.ask("free", {}, { session: "dirty" });
      await rig.settle();
      files.take().result("x", { class: "confidential", untrusted: true });
      await rig.settle();
      for (const [n, args] of filters.entries()) {
        const before = agent.ask("callgate.status", {}, { session: `clean-${n}` });
        const reply = agent.ask("callgate.calls.list", args, { session: `clean-${n}` });
        await rig.settle();
        expect(before.end).toMatch(/^result public /);
        expect(reply.end, JSON.stringify(args)).toMatch(/^result confidential untrusted \{"calls":\[\]/);
      }
    });
  });
});
