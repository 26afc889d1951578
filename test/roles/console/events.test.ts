import { describe, expect, it } from "vitest";
import type { Sample } from "../../../src/roles/console/api.ts";
import { HEARTBEAT_MS, STREAMS_OF_LOGIN_MAX } from "../../../src/roles/console/event_streams.ts";
import { SAMPLES_MAX } from "../../../src/roles/console/watch.ts";
import type { Answers } from "../../cli/desk.ts";
import { measured } from "./measured.ts";
import { ConsoleRig, type Listener } from "./rig.ts";

/** A list of questions that the test changes; who watches hears at once. */
class Board {
  version = 1;
  size = 0;
  #waiting: (() => void)[] = [];

  get watching(): number {
    return this.#waiting.length;
  }

  get answers(): Answers {
    return {
      "approvals.list": () => this.#list(),
      "approvals.watch": (args) => this.#watch(args["version"]),
    };
  }

  add(padding = ""): void {
    this.version += 1;
    this.size += 1;
    this.padding = padding;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  padding = "";

  #list(): object {
    return { approvals: [], version: this.version, more: false, total: this.size, padding: this.padding };
  }

  async #watch(seen: unknown): Promise<object> {
    if (seen === this.version) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.#list();
  }
}

function totals(listener: Listener): number[] {
  return listener.all("approvals").map((data) => (data as { total: number }).total);
}

