import { describe, expect, it } from "vitest";
import { BOUNDS_MS, Metrics, REMOVED_TOOLS, UNKNOWN_TOOL } from "../../src/broker/metrics.ts";
import type { metricsReport } from "../../src/broker/metrics_report.ts";
import type { Metrics as Told } from "../../src/client/load_answers.ts";
import { Approver, ASKING, PAYMENT, put as putWith } from "./approvals_rig.ts";
import { allow, BASIC, GRANTS, ROLES, TOOLS } from "./configs.ts";
import { type Rig, withRig } from "./rig.ts";
import type { AskOptions, RigPeer } from "./rig_peer.ts";

// What the broker counts: each call once, by how it ended, and each decision where it took effect.

/** The broker's report is what the client's side says it is; this does not compile where it is not. */
const shapeOf = (report: ReturnType<typeof metricsReport>): Told => report;

/** Asks, and lets everything happen; payments are asked as such, everything else without arguments. */
function put(rig: Rig, peer: RigPeer, tool: string, args?: object | string, options: AskOptions = {}) {
  return putWith(rig, peer, tool, args ?? (tool === "pay" ? PAYMENT : {}), options);
}

async function counted(rig: Rig, operator: RigPeer): Promise<Told> {
  const reply = operator.ask("callgate.status", { metrics: true });
  await rig.releaseAll();
  return reply.json["metrics"] as Told;
}

/** Calls of providers' tools and unknown ones as `tool outcome: count`, without the broker's own. */
function ends({ calls }: Told): readonly string[] {
  return calls
    .filter(({ tool }) => !tool.startsWith("callgate."))
    .map(({ tool, outcome, count }) => `${tool} ${outcome}: ${count}`)
    .sort();
}

function verdicts({ decisions }: Told, ...of: readonly string[]): readonly string[] {
  return decisions
    .filter(({ verdict }) => of.includes(verdict))
    .map(({ verdict, reason, count }) => `${verdict} ${reason}: ${count}`)
    .sort();
}

function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

describe("a call is counted once, by how it ended:", () => {
  it("with a result, also where it came in parts, is joined, and is replayed", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, again, files] = [rig.peer("agent"), rig.peer("agent"), rig.peer("files")];
      const operator = rig.peer("operator");
      await put(rig, agent, "read", {}, { call: 7n });
      await put(rig, again, "read", {}, { call: 7n }); // joins
      const served = files.take();
      served.part("a");
      served.result("b");
      await rig.settle();
      await put(rig, agent, "read", {}, { call: 7n }); // is replayed
      const told = await counted(rig, operator);
      expect(ends(told)).toEqual(["read result: 1"]);
      expect(verdicts(told, "deny", "ask")).toEqual([]);
      expect(told.durations.map(({ tool, counts }) => [tool, total(counts)])).toEqual([["read", 1]]);
    });
  });

  it("by its provider's failure, its timeout, its provider's loss, its cancelling", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      await put(rig, agent, "read");
      files.take().fail("CANARY");
      await put(rig, agent, "search", {}, { call: 90n });
      await put(rig, agent, "callgate.calls.cancel", { session: "s", call: "90" });
      await put(rig, agent, "free");
      await rig.pass(3_600_000); // timeouts
      await put(rig, agent, "floor");
      files.reset();
      await rig.settle();
      const told = await counted(rig, operator);
      expect(ends(told)).toEqual([
        "floor provider_lost: 1",
        "free timeout: 1",
        "read provider: 1",
        "search cancelled: 1",
      ]);
      expect(total(told.durations.flatMap(({ counts }) => counts))).toBe(4);
    });
  });

  it("before anything ran: denied, with bad arguments, without a provider, too large, in conflict", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      await put(rig, agent, "read"); // nobody serves it
      const files = rig.peer("files");
      await put(rig, agent, "read", { path: 7 });
      await put(rig, agent, "write", "[]");
      await put(rig, agent, "whole", {}, { call: 91n });
      files.take().result("more than ten bytes");
      await rig.settle();
      await put(rig, agent, "whole", { other: true }, { call: 91n });
      await put(rig, operator, "read");
      const told = await counted(rig, operator);
      expect(ends(told)).toEqual([
        "read bad_arguments: 1",
        "read denied: 1",
        "read no_provider: 1",
        "whole conflict: 1",
        "whole too_large: 1",
        "write bad_arguments: 1",
      ]);
      expect(verdicts(told, "deny")).toEqual(["deny no_grant: 1"]);
    });
  });

  it("beyond a limit of its role, whether it was held or not", async () => {
    await withRig(`${BASIC}\n[roles.agent.limits]\ncalls_in_flight = 1\n`, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      rig.peer("files");
      agent.ask("read");
      agent.ask("read");
      await rig.settle();
      const told = await counted(rig, operator);
      expect(ends(told)).toEqual(["read capacity: 1"]);
      expect(told.roles.find(({ role }) => role === "agent")).toMatchObject({
        connections: 1,
        calls_in_flight: 1,
      });
    });
  });

  it("where the store can't take its intent, or not its outcome", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      rig.store.mode = "full";
      await put(rig, agent, "read");
      rig.store.mode = "at_once";
      await put(rig, agent, "read");
      rig.store.mode = "full";
      files.take().result("x");
      await rig.settle();
      rig.store.mode = "at_once";
      const told = await counted(rig, operator);
      expect(ends(told)).toEqual(["read outcome_unknown: 1", "read unavailable: 1"]);
      expect(told.store.failed_commits).toBe(2);
    });
  });

  it("by a fault of the broker's own", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      rig.peer("files");
      rig.store.mode = "broken";
      await put(rig, agent, "read");
      rig.store.mode = "at_once";
      const told = await counted(rig, operator);
      expect(ends(told)).toEqual(["read internal: 1"]);
      expect(told.faults).toBe(1);
    });
  });
});

