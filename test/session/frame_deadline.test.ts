import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { ROLE_LIMITS_DEFAULT } from "../../src/base/limits.ts";
import { systemClock } from "../../src/host/clock.ts";
import { Connection } from "../../src/session/connection.ts";
import { Quota } from "../../src/session/quota.ts";
import { encodeFrame } from "../../src/wire/frame.ts";

const FRAME_TIMEOUT_MS = 50;
const undo: (() => void)[] = [];

afterEach(() => {
  for (const action of undo.splice(0).reverse()) action();
});

/** A connection over a real socket, and what it came to: a message, or the end. */
async function pair(): Promise<{ theirs: Socket; quota: Quota; outcome: Promise<string> }> {
  const directory = mkdtempSync(join(tmpdir(), "callgate-"));
  const path = join(directory, "s");
  const server = createServer({ allowHalfOpen: true });
  const accepted = new Promise<Socket>((settle) => server.once("connection", settle));
  await new Promise<void>((settle) => server.listen(path, settle));
  const theirs = connect({ path });
  theirs.resume().on("error", () => undefined);
  const stream = await accepted;
  const quota = new Quota(ROLE_LIMITS_DEFAULT);
  const outcome = new Promise<string>((settle) => {
    const ours = new Connection(stream, {
      number: 1,
      role: "agent",
      peer: undefined,
      quota,
      clock: systemClock(),
      log: (_, event, { detail }) => settle(`${event}: ${String(detail)}`),
      frameTimeoutMs: FRAME_TIMEOUT_MS,
      receiver: {
        message: (_, { id }) => settle(`message ${id}`),
        ended: () => undefined,
        closed: () => undefined,
        overfull: () => undefined,
      },
    });
    undo.push(
      () => rmSync(directory, { recursive: true }),
      () => server.close(),
      () => theirs.destroy(),
      () => ours.close(),
    );
  });
  return { theirs, quota, outcome };
}

const FRAME = encodeFrame({
  v: 1,
  id: 7n,
  final: true,
  msg: { kind: "tool_request", body: { session: "s", call: 1n, tool: "t", arguments: "{}" } },
});

async function sendHalf({ theirs, quota }: { theirs: Socket; quota: Quota }): Promise<void> {
  theirs.write(FRAME.subarray(0, 20));
  while (quota.held("queued_bytes_in") === 0) await turn();
}

describe("the deadline of a frame", () => {
  it("ends a peer that stalls inside it", async () => {
    const connection = await pair();
    await sendHalf(connection);
    expect(await connection.outcome).toBe("connection.refused: the stream stalled inside a frame");
  });

  it("is not held against a peer whose bytes had arrived while the broker itself stood still", async () => {
    const connection = await pair();
    await sendHalf(connection);
    connection.theirs.write(FRAME.subarray(20));
    const until = performance.now() + 2 * FRAME_TIMEOUT_MS;
    while (performance.now() < until); // the whole loop, as a stopped process or a starved machine does
    expect(await connection.outcome).toBe("message 7");
  });
});
