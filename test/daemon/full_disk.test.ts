// A state directory that can't be written: on a disk of its own that is full, or read-only. Needs root,
// for the mount.

import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { type Caller, connect, provide } from "../../src/library.ts";
import { describeWith } from "../needs.ts";
import { ECHO } from "./configs.ts";
import { cleanUp, Daemon, onCleanUp, Place } from "./daemon.ts";

afterEach(cleanUp);

const DISK_MIB = 48;

/** Puts the state directory on a small disk of its own. */
function mountState(place: Place): string {
  const state = join(place.directory, "state");
  mkdirSync(state, { mode: 0o700 });
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MIB}m,mode=0700`, "tmpfs", state]);
  onCleanUp(() => execFileSync("umount", ["-l", state]));
  return state;
}

/** A daemon whose state is on a small disk of its own, a provider that counts, a caller and an operator. */
class World {
  readonly daemon: Daemon;
  readonly caller: Caller;
  readonly operator: Caller;
  runs = 0;

  static async start(): Promise<World> {
    const place = new Place(ECHO);
    mountState(place);
    const daemon = await Daemon.start(place);
    const caller = await connect({ to: { path: daemon.socket("agent") } });
    const operator = await connect({ to: { path: daemon.socket("operator") } });
    onCleanUp(() => Promise.all([caller.close(), operator.close()]));
    const world = new World(daemon, caller, operator);
    const run = () => {
      world.runs += 1;
      return { content: "ran", class: "public", untrusted: false } as const;
    };
    const provider = await provide({ to: { path: daemon.socket("tools") }, tools: { slow: run, echo: run } });
    onCleanUp(() => provider.close());
    return world;
  }

  private constructor(daemon: Daemon, caller: Caller, operator: Caller) {
    this.daemon = daemon;
    this.caller = caller;
    this.operator = operator;
  }

  get state(): string {
    return join(this.daemon.place.directory, "state");
  }

  /** Writes until nothing more fits. */
  fill(): void {
    const { bavail, bsize } = statfsSync(this.state);
    const free = bavail * bsize;
    try {
      writeFileSync(join(this.state, "filler"), Buffer.alloc(free + 1_048_576));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }

  free(): void {
    rmSync(join(this.state, "filler"));
  }

  /** Calls until one is `unavailable`; every one that came to a result before ran. */
  async untilUnavailable(): Promise<string> {
    for (let i = 0; i < 100_000; i += 1) {
      const answer = await this.caller.call("slow", { text: "x".repeat(2000) }, { session: "s" }).final;
      if (answer.status === "failed") return answer.message;
      expect(answer.status).toBe("result");
    }
    throw new Error("the disk never became full");
  }

  /** Calls until one comes to a result. The broker looks for itself whether it can write again. */
  async untilRuns(): Promise<void> {
    for (;;) {
      const answer = await this.caller.call("slow", {}, { session: "s" }).final;
      if (answer.status === "result") return;
      expect(answer).toMatchObject({ status: "failed", message: expect.stringMatching(/^unavailable: /) });
      await this.daemon.event("store.recovered");
    }
  }

  async status(): Promise<Record<string, unknown>> {
    const answer = await this.operator.call("callgate.status", {}, { session: "s" }).final;
    if (answer.status !== "result") throw new Error(`no status: ${JSON.stringify(answer.status)}`);
    return JSON.parse(answer.content) as Record<string, unknown>;
  }
}

describeWith(["mount", "umount"], "a full disk", () => {
  it("runs nothing unrecorded, still answers status, serves operators from what is kept back, and recovers without a restart", async () => {
    const world = await World.start();
    world.fill();
    expect(await world.untilUnavailable()).toMatch(/^unavailable: .*Nothing (?:ran|was run)/);
    const ran = world.runs;
    expect(await world.caller.call("slow", {}, { session: "s" }).final).toMatchObject({ status: "failed" });
    expect(world.runs).toBe(ran);
    expect(await world.status()).toMatchObject({ store: { condition: "failing" } });
    expect(world.daemon.count("store.failing")).toBe(1);

    const frozen = await world.operator.call("callgate.freeze", { role: "agent" }, { session: "s" }).final;
    expect(frozen.status).toBe("result");
    const thawed = await world.operator.call(
      "callgate.freeze",
      { role: "agent", frozen: false },
      { session: "s" },
    ).final;
    expect(thawed.status).toBe("result");

    world.free();
    await world.untilRuns();
    expect(world.runs).toBe(ran + 1);
    expect(await world.status()).toMatchObject({ store: { condition: "ok" } });
  });

  it("keeps every outcome that a caller heard before it was full", async () => {
    const world = await World.start();
    const heard = await world.caller.call("slow", { n: 1 }, { session: "s", call: 7n }).final;
    world.fill();
    await world.untilUnavailable();
    world.free();
    await world.untilRuns();
    const again = await world.caller.call("slow", { n: 1 }, { session: "s", call: 7n }).final;
    expect(again).toEqual(heard);
  });
});

describeWith(["mount", "umount"], "a state directory that is read-only", () => {
  it("stops the daemon from starting, with a sentence that says so, and not from starting once it is writable", async () => {
    const place = new Place(ECHO);
    const state = mountState(place);
    const first = await Daemon.start(place);
    first.signal("SIGTERM");
    expect(await first.ended).toBe(0);
    execFileSync("mount", ["-o", "remount,ro", state]);
    const refused = await Daemon.start(place, { ready: false });
    expect(await refused.ended).toBe(78);
    expect(await refused.errors).toMatch(/state directory.*EROFS/);
    execFileSync("mount", ["-o", "remount,rw", state]);
    await Daemon.start(place);
  });
});
