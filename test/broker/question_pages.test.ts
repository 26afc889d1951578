import { beforeAll, describe, expect, it } from "vitest";
import type { Question, Questions } from "../../src/client/answers.ts";
import { ASKING, PAYMENT } from "./approvals_rig.ts";
import { Rig, withRig } from "./rig.ts";
import type { Reply, RigPeer } from "./rig_peer.ts";

// `callgate.approvals.list` and `watch`, page by page: with thousands that wait, and while they are answered.

const WAITING = 5000;
const SESSIONS = 4;
const LARGE = ASKING.replace(
  "[roles.agent]",
  `[roles.agent]
limits = { pending_approvals = 10000, questions_per_hour = 10000, calls_in_flight = 20000, calls_per_second = 100000 }`,
);

async function asked(rig: Rig, peer: RigPeer, tool: "list" | "watch", args: object = {}): Promise<Reply> {
  const reply = peer.ask(`callgate.approvals.${tool}`, args);
  await rig.settle();
  return reply;
}

async function page(rig: Rig, peer: RigPeer, args: object = {}): Promise<Questions> {
  return (await asked(rig, peer, "list", args)).json as unknown as Questions;
}

async function pages(
  rig: Rig,
  peer: RigPeer,
  args: object = {},
  between: (got: readonly Questions[]) => Promise<void> = async () => undefined,
): Promise<readonly Questions[]> {
  const got = [await page(rig, peer, args)];
  for (let next = got[0]?.next; next !== null; next = got.at(-1)?.next) {
    expect(next).toBeTypeOf("string");
    await between(got);
    got.push(await page(rig, peer, { ...args, after: next }));
  }
  return got;
}

function rowsOf(got: readonly Questions[]): readonly Question[] {
  return got.flatMap(({ approvals }) => approvals);
}

/** Asks `count` questions, told apart by their amount. */
async function put(rig: Rig, count: number): Promise<void> {
  rig.peer("files");
  const agent = rig.peer("agent");
  for (let n = 0; n < count; n += 1) {
    const tool = n % 10 === 0 ? "write" : "pay";
    const args = tool === "pay" ? { ...PAYMENT, amount: n } : { path: `/${n}` };
    agent.ask(tool, args, { session: `s${n % SESSIONS}`, call: BigInt(n + 1) });
    if (n % 100 === 99) {
      await rig.settle();
      await rig.pass(1);
    }
  }
  await rig.settle();
}

describe("with 5,000 questions that wait", () => {
  let rig: Rig;
  let operator: RigPeer;

  beforeAll(async () => {
    rig = await Rig.of(LARGE);
    operator = rig.peer("operator");
    await put(rig, WAITING);
  }, 120_000);

  it("each is told once, the first asked first, with how many there are", async () => {
    const got = await pages(rig, operator);
    const rows = rowsOf(got);
    expect(rows.map(({ call }) => Number(call))).toEqual(Array.from({ length: WAITING }, (_, n) => n + 1));
    expect(new Set(got.map(({ total }) => total))).toEqual(new Set([WAITING]));
    expect(got.map(({ more }) => more)).toEqual(got.map(({ next }) => next !== null));
    expect(got).toHaveLength(WAITING / 200);
  });

  it("the id of the last one is as good as a cursor", async () => {
    const first = await page(rig, operator, { limit: 3 });
    const second = await page(rig, operator, { limit: 3, after: first.approvals.at(-1)?.approval });
    expect(rowsOf([second]).map(({ call }) => call)).toEqual(["4", "5", "6"]);
  });

  it("a tool, a session and a role choose among them, and are counted", async () => {
    const writes = await page(rig, operator, { tool: "write", limit: 5 });
    expect([writes.total, writes.approvals.map(({ tool }) => tool)]).toEqual([500, Array(5).fill("write")]);
    expect((await page(rig, operator, { tool: "pay", session: "s1" })).total).toBe(1250);
    expect((await page(rig, operator, { tool: "none" })).total).toBe(0);
    expect((await page(rig, operator, { role: "other" })).total).toBe(0);
  });

  it("a change makes a watcher's page anew, and not all of them", async () => {
    const before = await page(rig, operator, { limit: 10 });
    const watching = operator.ask("callgate.approvals.watch", {
      version: before.version as number,
      limit: 10,
      timeout_seconds: 60,
    });
    await rig.settle();
    expect(watching.finals).toBe(0);
    const [one] = before.approvals;
    await asked(rig, operator, "list"); // others look meanwhile
    const refused = operator.ask("callgate.approvals.refuse", { approval: one?.approval });
    await rig.settle();
    expect(refused.end).toContain("result public");
    const told = watching.json as unknown as Questions;
    expect(told.total).toBe(WAITING - 1);
    expect(told.approvals).toHaveLength(10);
    expect(watching.content.length).toBeLessThan(10_000);
  });
});

