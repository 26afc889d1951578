import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { connect, provide } from "../../src/library.ts";
import { ECHO } from "./configs.ts";
import { cleanUp, Daemon, onCleanUp, Place, type Ran, run } from "./daemon.ts";

afterEach(cleanUp);

/** A daemon whose state is in the place too, and a provider that counts what it runs. */
class World {
  readonly place = new Place("");
  daemon!: Daemon;
  runs = 0;

  constructor() {
    writeFileSync(this.place.config, `[daemon]\nsockets = "run"\nstate = "state"\n${ECHO}`);
  }

  get backup(): string {
    return join(this.place.directory, "backup");
  }

  async start(): Promise<void> {
    this.daemon = await Daemon.start(this.place);
    const provider = await provide({
      to: { path: this.daemon.socket("tools") },
      tools: {
        slow: () => {
          this.runs += 1;
          return { content: `run ${this.runs}`, class: "public", untrusted: false };
        },
      },
    });
    onCleanUp(() => provider.close({ drainMs: 0 }));
  }

  /** `call` undefined: a new id, ordered by time. */
  async ask(call?: bigint): Promise<string> {
    const caller = await connect({ to: { path: this.daemon.socket("agent") } });
    const options = call === undefined ? {} : { call };
    const answer = await caller.call("slow", {}, { session: "s", ...options }).final;
    await caller.close();
    if (answer.status === "result") return answer.content;
    return answer.status === "failed" ? answer.message : answer.status;
  }

  cli(...args: string[]): Promise<Ran> {
    return run([...args, "--socket", this.daemon.socket("operator")]);
  }
}

describe("backup and restore of a real daemon", () => {
  it("takes a backup while it runs; restored, old calls never run again, and new ones do", async () => {
    const world = new World();
    const { config } = world.place;
    await world.start();
    expect(await world.ask(1n)).toBe("run 1");
    const taken = await run(["backup", "--config", config, "--to", world.backup]);
    expect(taken).toMatchObject({ status: 0, err: "" });
    const [, checkpoint = ""] = /audit ends at (\d+:[0-9a-f]{64})/.exec(taken.out) ?? [];
    expect(await world.ask(2n)).toBe("run 2");

    const beside = await run(["restore", "--config", config, "--from", world.backup, "--replace"]);
    expect(beside).toMatchObject({ status: 4, err: expect.stringContaining("in use by another daemon") });
    expect(await world.daemon.stop()).toBe(0);
    const unasked = await run(["restore", "--config", config, "--from", world.backup]);
    expect(unasked).toMatchObject({ status: 4, err: expect.stringContaining("--replace") });
    const restored = await run(["restore", "--config", config, "--from", world.backup, "--replace"]);
    expect(restored).toMatchObject({ status: 0, out: expect.stringContaining("a new epoch begins") });

    await world.start();
    expect(await world.ask(1n)).toBe("run 1"); // replayed
    expect(await world.ask(2n)).toMatch(/^conflict: /); // ran after the backup
    expect(await world.ask(3n)).toMatch(/^conflict: /); // might have
    expect(world.runs).toBe(2);
    expect(await world.ask()).toBe("run 3");
    expect(await world.cli("audit", "verify", "--checkpoint", checkpoint)).toMatchObject({ status: 0 });
    expect(
      readdirSync(join(world.place.directory, "state")).some((name) => name.startsWith("replaced-")),
    ).toBe(true);
  });

  it("has an audit that operators verify, export and note, and that verifies without the daemon", async () => {
    const world = new World();
    await world.start();
    for (let call = 1n; call <= 5n; call += 1n) await world.ask(call);
    const noted = await world.cli("audit", "checkpoint");
    const checkpoint = noted.out.trim();
    expect(
      await world.daemon.event("audit.checkpoint", ({ seq }) => checkpoint.startsWith(`${String(seq)}:`)),
    ).toBeTruthy();
    const verified = await world.cli("audit", "verify", "--checkpoint", checkpoint);
    expect(verified).toMatchObject({ status: 0, out: expect.stringContaining("the audit holds") });
    const exported = await world.cli("audit", "export");
    const file = join(world.place.directory, "audit.jsonl");
    writeFileSync(file, exported.out);
    expect(await run(["audit", "verify", "--file", file, "--checkpoint", checkpoint])).toMatchObject({
      status: 0,
    });
    const state = join(world.place.directory, "state");
    expect(await run(["audit", "verify", "--state", state])).toMatchObject({ status: 0 });
    expect(await world.daemon.stop()).toBe(0);
    const last = world.daemon.lines.findLast(({ event }) => event === "audit.checkpoint");
    const end = `${String(last?.["seq"])}:${String(last?.["hash"])}`;
    expect(await run(["audit", "verify", "--state", state, "--checkpoint", end])).toMatchObject({
      status: 0,
    });
  });
});
