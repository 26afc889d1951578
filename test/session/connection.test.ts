import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { ROLE_LIMITS_DEFAULT } from "../../src/base/limits.ts";
import { systemClock } from "../../src/host/clock.ts";
import { Connection, type Receiver } from "../../src/session/connection.ts";
import { Quota } from "../../src/session/quota.ts";
import { decodeBody, encodeMessage } from "../../src/wire/envelope.ts";
import { encodeFrame, FrameReader } from "../../src/wire/frame.ts";

const undo: (() => void)[] = [];

afterEach(() => {
  for (const action of undo.splice(0).reverse()) action();
});

interface Pair {
  readonly ours: Connection;
  readonly theirs: Socket;
  readonly quota: Quota;
  readonly log: string[];
}

/** A connection over a real socket: its stream's own order of events is what is looked at. */
async function pair(receiver: Partial<Receiver>): Promise<Pair> {
  const directory = mkdtempSync(join(tmpdir(), "callgate-"));
  const path = join(directory, "s");
  const log: string[] = [];
  const quota = new Quota({ ...ROLE_LIMITS_DEFAULT, queued_bytes_out: 1_000_000_000 });
  const server: Server = createServer({ allowHalfOpen: true });
  const accepted = new Promise<Socket>((settle) => server.once("connection", settle));
  await new Promise<void>((settle) => server.listen(path, settle));
  const theirs = connect({ path, allowHalfOpen: true });
  theirs.on("error", () => undefined);
  undo.push(
    () => rmSync(directory, { recursive: true }),
    () => server.close(),
    () => theirs.destroy(),
  );
  const ours = new Connection(await accepted, {
    number: 1,
    role: "agent",
    peer: undefined,
    quota,
    clock: systemClock(),
    log: (_, event, { detail }) => log.push(`${event} ${String(detail)}`),
    frameTimeoutMs: 30_000,
    receiver: {
      message: () => undefined,
      ended: (connection) => connection.finish(),
      closed: () => undefined,
      overfull: () => undefined,
      ...receiver,
    },
  });
  undo.push(() => ours.close());
  return { ours, theirs, quota, log };
}

/** Reads until the end: the ids and the lengths of what came. */
function readAll(socket: Socket): Promise<readonly (readonly [bigint, number])[]> {
  const reader = new FrameReader();
  const came: (readonly [bigint, number])[] = [];
  return new Promise((settle) => {
    socket.on("data", (chunk) => {
      reader.push(chunk as Buffer);
      for (let body = reader.next(); body !== undefined; body = reader.next())
        came.push([decodeBody(body).id, body.length]);
    });
    socket.on("close", () => settle(came));
    socket.on("end", () => {
      settle(came);
      socket.end();
    });
  });
}

function request(id: bigint): Buffer {
  const body = { session: "s", call: id, tool: "t", arguments: "{}" };
  return encodeFrame({ v: 1, id, final: true, msg: { kind: "tool_request", body } });
}

function result(contentBytes: number): Buffer {
  const body = { status: "result", class: "public", untrusted: false, truncated: false } as const;
  return encodeMessage({ kind: "tool_response", body: { ...body, content: "x".repeat(contentBytes) } });
}

describe("a peer that asks much at once and half-closes", () => {
  it("gets every answer: what was asked before its end is not lost while its answers pile up", async () => {
    const answer = result(200_000);
    const { theirs, log, quota } = await pair({
      message: (connection, { id }) => connection.send(id, true, answer),
    });
    const ids = Array.from({ length: 60 }, (_, i) => BigInt(i + 1));
    theirs.pause();
    theirs.end(Buffer.concat(ids.map(request)));
    const came = await readAll(theirs.resume());
    expect(log).toEqual([]);
    expect(came.map(([id]) => id)).toEqual(ids);
    expect([quota.held("queued_bytes_in"), quota.held("queued_bytes_out")]).toEqual([0, 0]);
  });
});

describe("what is written", () => {
  it("comes whole and in order, however sizes and turns fall, and its charge is given back", async () => {
    const sizes = fc.oneof(fc.nat({ max: 300 }), fc.constantFrom(7000, 8100, 8192, 20_000, 300_000));
    const step = fc.record({ size: sizes, turn: fc.boolean(), asks: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        const { ours, theirs, quota } = await pair({});
        const coming = readAll(theirs);
        const expected: bigint[] = [];
        for (const { size, turn, asks } of steps) {
          const id = BigInt(expected.length + 1);
          expected.push(id);
          if (asks) ours.ask(id, result(size));
          else ours.send(id, true, result(size));
          expect(quota.held("queued_bytes_out")).toBe(ours.queuedBytes);
          if (turn) await new Promise((settle) => setImmediate(settle));
        }
        ours.finish();
        expect((await coming).map(([id]) => id)).toEqual(expected);
        expect([quota.held("queued_bytes_out"), ours.queuedBytes]).toEqual([0, 0]);
      }),
      { numRuns: 30 },
    );
  });
});
