import { beforeEach, describe, expect, it } from "vitest";
import { type Call, OpenCall as LibraryCall } from "../../../../src/client/call.ts";
import { CallgateError } from "../../../../src/client/error.ts";
import {
  CallBook,
  KEPT_MS,
  OPEN_CALLS_MAX,
  SILENT_RETRY_MS,
} from "../../../../src/roles/mcp/serve/call_book.ts";
import { callKey } from "../../../../src/roles/mcp/serve/call_key.ts";
import type { AskedCall, OpenCall } from "../../../../src/roles/mcp/serve/open_call.ts";

/** Calls as the client library has them, which the test answers. */
class Calls {
  readonly made: {
    readonly tool: string;
    readonly text: unknown;
    readonly open: LibraryCall;
    readonly signal: AbortSignal;
  }[] = [];

  call(
    tool: string,
    text: unknown,
    options: { session?: string; call?: bigint; signal?: AbortSignal } = {},
  ): Call {
    const open = new LibraryCall(options.session ?? "", options.call ?? 0n, 1e6);
    this.made.push({ tool, text, open, signal: options.signal! });
    return open;
  }
}

let calls: Calls;
let book: CallBook;
let nowMs: number;

beforeEach(() => {
  calls = new Calls();
  nowMs = 0;
  const effects = { epochMs: () => nowMs, monotonicMs: () => nowMs, random: () => 0 };
  book = new CallBook({ caller: calls as never, session: "s", effects });
});

function ask(text: string, isRead = false): AskedCall {
  return { tool: "t", key: callKey("t", text), text, isRead };
}

async function take(text: string, isRead = false): Promise<OpenCall> {
  const call = await book.take(ask(text, isRead));
  if (call === undefined) throw new Error("no room");
  return call;
}

const RESULT = {
  status: "result",
  content: "c",
  class: "public",
  untrusted: false,
  truncated: false,
} as const;

async function answer(at: number): Promise<void> {
  calls.made[at]?.open.take(RESULT, true);
  await turned();
}

const turned = () => new Promise((resolve) => setImmediate(resolve));

