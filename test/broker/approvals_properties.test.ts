// Random lives of questions: asked, followed, answered, refused, cancelled, expired, with commits that wait or
// fail and a broker that is killed at any moment. Whatever the order, nothing runs twice or unapproved.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TRANSITIONS } from "../../src/broker/stages.ts";
import { Approver, ASKING, put, type Shown } from "./approvals_rig.ts";
import { Lives } from "./lives.ts";
import type { Reply, RigPeer, Served } from "./rig_peer.ts";

const AMOUNTS = 2;
const CALLS = 4;

/** One call has one id and one text for good, so every retry is a retry. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("ask"), call: fc.integer({ min: 1, max: CALLS }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("approve", "refuse"), at: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stale"), at: fc.nat(3) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("cancel"), call: fc.integer({ min: 1, max: CALLS }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("serve") }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("hold", "release_one", "release", "refuse_commit") }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("pass", "restart", "provider_lost") }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Run {
  readonly lives: Lives;
  agent: RigPeer;
  files: RigPeer;
  operator: Approver;
  readonly replies: { readonly call: number; readonly reply: Reply }[] = [];
  /** What the approver saw last: an answer to it may be stale by then. */
  seen: readonly Shown[] = [];
  readonly ran = new Map<string, number>();
  /** By amount: how many approvals its approver was told have been taken, or may have been. */
  readonly approvals = new Map<number, number>();

  constructor(lives: Lives) {
    this.lives = lives;
    [this.agent, this.files, this.operator] = this.#connect();
  }

  #connect(): [RigPeer, RigPeer, Approver] {
    const files = this.lives.peer("files");
    files.serve = (request) => this.#take(request);
    return [this.lives.peer("agent"), files, new Approver(this.lives)];
  }

  readonly #serving: Served[] = [];

  #take(request: Served): void {
    const call = String(request.body.call);
    this.ran.set(call, (this.ran.get(call) ?? 0) + 1);
    this.#serving.push(request);
  }

  amountOf(call: number): number {
    return call % AMOUNTS;
  }

  async take(one: Step): Promise<void> {
    switch (one.do) {
      case "ask":
        return this.ask((one as { call: number }).call);
      case "approve":
      case "refuse":
        await this.lookAnew();
        return this.answer(one.do, (one as { at: number }).at);
      case "stale":
        return this.answer("approve", (one as { at: number }).at);
      case "cancel":
        await put(this.lives, this.agent, "callgate.calls.cancel", {
          call: String((one as { call: number }).call),
        });
        return;
      case "serve":
        this.#serving.shift()?.result("paid");
        return this.lives.settle();
      case "hold":
        this.lives.store.mode = "held";
        return;
      case "release_one":
        this.lives.store.release(1);
        return this.lives.settle();
      case "release":
        return this.flush(() => this.lives.store.release());
      case "refuse_commit":
        return this.flush(() => this.lives.store.refuse());
      case "pass":
        return this.lives.pass(900_000);
      case "provider_lost":
        this.files.reset();
        await this.lives.settle();
        this.#serving.length = 0;
        this.files = this.lives.peer("files");
        this.files.serve = (request) => this.#take(request);
        return this.lives.settle();
      default:
        this.#serving.length = 0;
        await this.lives.restart(ASKING);
        [this.agent, this.files, this.operator] = this.#connect();
        return this.lives.settle();
    }
  }

  async ask(call: number): Promise<void> {
    const text = `{"amount":${this.amountOf(call)},"note":${" ".repeat(call)}"x"}`;
    this.replies.push({
      call,
      reply: await put(this.lives, this.agent, "pay", text, { call: BigInt(call) }),
    });
  }

  /** Nothing is shown while commits wait, which is as good as not looking. */
  async lookAnew(): Promise<void> {
    if (this.lives.store.waiting > 0 || this.lives.store.mode !== "at_once") return;
    const listed = await this.operator.do("list", {});
    const seen: Shown[] = [];
    for (const { approval } of listed.json["approvals"] as Shown[])
      seen.push(await this.operator.show(approval));
    this.seen = seen;
  }

  async answer(how: "approve" | "refuse", at: number): Promise<void> {
    const shown = this.seen[at];
    if (shown === undefined) return;
    if (how === "approve") {
      const { amount } = JSON.parse(shown["arguments"] as string) as { amount: number };
      this.approvals.set(amount, (this.approvals.get(amount) ?? 0) + 1);
    }
    const args = { approval: shown.approval, ...(how === "approve" ? { digest: shown.digest } : {}) };
    this.operator.peer.ask(`callgate.approvals.${how}`, args);
    await this.lives.settle();
  }

  async flush(task: () => void): Promise<void> {
    await this.lives.settle();
    task();
    this.lives.store.mode = "at_once";
    while (this.lives.store.waiting > 0) {
      this.lives.store.release();
      await this.lives.settle();
    }
    await this.lives.settle();
  }

  check(): void {
    for (const [call, times] of this.ran) expect([call, times]).toEqual([call, 1]);
    for (let amount = 0; amount < AMOUNTS; amount += 1) {
      const runs = [...this.ran.keys()].filter((call) => this.amountOf(Number(call)) === amount).length;
      expect(runs).toBeLessThanOrEqual(this.approvals.get(amount) ?? 0);
    }
    for (const { call, reply } of this.replies) {
      expect(reply.finals).toBeLessThanOrEqual(1);
      if (reply.end.startsWith("result")) expect([call, reply.end]).toEqual([call, "result public paid"]);
    }
    this.checkReplays();
  }

  /** What was heard for good is what is heard again. */
  checkReplays(): void {
    const lasting = /^(?:result|denied approval_expired|failed cancelled)/;
    for (let call = 1; call <= CALLS; call += 1) {
      const ends = this.replies.filter((one) => one.call === call).map(({ reply }) => reply.end);
      const first = ends.findIndex((end) => lasting.test(end));
      if (first < 0) continue;
      const later = ends
        .slice(first)
        .filter((end) => end !== "nothing yet" && !/unavailable|capacity/.test(end));
      expect(new Set(later).size).toBe(1);
    }
  }
}

describe("questions", () => {
  it("whatever happens in whatever order, nothing runs twice, unapproved, or with two answers", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        const run = new Run(await Lives.begin(ASKING));
        for (const one of steps) {
          await run.take(one);
          run.check();
        }
        await run.flush(() => run.lives.store.release());
        run.check();
        expect(run.lives.log.filter(({ event }) => event === "broker.fault")).toEqual([]);
      }),
      { numRuns: 60 },
    );
  }, 120_000);
});

describe("the table of a call's stages", () => {
  it("has one step for each stage and cause, and no stage without a way to the end", () => {
    const steps = TRANSITIONS.map(({ from, by }) => `${from} ${by}`);
    expect(new Set(steps).size).toBe(steps.length);
    const ends = new Set(["ended"]);
    for (let grown = true; grown; ) {
      grown = false;
      for (const { from, to } of TRANSITIONS) {
        if (!ends.has(to) || ends.has(from)) continue;
        ends.add(from);
        grown = true;
      }
    }
    expect(TRANSITIONS.filter(({ from, to }) => !ends.has(from) || !ends.has(to))).toEqual([]);
    expect(TRANSITIONS.filter(({ from }) => from === "ended")).toEqual([]);
  });
});
