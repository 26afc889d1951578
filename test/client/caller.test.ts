import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type Call,
  type Caller,
  type CallgateError,
  type ConnectOptions,
  connect,
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

async function all(call: Call): Promise<ToolResponse[]> {
  const messages: ToolResponse[] = [];
  for await (const message of call) messages.push(message);
  return messages;
}

async function errorOf(promise: Promise<unknown>): Promise<CallgateError> {
  return promise.then(
    () => Promise.reject(new Error("it did not reject")),
    (error) => error as CallgateError,
  );
}

describe("a call", () => {
  it("carries session, id, tool and arguments, and ends with the final answer", async () => {
    const { caller, peer } = await connected();
    const call = caller.call("read_file", { path: "/etc/hosts" });
    const request = await peer.request();
    expect(request).toMatchObject({ session: "s", call: call.call, tool: "read_file" });
    expect(request.arguments).toBe('{"path":"/etc/hosts"}');
    peer.answer(request.id, result("127.0.0.1"));
    expect(await call.final).toEqual(result("127.0.0.1"));
    expect(await all(call)).toEqual([result("127.0.0.1")]);
  });

  it("sends arguments given as text byte for byte", async () => {
    const { caller, peer } = await connected();
    caller.call("t", '{ "n": 9007199254740993, "n": 1.0 }');
    expect((await peer.request()).arguments).toBe('{ "n": 9007199254740993, "n": 1.0 }');
  });

  it("joins the parts of a result: content in order, labels and truncation of any", async () => {
    const { caller, peer } = await connected();
    const call = caller.call("t", {});
    const { id } = await peer.request();
    peer.answer(id, { status: "pending_approval", approval: "a", expires: 1n }, false);
    peer.answer(id, result("one ", { class: "confidential" }), false);
    peer.answer(id, result("two ", { untrusted: true }), false);
    peer.answer(id, result("three", { truncated: true }));
    const joined = { class: "confidential", untrusted: true, truncated: true };
    expect(await call.final).toEqual(result("one two three", joined as Partial<ToolResponse>));
    expect((await all(call)).map((m) => m.status)).toEqual([
      "pending_approval",
      "result",
      "result",
      "result",
    ]);
  });

  it("gives denials and failures as values", async () => {
    const { caller, peer } = await connected();
    const denied = caller.call("a", {});
    const failed = caller.call("b", {});
    peer.answer((await peer.request()).id, { status: "denied", reason: "no_grant" });
    const { id } = await peer.request();
    peer.answer(id, result("half"), false);
    peer.answer(id, { status: "failed", message: "provider: no" });
    expect(await denied.final).toEqual({ status: "denied", reason: "no_grant" });
    expect(await failed.final).toEqual({ status: "failed", message: "provider: no" });
  });

  it("gets its own answer when many end out of order", async () => {
    const { caller, peer } = await connected();
    const calls = Array.from({ length: 500 }, (_, i) => caller.call("t", { i }));
    const requests = await Promise.all(calls.map(() => peer.request()));
    for (const request of requests.reverse()) peer.answer(request.id, result(request.arguments));
    const answers = await Promise.all(calls.map((call) => call.final));
    expect(answers).toEqual(calls.map((_, i) => result(JSON.stringify({ i }))));
  });

  it("keeps ids beyond 2^53 apart", async () => {
    const { caller, peer } = await connected();
    const ids = [9007199254740992n, 9007199254740993n, 18446744073709551615n];
    const calls = ids.map((call) => caller.call("t", {}, { call }));
    for (const call of ids) {
      const request = await peer.request();
      expect(request.call).toBe(call);
      peer.answer(request.id, result(String(request.call)));
    }
    const answers = await Promise.all(calls.map((call) => call.final));
    expect(answers).toEqual(ids.map((id) => result(String(id))));
  });

  it("ends without being sent where it is outside the grammar or too large", async () => {
    const { caller, peer } = await connected();
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    const bad: [Call, string][] = [
      [caller.call("t", {}, { session: "no spaces" }), "bad_call"],
      [caller.call("t", {}, { call: -1n }), "bad_call"],
      [caller.call("t", {}, { call: 2n ** 64n }), "bad_call"],
      [caller.call("t", cycle), "bad_call"],
      [caller.call("t", { n: 1n }), "bad_call"],
      [caller.call("t", '"\ud800"'), "bad_call"],
      [caller.call("t", "x".repeat(1_048_577)), "too_large"],
    ];
    for (const [call, code] of bad)
      expect(await errorOf(call.final)).toMatchObject({ code, mayHaveRun: false });
    caller.call("after", {});
    expect((await peer.request()).tool).toBe("after");
  });

  it("is not an unhandled rejection when nobody awaits it", async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", onUnhandled);
    const { caller } = await connected();
    caller.call("t", {});
    caller.call("t", {}, { session: "" });
    await caller.close();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", onUnhandled);
    expect(unhandled).toEqual([]);
  });

  it("ends with too_large when its answer grows above the bound, parts without content too", async () => {
    const { caller, peer } = await connected({ resultCharsMax: 10_000 });
    const long = caller.call("t", {});
    const empty = caller.call("t", {});
    const ids = [(await peer.request()).id, (await peer.request()).id];
    peer.answer(ids[0]!, result("x".repeat(10_001)));
    for (let i = 0; i < 200; i += 1) peer.answer(ids[1]!, result(""), false);
    for (const call of [long, empty])
      expect(await errorOf(call.final)).toMatchObject({ code: "too_large", mayHaveRun: true });
    await expect(all(empty)).rejects.toMatchObject({ code: "too_large" });
  });
});

