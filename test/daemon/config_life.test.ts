import { chmodSync, statSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { ECHO } from "./configs.ts";
import { cleanUp, Daemon, Place, run } from "./daemon.ts";
import { trusted } from "./frames.ts";
import { WirePeer } from "./wire_peer.ts";

afterEach(cleanUp);

async function status(daemon: Daemon): Promise<Record<string, unknown>> {
  const { out } = await run(["status", "--json", "--socket", daemon.socket("operator")]);
  return JSON.parse(out) as Record<string, unknown>;
}

const BAD = ECHO.replace('id = "agent-itself"', 'id = "agent-itself"\nroll = "agent"');
const badLine = 3 + BAD.split("\n").indexOf('roll = "agent"') + 1;

describe("a config that is wrong", () => {
  it("is refused at the start, with every mistake in the log and for a person on standard error", async () => {
    const place = new Place(BAD.replace('effect = "write"', 'effect = "writes"'));
    const daemon = await Daemon.start(place, { ready: false });
    expect(await daemon.ended).toBe(78);
    const faults = daemon.lines.filter(({ event }) => event === "config.fault");
    expect(faults.length).toBeGreaterThanOrEqual(2);
    expect(faults).toContainEqual(expect.objectContaining({ line: badLine }));
    expect(daemon.lines.at(-1)).toMatchObject({ event: "daemon.refused", level: "error" });
    const errors = (await daemon.errors).trim().split("\n");
    expect(errors).toHaveLength(faults.length + 1);
    expect(errors).toContainEqual(expect.stringMatching(`^${place.config}:${badLine}:1: .*roll.*`));
    expect(errors.at(-1)).toBe(`callgate: the config has ${faults.length} mistakes`);
  });

  it("is refused where it is missing, or others could write it", async () => {
    const place = new Place(ECHO);
    chmodSync(place.config, 0o666);
    const open = await Daemon.start(place, { ready: false });
    expect(await open.ended).toBe(78);
    expect(await open.errors).toContain("can be written by others than its owner");
    const missing = await run(["serve", "--config", `${place.config}.not`]);
    expect(missing).toMatchObject({ status: 78 });
    expect(missing.err).toContain("callgate: the config can't be used: there is no such file\n");
  });

  it("keeps the old policy at a reload; status says so, with the line, until a good one comes", async () => {
    const daemon = await Daemon.start(ECHO);
    const before = await status(daemon);
    expect(before["policy_stale"]).toBe(false);
    daemon.place.write(BAD);
    daemon.signal("SIGHUP");
    await daemon.event("config.refused");
    expect(daemon.count("config.fault", ({ line }) => line === badLine)).toBe(1);
    const stale = await status(daemon);
    expect(stale["policy"]).toBe(before["policy"]);
    expect(stale["policy_stale_because"]).toMatch(new RegExp(`^line ${badLine}: `));
    daemon.place.write(`${ECHO}\n# another\n`);
    daemon.signal("SIGHUP");
    const { policy } = await daemon.event("config.reloaded");
    expect(await status(daemon)).toMatchObject({ policy, policy_stale: false });
    expect(policy).not.toBe(before["policy"]);
  });

  it("is told to the operator who asked for the reload", async () => {
    const daemon = await Daemon.start(ECHO);
    daemon.place.write(BAD);
    const bad = await run(["reload", "--json", "--socket", daemon.socket("operator")]);
    expect(bad.status).toBe(4); // for the script that goes on after it
    expect(JSON.parse(bad.out)).toMatchObject({
      reloaded: false,
      refused: expect.stringContaining(`line ${badLine}`),
    });
    daemon.place.write(ECHO.replace('"300ms"', '"400ms"'));
    const fixed = await run(["reload", "--json", "--socket", daemon.socket("operator")]);
    expect(JSON.parse(fixed.out)).toMatchObject({
      reloaded: false,
      refused: "`daemon.frame_timeout` changes only with a restart",
    });
  });
});

describe("a reload", () => {
  it("opens the doors of new roles, closes those of removed ones and lets their peers go", async () => {
    const daemon = await Daemon.start(ECHO);
    const tools = await WirePeer.connect(daemon.socket("tools"));
    await daemon.event("peer.connected");
    const removed = ECHO.replace("[roles.tools]", "[roles.other]").replaceAll(
      'role = "tools"',
      'role = "other"',
    );
    daemon.place.write(removed);
    daemon.signal("SIGHUP");
    await daemon.event("config.reloaded");
    expect(await tools.refused()).toBe("internal");
    await expect(WirePeer.connect(daemon.socket("tools"))).rejects.toThrow("ENOENT");
    const other = await WirePeer.connect(daemon.socket("other"));
    const caller = await WirePeer.connect(daemon.socket("agent"));
    caller.ask(1n, "echo", {}, 1n);
    other.answer((await other.request()).id, trusted("from other"));
    expect(await caller.response()).toMatchObject({ content: "from other" });
  });

  it("disconnects peers who may no longer connect, and no others", async () => {
    const daemon = await Daemon.start(ECHO);
    const [agent, tools] = [
      await WirePeer.connect(daemon.socket("agent")),
      await WirePeer.connect(daemon.socket("tools")),
    ];
    daemon.place.write(ECHO.replace("[roles.agent]\nanyone = true", "[roles.agent]\nusers = [54321]"));
    daemon.signal("SIGHUP");
    expect(await agent.refused()).toBe("internal");
    const late = await WirePeer.connect(daemon.socket("agent"));
    await late.ended;
    expect(await daemon.event("peer.refused")).toMatchObject({ role: "agent", why: "not_named", uid: 0 });
    expect(tools.socket.destroyed).toBe(false);
  });

  it("sets the mode of a socket in place: who is connected stays, and who connects finds it", async () => {
    const daemon = await Daemon.start(ECHO);
    const agent = await WirePeer.connect(daemon.socket("agent"));
    const before = statSync(daemon.socket("agent"));
    daemon.place.write(ECHO.replace("[roles.agent]\n", '[roles.agent]\nmode = "0600"\n'));
    daemon.signal("SIGHUP");
    await daemon.event("config.reloaded");
    const after = statSync(daemon.socket("agent"));
    expect([before.mode & 0o777, after.mode & 0o777]).toEqual([0o666, 0o600]);
    expect(after.ino).toBe(before.ino);
    agent.ask(1n, "nothing", {}, 1n);
    expect(await agent.response()).toMatchObject({ status: "denied" });
  });

  it("of which a door can't be opened changes nothing at all", async () => {
    const daemon = await Daemon.start(ECHO);
    writeFileSync(daemon.socket("later"), "no socket");
    daemon.place.write(
      `${ECHO.replace("[roles.agent]\n", '[roles.agent]\nmode = "0600"\n')}\n[roles.later]\nanyone = true\n`,
    );
    daemon.signal("SIGHUP");
    expect((await daemon.event("config.refused"))["why"]).toContain("is something else than a socket");
    expect(statSync(daemon.socket("agent")).mode & 0o777).toBe(0o666);
    expect((await status(daemon))["policy_stale_because"]).toContain("is something else than a socket");
  });

  it("that is asked for while one runs reads the file again", async () => {
    const daemon = await Daemon.start(ECHO);
    for (let round = 0; round < 20; round += 1) {
      daemon.place.write(`${ECHO}\n# round ${round}\n`);
      daemon.signal("SIGHUP");
    }
    const check = await run(["reload", "--json", "--socket", daemon.socket("operator")]);
    const { policy } = JSON.parse(check.out) as { policy: string };
    expect(daemon.lines.findLast(({ event }) => event === "config.reloaded")).toMatchObject({ policy });
    daemon.place.write(ECHO);
    daemon.signal("SIGHUP");
    await daemon.event("config.reloaded", (line) => line["policy"] !== policy, daemon.lines.length);
    expect((await status(daemon))["policy_stale"]).toBe(false);
  });
});

describe("SIGTERM and SIGHUP while the daemon starts", () => {
  it("end it in order, or leave it alone", async () => {
    const daemon = await Daemon.start(ECHO, {
      // As early as signals can be told from those that the runtime has no handler for.
      node: ["--import", `data:text/javascript,${encodeURIComponent(EARLY)}`],
      ready: false,
    });
    expect(await daemon.ended).toBe(0);
    expect(daemon.lines.map(({ event }) => event).filter((event) => event.startsWith("daemon."))).toEqual([
      "daemon.ready",
      "daemon.draining",
      "daemon.stopped",
    ]);
  });
});

/** Sends both signals when the second of their handlers is there. */
const EARLY = `
const on = process.on.bind(process);
process.on = (event, listener) => {
  on(event, listener);
  if (event === "SIGTERM") for (const signal of ["SIGHUP", "SIGTERM"]) process.kill(process.pid, signal);
  return process;
};`;
