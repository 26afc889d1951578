import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type Caller,
  type CallgateError,
  type ConnectOptions,
  connect,
  encodeFrame,
} from "../../src/library.ts";
import type { ToolResponse } from "../../src/wire/message.ts";
import { FakeBroker, type FakePeer, QUICK, result } from "./fake_broker.ts";

let broker: FakeBroker;
let open: Caller[];

beforeEach(async () => {
  broker = await FakeBroker.start();
  open = [];
});

afterEach(async () => {
  await Promise.all(open.map((caller) => caller.close()));
  await broker.remove();
});

async function connected(options: Partial<ConnectOptions> = {}): Promise<{ caller: Caller; peer: FakePeer }> {
  const caller = await connect({ to: { path: broker.path }, session: "s", reconnect: QUICK, ...options });
  open.push(caller);
  return { caller, peer: await broker.accept() };
}

async function restarted(): Promise<FakePeer> {
  await broker.die();
  await broker.listen();
  return broker.accept();
}

const PENDING: ToolResponse = { status: "pending_approval", approval: "a1", expires: 5n };
const SCRIPT: readonly ToolResponse[] = [PENDING, result("one "), result("one "), result("two")];

/** Reads a call's messages one by one, as far as the test wants. */
function reading(call: AsyncIterable<ToolResponse>): () => Promise<ToolResponse | undefined> {
  const iterator = call[Symbol.asyncIterator]();
  return async () => {
    const { value } = await iterator.next();
    return value as ToolResponse | undefined;
  };
}

function say(
  peer: FakePeer,
  id: bigint,
  script: readonly ToolResponse[],
  from = 0,
  to = script.length,
): void {
  for (let i = from; i < to; i += 1) peer.answer(id, script[i]!, i === script.length - 1);
}