describe("questions without end", () => {
  it("are bounded by the length of their names too", async () => {
    const { caller, peer } = await connected({ resultCharsMax: 10_000 });
    const call = caller.call("t", {});
    const { id } = await peer.request();
    const approval = "a".repeat(10_001);
    peer.answer(id, { status: "pending_approval", approval, expires: 1n }, false);
    expect(await errorOf(call.final)).toMatchObject({ code: "too_large", mayHaveRun: true });
  });
});

describe("cancelling", () => {
  it("asks the broker under the same session, and ends with what the call is then answered", async () => {
    const { caller, peer } = await connected();
    const abort = new AbortController();
    const call = caller.call("slow", {}, { session: "other", call: 9007199254740993n, signal: abort.signal });
    const request = await peer.request();
    abort.abort();
    const cancel = await peer.request();
    expect(cancel).toMatchObject({ tool: "callgate.calls.cancel", session: "other" });
    expect(cancel.arguments).toBe('{"session":"other","call":"9007199254740993"}');
    expect(cancel.call).not.toBe(request.call);
    peer.answer(cancel.id, result("{}"));
    peer.answer(request.id, { status: "failed", message: "cancelled: it may have run" });
    expect((await all(call)).at(-1)).toEqual({ status: "failed", message: "cancelled: it may have run" });
  });

  it("ends with not_cancelled where the broker refuses to cancel, or does not answer", async () => {
    const { caller, peer } = await connected();
    const abort = new AbortController();
    const call = caller.call("slow", {}, { signal: abort.signal });
    const { id } = await peer.request();
    abort.abort();
    peer.answer((await peer.request()).id, { status: "denied", reason: "no_grant" });
    expect(await errorOf(call.final)).toMatchObject({ code: "not_cancelled", mayHaveRun: true });
    peer.answer(id, result("late"));

    const impatient = await connected({ cancelWaitMs: 1 });
    const unanswered = impatient.caller.call("slow", {}, { signal: AbortSignal.any([abort.signal]) });
    expect(await errorOf(unanswered.final)).toMatchObject({ code: "aborted", mayHaveRun: false });
    const second = new AbortController();
    const waiting = impatient.caller.call("slow", {}, { signal: second.signal });
    await impatient.peer.request();
    second.abort();
    expect(await errorOf(waiting.final)).toMatchObject({ code: "not_cancelled", mayHaveRun: true });
  });

  it("leaves no timer behind that would keep the process alive", async () => {
    const timers = new Set<object>();
    const after = () => {
      const timer = {};
      timers.add(timer);
      return () => void timers.delete(timer);
    };
    const { caller, peer } = await connected({ effects: { after } });
    const abort = new AbortController();
    const call = caller.call("slow", {}, { signal: abort.signal });
    const { id } = await peer.request();
    abort.abort();
    await peer.request();
    expect(timers.size).toBe(1);
    peer.answer(id, { status: "failed", message: "cancelled: it may have run" });
    await call.final;
    expect(timers.size).toBe(0);
  });

  it("leaves no listener on the signal of a call that has ended", async () => {
    const { caller, peer } = await connected();
    const abort = new AbortController();
    const call = caller.call("t", {}, { signal: abort.signal });
    peer.answer((await peer.request()).id, result("done"));
    await call.final;
    abort.abort();
    caller.call("next", {});
    expect((await peer.request()).tool).toBe("next");
  });
});

