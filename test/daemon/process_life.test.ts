import { once } from "node:events";
import { existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { connect, provide } from "../../src/library.ts";
import { ECHO } from "./configs.ts";
import { cleanUp, Daemon, Place } from "./daemon.ts";
import { trusted } from "./frames.ts";
import { WirePeer } from "./wire_peer.ts";

afterEach(cleanUp);

async function withRunningCall(config = ECHO) {
  const daemon = await Daemon.start(config);
  const provider = await WirePeer.connect(daemon.socket("tools"));
  const caller = await WirePeer.connect(daemon.socket("agent"));
  caller.ask(1n, "slow", {}, 1n);
  const request = await provider.request();
  return { daemon, provider, caller, request };
}

describe("SIGTERM", () => {
  it("lets idle peers go at once, finishes the running call and exits with 0", async () => {
    const { daemon, provider, caller, request } = await withRunningCall();
    const idle = await WirePeer.connect(daemon.socket("agent"));
    await daemon.event("peer.connected", ({ connection }) => connection === 3);
    daemon.signal("SIGTERM");
    await idle.ended;
    expect(daemon.count("daemon.stopped")).toBe(0);
    provider.answer(request.id, trusted("done"));
    expect(await caller.response()).toMatchObject({ status: "result", content: "done" });
    expect(await daemon.ended).toBe(0);
    expect(daemon.lines.at(-1)).toMatchObject({ event: "daemon.stopped", unfinished: 0 });
    expect(existsSync(daemon.socket("agent"))).toBe(false);
  });

  it("opens no new door for a reload that comes too late, which would outlive the daemon's end", async () => {
    const { daemon, provider, caller, request } = await withRunningCall();
    daemon.signal("SIGTERM");
    await daemon.event("daemon.draining");
    daemon.place.write(`${ECHO}\n[roles.late]\nanyone = true\n`);
    daemon.signal("SIGHUP");
    expect(await daemon.event("config.refused")).toMatchObject({ why: "the daemon is stopping" });
    expect(existsSync(daemon.socket("late"))).toBe(false);
    provider.answer(request.id, trusted("done"));
    expect(await caller.response()).toMatchObject({ content: "done" });
    expect(await daemon.ended).toBe(0);
  });

  it("delivers a long last answer to a peer that reads slowly", async () => {
    const { daemon, provider, caller, request } = await withRunningCall();
    caller.socket.pause();
    const content = "x".repeat(250_000); // far more than a socket holds
    provider.answer(request.id, trusted(content), false);
    provider.answer(request.id, trusted(""));
    daemon.signal("SIGTERM");
    await daemon.event("call.ended");
    caller.socket.resume();
    expect(await caller.response()).toMatchObject({ content });
    expect(await daemon.ended).toBe(0);
  });

  it("does not wait longer than drain_timeout, and says what it left", async () => {
    const { daemon } = await withRunningCall(ECHO.replace('"5s"', '"200ms"'));
    daemon.signal("SIGTERM");
    expect(await daemon.ended).toBe(0);
    expect(daemon.lines.at(-1)).toMatchObject({ event: "daemon.stopped", unfinished: 1 });
  });

  it("exits at once when it comes a second time", async () => {
    const { daemon } = await withRunningCall(ECHO.replace('"5s"', '"1h"'));
    daemon.signal("SIGTERM");
    await daemon.event("daemon.draining");
    daemon.signal("SIGTERM");
    expect(await daemon.ended).toBe(0);
    expect(daemon.lines.at(-1)).toMatchObject({ event: "daemon.killed" });
  });

  it("is not held up by a peer that never closes its side", async () => {
    const daemon = await Daemon.start(ECHO.replace('"5s"', '"1h"'));
    const rude = await WirePeer.connect(daemon.socket("agent"));
    await daemon.event("peer.connected");
    expect(await daemon.stop()).toBe(0);
    await rude.ended;
  });
});

describe("SIGUSR1", () => {
  it("opens no debugger, through which every user of the machine could run code in the daemon", async () => {
    const { daemon, provider, caller, request } = await withRunningCall();
    daemon.signal("SIGUSR1");
    provider.answer(request.id, trusted("goes on"));
    expect(await caller.response()).toMatchObject({ content: "goes on" });
    expect(await daemon.stop()).toBe(0);
    expect(await daemon.errors).toBe("");
  });
});

describe("kill -9", () => {
  it("leaves a socket file that the next start replaces", async () => {
    const first = await Daemon.start(ECHO);
    await first.kill();
    expect(existsSync(first.socket("agent"))).toBe(true);
    const second = await Daemon.start(first.place);
    const peer = await WirePeer.connect(second.socket("agent"));
    peer.ask(1n, "nothing", {}, 1n);
    expect(await peer.response()).toMatchObject({ status: "denied" });
  });

  it("is outlived by the library's callers and providers, which connect again", async () => {
    const first = await Daemon.start(ECHO);
    const provider = await provide({
      to: { path: first.socket("tools") },
      tools: { echo: ({ args }) => String(args?.["text"]) },
    });
    const caller = await connect({ to: { path: first.socket("agent") }, session: "s" });
    expect(await caller.call("echo", { text: "one" }).final).toMatchObject({ content: "one" });
    await first.kill();
    const waiting = caller.call("echo", { text: "two" });
    const second = await Daemon.start(first.place);
    await second.event("peer.connected", ({ role }) => role === "tools");
    const answers = [await waiting.final, await caller.call("echo", { text: "three" }).final];
    // The caller may be back before the provider.
    if (answers[0]?.status === "failed") expect(answers[0].message).toMatch(/^no_provider: /);
    else expect(answers[0]).toMatchObject({ content: "two" });
    expect(answers[1]).toMatchObject({ content: "three" });
    expect(await second.stop()).toBe(0);
    const third = await Daemon.start(first.place);
    await third.event("peer.connected", ({ role }) => role === "tools");
    expect(await caller.call("echo", { text: "four" }).final).toMatchObject({ content: "four" });
    await Promise.all([caller.close(), provider.close()]);
  });
});

describe("a second daemon", () => {
  it("refuses to start beside a living one, which keeps its sockets", async () => {
    const first = await Daemon.start(ECHO);
    const second = await Daemon.start(first.place, { ready: false });
    expect(await second.ended).toBe(78);
    expect(await second.errors).toMatch(
      new RegExp(
        `^callgate: .* is in use by another daemon that is alive \\(pid ${first.pid}\\): stop it first, .*\\n$`,
      ),
    );
    expect(second.lines.at(-1)).toMatchObject({ event: "daemon.refused" });
    const peer = await WirePeer.connect(first.socket("agent"));
    peer.ask(1n, "nothing", {}, 1n);
    expect(await peer.response()).toMatchObject({ status: "denied" });
  });
});

describe("the log", () => {
  it("has a line for every call when the daemon has ended", async () => {
    const daemon = await Daemon.start(ECHO);
    const caller = await connect({ to: { path: daemon.socket("agent") }, session: "s" });
    const asked = Array.from({ length: 5000 }, () => caller.call("echo", {}).final);
    await Promise.all(asked);
    await caller.close();
    await daemon.stop();
    expect(daemon.count("call.refused", ({ code }) => code === "no_provider")).toBe(5000);
  });

  it("may have lost its reader: the daemon goes on", async () => {
    const daemon = await Daemon.start(ECHO);
    daemon.child.stdout?.destroy();
    daemon.child.stderr?.destroy();
    const peer = await WirePeer.connect(daemon.socket("agent"));
    for (let call = 1n; call <= 200n; call += 1n) peer.ask(call, "nothing", {}, call);
    for (let call = 1n; call <= 200n; call += 1n)
      expect(await peer.response()).toMatchObject({ status: "denied" });
    expect(await daemon.stop()).toBe(0);
  });

  it("may be closed from the start, with standard error: the daemon goes on", async () => {
    const daemon = await Daemon.start(ECHO, { shell: "exec >&- 2>&-;", ready: false });
    await untilThere(daemon.socket("agent"));
    const peer = await WirePeer.connect(daemon.socket("agent"));
    peer.ask(1n, "nothing", {}, 1n);
    expect(await peer.response()).toMatchObject({ status: "denied" });
    expect(await daemon.stop()).toBe(0);
  });

  it("has a reader that stalls: nobody waits, memory stays bounded, and lines that are missing are told", async () => {
    const daemon = await Daemon.start(ECHO);
    daemon.child.stdout?.pause();
    const peer = await WirePeer.connect(daemon.socket("agent"));
    const before = daemon.memory();
    const calls = 60_000n; // some 12 MB of lines
    let asked = 0n;
    for (let answered = 0n; answered < calls; answered += 1n) {
      for (; asked < calls && asked < answered + 512n; asked += 1n)
        peer.ask(asked + 1n, "nothing", {}, asked);
      await peer.response();
    }
    expect(daemon.memory() - before).toBeLessThan(120_000_000);
    daemon.child.stdout?.resume();
    const { lines } = await daemon.event("log.dropped");
    await daemon.stop();
    const told = daemon.lines.filter(({ event }) => event === "log.dropped");
    const dropped = told.reduce((sum, line) => sum + Number(line["lines"]), 0);
    expect(lines).toBeGreaterThan(0);
    expect(daemon.count("call.denied") + dropped).toBeGreaterThanOrEqual(Number(calls));
    expect(daemon.lines.at(-1)).toMatchObject({ event: "daemon.stopped" });
  });

  it("with a reader that never reads again does not keep the daemon from ending", async () => {
    const daemon = await Daemon.start(ECHO);
    daemon.child.stdout?.pause();
    const peer = await WirePeer.connect(daemon.socket("agent"));
    for (let call = 1n; call <= 2000n; call += 1n) peer.ask(call, "nothing", {}, call);
    for (let call = 1n; call <= 2000n; call += 1n) await peer.response();
    const exited = once(daemon.child, "exit");
    daemon.signal("SIGTERM");
    expect((await exited)[0]).toBe(0);
    daemon.child.stdout?.destroy();
  });

  it("goes whole into a file", async () => {
    const place = new Place(ECHO);
    const path = join(place.directory, "log");
    const file = openSync(path, "a");
    const daemon = await Daemon.start(place, { ready: false, stdio: ["ignore", file, "pipe"] });
    await untilThere(daemon.socket("operator"));
    await daemon.stop();
    const events = readFileSync(path, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).event as string)
      .filter((event) => event.startsWith("daemon."));
    expect(events).toEqual(["daemon.ready", "daemon.draining", "daemon.stopped"]);
  });
});