describe("a connection lost in the middle of a call", () => {
  for (let heard = 0; heard < SCRIPT.length; heard += 1) {
    for (const again of ["joined", "replayed"] as const) {
      it(`gives every message once when it is lost after ${heard} of them and the call is ${again}`, async () => {
        const { caller, peer } = await connected();
        const call = caller.call("t", { a: 1 });
        const next = reading(call);
        const first = await peer.request();
        say(peer, first.id, SCRIPT, 0, heard);
        const messages: unknown[] = [];
        for (let i = 0; i < heard; i += 1) messages.push(await next());

        const other = await restarted();
        const second = await other.request();
        expect(second).toEqual({ ...first, id: second.id });
        // What is replayed from the record has no questions in it (spec: broker, Replay).
        const repeated = again === "joined" ? SCRIPT : SCRIPT.slice(1);
        say(other, second.id, repeated);
        for (let message = await next(); message !== undefined; message = await next())
          messages.push(message);

        expect(messages).toEqual(again === "joined" || heard > 0 ? SCRIPT : SCRIPT.slice(1));
        expect(await call.final).toEqual(result("one one two"));
      });
    }
  }

  it("gives every message once however often and wherever the broker dies", async () => {
    const { caller, peer: firstPeer } = await connected();
    let peer = firstPeer;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("a", "b", ""), { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(5), { maxLength: 3 }),
        async (contents, deaths) => {
          const script = contents.map((content) => result(content));
          const call = caller.call("t", {});
          const seen: ToolResponse[] = [];
          const ended = (async () => {
            for await (const message of call) seen.push(message);
          })();
          let { id } = await peer.request();
          for (const death of deaths) {
            say(peer, id, script, 0, Math.min(death, script.length - 1));
            peer = await restarted();
            id = (await peer.request()).id;
          }
          say(peer, id, script);
          await ended;
          expect(seen).toEqual(script);
          expect(await call.final).toEqual(result(contents.join("")));
        },
      ),
      { numRuns: 25 },
    );
  });

  it("takes a frame that was cut by the death of the broker as a lost connection", async () => {
    const { caller, peer } = await connected();
    const call = caller.call("t", {});
    const { id } = await peer.request();
    const frame = encodeFrame({ v: 1, id, final: true, msg: { kind: "tool_response", body: result("x") } });
    peer.sendBytes(frame.subarray(0, frame.length - 3));
    const other = await restarted();
    other.answer((await other.request()).id, result("whole"));
    expect(await call.final).toEqual(result("whole"));
  });

  it("asks all unfinished calls again in their order, with those begun while there was none", async () => {
    const { caller, peer } = await connected();
    const done = caller.call("t", { n: 0 });
    const calls = [1, 2].map((n) => caller.call("t", { n }));
    peer.answer((await peer.request()).id, result("done"));
    await done.final;
    await broker.die();
    calls.push(caller.call("t", { n: 3 }));
    await broker.listen();
    const other = await broker.accept();
    for (const n of [1, 2, 3]) {
      const request = await other.request();
      expect(request.arguments).toBe(`{"n":${n}}`);
      other.answer(request.id, result(String(n)));
    }
    expect(await Promise.all(calls.map((call) => call.final))).toEqual(["1", "2", "3"].map((c) => result(c)));
    expect(other.unread).toBe(0);
  });

  it("gives an outcome that is not known as the answer, after parts too", async () => {
    const { caller, peer } = await connected();
    const call = caller.call("t", {});
    const next = reading(call);
    peer.answer((await peer.request()).id, result("part"), false);
    await next();
    const other = await restarted();
    const unknown: ToolResponse = { status: "failed", message: "outcome_unknown: it may have run" };
    other.answer((await other.request()).id, unknown);
    expect(await call.final).toEqual(unknown);
  });

  it.each([
    ["another part", [result("other"), result("end")]],
    ["the end too early", [result("part")]],
  ])("never joins two runs into one result: %s is a protocol error of that call", async (_, script) => {
    const { caller, peer } = await connected();
    const call = caller.call("t", {});
    const next = reading(call);
    peer.answer((await peer.request()).id, result("part"), false);
    await next();
    const other = await restarted();
    say(other, (await other.request()).id, script);
    await expect(call.final).rejects.toMatchObject({ code: "protocol", mayHaveRun: true });
    const fine = caller.call("t", {});
    other.answer((await other.request()).id, result("fine"));
    expect(await fine.final).toEqual(result("fine"));
  });

  it("never claims lower labels for the whole than a part had when it came again", async () => {
    const { caller, peer } = await connected();
    const call = caller.call("t", {});
    const next = reading(call);
    peer.answer((await peer.request()).id, result("one "), false);
    await next();
    const other = await restarted();
    const { id } = await other.request();
    other.answer(id, result("one ", { class: "restricted", untrusted: true }), false);
    other.answer(id, result("two"));
    expect(await call.final).toEqual(result("one two", { class: "restricted", untrusted: true }));
  });

  it("ends a watch of the broker's own that has begun with lost, since its parts are not recorded", async () => {
    const { caller, peer } = await connected();
    const watch = caller.call("callgate.approvals.watch", {});
    const quiet = caller.call("callgate.status", {});
    const next = reading(watch);
    peer.answer((await peer.request()).id, result("one question"), false);
    await next();
    await peer.request();
    const other = await restarted();
    const again = await other.request();
    expect(again.tool).toBe("callgate.status");
    other.answer(again.id, result("up"));
    expect(await quiet.final).toEqual(result("up"));
    await expect(watch.final).rejects.toMatchObject({ code: "lost" });
    expect(other.unread).toBe(0);
  });

  it("cancels again on the next connection what was being cancelled", async () => {
    const { caller, peer } = await connected();
    const abort = new AbortController();
    const call = caller.call("slow", {}, { signal: abort.signal });
    await peer.request();
    abort.abort();
    await peer.request();
    const other = await restarted();
    const [request, cancel] = [await other.request(), await other.request()];
    expect([request.tool, cancel.tool]).toEqual(["slow", "callgate.calls.cancel"]);
    other.answer(cancel.id, result("{}"));
    other.answer(request.id, { status: "failed", message: "cancelled: nothing ran" });
    expect(await call.final).toEqual({ status: "failed", message: "cancelled: nothing ran" });
  });
});

