import { afterEach, describe, expect, it } from "vitest";
import { decodeRequestFrame } from "../../src/connector/carriage.ts";
import { ConnectorClient, type ConnectorOptions } from "../../src/connector/client.ts";
import { ConnectorError, type ConnectorErrorCode } from "../../src/connector/client_error.ts";
import { openResponse, sealRequest } from "../../src/connector/client_exchange.ts";
import type { TransportInvocation, TransportResult } from "../../src/connector/contract.ts";
import { decode } from "../../src/connector/decode.ts";
import { TRANSPORT_ENVELOPE, TRANSPORT_INVOCATION } from "../../src/connector/documents.ts";
import { open } from "../../src/connector/envelope.ts";
import { invocationOf } from "../../src/connector/invocation.ts";
import { connectionKey } from "../../src/connector/secret.ts";
import { afterRequest, answerOf, type Behaviour, FakeConnector, SECRET } from "./fake_connector.ts";
import { INVOCATION, RESULT } from "./golden_values.ts";
import { ManualTimers } from "./manual_timers.ts";

const fakes: FakeConnector[] = [];

afterEach(async () => {
  await Promise.all(fakes.splice(0).map((fake) => fake.stop()));
});

async function connector(behaviour: Behaviour, options = {}): Promise<FakeConnector> {
  const fake = await FakeConnector.start(behaviour, options);
  fakes.push(fake);
  return fake;
}

function options(port: number, given: Partial<ConnectorOptions> = {}): ConnectorOptions {
  return { host: "127.0.0.1", port, secret: SECRET, maxFrameBytes: 65_536, ...given };
}

/** Asks once, with a connector that behaves so, and holds that the connection was left and no timer runs. */
async function asked(
  behaviour: Behaviour,
  invocation: TransportInvocation = INVOCATION,
): Promise<TransportResult | ConnectorError> {
  const fake = await connector(behaviour);
  const timers = new ManualTimers();
  const effects = { after: timers.after };
  const maxFrameBytes = invocation === LONG ? LONG_FRAME_BYTES : 65_536;
  const client = new ConnectorClient(options(fake.port, { responseTimeoutMs: 1000, maxFrameBytes, effects }));
  const outcome = await client.execute(invocation).catch((error: unknown) => error as ConnectorError);
  expect(timers.running).toBe(0);
  await fake.allGone();
  return outcome;
}

/** The error's code, and whether the provider may have run. */
async function failure(behaviour: Behaviour): Promise<readonly [ConnectorErrorCode, boolean]> {
  const outcome = await asked(behaviour);
  if (!(outcome instanceof ConnectorError)) throw new Error("an answer was believed");
  expect(outcome.message).not.toMatch(/What is on the table|fake-connection-secret/);
  return [outcome.code, outcome.mayHaveRun];
}

/** Sends these bytes once the request is there, and ends. */
function sends(...pieces: readonly Buffer[]): Behaviour {
  return afterRequest((socket) => {
    for (const piece of pieces) socket.write(piece);
    socket.end();
  });
}

const ANSWER = answerOf(RESULT);
const KEY = keyOf(SECRET);
/** More than both ends' buffers in the kernel take. */
const LONG = sealable({ instructions: "x".repeat(30_000_000) });
const LONG_FRAME_BYTES = 2 ** 27;

function keyOf(secret: string): Buffer {
  const made = connectionKey(secret);
  if (!made.ok) throw new Error(made.fault);
  return made.value;
}

const lengthOf = (declared: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(declared);
  return bytes;
};

