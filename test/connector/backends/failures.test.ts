// Real connections to a server that answers as a provider should not.

import { createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { closeState } from "../../../src/connector/backends/reasoning_state.ts";
import type { BackendKind } from "../../../src/connector/backends/settings.ts";
import { FAILURE_MESSAGE_BYTES_MAX } from "../../../src/connector/limits.ts";
import {
  backend,
  breaksAfter,
  CANARY,
  completedOf,
  failedOf,
  KINDS,
  PickedClock,
  READ_TOOL,
  says,
  streams,
  TestProvider,
  take,
  told,
} from "./rig.ts";
import { choice, chunks, STREAMS } from "./streams.ts";

const DONE = streams(chunks(choice({ content: "so" }), choice({}, "stop"), "[DONE]"));

let provider: TestProvider;
beforeEach(async () => {
  provider = new TestProvider();
  await provider.start();
});
afterEach(() => provider.stop());

const chat = (settings = {}, clock = new PickedClock()) =>
  backend({ kind: "openai-chat", baseUrl: provider.baseUrl("openai-chat"), ...settings }, clock);

/** A port on which nothing listens. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  return typeof address === "object" && address !== null ? address.port : 0;
}

describe("a status that is no 200", () => {
  it("is a failure of its kind, and is asked for once", async () => {
    for (const [status, kind] of [
      [400, "RequestRejected"],
      [401, "CredentialUnavailable"],
      [402, "RateLimited"],
      [403, "CredentialUnavailable"],
      [404, "RequestRejected"],
      [408, "TimedOut"],
      [413, "RequestRejected"],
      [422, "RequestRejected"],
      [429, "RateLimited"],
      [500, "ProviderFailed"],
      [502, "ProviderFailed"],
      [503, "Overloaded"],
      [504, "TimedOut"],
      [204, "StreamInvalid"],
    ] as const) {
      provider.answers = [says(status, "")];
      provider.asked.length = 0;
      const { failure_kind, message } = failedOf(await take(await chat()));
      expect([status, failure_kind]).toEqual([status, kind]);
      expect(message).toContain(`${status}`);
      expect(provider.asked).toHaveLength(1);
    }
  });

  it("tells the provider's own words only where they are of the request, as one visible line that is cut", async () => {
    const words = `bad\u001b[31m\nthing ${"x".repeat(5000)}`;
    for (const [status, isTold] of [
      [400, true],
      [429, false],
      [401, false],
      [500, false],
    ] as const) {
      provider.answers = [says(status, { error: { type: "some_error", message: words } })];
      const { message } = failedOf(await take(await chat()));
      expect(message).toContain("some_error");
      expect(message.includes("\\u{1b}[31m\\nthing")).toBe(isTold);
      expect(message).not.toContain("\u001b");
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(FAILURE_MESSAGE_BYTES_MAX);
    }
  });

  it("is told whatever its body is", async () => {
    for (const body of [
      "<html>",
      "",
      "{",
      "[]",
      '{"error":"no"}',
      '{"detail":"no"}',
      '{"error":null}',
      "x".repeat(2 ** 20),
    ]) {
      provider.answers = [says(400, body)];
      expect(failedOf(await take(await chat())).message).toContain("400");
    }
    provider.answers = [says(400, { error: "no such model" })];
    expect(failedOf(await take(await chat())).message).toContain('"no such model"');
  });
});

describe("a request is sent again", () => {
  it("where the answer says not now and until when", async () => {
    for (const status of [429, 503, 529]) {
      provider.answers = [
        says(status, "", { "retry-after": "7" }),
        says(status, "", { "retry-after": "7" }),
        DONE,
      ];
      provider.asked.length = 0;
      const clock = new PickedClock((ms) => ms === 7000);
      expect(completedOf(await take(await chat({}, clock))).stop_reason).toBe("EndTurn");
      expect(provider.asked).toHaveLength(3);
      expect(new Set(provider.asked.map(({ body }) => body)).size).toBe(1);
      expect(clock.set.filter((ms) => ms === 7000)).toHaveLength(2);
      expect(clock.open).toBe(0);
    }
  });

  it("at the time that it names, in ms, or as a date", async () => {
    for (const [header, value, ms] of [
      ["retry-after-ms", "250", 250],
      ["retry-after", "1.5", 1500],
      ["retry-after", "Tue, 01 Dec 2026 00:00:09 GMT", 9000],
    ] as const) {
      provider.answers = [says(429, "", { [header]: value }), DONE];
      const clock = new PickedClock((one) => one === ms);
      expect(completedOf(await take(await chat({}, clock))).stop_reason).toBe("EndTurn");
      expect(clock.set).toContain(ms);
    }
  });

  it("where the provider is overloaded as such, even if it names no time", async () => {
    provider.answers = [says(529, ""), says(529, ""), DONE];
    const clock = new PickedClock((ms) => ms === 1000 || ms === 2000);
    expect(completedOf(await take(await chat({}, clock))).stop_reason).toBe("EndTurn");
  });

  it("never where it may have run, or no wait helps", async () => {
    const now = { "retry-after": "0" };
    for (const answer of [
      says(500, "", now),
      says(502, "", now),
      says(504, "", now),
      says(408, "", now),
      says(409, "", now),
      says(400, "", now),
      says(429, ""), // a budget that is spent names no time
      says(503, ""), // a proxy's own, behind which the turn may run
      says(529, "", { "x-should-retry": "false" }),
      says(500, "", { "x-should-retry": "true" }),
      says(429, "", { "retry-after": "soon" }),
      streams(""),
      breaksAfter(chunks(choice({ content: "so" }))),
    ]) {
      provider.answers = [answer];
      provider.asked.length = 0;
      failedOf(await take(await chat({}, new PickedClock((ms) => ms < 100_000))));
      expect(provider.asked).toHaveLength(1);
    }
  });

  it("no more often, and with no longer waits in all, than the settings say", async () => {
    provider.answers = [says(429, "", { "retry-after": "9" })];
    const clock = new PickedClock((ms) => ms === 9000);
    expect(failedOf(await take(await chat({ retryWaitMsMax: 26_000, retriesMax: 9 }, clock)))).toEqual({
      failure_kind: "RateLimited",
      message: "the provider answered 429; it asks for a wait of 9 s",
    });
    expect(provider.asked).toHaveLength(3);
    provider.asked.length = 0;
    failedOf(await take(await chat({ retriesMax: 1 }, clock)));
    expect(provider.asked).toHaveLength(2);
  });

  it("not once the turn is over", async () => {
    provider.answers = [says(429, "", { "retry-after": "9" })];
    const over = new AbortController();
    const clock = new PickedClock();
    const after = clock.after.bind(clock);
    clock.after = (ms, task) => {
      if (ms === 9000) setImmediate(() => over.abort());
      return after(ms, task);
    };
    expect(failedOf(await take(await chat({}, clock), {}, over.signal)).failure_kind).toBe("RateLimited");
    expect(provider.asked).toHaveLength(1);
    expect(clock.open).toBe(0);
  });

  it("where no connection stood", async () => {
    const port = await freePort();
    const clock = new PickedClock((ms) => ms === 500 || ms === 1000);
    const { failure_kind, message } = failedOf(
      await take(await backend({ kind: "openai-chat", baseUrl: `http://127.0.0.1:${port}/v1` }, clock)),
    );
    expect([failure_kind, message]).toEqual([
      "TransportFailed",
      "no connection to the provider could be made (ECONNREFUSED); nothing was sent",
    ]);
    expect(clock.set.filter((ms) => ms === 500 || ms === 1000)).toEqual([500, 1000]);
  });
});

describe("a redirect", () => {
  it("is a failure, and whoever it names hears nothing", async () => {
    const other = new TestProvider();
    await other.start();
    other.answers = [DONE];
    for (const kind of KINDS) {
      for (const status of [301, 302, 303, 307, 308]) {
        provider.answers = [
          says(status, "", { location: `http://127.0.0.1:${other.port}/v1/chat/completions` }),
        ];
        const one = await backend({ kind, baseUrl: provider.baseUrl(kind) });
        const { failure_kind, message } = failedOf(await take(one));
        expect(failure_kind).toBe("ProviderFailed");
        expect(message).toContain("a redirect, and none is followed");
        expect(message).not.toContain(`${other.port}`);
      }
    }
    expect(other.asked).toEqual([]);
    await other.stop();
  });
});

describe("a connection that breaks", () => {
  it("in the stream keeps what came, and is told as one that may have run", async () => {
    for (const kind of KINDS) {
      const bytes = STREAMS[kind];
      const whole = await take(await run(kind, streams(bytes)));
      for (let cut = 0; cut < bytes.length - 100; cut += 97) {
        const turn = await take(await run(kind, breaksAfter(bytes.slice(0, cut))));
        expect(failedOf(turn).failure_kind).toBe("TransportFailed");
        const [came, all] = [told(turn.events), told(whole.events)];
        expect(came.length).toBeLessThanOrEqual(all.length);
        expect(came.filter((event) => typeof event !== "string")).toEqual(
          all
            .filter((event) => typeof event !== "string")
            .slice(0, came.filter((event) => typeof event !== "string").length),
        );
      }
    }
  });

  it("behind the end of the stream changes nothing", async () => {
    for (const kind of KINDS) {
      expect(completedOf(await take(await run(kind, breaksAfter(STREAMS[kind])))).stop_reason).toBe(
        "ToolCalls",
      );
    }
  });

  it("before any answer is told as one that may have run", async () => {
    provider.answers = [(response) => response.socket?.destroy()];
    expect(failedOf(await take(await chat()))).toEqual({
      failure_kind: "TransportFailed",
      message: "the connection broke after the request was sent (ECONNRESET); the provider may have run",
    });
    expect(provider.asked).toHaveLength(1);
  });

  async function run(kind: BackendKind, answer: (typeof provider.answers)[number]) {
    provider.answers = [answer];
    return backend({ kind, baseUrl: provider.baseUrl(kind) });
  }
});

describe("a provider that says nothing", () => {
  it("for too long has timed out: before its answer, in its stream, in its error", async () => {
    for (const answer of [
      () => {},
      (response: Parameters<typeof DONE>[0]) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(chunks(choice({ content: "so" })));
      },
    ]) {
      provider.answers = [answer];
      const clock = new PickedClock();
      const turn = take(
        await chat({ silenceTimeoutMs: 4321 }, firingOnceAsked(clock, answer.length === 0 ? 1 : 3)),
      );
      expect(failedOf(await turn)).toEqual({
        failure_kind: "TimedOut",
        message: "the provider sent nothing for 4321 ms",
      });
      expect(clock.open).toBe(0);
    }
  });

  /** The silence timer fires when it was armed so often: while the server waits, and not before. */
  function firingOnceAsked(clock: PickedClock, times: number): PickedClock {
    const after = clock.after.bind(clock);
    let armed = 0;
    clock.after = (ms, task) => {
      if (ms === 4321 && ++armed === times) setImmediate(task);
      return after(ms, task);
    };
    return clock;
  }

  it("is left when the turn is over", async () => {
    const over = new AbortController();
    provider.answers = [() => over.abort()];
    expect(failedOf(await take(await chat(), {}, over.signal)).failure_kind).toBe("TimedOut");
    provider.asked.length = 0;
    expect(failedOf(await take(await chat(), {}, over.signal)).failure_kind).toBe("TimedOut");
    expect(provider.asked).toEqual([]);
  });
});

