import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FakeBroker, FakePeer, result } from "../client/fake_broker.ts";
import { describeWith } from "../needs.ts";

// The proof that the wire needs no library: two files of Python's standard library.

let broker: FakeBroker;
let children: ChildProcess[];

beforeEach(async () => {
  broker = await FakeBroker.start();
  children = [];
});

afterEach(async () => {
  for (const child of children) child.kill();
  await broker.remove();
});

function python(file: string, args: string[], extra: "pipe" | "ignore" = "ignore") {
  const path = fileURLToPath(new URL(`../../examples/python/${file}`, import.meta.url));
  const child = spawn("python3", ["-I", path, ...args], { stdio: ["ignore", "pipe", "pipe", extra] });
  children.push(child);
  const done = Promise.all([text(child.stdout!), text(child.stderr!), once(child, "exit")]).then(
    ([output, errors, [status]]) => ({
      lines: output.split("\n").filter((line) => line !== ""),
      errors,
      status: status as number,
    }),
  );
  return { done, child };
}

async function provider(): Promise<FakePeer> {
  python("provider.py", [broker.path]);
  return broker.accept();
}

describeWith(["python3"], "the Python examples", () => {
  it("call and serve each other through a broker", async () => {
    const serving = await provider();
    const { done } = python("caller.py", [
      broker.path,
      "word_count",
      '{"text":"ein Text, über 😀"}',
      "--call=9007199254740993",
    ]);
    const calling = await broker.accept();
    const { id, ...request } = await calling.request();
    expect(request.call).toBe(9007199254740993n);
    // What a broker does between the two: a question, then the provider's answer under the caller's id.
    calling.answer(id, { status: "pending_approval", approval: "a", expires: 18446744073709551615n }, false);
    const atProvider = 18446744073709551615n;
    serving.ask(atProvider, request.tool, request.arguments, request.call, `caller:${request.session}`);
    const answer = await serving.response();
    expect(answer).toEqual({ id: atProvider, final: true, body: result("4") });
    calling.answer(id, answer.body);
    expect(await done).toMatchObject({
      status: 0,
      lines: [
        '{"status": "pending_approval", "approval": "a", "expires": 18446744073709551615}',
        '{"status": "result", "content": "4", "class": "public", "untrusted": false, "truncated": false}',
      ],
    });
  });

  it("provider answers failed for bad arguments and unknown tools, and goes on", async () => {
    const serving = await provider();
    const asked: [string, string][] = [
      ["__init__", "{}"],
      ["word_count", "[1]"],
      ["word_count", '{"text":7}'],
      ["word_count", "{"],
      ["word_count", `{"text":${"[".repeat(100_000)}`],
      ["word_count", '{"text":"\\ud800"}'],
      ["clock_now", "{}"],
    ];
    const statuses: string[] = [];
    for (const [i, [tool, args]] of asked.entries()) {
      serving.ask(BigInt(i + 1), tool, args);
      statuses.push((await serving.response()).body.status);
    }
    expect(statuses).toEqual(["failed", "failed", "failed", "failed", "failed", "result", "result"]);
  });

  it("provider ends cleanly when the broker hangs up", async () => {
    const { done } = python("provider.py", [broker.path]);
    (await broker.accept()).kill();
    expect(await done).toMatchObject({ status: 0, errors: "" });
  });

  it.each([
    ["a length of 4294967295", Buffer.from([255, 255, 255, 255])],
    ["a length of 0", Buffer.alloc(4)],
    ["half a length and the end", Buffer.from([0, 0])],
    ["half a body and the end", Buffer.from([0, 0, 0, 9, 0x7b])],
    ["a body that is no envelope", Buffer.from("\0\0\0\x02[]", "latin1")],
  ])("both refuse %s", async (_, bytes) => {
    const ends = [python("caller.py", [broker.path, "t"]).done, python("provider.py", [broker.path]).done];
    for (const _each of ends) {
      const peer = await broker.accept();
      peer.sendBytes(bytes);
      peer.end();
    }
    for (const end of ends) expect(await end).toMatchObject({ status: 2, lines: [] });
  });

  it("both work over an inherited descriptor, frames one byte at a time", async () => {
    const caller = python("caller.py", ["fd:3", "t"], "pipe");
    const peer = new FakePeer(caller.child.stdio[3] as unknown as Duplex);
    const { id } = await peer.request();
    peer.answerByteByByte(id, result("ü€😀"));
    expect(await caller.done).toMatchObject({ status: 0, errors: "" });
    const serving = python("provider.py", ["fd:3"], "pipe");
    const other = new FakePeer(serving.child.stdio[3] as unknown as Duplex);
    other.ask(1n, "word_count", '{"text":"a b"}');
    expect((await other.response()).body).toEqual(result("2"));
    other.end();
    expect(await serving.done).toMatchObject({ status: 0 });
  });

  it("caller says by its exit status whether there is a result", async () => {
    const denied = python("caller.py", [broker.path, "t"]);
    const peer = await broker.accept();
    peer.answer((await peer.request()).id, { status: "denied", reason: "no_grant" });
    expect(await denied.done).toMatchObject({
      status: 1,
      lines: ['{"status": "denied", "reason": "no_grant"}'],
    });
    const lost = python("caller.py", [broker.path, "t", "{}", "--call=7"]);
    const other = await broker.accept();
    await other.request();
    other.kill();
    expect(await lost.done).toMatchObject({ status: 2, errors: expect.stringContaining("call 7") });
  });
});
