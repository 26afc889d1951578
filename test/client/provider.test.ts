import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ProvideOptions, type Provider, provide, type Request } from "../../src/library.ts";
import { FakeBroker, type FakePeer, QUICK, result } from "./fake_broker.ts";

let broker: FakeBroker;
let open: Provider[];

beforeEach(async () => {
  broker = await FakeBroker.start();
  open = [];
});

afterEach(async () => {
  await Promise.all(open.map((provider) => provider.close({ drainMs: 0 })));
  await broker.remove();
});

async function providing(options: Partial<ProvideOptions>): Promise<{ provider: Provider; peer: FakePeer }> {
  const provider = await provide({ to: { path: broker.path }, reconnect: QUICK, ...options });
  open.push(provider);
  return { provider, peer: await broker.accept() };
}

/** A handler that the test lets go on, and what it was asked. */
function held() {
  const requests: Request[] = [];
  const releases: ((content: string) => void)[] = [];
  let onStart = () => {};
  const handler = (request: Request) => {
    requests.push(request);
    onStart();
    return new Promise<string>((resolve) => releases.push(resolve));
  };
  const started = async (count: number) => {
    while (requests.length < count)
      await new Promise<void>((resolve) => {
        onStart = resolve;
      });
  };
  return { handler, requests, releases, started };
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

describe("a provider", () => {
  it("is not brought down by a handler that throws an error whose message is no text", async () => {
    const odd = Object.assign(new Error("x"), { message: { code: 5 } });
    const { peer } = await providing({ handle: () => Promise.reject(odd) });
    for (const id of [1n, 2n]) {
      peer.ask(id, "t");
      const failed = { status: "failed", message: "the handler failed" };
      expect(await peer.response()).toEqual({ id, final: true, body: failed });
    }
  });

  it("hands the request over and sends the handler's answer under its id", async () => {
    let seen: Request | undefined;
    const { peer } = await providing({
      tools: {
        echo: async (request) => {
          seen = request;
          return { content: request.arguments, class: "internal", untrusted: true, truncated: true };
        },
      },
    });
    peer.ask(18446744073709551615n, "echo", '{"n": 9007199254740993}', 9007199254740993n, "agent:main");
    expect(await peer.response()).toEqual({
      id: 18446744073709551615n,
      final: true,
      body: {
        ...result('{"n": 9007199254740993}'),
        class: "internal",
        untrusted: true,
        truncated: true,
      },
    });
    expect(seen).toMatchObject({ session: "agent:main", call: 9007199254740993n, tool: "echo" });
    expect(Object.keys(seen?.args ?? {})).toEqual(["n"]);
  });

  it("answers out of order what finishes out of order", async () => {
    const { handler, releases, started } = held();
    const { peer } = await providing({ handle: handler });
    for (const id of [1n, 2n, 3n]) peer.ask(id, "t");
    await started(3);
    for (const index of [2, 0, 1]) releases[index]?.(`answer ${index + 1}`);
    for (const n of [3, 1, 2])
      expect(await peer.response()).toEqual({ id: BigInt(n), final: true, body: result(`answer ${n}`) });
  });

  it.each(["constructor", "__proto__", "toString", "missing"])(
    "has no tool %s that was not given",
    async (tool) => {
      const { peer } = await providing({ tools: { echo: () => "x" } });
      peer.ask(1n, tool);
      expect((await peer.response()).body).toEqual({
        status: "failed",
        message: "this provider has no such tool",
      });
    },
  );

  it("answers failed with a bounded, well-formed message when a handler throws or gives no answer", async () => {
    const { peer } = await providing({
      tools: {
        rejects: async () => Promise.reject(new Error(`${"x".repeat(999)}😀${"y".repeat(5_000_000)}`)),
        throws: () => {
          throw undefined;
        },
        nothing: (() => undefined) as never,
        ill: () => "\ud800",
        odd: (() => ({ content: "x", class: "constructor" })) as never,
      },
    });
    const answers: unknown[] = [];
    for (const [i, tool] of ["rejects", "throws", "nothing", "ill", "odd"].entries()) {
      peer.ask(BigInt(i + 1), tool);
      answers.push((await peer.response()).body);
    }
    expect(answers).toEqual([
      { status: "failed", message: `${"x".repeat(999)}…` },
      { status: "failed", message: "the handler failed" },
      { status: "failed", message: "the handler gave no content" },
      { status: "failed", message: "the handler's content is not well-formed Unicode" },
      { status: "failed", message: "the handler gave an unknown class" },
    ]);
  });

  it("gives undefined for arguments that are no object", async () => {
    const { peer } = await providing({ handle: ({ args }) => String(args) });
    for (const [i, text] of ["[1]", "null", "{", '"x"'].entries()) {
      peer.ask(BigInt(i + 1), "t", text);
      expect((await peer.response()).body).toEqual(result("undefined"));
    }
  });

  it("sends pieces as they come, and failed where a later one fails", async () => {
    let goOn = () => {};
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const { peer } = await providing({
      tools: {
        async *pieces() {
          yield "one";
          await gate;
          yield { content: "two", untrusted: true };
        },
        async *breaks() {
          yield "one";
          throw new Error("broke");
        },
      },
    });
    peer.ask(1n, "pieces");
    expect(await peer.response()).toEqual({ id: 1n, final: false, body: result("one") });
    goOn();
    expect(await peer.response()).toEqual({
      id: 1n,
      final: false,
      body: { ...result("two"), untrusted: true },
    });
    expect(await peer.response()).toEqual({ id: 1n, final: true, body: result("") });
    peer.ask(2n, "breaks");
    expect((await peer.response()).final).toBe(false);
    expect(await peer.response()).toEqual({
      id: 2n,
      final: true,
      body: { status: "failed", message: "broke" },
    });
  });

  it("splits content that fits no frame at characters, and joins to what it was", async () => {
    const content = "😀\u0000\n".repeat(400_000);
    const { peer } = await providing({ tools: { long: () => ({ content, untrusted: true }) } });
    peer.ask(1n, "long");
    let joined = "";
    for (let final = false; !final; ) {
      const part = await peer.response();
      final = part.final;
      if (part.body.status !== "result") throw new Error(part.body.status);
      expect(part.body.untrusted).toBe(true);
      expect(part.body.content.isWellFormed()).toBe(true);
      joined += part.body.content;
    }
    expect(joined === content).toBe(true);
  });

  it("waits for the broker to read before it takes the next piece", async () => {
    let given = 0;
    const piece = "x".repeat(100_000);
    const { peer } = await providing({
      tools: {
        async *endless({ signal }) {
          while (!signal.aborted) {
            given += 1;
            yield piece;
          }
        },
      },
    });
    peer.pause();
    peer.ask(1n, "endless");
    let before = -1;
    // Turns of the event loop until one hundred pass without a further piece.
    for (let quiet = 0; quiet < 100; quiet += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (given !== before) quiet = 0;
      before = given;
      if (given > 1_000) break;
    }
    expect(given).toBeGreaterThan(0);
    expect(given).toBeLessThan(100);
    peer.kill();
  });

  it("runs no more handlers at once than it may, and the waiting ones in order", async () => {
    const { handler, requests, releases, started } = held();
    const { peer } = await providing({ handle: handler, concurrency: 2 });
    for (const id of [1n, 2n, 3n, 4n]) peer.ask(id, "t");
    await started(2);
    peer.ask(5n, "callgate.calls.cancel", '{"session":"agent:s","call":"4"}');
    expect(await peer.response()).toMatchObject({ id: 4n, body: { status: "failed" } });
    expect(await peer.response()).toMatchObject({ id: 5n, body: { status: "result" } });
    expect(requests.length).toBe(2);
    releases[0]?.("done");
    expect((await peer.response()).id).toBe(1n);
    await started(3);
    expect(requests.map((r) => r.call)).toEqual([1n, 2n, 3n]);
  });

  it("answers busy instead of holding arguments without bound", async () => {
    const { handler, started } = held();
    const { peer } = await providing({ handle: handler, concurrency: 1 });
    const big = JSON.stringify({ x: "x".repeat(1_000_000) });
    for (let id = 1n; id <= 20n; id += 1n) peer.ask(id, "t", big);
    await started(1);
    expect(await peer.response()).toMatchObject({ final: true, body: { status: "failed" } });
  });
});

describe("cancelling at a provider", () => {
  it("aborts the signal of exactly the call that is named", async () => {
    const { handler, requests, releases, started } = held();
    const { peer } = await providing({ handle: handler });
    peer.ask(1n, "t", "{}", 9007199254740993n);
    peer.ask(2n, "t", "{}", 9007199254740992n);
    await started(2);
    peer.ask(3n, "callgate.calls.cancel", '{"session":"agent:s","call":"9007199254740993"}');
    await aborted(requests[0]!.signal);
    expect((await peer.response()).id).toBe(3n);
    expect(requests[1]!.signal.aborted).toBe(false);
    releases[0]?.("stopped half way");
    expect(await peer.response()).toEqual({ id: 1n, final: true, body: result("stopped half way") });
  });
});

describe("a provider whose connection is lost", () => {
  it("aborts what runs, sends nothing of it later, and serves again", async () => {
    const { handler, requests, releases, started } = held();
    const { peer } = await providing({ handle: handler, concurrency: 1 });
    peer.ask(1n, "old");
    peer.ask(2n, "never started");
    await started(1);
    peer.kill();
    await aborted(requests[0]!.signal);
    const other = await broker.accept();
    other.ask(9n, "callgate.calls.cancel"); // answered at once: the new connection is in use
    expect((await other.response()).id).toBe(9n);
    // The broker's ids begin anew: an old answer under id 1 would be taken for the new call's.
    other.ask(1n, "new");
    releases[0]?.("old answer");
    await started(2);
    expect(requests[1]!.tool).toBe("new");
    releases[1]?.("new answer");
    expect(await other.response()).toEqual({ id: 1n, final: true, body: result("new answer") });
    expect(other.unread).toBe(0);
  });

  it.each([
    ["an id that is in flight", [1n, 1n], true],
    ["id 0", [0n], true],
    ["a request that is not final", [1n], false],
  ])("refuses a broker that sends %s", async (_, ids, final) => {
    const { handler } = held();
    const { provider, peer } = await providing({ handle: handler });
    const body = { session: "s", call: 1n, tool: "t", arguments: "{}" };
    for (const id of ids) peer.send({ v: 1, id, final, msg: { kind: "tool_request", body } });
    expect((await peer.next()).msg).toMatchObject({ kind: "error", body: { code: "bad_message" } });
    expect(await provider.ended).toMatchObject({ code: "protocol" });
  });
});

describe("announcing", () => {
  const TOOL = { name: "clock_now", description: "The time.", schema: { type: "object" } };

  async function announcing(extra: Partial<ProvideOptions> = {}) {
    const provider = provide({
      ...{
        to: { path: broker.path },
        reconnect: QUICK,
        announce: [TOOL],
        tools: { clock_now: () => "12:00" },
      },
      ...extra,
    });
    return { provider, peer: await broker.accept() };
  }

  it("is done on every connection, with a new call each time, beside the broker's requests", async () => {
    const answers: unknown[] = [];
    let answered = () => {};
    const { provider, peer } = await announcing({
      onAnnounced: (answer) => {
        answers.push(answer);
        answered();
      },
    });
    const first = await peer.request();
    expect(first.tool).toBe("callgate.tools.announce");
    expect(JSON.parse(first.arguments)).toEqual({ tools: [TOOL], cancellable: true });
    // The same number in both directions: two namespaces.
    peer.ask(first.id, "clock_now");
    expect(await peer.response()).toEqual({ id: first.id, final: true, body: result("12:00") });
    peer.answer(first.id, result("{}"));
    open.push(await provider);
    peer.kill();
    const other = await broker.accept();
    const second = await other.request();
    expect(second.tool).toBe("callgate.tools.announce");
    expect(second.call).toBeGreaterThan(first.call);
    const heard = new Promise<void>((resolve) => {
      answered = resolve;
    });
    other.answer(second.id, { status: "denied", reason: "no_grant" });
    await heard;
    expect(answers).toEqual([{ status: "denied", reason: "no_grant" }]);
    expect(other.unread).toBe(0);
  });

  it("that the broker does not take makes provide fail, so that it is seen at start", async () => {
    const { provider, peer } = await announcing();
    peer.answer((await peer.request()).id, { status: "denied", reason: "no_grant" });
    await expect(provider).rejects.toMatchObject({ code: "not_announced" });
    await peer.gone;
  });

  it.each<[string, (peer: FakePeer, id: bigint) => void]>([
    [
      "failed",
      (peer, id) => peer.answer(id, { status: "failed", message: "bad_arguments: no\nsuch prefix" }),
    ],
    [
      "an error",
      (peer, id) =>
        peer.send({
          ...{ v: 1, id, final: true },
          msg: { kind: "error", body: { code: "internal", detail: "bad_arguments: no\nsuch prefix" } },
        }),
    ],
  ])("tells the owner why, in the broker's words, where the answer is %s", async (_, refuse) => {
    const { provider, peer } = await announcing();
    refuse(peer, (await peer.request()).id);
    await expect(provider).rejects.toThrow("the broker said: bad_arguments: no\\nsuch prefix");
    await peer.gone;
  });

  it("does not stand in the way of calls of the provider's own on the same connection", async () => {
    const { provider, peer } = await announcing();
    peer.answer((await peer.request()).id, result("{}"));
    const ready = await provider;
    open.push(ready);
    const call = ready.call("other_tool", {});
    peer.answer((await peer.request()).id, result("from elsewhere"));
    expect(await call.final).toEqual(result("from elsewhere"));
  });
});

describe("closing a provider", () => {
  it("lets running handlers answer, and refuses what comes meanwhile", async () => {
    const { handler, releases, started } = held();
    const { provider, peer } = await providing({ handle: handler });
    peer.ask(1n, "t");
    await started(1);
    const closed = provider.close();
    peer.ask(2n, "t");
    expect(await peer.response()).toMatchObject({ id: 2n, body: { status: "failed" } });
    releases[0]?.("finished");
    expect(await peer.response()).toEqual({ id: 1n, final: true, body: result("finished") });
    await closed;
    await peer.gone;
    expect(await provider.ended).toBeUndefined();
  });

  it("aborts handlers that are not done in time", async () => {
    const { handler, requests, started } = held();
    const { provider, peer } = await providing({ handle: handler });
    peer.ask(1n, "t");
    await started(1);
    await provider.close({ drainMs: 1 });
    expect(requests[0]!.signal.aborted).toBe(true);
    await peer.gone;
  });
});