describe("a fault of the daemon's own", () => {
  const injected = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;

  it.each(["exception", "rejection"])(
    "(an uncaught %s) is logged without its text, and ends it with 70",
    async (kind) => {
      const fault = "new RangeError(process.env.TEXT)";
      const thrower = kind === "exception" ? `throw ${fault}` : `Promise.reject(${fault})`;
      const node = ["--import", injected(`process.on("SIGUSR2", () => { ${thrower} });`)];
      const daemon = await Daemon.start(ECHO, { node, env: { TEXT: "a secret" } });
      daemon.signal("SIGUSR2");
      expect(await daemon.ended).toBe(70);
      expect(daemon.lines.at(-1)).toMatchObject({
        event: "daemon.fatal",
        level: "error",
        fault: "RangeError",
      });
      expect(JSON.stringify(daemon.lines) + (await daemon.errors)).not.toContain("secret");
    },
  );

  it("in the first moments has its line too", async () => {
    const node = [
      "--import",
      injected("process.getegid = () => { throw new TypeError(process.env.TEXT); };"),
    ];
    const daemon = await Daemon.start(ECHO, { node, ready: false, env: { TEXT: "a secret" } });
    expect(await daemon.ended).toBe(70);
    expect(daemon.lines.at(-1)).toMatchObject({ event: "daemon.fatal", fault: "TypeError" });
    expect(await daemon.errors).not.toContain("secret");
  });
});