describe("a turn through the client", () => {
  it("returns the result that was sealed for it, and sends one frame that opens to the invocation", async () => {
    let frame: Buffer = Buffer.alloc(0);
    const outcome = await asked(
      afterRequest((socket, request) => {
        frame = request;
        socket.end(ANSWER);
      }),
    );
    expect(outcome).toEqual(RESULT);
    const carried = decodeRequestFrame(frame);
    const envelope = carried && decode(TRANSPORT_ENVELOPE, carried.envelope);
    if (envelope === undefined) throw new Error("no envelope was sent");
    expect(decode(TRANSPORT_INVOCATION, open(envelope, KEY)!)).toEqual(INVOCATION);
  });

  it("returns a refusal and a failed turn as the answers that they are", async () => {
    const refused: TransportResult = { ...RESULT, disposition: { Refused: "InFlight" } };
    expect(await asked(sends(answerOf(refused)))).toEqual(refused);
  });

  it("seals each request with a nonce of its own", async () => {
    const frames: string[] = [];
    const fake = await connector(
      afterRequest((socket, frame) => {
        frames.push(frame.toString("hex"));
        socket.end(ANSWER);
      }),
    );
    const client = new ConnectorClient(options(fake.port));
    await Promise.all(Array.from({ length: 8 }, () => client.execute(INVOCATION)));
    expect(new Set(frames).size).toBe(8);
    expect(fake.connections).toBe(8);
  });

  it("returns an answer that comes byte by byte, with more behind it, or before the connector has read all", async () => {
    expect(await asked(sends(...[...ANSWER].map((byte) => Buffer.of(byte))))).toEqual(RESULT);
    expect(await asked(sends(Buffer.concat([ANSWER, Buffer.alloc(5000)])))).toEqual(RESULT);
    expect(await asked((socket) => socket.resume().write(ANSWER))).toEqual(RESULT);
  });

  it("returns an answer of a connector that keeps its side open, and leaves", async () => {
    expect(await asked(afterRequest((socket) => socket.write(ANSWER)))).toEqual(RESULT);
  });

  it("of many at once gives each its own answer", async () => {
    const fake = await connector(
      afterRequest((socket, frame) => {
        const request_id = decodeRequestFrame(frame)?.messageId ?? "";
        socket.end(answerOf({ ...RESULT, request_id, disposition: { Refused: "Capacity" } }));
      }),
    );
    const client = new ConnectorClient(options(fake.port));
    const ids = Array.from({ length: 50 }, (_, i) => `request-${i}`);
    const parts = { caller: "caller-alpha", expiresAtUnixMs: 1 };
    const results = await Promise.all(
      ids.map((request_id) =>
        client.execute(invocationOf({ ...parts, request: { ...INVOCATION.request, request_id } })),
      ),
    );
    expect(results.map(({ request_id }) => request_id)).toEqual(ids);
  });

  it("is held against what was asked, even if the invocation is changed meanwhile", async () => {
    const mutable = structuredClone(INVOCATION) as { request: { model: string } } & TransportInvocation;
    const outcome = await asked(
      afterRequest((socket) => {
        mutable.request.model = "another";
        socket.end(ANSWER);
      }),
      mutable,
    );
    expect(outcome).toEqual(RESULT);
  });
});