describe("questions and decisions:", () => {
  it("a call is decided as ask, and as deny where it is refused or nobody answers", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, files, approver] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay", { ...PAYMENT, amount: 1 });
      await rig.pass(1500);
      await approver.letThrough();
      files.take().result("paid");
      await rig.settle();
      await put(rig, agent, "pay", { ...PAYMENT, amount: 2 });
      await approver.refuse(await approver.look());
      await put(rig, agent, "pay", { ...PAYMENT, amount: 2 }); // refused before
      await put(rig, agent, "pay", { ...PAYMENT, amount: 3 });
      await rig.pass(86_400_000);
      const told = await counted(rig, approver.peer);
      expect(ends(told)).toEqual(["pay denied: 3", "pay result: 1"]);
      expect(verdicts(told, "ask", "deny")).toEqual([
        "ask ask: 3",
        "deny approval_expired: 1",
        "deny approval_refused: 2",
      ]);
      expect(told.approvals).toMatchObject({
        pending: 0,
        oldest_asked_at_ms: null,
        ended: [
          { state: "approved", count: 1 },
          { state: "refused", count: 1 },
          { state: "expired", count: 1 },
        ],
      });
      expect(total(told.approvals.waited.counts)).toBe(2);
      expect(told.approvals.waited.sum_ms).toBe(1500);
      expect(told.approvals.waited.counts[BOUNDS_MS.indexOf(2000)]).toBe(1);
    });
  });

  it("equal calls share a question and a run, and are calls of their own; the oldest that waits is told", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, files, approver] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const askedAtMs = rig.clock.nowMs();
      await put(rig, agent, "pay");
      await rig.pass(5000);
      await put(rig, agent, "pay");
      const waiting = await counted(rig, approver.peer);
      expect(waiting.approvals).toMatchObject({ pending: 1, oldest_asked_at_ms: askedAtMs });
      expect(ends(waiting)).toEqual([]);
      await approver.letThrough();
      await rig.pass(60);
      files.take().result("paid");
      await rig.settle();
      const told = await counted(rig, approver.peer);
      expect(ends(told)).toEqual(["pay result: 2"]);
      expect(verdicts(told, "ask")).toEqual(["ask ask: 2"]);
      const [run] = told.durations;
      expect(run).toMatchObject({ tool: "pay", sum_ms: 60 }); // not the wait for a person
      expect(run?.counts[BOUNDS_MS.indexOf(100)]).toBe(1);
    });
  });

  it("a question that its caller gives up is withdrawn, and one that the policy no longer lets run is void", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      await put(rig, agent, "pay", PAYMENT, { call: 92n });
      await put(rig, agent, "callgate.calls.cancel", { session: "s", call: "92" });
      await put(rig, agent, "pay");
      const shown = await approver.look();
      await rig.reloadWith(ASKING.replace("agent-pays", "nobody-pays").replace('"pay", "write"', '"write"'));
      await approver.approve(shown);
      const told = await counted(rig, approver.peer);
      expect(told.approvals.ended).toEqual([
        { state: "withdrawn", count: 1 },
        { state: "void", count: 1 },
      ]);
      expect(ends(told)).toEqual(["pay cancelled: 1", "pay denied: 1"]);
      expect(verdicts(told, "deny")).toEqual(["deny no_grant: 1"]);
    });
  });

  it("all that is allowed is counted by its row, the broker's own reads among it", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      files.serve = (request) => request.result("x");
      for (let i = 0; i < 3; i += 1) await put(rig, agent, "read");
      await put(rig, agent, "callgate.calls.list");
      const told = await counted(rig, operator);
      expect(verdicts(told, "allow")).toEqual(["allow allow: 5"]); // this very question too
      expect(told.calls).toContainEqual({ tool: "callgate.calls.list", outcome: "result", count: 1 });
    });
  });
});

