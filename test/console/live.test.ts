import { describe, expect, it } from "vitest";
import { Feed, type FeedEffects } from "../../src/roles/console/page/live.ts";
import type { Live } from "../../src/roles/console/page/page.ts";

/** A server whose streams the test writes, and a clock that the test moves. */
class World implements FeedEffects {
  readonly streams: ReadableStreamDefaultController<Uint8Array>[] = [];
  readonly keys: (string | null)[] = [];
  readonly waits: number[] = [];
  readonly seen: Live[] = [];
  status = 200;
  #timers: { readonly then: () => void }[] = [];
  #changed: (() => void)[] = [];
  readonly feed = new Feed("the-key", this, (live) => {
    this.seen.push(live);
    this.#wake();
  });

  fetch = async (_: string, init: RequestInit): Promise<Response> => {
    this.keys.push(new Headers(init.headers).get("x-callgate-key"));
    if (this.status === 0) throw new TypeError("Failed to fetch");
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.streams.push(controller);
        init.signal?.addEventListener("abort", () => controller.error(new Error("aborted")));
      },
    });
    return new Response(body, { status: this.status });
  };

  after = (ms: number, then: () => void): (() => void) => {
    const timer = { then };
    this.waits.push(ms);
    this.#timers.push(timer);
    this.#wake();
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  };

  random = (): number => 1;

  get last(): Live | undefined {
    return this.seen.at(-1);
  }

  /** All that is waited for is over. */
  pass(): void {
    for (const { then } of this.#timers.splice(0)) then();
  }

  send(text: string): void {
    this.streams.at(-1)?.enqueue(new TextEncoder().encode(text));
  }

  tell(event: string, data: unknown): void {
    this.send(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  async until(fits: () => boolean): Promise<void> {
    while (!fits()) await new Promise<void>((resolve) => this.#changed.push(resolve));
  }

  #wake(): void {
    for (const wake of this.#changed.splice(0)) wake();
  }
}

/** Waits that a world has asked for between two streams. */
const pauses = (world: World) => world.waits.filter((ms) => ms !== 40_000);

describe("the page's feed", () => {
  it("shows the key and keeps what each event tells", async () => {
    const world = new World();
    const ended = world.feed.run();
    await world.until(() => world.last?.connection === "open");
    expect(world.keys).toEqual(["the-key"]);
    world.tell("broker", { connected: false, why: "it hung up" });
    world.tell("approvals", { approvals: [], total: 0 });
    world.tell("history", [{ at_ms: 1 }]);
    world.tell("sample", { at_ms: 2 });
    world.tell("something_newer", 5);
    world.tell("status", { role: "boss" });
    await world.until(() => world.last?.status !== undefined);
    expect(world.last).toMatchObject({
      connection: "open",
      broker: { connected: false, why: "it hung up" },
      questions: { total: 0 },
      samples: [{ at_ms: 1 }, { at_ms: 2 }],
    });
    world.feed.stop();
    await ended;
  });

  it("keeps an hour of samples and lets older ones go", async () => {
    const world = new World();
    void world.feed.run();
    await world.until(() => world.last?.connection === "open");
    world.tell(
      "history",
      Array.from({ length: 1000 }, (_, at_ms) => ({ at_ms })),
    );
    world.tell("sample", { at_ms: 1000 });
    await world.until(() => world.last?.samples.at(-1)?.at_ms === 1000);
    expect(world.last?.samples).toHaveLength(720);
    world.feed.stop();
  });

  it("opens another stream when one ends, later each time that nothing comes, and keeps what it knew", async () => {
    const world = new World();
    void world.feed.run();
    await world.until(() => world.last?.connection === "open");
    world.tell("approvals", { approvals: [], total: 7 });
    await world.until(() => world.last?.questions?.total === 7);
    world.status = 0;
    world.streams.at(-1)?.close();
    for (let lost = 1; lost <= 7; lost += 1) {
      await world.until(() => pauses(world).length === lost);
      expect(world.last).toMatchObject({ connection: "lost", questions: { total: 7 } });
      if (lost < 7) world.pass();
    }
    expect(pauses(world)).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    world.status = 200;
    world.pass();
    await world.until(() => world.last?.connection === "open");
    world.feed.stop();
  });

  it("gives up a stream that says nothing for longer than its heartbeat, and one that is broken", async () => {
    for (const spoil of [
      (world: World) => world.pass(),
      (world: World) => world.send("event: status\ndata: {\n\n"),
    ]) {
      const world = new World();
      void world.feed.run();
      await world.until(() => world.waits.length === 1);
      spoil(world);
      await world.until(() => world.last?.connection === "lost");
      world.feed.stop();
    }
  });

  it("ends where the server lets it in no more, and tries on after any other refusal", async () => {
    const world = new World();
    world.status = 503;
    const ended = world.feed.run();
    await world.until(() => pauses(world).length === 1);
    world.status = 401;
    world.pass();
    await ended;
    expect(world.last?.connection).toBe("logged_out");
    expect(world.keys).toHaveLength(2);
  });
});