describe("descriptors", () => {
  it("that run out cost neither running calls nor the daemon, and come back", async () => {
    const config = ECHO.replace("[roles.agent]\n", "[roles.agent]\nconnections = 1000\n");
    const daemon = await Daemon.start(config, { shell: "ulimit -n 96;" });
    const provider = await WirePeer.connect(daemon.socket("tools"));
    const caller = await WirePeer.connect(daemon.socket("agent"));
    caller.ask(1n, "slow", {}, 1n);
    const { id } = await provider.request();
    const crowd = await Promise.all(
      Array.from({ length: 150 }, () => WirePeer.connect(daemon.socket("agent"))),
    );
    expect(daemon.lines).toContainEqual(expect.objectContaining({ event: "descriptors.few", max: 96 }));
    await Promise.any(crowd.map((peer) => peer.ended)); // one that there was no descriptor for
    provider.answer(id, trusted("done"));
    expect(await caller.response()).toMatchObject({ content: "done" });
    await Promise.all(crowd.map((peer) => peer.close()));
    const late = await WirePeer.connect(daemon.socket("agent"));
    late.ask(1n, "nothing", {}, 9n);
    expect(await late.response()).toMatchObject({ status: "denied" });
    expect(await daemon.stop()).toBe(0);
  });
});

async function untilThere(path: string): Promise<void> {
  for (;;) {
    try {
      const peer = await WirePeer.connect(path);
      await peer.close();
      return;
    } catch {
      await new Promise((turn) => setImmediate(turn)); // its start is not told by anything but its sockets
    }
  }
}