/** Moves the fake time until the stream shows it: what waits for the broker's answer waits for no timer. */
async function until(rig: ConsoleRig, stepMs: number, is: () => boolean): Promise<number> {
  const from = rig.clock.nowMs();
  while (!is()) {
    rig.clock.step(rig.clock.nowMs() + stepMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return rig.clock.nowMs() - from;
}

describe("a page that listens", () => {
  it("is told at once how things are, and then what changes", async () => {
    const board = new Board();
    const rig = await ConsoleRig.start(board.answers);
    const listener = rig.listen(await rig.logIn());
    await listener.shows('event: broker\ndata: {"connected":true,"why":null}');
    await listener.has("approvals");
    expect(listener.answered.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    board.add();
    await until(rig, 250, () => totals(listener).includes(1));
    expect(totals(listener)).toEqual([0, 1]);
  });

  it("hears of questions that come by hundreds in four lists a second at most, and of the last", async () => {
    const board = new Board();
    const rig = await ConsoleRig.start(board.answers);
    const listener = rig.listen(await rig.logIn());
    await listener.has("approvals");
    const tookMs = await until(rig, 50, () => {
      if (board.size < 400) board.add();
      return totals(listener).includes(400);
    });
    expect(totals(listener).length).toBeLessThanOrEqual(tookMs / 250 + 2);
    expect(totals(listener).length).toBeGreaterThan(2);
  });

  it("gets samples of the load every five seconds, and those of before when it comes", async () => {
    let calls = 0;
    const status = () =>
      measured({
        calls: [
          { tool: "a", outcome: "result", count: ++calls },
          { tool: "b", outcome: "result", count: 1 },
          { tool: "b", outcome: "denied", count: 2 },
          { tool: "b", outcome: "timeout", count: 3 },
        ],
        decisions: [
          { verdict: "allow", reason: "x", count: 4 },
          { verdict: "allow", reason: "y", count: 1 },
          { verdict: "deny", reason: "no_grant", count: 2 },
        ],
        durations: [
          { tool: "a", counts: [1, 2, 3, 4], sum_ms: 9 },
          { tool: "b", counts: [1, 0, 0, 1], sum_ms: 9 },
        ],
        roles: [
          { role: "a", connections: 1, calls_in_flight: 2, queued_bytes_in: 3, queued_bytes_out: 4 },
          { role: "b", connections: 1, calls_in_flight: 1, queued_bytes_in: 0, queued_bytes_out: 1 },
        ],
      });
    const rig = await ConsoleRig.start({ status });
    const login = await rig.logIn();
    const first = rig.listen(login);
    for (const count of [1, 2, 3]) {
      await first.has("status", count);
      const then = rig.clock.nowMs() + 5000;
      while (rig.clock.step(then));
    }
    await first.has("status", 4);
    const second = rig.listen(login);
    const [history] = (await second.has("history")) as [Sample[]];
    expect(history.length).toBeGreaterThanOrEqual(4);
    expect(history.map(({ ended }) => ended.result)).toEqual(history.map((_, i) => i + 2));
    expect(history[1]!.at_ms - history[0]!.at_ms).toBe(5000);
    expect(history[0]).toMatchObject({
      started_at_ms: 1000,
      ended: { result: 2, failed: 3, denied: 2 },
      decisions: { allow: 5, ask: 0, deny: 2 },
      durations: [2, 2, 3, 5],
      ...{ in_flight: 3, queued_bytes: 8, pending: 0 },
    });
  });

  it("gets an hour of samples at most", async () => {
    let looks = 0;
    const rig = await ConsoleRig.start({
      status: () => {
        looks += 1;
        return measured();
      },
    });
    await until(rig, 5000, () => looks > SAMPLES_MAX + 5);
    const [history] = (await rig.listen(await rig.logIn()).has("history")) as [Sample[]];
    expect(history).toHaveLength(SAMPLES_MAX);
  });

  it("hears a heartbeat, which nobody pays for when nobody listens", async () => {
    const rig = await ConsoleRig.start();
    const listener = rig.listen(await rig.logIn());
    await listener.has("status");
    await listener.has("approvals");
    const timers = rig.clock.timers;
    await until(rig, HEARTBEAT_MS, () => listener.text.includes(": still here"));
    listener.socket.destroy();
    await until(rig, 0, () => rig.clock.timers < timers);
  });

  it("is one of eight of its login; others of other logins still listen", async () => {
    const rig = await ConsoleRig.start();
    const login = await rig.logIn();
    const all = Array.from({ length: STREAMS_OF_LOGIN_MAX }, () => rig.listen(login));
    for (const listener of all) await listener.has("broker");
    const ninth = rig.listen(login);
    await ninth.ended();
    expect(ninth.answered.status).toBe(429);
    await rig.listen(await rig.logIn()).has("broker");
    all[0]!.socket.destroy();
    let again = rig.listen(login);
    for (await again.shows("HTTP"); again.answered.status !== 200; await again.shows("HTTP"))
      again = rig.listen(login);
  });

  it("and takes nothing is dropped, and others notice nothing", async () => {
    const board = new Board();
    const rig = await ConsoleRig.start(board.answers);
    const login = await rig.logIn();
    const [slow, quick] = [rig.listen(login), rig.listen(login)];
    await slow.has("approvals");
    await quick.has("approvals");
    slow.socket.pause();
    let dropped = false;
    slow.socket.on("error", () => {
      dropped = true; // the kernel tells of the end only when something is read or written
    });
    const poke = setInterval(() => slow.socket.write("\r\n"), 5);
    await until(rig, 250, () => {
      board.add("x".repeat(500_000));
      return dropped;
    });
    clearInterval(poke);
    board.add();
    await until(rig, 250, () => quick.text.slice(-100).includes(`"total":${board.size},"padding":""}`));
  });

  it("costs the broker no watching of questions when it is gone", async () => {
    const board = new Board();
    const rig = await ConsoleRig.start(board.answers);
    const login = await rig.logIn();
    const first = rig.listen(login);
    await first.has("approvals");
    first.socket.destroy();
    await until(rig, 250, () => rig.clock.timers <= 2); // the login's end and the next status: no heartbeat any more
    board.add(); // ends the watch that still waits
    const asked = () => rig.broker.of("approvals.watch").length + rig.broker.of("approvals.list").length;
    await until(rig, 250, () => board.watching === 0 && rig.clock.timers <= 2);
    const before = asked();
    await until(rig, 250, () => {
      board.add();
      return board.size > 20;
    });
    expect(asked()).toBe(before);
    const second = rig.listen(login);
    await second.has("approvals");
    expect(totals(second).at(0)).toBe(board.size); // not the list of before
  });
});

describe("what the page is told of its broker", () => {
  it("is that it went, why, and that it is back, with a list anew", async () => {
    const board = new Board();
    const rig = await ConsoleRig.start(board.answers);
    const listener = rig.listen(await rig.logIn());
    await listener.has("approvals");
    board.add();
    await rig.broker.restart();
    await listener.shows('"connected":false');
    await until(rig, 250, () => totals(listener).at(-1) === 1);
    const states = listener.all("broker").map((data) => (data as { connected: boolean }).connected);
    expect(states).toEqual([true, false, true]);
    expect(rig.said).toEqual([
      expect.stringMatching(/^The broker can't be reached \(/),
      "The broker is there.",
    ]);
  });

  it("is what the role may not do, in words, on the page and to whoever started it, once", async () => {
    const rig = await ConsoleRig.start({
      status: { status: "failed", message: "bad_arguments: no. Nothing ran." },
    });
    const listener = rig.listen(await rig.logIn());
    await listener.shows("This role is no operator");
    await until(rig, 5000, () => rig.broker.of("status").length > 3);
    expect(rig.said).toEqual([expect.stringContaining("This role is no operator")]);
    expect(listener.all("broker").at(-1)).toMatchObject({ connected: true });
  });

  it("is that it may not even ask how things are", async () => {
    const rig = await ConsoleRig.start({ status: { status: "denied", reason: "no_grant" } });
    await rig.listen(await rig.logIn()).shows("may not ask for callgate.status (no_grant)");
  });
});