describe("giving up", () => {
  /** Time that passes only as timers are set: each fires at once, the clock moved on by its delay. */
  function fastTime() {
    const delays: number[] = [];
    let nowMs = 0;
    const after = (ms: number, run: () => void) => {
      delays.push(ms);
      const timer = setImmediate(() => {
        nowMs += ms;
        run();
      });
      return () => clearImmediate(timer);
    };
    return { delays, effects: { after, monotonicMs: () => nowMs, random: () => 0.999 } };
  }

  it("ends calls with lost once the time is over, saying what may be asked again", async () => {
    const { delays, effects } = fastTime();
    const reconnect = { delayMs: 100, delayMsMax: 1_000, giveUpAfterMs: 5_000 };
    const { caller, peer } = await connected({ effects, reconnect });
    const sent = caller.call("t", {}, { call: 77n });
    await peer.request();
    await broker.die();
    const error: CallgateError = await sent.final.then(
      () => Promise.reject(new Error("answered")),
      (e) => e,
    );
    expect(error).toMatchObject({ code: "lost", session: "s", call: 77n, mayHaveRun: true });
    expect(error.message).toMatch(/ask again with the same session and call/);
    expect(await caller.ended).toMatchObject({ code: "lost" });
    expect(delays.reduce((a, b) => a + b)).toBeCloseTo(5_000);
    for (const [i, full] of [100, 200, 400, 800, 1_000].entries()) expect(delays[i]).toBeCloseTo(full, -1);
    await expect(caller.call("t", {}).final).rejects.toMatchObject({ code: "lost", mayHaveRun: false });
  });

  it("counts a broker that accepts and hangs up as the same outage, so that it can't make us spin", async () => {
    const { effects } = fastTime();
    const reconnect = { delayMs: 100, delayMsMax: 1_000, giveUpAfterMs: 5_000, stableAfterMs: 5_000 };
    const { caller, peer } = await connected({ effects, reconnect });
    peer.kill();
    const hangUp = async () => {
      for (;;) (await broker.accept()).kill();
    };
    void hangUp();
    expect(await caller.ended).toMatchObject({ code: "lost" });
  });

  it("gives up on a broker that turns it away with words, and says them, escaped and on one line", async () => {
    const { effects, delays } = fastTime();
    const reconnect = { delayMs: 100, delayMsMax: 1_000, giveUpAfterMs: 5_000, stableAfterMs: 5_000 };
    const { caller, peer } = await connected({ effects, reconnect });
    const call = caller.call("t", {});
    const turnAway = async (detail: string, turnedAway: FakePeer) => {
      turnedAway.send({
        v: 1,
        id: 0n,
        final: true,
        msg: { kind: "error", body: { code: "internal", detail } },
      });
      turnedAway.end();
    };
    void (async () => {
      await turnAway("not this one", peer);
      for (;;) await turnAway(`capacity: full\n\u202e\u001b[2J${"x".repeat(5_000)}`, await broker.accept());
    })();
    const error = (await call.final.catch((e) => e)) as CallgateError;
    expect(error).toMatchObject({ code: "lost", call: call.call });
    expect(error.message).toContain("the broker said: capacity: full\\n\\u{202e}\\u{1b}[2Jxxx");
    expect(error.message).not.toMatch(/[\p{C}\n]|not this one/u);
    expect(error.message.length).toBeLessThan(500);
    expect(delays.reduce((a, b) => a + b)).toBeCloseTo(5_000);
  });

  it("keeps no words of a broker that has served it since", async () => {
    const { effects } = fastTime();
    const { caller, peer } = await connected({ effects, reconnect: { giveUpAfterMs: 1_000 } });
    const body = { code: "internal", detail: "an operator has frozen this role" } as const;
    peer.send({ v: 1, id: 0n, final: true, msg: { kind: "error", body } });
    peer.end();
    const other = await broker.accept();
    const call = caller.call("t", {});
    other.answer((await other.request()).id, result("back"));
    await call.final;
    await broker.die();
    expect((await caller.ended)?.message).toMatch(/did not come back/);
    expect((await caller.ended)?.message).not.toMatch(/frozen/);
  });

  it("calls a timer off when the caller closes while it waits", async () => {
    let calledOff = 0;
    let waiting = () => {};
    const waits = new Promise<void>((resolve) => {
      waiting = resolve;
    });
    const after = () => {
      waiting();
      return () => {
        calledOff += 1;
      };
    };
    const { caller, peer } = await connected({ effects: { after } });
    peer.kill();
    await waits;
    await caller.close();
    expect(calledOff).toBe(1);
    expect(await caller.ended).toBeUndefined();
  });

  it("does not wait for a broker that was never there, unless told to", async () => {
    const idle = FakeBroker.idle();
    const to = { path: idle.path };
    await expect(connect({ to })).rejects.toMatchObject({ code: "unreachable", mayHaveRun: false });
    const { effects } = fastTime();
    const late = connect({ to, waitForBroker: true, effects, reconnect: { giveUpAfterMs: 1_000 } });
    await expect(late).rejects.toMatchObject({ code: "unreachable" });
    const waiting = connect({ to, waitForBroker: true, reconnect: QUICK });
    await idle.listen();
    open.push(await waiting);
    await idle.accept();
    await idle.remove();
  });

  it("refuses a path that Node would cut to another socket's", async () => {
    const to = { path: `/tmp/${"x".repeat(103)}` };
    await expect(connect({ to })).rejects.toMatchObject({ code: "unreachable" });
  });
});
