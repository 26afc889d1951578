import { PassThrough, Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { Connection } from "../../src/client/connection.ts";
import { REAL_EFFECTS } from "../../src/client/effects.ts";
import { encodeFrame } from "../../src/wire/frame.ts";
import type { Envelope } from "../../src/wire/message.ts";

const ENVELOPE: Envelope = {
  ...{ v: 1, id: 1n, final: true },
  msg: { kind: "tool_response", body: { status: "failed", message: "x" } },
};

function connection() {
  const writes: Buffer[] = [];
  const input = new PassThrough();
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      writes.push(chunk);
      done();
    },
  });
  const received: Envelope[] = [];
  let closed = 0;
  const listener = {
    received: (envelope: Envelope) => received.push(envelope),
    closed: () => {
      closed += 1;
    },
  };
  const made = new Connection({ input, output }, listener, REAL_EFFECTS);
  return { made, writes, input, output, received, closed: () => closed };
}

describe("one connection", () => {
  it("sends the frames of one turn of the event loop in one write, in order", async () => {
    const { made, writes } = connection();
    const frames = [1n, 2n, 3n].map((id) => encodeFrame({ ...ENVELOPE, id }));
    for (const frame of frames) made.write(frame);
    await new Promise((resolve) => setImmediate(resolve));
    expect(writes).toEqual([Buffer.concat(frames)]);
  });

  it("sends what was written before it is finished, and nothing after", async () => {
    const { made, writes, output } = connection();
    const frame = encodeFrame(ENVELOPE);
    made.write(frame);
    const finished = made.finish();
    made.write(frame);
    await finished;
    expect(writes).toEqual([frame]);
    expect(output.destroyed).toBe(true);
  });

  it("tells its end once, whatever ends it first, and hands over nothing afterwards", async () => {
    const { made, input, output, received, closed } = connection();
    await made.finish();
    input.emit("data", encodeFrame(ENVELOPE));
    input.emit("error", new Error("reset"));
    output.emit("error", new Error("EPIPE"));
    expect({ received, closed: closed() }).toEqual({ received: [], closed: 1 });
  });

  it("hands over nothing of a chunk that lies behind a message which ended it", async () => {
    const { made, input, received } = connection();
    const push = received.push.bind(received);
    received.push = (envelope) => {
      void made.finish();
      return push(envelope);
    };
    input.emit("data", Buffer.concat([encodeFrame(ENVELOPE), encodeFrame(ENVELOPE)]));
    expect(received.length).toBe(1);
  });
});