describe("names of tools", () => {
  it("that nobody has are one, however many a caller invents", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      for (let i = 0; i < 300; i += 1) agent.ask(`invented_${i}`);
      agent.ask("CANARY not a name");
      await rig.settle();
      const told = await counted(rig, operator);
      expect(ends(told)).toEqual([`${UNKNOWN_TOOL} denied: 301`]);
      expect(JSON.stringify(told)).not.toContain("invented");
    });
  });

  it("stay when a reload takes the tool away, and no count is lost", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      files.serve = (request) => request.result("x");
      await put(rig, agent, "read");
      const without = `${ROLES}${TOOLS.replace("[tools.read]", "[tools.peruse]")}${GRANTS.replace('"read"', '"peruse"')}`;
      await rig.reloadWith(without);
      await put(rig, agent, "peruse");
      const told = await counted(rig, operator);
      expect(ends(told)).toEqual(["peruse result: 1", "read result: 1"]);
      expect(told.reloads).toEqual({ taken: 1, refused: 0, stale_since_ms: null });
    });
  });

  it("do not pile up over many reloads: the longest removed go into one sum, and no sum falls", () => {
    let known = "";
    const metrics = new Metrics((tool) => tool === known);
    for (let i = 0; i < 2000; i += 1) {
      known = `tool_${i}`;
      metrics.ended(known, "result");
      metrics.ran(known, 3);
      metrics.reloadTaken();
    }
    expect(metrics.tools.size).toBeLessThan(300);
    const sums = [...metrics.tools.values()].map(({ ended }) => ended.get("result") ?? 0);
    expect(total(sums)).toBe(2000);
    expect(metrics.tools.get(REMOVED_TOOLS)?.ran?.sumMs).toBe(
      3 * (metrics.tools.get(REMOVED_TOOLS)?.ended.get("result") ?? 0),
    );
    expect([...metrics.tools.keys()].at(-1)).toBe("tool_1999");
  });

  it("that come back are the policy's again, and are not forgotten", () => {
    let known = new Set(["first"]);
    const metrics = new Metrics((tool) => known.has(tool));
    metrics.ended("first", "result");
    known = new Set();
    metrics.reloadTaken();
    known = new Set(["first"]);
    metrics.reloadTaken();
    for (let i = 0; i < 600; i += 1) {
      known = new Set(["first", `tool_${i}`]);
      metrics.ended(`tool_${i}`, "denied");
      metrics.reloadTaken();
    }
    expect(metrics.tools.get("first")?.ended.get("result")).toBe(1);
  });
});