describe("an answer that is no event stream", () => {
  it("is a broken one", async () => {
    for (const headers of [
      { "content-type": "application/json" },
      { "content-type": "text/html" },
      { "content-type": "text/event-stream", "content-encoding": "gzip" },
    ]) {
      provider.answers = [says(200, "{}", headers)];
      expect(failedOf(await take(await chat())).failure_kind).toBe("StreamInvalid");
    }
  });

  it("is a broken one where it is no HTTP", async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      socket.end("SSH-2.0-OpenSSH_9.6\r\n");
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const one = await backend({ kind: "openai-chat", baseUrl: `http://127.0.0.1:${port}/v1` });
    expect(failedOf(await take(one)).message).toMatch(/did not answer in HTTP \(HPE_/);
    server.close();
  });

  it("is not waited for where it offers another protocol", async () => {
    provider.answers = [
      (response) =>
        response.socket?.end("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    ];
    expect(failedOf(await take(await chat())).failure_kind).toBe("TransportFailed");
  });
});

describe("a stream without end", () => {
  it("of nothing that counts is ended", async () => {
    provider.answers = [
      (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const more = (): void => {
          while (response.write(": still here\n\n".repeat(100))) {}
          response.once("drain", more);
        };
        more();
      },
    ];
    expect(failedOf(await take(await chat({ answerBytesMax: 1000 })))).toMatchObject({
      failure_kind: "StreamInvalid",
      message: expect.stringContaining("larger than any answer"),
    });
  });
});

describe("a request that can't be expressed", () => {
  it("asks neither for the key nor for the provider", async () => {
    const key = vi.fn(async () => CANARY);
    const input = [{ ReasoningState: closeState({ provider: "a", model: "b", origin: "c" }, {}) }];
    for (const kind of KINDS) {
      const one = await backend({ kind, baseUrl: provider.baseUrl(kind), key });
      expect(failedOf(await take(one, { reasoning_effort: "very" })).failure_kind).toBe("RequestRejected");
      expect(failedOf(await take(one, { input })).failure_kind).toBe("ForeignReasoningState");
    }
    expect(key).not.toHaveBeenCalled();
    expect(provider.asked).toEqual([]);
  });
});

describe("the key", () => {
  it("is read for each turn, and goes into its header without the line's end", async () => {
    provider.answers = [DONE];
    const keys = ["first-key-1\n", "second-key-2\r\n"];
    const one = await chat({ key: async () => keys.shift() });
    await take(one);
    await take(one);
    const bare = await chat({ key: async () => "third-key-3", keyHeader: "x-api-key" });
    await take(bare);
    await take(await chat({ key: null }));
    expect(provider.asked.map(({ headers }) => [headers.authorization, headers["x-api-key"]])).toEqual([
      ["Bearer first-key-1", undefined],
      ["Bearer second-key-2", undefined],
      [undefined, "third-key-3"],
      [undefined, undefined],
    ]);
  });

  it("that can't be read, or can't be one, is told without a request", async () => {
    for (const key of [
      async () => undefined,
      async () => "",
      async () => "\n",
      async () => `two\n${CANARY}`,
      async () => `${CANARY} ß`,
      async () => {
        throw new Error(`no ${CANARY}`);
      },
      () => {
        throw new Error(`no ${CANARY}`);
      },
    ]) {
      const { failure_kind, message } = failedOf(await take(await chat({ key })));
      expect(failure_kind).toBe("CredentialUnavailable");
      expect(message).not.toContain(CANARY);
    }
    expect(provider.asked).toEqual([]);
  });

  it("is in no outcome, whatever a provider does with it, and on no console", async () => {
    const consoles = (["log", "info", "warn", "error", "debug"] as const).map((name) =>
      vi.spyOn(console, name),
    );
    const masked = `${CANARY.slice(0, 7)}***${CANARY.slice(-4)}`;
    const base64 = Buffer.from(`Bearer ${CANARY}`).toString("base64");
    const outcomes: unknown[] = [];
    for (const word of [
      CANARY,
      CANARY.toUpperCase(),
      masked,
      `authorization: ${base64}`,
      `Bearer ${base64}`,
    ]) {
      const error = { type: word, code: word, message: `wrong: ${word}` };
      for (const kind of KINDS) {
        for (const answer of [
          ...[400, 401, 404, 422, 429, 500].map((status) => says(status, { error })),
          says(400, `wrong: ${word}`),
          streams(`event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`),
          streams(`event: thread.${word}\ndata: {${word}\n\n`),
        ]) {
          provider.answers = [answer];
          const turn = await take(await backend({ kind, baseUrl: provider.baseUrl(kind) }), {
            tools: [READ_TOOL],
          });
          expect(turn.events).toEqual([]);
          outcomes.push(failedOf(turn));
        }
      }
    }
    const shown = JSON.stringify([outcomes, consoles.map(({ mock }) => mock.calls)]);
    for (const piece of [CANARY, CANARY.toUpperCase(), masked, base64]) expect(shown).not.toContain(piece);
    expect(consoles.flatMap(({ mock }) => mock.calls)).toEqual([]);
    vi.restoreAllMocks();
  });

  it("is nowhere in the request but in its header", async () => {
    for (const kind of KINDS) {
      provider.asked.length = 0;
      provider.answers = [says(500, "")];
      await take(await backend({ kind, baseUrl: provider.baseUrl(kind), headers: { "x-team": "a" } }));
      const [asked] = provider.asked;
      expect(asked?.path).not.toContain(CANARY);
      expect(asked?.body).not.toContain(CANARY);
      const { authorization, ...others } = asked?.headers ?? {};
      expect(authorization).toBe(`Bearer ${CANARY}`);
      expect(JSON.stringify(others)).not.toContain(CANARY);
      expect(others["x-team"]).toBe("a");
    }
  });
});
