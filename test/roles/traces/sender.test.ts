import { afterEach, describe, expect, it } from "vitest";
import type { Span } from "../../../src/roles/traces/otlp.ts";
import { collectorUrl, Sender, type SenderEffects } from "../../../src/roles/traces/sender.ts";
import { Collector, type CollectorAnswer } from "./collector.ts";
import { SPAN } from "./span.ts";

// Spans to a real HTTP server on loopback; waits are noted instead of waited.

const collectors: Collector[] = [];

afterEach(async () => {
  for (const collector of collectors.splice(0)) await collector.close();
});

async function collector(...answers: readonly CollectorAnswer[]): Promise<Collector> {
  const one = await Collector.start();
  one.answers.push(...answers);
  collectors.push(one);
  return one;
}

function spans(count: number): readonly Span[] {
  return Array.from({ length: count }, (_, at) => ({
    ...SPAN,
    spanId: at.toString(16).padStart(16, "0"),
  }));
}

interface Rig {
  readonly sender: Sender;
  readonly waits: number[];
  readonly said: string[];
  readonly stop: AbortController;
}

function senderTo(url: string, more: Partial<SenderEffects> = {}, timeoutMs = 30_000, graceMs = 10): Rig {
  const waits: number[] = [];
  const said: string[] = [];
  const stop = new AbortController();
  const sender = new Sender(
    {
      url: new URL(url),
      headers: { authorization: "Bearer SECRET" },
      origin: { resource: {}, scope: { name: "s", version: "1" } },
      timeoutMs,
      graceMs,
    },
    {
      fetch,
      wait: async (ms) => void waits.push(ms),
      random: () => 1,
      nowMs: () => Date.UTC(2026, 0, 1),
      say: (sentence) => void said.push(sentence),
      ...more,
    },
  );
  return { sender, waits, said, stop };
}

describe("the address of a collector", () => {
  it.each([
    ["http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"],
    ["https://otel.example.org/", "https://otel.example.org/v1/traces"],
    ["https://otel.example.org/otlp/v1/traces?team=a", "https://otel.example.org/otlp/v1/traces?team=a"],
  ])("%s is %s", (text, url) => {
    expect(collectorUrl(text)).toMatchObject({ ok: true, value: new URL(url) });
  });

  it.each([
    "",
    "collector",
    "file:///etc/passwd",
    "ftp://a",
    "http://user:secret@a/",
    "http://a/#x",
    "javascript:0",
  ])("%s is none", (text) => {
    const read = collectorUrl(text);
    expect(read.ok).toBe(false);
    expect(JSON.stringify(read)).not.toContain("secret");
  });
});