describe("beside calls", () => {
  it("peers that are turned away are counted by why", async () => {
    await withRig(
      BASIC.replace('users = ["callgate-files"]', 'users = ["callgate-files"]\nconnections = 1'),
      async (rig) => {
        const operator = rig.peer("operator");
        rig.peer("agent", { uid: 4711 });
        rig.peer("agent", { uid: 65534 });
        rig.peer("files");
        rig.peer("files");
        await rig.settle();
        const told = await counted(rig, operator);
        expect(told.refused_peers.map(({ why, count }) => `${why}: ${count}`).sort()).toEqual([
          "connections: 1",
          "not_named: 1",
          "overflow_id: 1",
        ]);
      },
    );
  });

  it("a refused reload tells since when, and a good one ends that", async () => {
    await withRig(BASIC, async (rig) => {
      const operator = rig.peer("operator");
      const firstMs = rig.clock.nowMs();
      rig.broker.reloadRefused("line 1: wrong");
      await rig.pass(60_000);
      rig.broker.reloadRefused("line 1: still wrong");
      expect((await counted(rig, operator)).reloads).toEqual({
        taken: 0,
        refused: 2,
        stale_since_ms: firstMs,
      });
      await rig.reloadWith(BASIC);
      expect((await counted(rig, operator)).reloads).toEqual({ taken: 1, refused: 2, stale_since_ms: null });
    });
  });

  it("commits are timed where they wait for the disk, and only there", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      files.serve = (request) => request.result("x");
      await put(rig, agent, "read");
      const before = await counted(rig, operator);
      expect(before.store.commits).toBeGreaterThan(0);
      expect(total(before.store.commit_durations.counts)).toBe(0);
      rig.store.mode = "held";
      await put(rig, agent, "read");
      await rig.pass(40);
      rig.store.release(1);
      rig.store.mode = "at_once";
      await rig.releaseAll();
      const told = await counted(rig, operator);
      expect(told.store.commit_durations.counts[BOUNDS_MS.indexOf(50)]).toBe(1);
      expect(told.store.commit_durations.sum_ms).toBe(40);
    });
  });

  it("all begin at zero after a restart", async () => {
    await withRig(ASKING, async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      await put(rig, agent, "pay");
      await put(rig, agent, "callgate.status");
      await rig.restart();
      const told = await counted(rig, rig.peer("operator"));
      expect(told.calls).toEqual([]);
      expect(told.durations).toEqual([]);
      expect(told.approvals).toMatchObject({ pending: 1, ended: [] }); // what waits is no count
      expect(told.started_at_ms).toBe(rig.clock.nowMs());
    });
  });

  it("only an operator is told, and only who asks for it", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      const refused = await put(rig, agent, "callgate.status", { metrics: true });
      expect(refused.end).toBe("failed bad_arguments");
      expect((await put(rig, agent, "callgate.status")).json["metrics"]).toBeUndefined();
      expect((await put(rig, operator, "callgate.status")).json["metrics"]).toBeUndefined();
      expect((await counted(rig, operator)).bounds_ms).toEqual([...BOUNDS_MS]);
    });
  });

  it("a mixed load adds up: as many calls ended as were asked anew, and as many waits as were answered", async () => {
    await withRig(`${ASKING}\n${allow("agent-more", "agent", '["search", "floor"]')}`, async (rig) => {
      const [agent, files, approver] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      files.serve = (request) => (request.id % 3n === 0n ? request.fail("no") : request.result("x"));
      const tools = ["read", "search", "floor", "pay", "nowhere", "look", "callgate.calls.list"];
      let anew = 0;
      for (let i = 0; i < 140; i += 1) {
        const tool = tools[i % tools.length] ?? "";
        const again = i % 4 === 0;
        agent.ask(tool, {}, { call: BigInt(1000 + i) });
        if (again) agent.ask(tool, {}, { call: BigInt(1000 + i) });
        await rig.settle();
        const decidedAfresh = tool === "nowhere" || tool === "callgate.calls.list"; // others are joined or replayed
        anew += again && decidedAfresh ? 2 : 1;
      }
      for (const one of await approver.list()) await approver.refuse(one);
      const told = await counted(rig, approver.peer);
      const ofAgent = told.calls.filter(({ tool }) => !tool.startsWith("callgate.approvals"));
      expect(total(ofAgent.map(({ count }) => count))).toBe(anew);
      expect(
        total(told.decisions.filter(({ verdict }) => verdict === "deny").map(({ count }) => count)),
      ).toBe(total(told.calls.filter(({ outcome }) => outcome === "denied").map(({ count }) => count)));
    });
  });
});

it("has the shape that clients are promised", () => {
  expect(shapeOf).toBeTypeOf("function");
});