describe("a connector that misbehaves gives a typed error and is left", () => {
  it.each<readonly [string, ConnectorErrorCode, Behaviour]>([
    ["ends at once", "NoAnswer", (socket) => socket.resume().end()],
    ["ends after the request", "NoAnswer", sends()],
    ["resets after the request", "NoAnswer", afterRequest((socket) => socket.resetAndDestroy())],
    ["ends within the length", "NoAnswer", sends(ANSWER.subarray(0, 3))],
    ["ends within the frame", "NoAnswer", sends(ANSWER.subarray(0, ANSWER.length - 1))],
    ["says that nothing comes", "FrameSize", sends(lengthOf(0))],
    ["says that more comes than the bound", "FrameSize", sends(lengthOf(65_537))],
    ["says that 4 GiB come, and sends on", "FrameSize", sends(lengthOf(2 ** 32 - 1), Buffer.alloc(100_000))],
    ["speaks HTTP", "FrameSize", sends(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"))],
    ["sends garbage as a frame", "Carriage", sends(lengthOf(200), Buffer.alloc(200, 0xc1))],
    ["contradicts what it sealed", "Carriage", sends(answerOf(RESULT, "rejected"))],
    ["answers another request", "Carriage", sends(answerOf(refusalOf({ request_id: "request-0002" })))],
    ["answers another caller", "Envelope", sends(answerOf(refusalOf({ caller_runtime_id: "beta" })))],
  ])("where it %s: %s", async (_, code, behaviour) => {
    expect(await failure(behaviour)).toEqual([code, true]);
  });

  it("where it sends the request back: Carriage", async () => {
    expect(await failure(afterRequest((socket, frame) => socket.end(withItsLength(frame))))).toEqual([
      "Carriage",
      true,
    ]);
  });

  it("where it breaks the connection while a long request is written: Connection", async () => {
    const outcome = await asked((socket) => socket.once("data", () => socket.resetAndDestroy()), LONG);
    expect(outcome).toMatchObject({ code: "Connection", mayHaveRun: true });
  });

  it("where it ends its side while a long request is written: NoAnswer", async () => {
    const outcome = await asked((socket) => socket.once("data", () => socket.end()), LONG);
    expect(outcome).toMatchObject({ code: "NoAnswer", mayHaveRun: true });
  });

  it("where any one bit of its answer was changed", () => {
    const sealed = sealRequest(INVOCATION, { key: KEY, frameBytesMax: 65_536 }, () => Buffer.alloc(12));
    if (!sealed.ok) throw new Error(sealed.fault.sentence);
    const frame = ANSWER.subarray(4);
    const codes = new Set<string>();
    for (let bit = 0; bit < frame.length * 8; bit++) {
      const changed = Buffer.from(frame);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      const opened = openResponse(changed, sealed.value.asked, KEY);
      codes.add(opened.ok ? `believed with bit ${bit}` : opened.fault.code);
    }
    expect([...codes].sort()).toEqual(["Authentication", "Carriage", "Envelope"]);
  });
});

function refusalOf(changed: Partial<TransportResult>): TransportResult {
  return { ...RESULT, disposition: { Refused: "Expired" }, ...changed };
}

function withItsLength(frame: Buffer): Buffer {
  return Buffer.concat([lengthOf(frame.length), frame]);
}

describe("time", () => {
  const silent: Behaviour = (socket) => socket.resume();

  async function waiting(
    behaviour: Behaviour,
    invocation = INVOCATION,
    given: Partial<ConnectorOptions> = {},
  ) {
    const fake = await connector(behaviour, { pauseOnConnect: true });
    const timers = new ManualTimers();
    const client = new ConnectorClient(options(fake.port, { ...given, effects: { after: timers.after } }));
    const outcome = client.execute(invocation).catch((error: unknown) => error);
    return { fake, timers, outcome };
  }

  it("to connect is at most 10 s, and nothing was sent when it is over", async () => {
    const { timers, outcome } = await waiting(silent);
    const connecting = await timers.next();
    expect(connecting.ms).toBe(10_000);
    connecting.fire();
    expect(await outcome).toMatchObject({ code: "Timeout", mayHaveRun: false });
    expect(timers.running).toBe(0);
  });

  it("to connect is the timeout where that is shorter", async () => {
    const { timers, outcome } = await waiting(silent, INVOCATION, { responseTimeoutMs: 9_999 });
    const connecting = await timers.next();
    expect(connecting.ms).toBe(9_999);
    connecting.fire();
    expect(await outcome).toMatchObject({ code: "Timeout" });
  });

  it("to write ends where a connector does not read", async () => {
    const given = { responseTimeoutMs: 20_000, maxFrameBytes: LONG_FRAME_BYTES };
    const { fake, timers, outcome } = await waiting(() => {}, LONG, given);
    expect((await timers.next()).ms).toBe(10_000);
    const writing = await timers.next();
    expect(writing.ms).toBe(20_000);
    writing.fire();
    expect(await outcome).toMatchObject({ code: "Timeout", mayHaveRun: true });
    expect(String(await outcome)).toContain("writing the request");
    expect(timers.running).toBe(0);
    expect(fake.connections).toBe(1);
  });

  it.each<readonly [string, Behaviour]>([
    ["is silent", silent],
    ["stops within its answer", afterRequest((socket) => socket.write(ANSWER.subarray(0, 50)))],
  ])("to wait for the whole answer ends where a connector %s", async (_, behaviour) => {
    const { fake, timers, outcome } = await waiting(
      (socket) => {
        behaviour(socket);
        socket.resume();
      },
      INVOCATION,
      { responseTimeoutMs: 1000 },
    );
    const [, , answering] = [await timers.next(), await timers.next(), await timers.next()];
    expect(answering.ms).toBe(1000);
    answering.fire();
    expect(await outcome).toMatchObject({ code: "Timeout", mayHaveRun: true });
    await fake.allGone();
    expect(timers.running).toBe(0);
  });

  it("without a timeout is bounded for the connection alone", async () => {
    const { fake, timers, outcome } = await waiting((socket) => {
      afterRequest((peer) => peer.end(ANSWER))(socket);
      socket.resume();
    });
    await timers.next();
    expect(await outcome).toEqual(RESULT);
    await fake.allGone();
    const more = await Promise.race([timers.next(), Promise.resolve("none")]);
    expect(more).toBe("none");
  });
});

describe("an abort", () => {
  it("ends the wait with the signal's reason, and the connection", async () => {
    const controller = new AbortController();
    const fake = await connector(afterRequest(() => controller.abort(new Error("no longer wanted"))));
    const timers = new ManualTimers();
    const effects = { after: timers.after };
    const client = new ConnectorClient(options(fake.port, { responseTimeoutMs: 5, effects }));
    await expect(client.execute(INVOCATION, { signal: controller.signal })).rejects.toThrow(
      "no longer wanted",
    );
    await fake.allGone();
    expect(timers.running).toBe(0);
  });

  it("that came before opens no connection", async () => {
    const fake = await connector(sends(ANSWER));
    const signal = AbortSignal.abort(new Error("too late"));
    const client = new ConnectorClient(options(fake.port));
    await expect(client.execute(INVOCATION, { signal })).rejects.toThrow("too late");
    expect(await client.execute(INVOCATION)).toEqual(RESULT);
    expect(fake.connections).toBe(1);
  });
});

describe("an invocation that can't be sent", () => {
  it.each<readonly [string, ConnectorErrorCode, Partial<TransportInvocation>, string]>([
    ["an id of 257 bytes", "RequestIdTooLong", requestWith({ request_id: "r".repeat(257) }), "256 bytes"],
    [
      "an id of 256 characters in 512 bytes",
      "RequestIdTooLong",
      requestWith({ request_id: "é".repeat(256) }),
      "256",
    ],
    [
      "half a character",
      "InvalidInvocation",
      requestWith({ instructions: "\ud800" }),
      "request.instructions",
    ],
    ["a model that is no id", "InvalidInvocation", requestWith({ model: " x" }), "request.model"],
    ["no request", "InvalidInvocation", { request: undefined as never }, "request must be"],
    ["another's digest", "InvalidInvocation", { provider_request_sha256: Buffer.alloc(32, 1) }, "digest"],
    ["too much in it", "FrameSize", sealable({ instructions: "x".repeat(60_000) }), "65536"],
  ])("for %s: %s, and no connection", async (_, code, changed, says) => {
    const fake = await connector(sends(ANSWER));
    const client = new ConnectorClient(options(fake.port));
    const error = await client.execute({ ...INVOCATION, ...changed }).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code, mayHaveRun: false });
    expect(String(error)).toContain(says);
    expect(fake.connections).toBe(0);
  });

  it("is named by a sentence without any of its content", () => {
    const request = { ...INVOCATION.request, model: " canary" };
    expect(() => invocationOf({ caller: "a", expiresAtUnixMs: 1, request })).toThrow(
      /request is not valid: model/,
    );
    expect(() => invocationOf({ caller: "a", expiresAtUnixMs: 1, request })).not.toThrow(/canary/);
  });
});

function requestWith(changed: object): Partial<TransportInvocation> {
  return { request: { ...INVOCATION.request, ...changed } };
}

function sealable(changed: object): TransportInvocation {
  const request = { ...INVOCATION.request, ...changed };
  return invocationOf({ caller: "caller-alpha", expiresAtUnixMs: 1, request });
}