describe("spans", () => {
  it("go out in one request, as JSON, with the headers that were given", async () => {
    const to = await collector();
    const { sender, stop } = senderTo(`${to.url}/v1/traces`);
    expect(await sender.send(spans(3), stop.signal)).toEqual({ ok: true, value: { taken: 3, dropped: 0 } });
    expect(to.received).toHaveLength(1);
    expect(to.received[0]).toMatchObject({
      path: "/v1/traces",
      headers: { "content-type": "application/json", authorization: "Bearer SECRET" },
    });
    expect(to.spans).toHaveLength(3);
  });

  it("that are none make no request", async () => {
    const to = await collector();
    const { sender, stop } = senderTo(to.url);
    expect(await sender.send([], stop.signal)).toEqual({ ok: true, value: { taken: 0, dropped: 0 } });
    expect(to.received).toEqual([]);
  });

  it("are sent again after 429, 502, 503 and 504, at growing distances, and that is said once", async () => {
    const to = await collector({ status: 429 }, { status: 502 }, { status: 503 }, { status: 504 });
    const { sender, waits, said, stop } = senderTo(to.url);
    expect(await sender.send(spans(1), stop.signal)).toMatchObject({ value: { taken: 1 } });
    expect(waits).toEqual([1000, 2000, 4000, 8000]);
    expect(said).toEqual([
      "the collector takes no spans now (HTTP 429); they are kept and sent later",
      "the collector takes spans again",
    ]);
  });

  it("wait as long as the collector says: seconds, a date, within reason, and never a negative time", async () => {
    const retry = (text: string) => ({ status: 503, headers: { "retry-after": text } });
    const to = await collector(
      retry("7"),
      retry("Thu, 01 Jan 2026 00:01:00 GMT"),
      retry("99999999"),
      retry("Thu, 01 Jan 2015 00:00:00 GMT"),
      retry("soon"),
    );
    const { sender, waits, stop } = senderTo(to.url);
    await sender.send(spans(1), stop.signal);
    expect(waits).toEqual([7000, 60_000, 600_000, 0, 16_000]);
  });

  it("are sent again where no answer comes in time, and where there is no connection", async () => {
    const to = await collector();
    const { url } = to;
    let tries = 0;
    const slowOnce: typeof fetch = async (...request) => {
      tries += 1;
      if (tries === 1) throw new DOMException("it takes too long", "TimeoutError");
      return fetch(...request);
    };
    const { sender, waits, said, stop } = senderTo(url, { fetch: slowOnce });
    expect(await sender.send(spans(1), stop.signal)).toMatchObject({ value: { taken: 1 } });
    expect(said[0]).toContain("it does not answer in time");
    expect(waits).toEqual([1000]);
    await to.close();
    const gone = senderTo(url, { wait: async () => gone.stop.abort() });
    expect(await gone.sender.send(spans(1), gone.stop.signal)).toEqual({ ok: true, value: "stopped" });
    expect(gone.said[0]).toContain("ECONNREFUSED");
  });

  it("that nobody answers are given up after their time", async () => {
    const to = await collector({ status: 200, hangs: true });
    const one = senderTo(to.url, { wait: async () => one.stop.abort() }, 20);
    expect(await one.sender.send(spans(1), one.stop.signal)).toEqual({ ok: true, value: "stopped" });
    expect(one.said[0]).toContain("it does not answer in time");
  });

  it("that the collector will never take are dropped, counted and said", async () => {
    const to = await collector({ status: 400, body: "SECRET words" }, { status: 500 });
    const { sender, said, stop } = senderTo(to.url);
    expect(await sender.send(spans(2), stop.signal)).toMatchObject({ value: { taken: 0, dropped: 2 } });
    expect(await sender.send(spans(1), stop.signal)).toMatchObject({ value: { taken: 0, dropped: 1 } });
    expect(said).toEqual([
      "2 spans dropped: the collector answers HTTP 400",
      "1 span dropped: the collector answers HTTP 500",
    ]);
  });

  it("of which the collector took some are counted as it says, and its words are escaped", async () => {
    const answer = (value: unknown) => ({ status: 200, body: JSON.stringify({ partialSuccess: value }) });
    const to = await collector(
      answer({ rejectedSpans: "2", errorMessage: "no \u001b[31mroom\u202e" }),
      answer({ rejectedSpans: 99 }),
      answer({ rejectedSpans: -1 }),
      answer(null),
      { status: 200, body: "not JSON" },
      { status: 204 },
    );
    const { sender, said, stop } = senderTo(to.url);
    const send = async () => (await sender.send(spans(3), stop.signal)) as { value?: unknown };
    expect((await send()).value).toEqual({ taken: 1, dropped: 2 });
    expect((await send()).value).toEqual({ taken: 0, dropped: 3 });
    for (let i = 0; i < 4; i += 1) expect((await send()).value).toEqual({ taken: 3, dropped: 0 });
    expect(said[0]).toMatch(/^2 spans dropped: the collector says: no /);
    expect(said[0]).not.toMatch(/[\u001b\u202e]/);
  });

  it("that are too many for it at once go in halves, down to the one that is too large", async () => {
    const tooLarge = { status: 413 };
    const to = await collector(tooLarge, tooLarge, tooLarge);
    const { sender, said, stop } = senderTo(to.url);
    // 4: no; 2: no; 1: no, dropped; 1: yes; 2: yes
    expect(await sender.send(spans(4), stop.signal)).toMatchObject({ value: { taken: 3, dropped: 1 } });
    expect(to.received.map((one) => one.spans.length)).toEqual([4, 2, 1, 1, 2]);
    expect(said).toEqual(["1 span dropped: it is too large for the collector"]);
  });

  it.each([301, 302, 307, 308])(
    "are not sent on where a redirect (%i) points, nor are the headers",
    async (status) => {
      const other = await collector();
      const to = await collector({ status, headers: { location: `${other.url}/v1/traces` } });
      const { sender, stop } = senderTo(to.url);
      const sent = await sender.send(spans(1), stop.signal);
      expect(sent).toMatchObject({ ok: false });
      expect(JSON.stringify(sent)).toContain("redirect");
      expect(other.received).toEqual([]);
    },
  );

  it.each([401, 403, 404, 405])(
    "end the sending where nobody wants them (%i), and are not counted as dropped",
    async (status) => {
      const to = await collector({ status });
      const { sender, said, stop } = senderTo(to.url);
      expect(await sender.send(spans(1), stop.signal)).toEqual({
        ok: false,
        fault: `the collector does not take spans here: HTTP ${status}`,
      });
      expect(said).toEqual([]);
    },
  );

  it("don't fill the memory with what the collector answers", async () => {
    const to = await collector({ status: 200, body: "x".repeat(5_000_000) });
    const { sender, stop } = senderTo(to.url);
    expect(await sender.send(spans(1), stop.signal)).toMatchObject({ value: { taken: 1 } });
  });

  it("that are under way when it is told to stop have a moment left, and no more", async () => {
    const to = await collector({ status: 200, hangs: true });
    const { sender, stop } = senderTo(to.url);
    const sending = sender.send(spans(1), stop.signal);
    await to.receives(({ received }) => received.length === 1);
    stop.abort();
    expect(await sending).toEqual({ ok: true, value: "stopped" });
    const answers = await collector();
    const asked = senderTo(
      answers.url,
      {
        fetch: async (...request) => {
          asked.stop.abort();
          return fetch(...request);
        },
      },
      30_000,
      20_000,
    );
    expect(await asked.sender.send(spans(1), asked.stop.signal)).toMatchObject({ value: { taken: 1 } });
  });
});