describe("closing and hostile brokers", () => {
  it("ends waiting calls with closed when the caller closes, and later ones too", async () => {
    const { caller, peer } = await connected();
    const waiting = caller.call("t", {});
    await peer.request();
    await caller.close();
    expect(await errorOf(waiting.final)).toMatchObject({ code: "closed", mayHaveRun: true });
    expect(await errorOf(caller.call("t", {}).final)).toMatchObject({ code: "closed", mayHaveRun: false });
    expect(await caller.ended).toBeUndefined();
    await peer.gone;
  });

  it("ignores answers to ids that it did not ask under, and second final answers", async () => {
    const { caller, peer } = await connected();
    const first = caller.call("t", {});
    const second = caller.call("t", {});
    const { id } = await peer.request();
    peer.answer(id + 1_000n, result("nobody asked"));
    peer.answer(0n, result("nobody asked"));
    peer.answer(id, result("first"));
    peer.answer(id, result("again"));
    peer.answer((await peer.request()).id, result("second"));
    expect(await first.final).toEqual(result("first"));
    expect(await second.final).toEqual(result("second"));
  });

  it.each([
    ["a length of 4294967295", Buffer.from([255, 255, 255, 255, 1]), "bad_frame"],
    ["a length of 0", Buffer.alloc(4), "bad_frame"],
    ["text", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), "bad_frame"],
    ["a body that is no envelope", Buffer.from("\0\0\0\x02{}", "latin1"), "bad_message"],
    ["another version", Buffer.from('\0\0\0\x07{"v":2}', "latin1"), "bad_version"],
  ])(
    "tells a broker that sends %s what was wrong, and ends all calls with protocol",
    async (_, bytes, code) => {
      const { caller, peer } = await connected();
      const call = caller.call("t", {});
      await peer.request();
      peer.sendBytes(bytes);
      expect(await errorOf(call.final)).toMatchObject({ code: "protocol", mayHaveRun: true });
      expect(await caller.ended).toMatchObject({ code: "protocol" });
      expect((await peer.next()).msg).toMatchObject({ kind: "error", body: { code } });
      await peer.gone;
    },
  );

  it("does not come back after an error of the kind that says we are at fault", async () => {
    const { caller, peer } = await connected();
    const call = caller.call("t", {});
    await peer.request();
    const body = { code: "bad_message", detail: "a message is\nnone of this protocol" } as const;
    peer.send({ v: 1, id: 0n, final: true, msg: { kind: "error", body } });
    const error = await errorOf(call.final);
    expect(error).toMatchObject({ code: "refused", wireCode: "bad_message" });
    expect(error.message).toContain("the broker said: a message is\\nnone of this protocol");
    await peer.gone;
  });

  it("ends only the call that an internal error names", async () => {
    const { caller, peer } = await connected();
    const broken = caller.call("t", {});
    const fine = caller.call("t", {});
    const { id } = await peer.request();
    peer.send({ v: 1, id, final: true, msg: { kind: "error", body: { code: "internal", detail: "" } } });
    peer.answer((await peer.request()).id, result("fine"));
    expect(await errorOf(broken.final)).toMatchObject({
      code: "refused",
      wireCode: "internal",
      mayHaveRun: true,
    });
    expect(await fine.final).toEqual(result("fine"));
  });

  it("answers a request of the broker's with failed, since it serves no tool", async () => {
    const { peer } = await connected();
    peer.ask(7n, "clock_now");
    expect(await peer.response()).toMatchObject({ id: 7n, final: true, body: { status: "failed" } });
  });

  it("reads frames one byte at a time", async () => {
    const { caller, peer } = await connected();
    const call = caller.call("t", {});
    const { id } = await peer.request();
    peer.answerByteByByte(id, result("ü€😀"));
    expect(await call.final).toEqual(result("ü€😀"));
  });
});
