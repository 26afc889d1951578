import { spawn } from "node:child_process";
import { once } from "node:events";
import { Duplex, type Readable, type Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { FakePeer, result } from "./fake_broker.ts";

const CHILD = fileURLToPath(new URL("child.ts", import.meta.url));

/** A process that has nothing but what it inherited, and our end of it. */
function start(how: "3" | "stdio", end: "close" | "lose") {
  const child = spawn(process.execPath, ["--import", "tsx", CHILD, how, end], {
    stdio: how === "3" ? ["ignore", "ignore", "inherit", "pipe"] : ["pipe", "pipe", "inherit"],
  });
  const stream =
    how === "3"
      ? (child.stdio[3] as unknown as Duplex) // an extra `pipe` is a socket pair: both directions
      : Duplex.from({ readable: child.stdout as Readable, writable: child.stdin as Writable });
  return { peer: new FakePeer(stream), exited: once(child, "exit") };
}

describe.each(["3", "stdio"] as const)("a caller over inherited %s", (how) => {
  it("calls, closes, and then nothing keeps its process alive", async () => {
    const { peer, exited } = start(how, "close");
    const content = "x".repeat(500_000);
    peer.answer((await peer.request()).id, result(content));
    const told = await peer.request();
    expect(told.arguments).toBe(JSON.stringify({ answer: result(content) }));
    expect(told.session).toBe("child");
    peer.answer(told.id, result(""));
    expect(await exited).toEqual([0, null]);
  });

  it("ends its calls with lost when the other end is gone, since it can't come back", async () => {
    const { peer, exited } = start(how, "lose");
    peer.answer((await peer.request()).id, result(""));
    await peer.request();
    peer.kill();
    expect(await exited).toEqual([42, null]);
  });
});