describe("while questions are answered", () => {
  it("none that still waits is left out, and none is told twice as waiting", async () => {
    await withRig(LARGE, async (rig) => {
      const operator = rig.peer("operator");
      await put(rig, 60);
      const refused = new Set<string>();
      const got = await pages(rig, operator, { limit: 7 }, async (before) => {
        // The very one that the next page is to begin behind.
        const approval = before.at(-1)?.approvals.at(-1)?.approval ?? "";
        refused.add(approval);
        operator.ask("callgate.approvals.refuse", { approval });
        await rig.settle();
      });
      const calls = rowsOf(got).map(({ call }) => Number(call));
      expect(calls).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
      expect(refused.size).toBeGreaterThan(5);
    });
  });

  it("all states are told: those that wait, then the latest that were answered", async () => {
    await withRig(LARGE, async (rig) => {
      const operator = rig.peer("operator");
      await put(rig, 30);
      const answered: string[] = [];
      for (const { approval } of (await page(rig, operator, { limit: 12 })).approvals) {
        operator.ask("callgate.approvals.refuse", { approval });
        await rig.settle();
        await rig.pass(1);
        answered.unshift(approval);
      }
      const ended = rowsOf(await pages(rig, operator, { state: "ended", limit: 5 }));
      expect(ended.map(({ approval }) => approval)).toEqual(answered);
      const all = rowsOf(await pages(rig, operator, { state: "all", limit: 5 }));
      expect(all.slice(18).map(({ approval }) => approval)).toEqual(answered);
      expect(all.slice(0, 18).map(({ call }) => Number(call))).toEqual(
        Array.from({ length: 18 }, (_, n) => n + 13),
      );
      const behind = await page(rig, operator, { state: "all", after: answered[2] });
      expect(behind.approvals.map(({ approval }) => approval)).toEqual(answered.slice(3));
    });
  });
});

describe("a role that is no operator", () => {
  it("is told its own, and of another's question no more than of one that there is not", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, other] = [rig.peer("agent"), rig.peer("other")];
      rig.peer("files");
      agent.ask("pay", PAYMENT);
      other.ask("pay", PAYMENT);
      await rig.settle();
      const [theirs] = (await page(rig, rig.peer("operator"), { role: "other" })).approvals;
      const own = await page(rig, agent, {});
      expect([own.total, own.approvals.map(({ role }) => role)]).toEqual([1, ["agent"]]);
      expect((await page(rig, agent, { role: "other" })).total).toBe(0);
      const cursors = [theirs?.approval, "f".repeat(32), "", "waiting.x.y", `ended.${"9".repeat(16)}.a`];
      const sentences = [];
      for (const after of cursors) sentences.push((await asked(rig, agent, "list", { after })).sentence);
      expect(new Set(sentences).size).toBe(1);
      expect(sentences[0]).toMatch(/^bad_arguments: `after` names no question/);
      const made = await page(rig, agent, { after: `waiting.0.${theirs?.approval}` });
      expect(made.approvals.map(({ role }) => role)).toEqual(["agent"]);
    });
  });
});