describe("a call", () => {
  it("that still waits for its answer is not the equal one beside it", async () => {
    const [first, second] = [await take("{}"), await take("{}")];
    expect(first.id).not.toBe(second.id);
    expect(calls.made.length).toBe(2);
  });

  it("that was given up is joined by the next that equals it when parsed, with its own bytes", async () => {
    const first = await take('{"a":1,"b":2}');
    book.leave(first);
    expect(await take('{"b":2, "a":1.0}')).toBe(first);
    expect(calls.made.length).toBe(1);
  });

  it("about which a person is asked is joined, as is one that has waited for long", async () => {
    const asked = await take('{"a":1}');
    calls.made[0]?.open.take({ status: "pending_approval", approval: "q", expires: 9n }, false);
    await turned();
    expect(asked.question).toEqual({ approval: "q", expiresAtMs: 9 });
    expect(await take('{"a":1}')).toBe(asked);
    const slow = await take('{"a":2}');
    nowMs += SILENT_RETRY_MS - 1;
    expect(await take('{"a":2}')).not.toBe(slow);
    nowMs += 1;
    expect(await take('{"a":2}')).toBe(slow);
  });

  it("whose answer was delivered is never found again", async () => {
    const first = await take("{}");
    await answer(0);
    book.delivered(first);
    expect((await take("{}")).id).not.toBe(first.id);
    expect(book.keptCount).toBe(0);
  });

  it("whose answer nobody heard is asked for again under its own id, once", async () => {
    const first = await take('{"a":1,"b":2}');
    book.leave(first);
    await answer(0);
    const second = await take('{"b":2,"a":1}');
    expect([second.id, calls.made[1]?.text]).toEqual([first.id, '{"a":1,"b":2}']);
    await answer(1);
    book.delivered(second);
    expect((await take('{"a":1,"b":2}')).id).not.toBe(first.id);
  });

  it("whose answer was lost on the way is found again", async () => {
    const first = await take("{}");
    await answer(0);
    book.delivered(first);
    book.undelivered(first);
    expect((await take("{}")).id).toBe(first.id);
  });

  it("is kept for a time: a read for a shorter one", async () => {
    for (const [text, isRead, keptMs] of [
      ['{"r":1}', true, KEPT_MS.read],
      ['{"w":1}', false, KEPT_MS.other],
    ] as const) {
      const at = calls.made.length;
      const first = await take(text, isRead);
      book.leave(first);
      await answer(at);
      nowMs += keptMs - 1;
      const again = await take(text, isRead);
      expect(again.id).toBe(first.id);
      await answer(at + 1);
      book.leave(again);
      nowMs += keptMs;
      expect((await take(text, isRead)).id).not.toBe(first.id);
    }
  });

  it("that its client has called off is another one's no more, and what came of it is heard by the next", async () => {
    const first = await take("{}");
    book.cancel(first);
    expect(calls.made[0]?.signal.aborted).toBe(true);
    const next = take("{}");
    await turned();
    expect(calls.made.length).toBe(1);
    calls.made[0]?.open.take({ status: "failed", message: "cancelled: it may have run" }, true);
    expect((await next).id).toBe(first.id);
    expect(calls.made.length).toBe(2);
  });

  it("that was called off while a person was asked is gone: nothing ran", async () => {
    const first = await take("{}");
    calls.made[0]?.open.take({ status: "pending_approval", approval: "q", expires: 9n }, false);
    await turned();
    book.cancel(first);
    calls.made[0]?.open.take({ status: "failed", message: "cancelled: nothing ran" }, true);
    await turned();
    expect((await take("{}")).id).not.toBe(first.id);
  });

  it("that others wait for is not called off by one of them", async () => {
    const first = await take("{}");
    nowMs += SILENT_RETRY_MS;
    await take("{}");
    book.cancel(first);
    expect(calls.made[0]?.signal.aborted).toBe(false);
  });

  it("that has no answer of the broker's is kept where it may have run", async () => {
    const [lost, bad] = [await take('{"a":1}'), await take('{"a":2}')];
    calls.made[0]?.open.fail(new CallgateError("lost", "x", { mayHaveRun: true }));
    calls.made[1]?.open.fail(new CallgateError("too_large", "x"));
    await turned();
    for (const one of [lost, bad]) book.leave(one);
    expect((await take('{"a":1}')).id).toBe(lost.id);
    expect((await take('{"a":2}')).id).not.toBe(bad.id);
  });

  it("is one of a bounded number", async () => {
    for (let i = 0; i < OPEN_CALLS_MAX; i += 1) await take(`{"i":${i}}`);
    expect(await book.take(ask('{"more":1}'))).toBeUndefined();
    await answer(0);
    expect(await book.take(ask('{"more":1}'))).toBeDefined();
  });

  it("of an id is taken by it, open or not", async () => {
    const first = await take("{}");
    expect(book.takeById(ask("{}"), first.id)).toBe(first);
    await answer(0);
    for (let i = 0; i < 2; i += 1) book.delivered(first);
    expect(book.takeById(ask("{}"), first.id)?.id).toBe(first.id);
    expect(calls.made.length).toBe(2);
  });

  it("kept is one of a bounded number, and of a bounded length", async () => {
    for (let i = 0; i < 600; i += 1) {
      const call = await take(`{"i":${i}}`);
      book.leave(call);
      await answer(calls.made.length - 1);
    }
    expect(book.keptCount).toBe(512);
    const long = "x".repeat(1_000_000);
    for (let i = 0; i < 20; i += 1) {
      const call = await take(`{"i":${i},"x":"${long}"}`);
      book.leave(call);
      await answer(calls.made.length - 1);
    }
    expect(book.keptCount).toBe(8);
  });
});
