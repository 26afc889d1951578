// The store of a real daemon beside readers that take long, and with an audit that somebody has damaged.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { type Caller, connect, provide } from "../../src/library.ts";
import { LmdbEngine } from "../../src/store/lmdb.ts";
import { LmdbSnapshot } from "../../src/store/lmdb_snapshot.ts";
import { TABLE, wholeTable } from "../../src/store/store_keys.ts";
import { ECHO } from "./configs.ts";
import { callgate, cleanUp, Daemon, onCleanUp, Place, run } from "./daemon.ts";

afterEach(cleanUp);

class World {
  readonly place: Place;
  daemon!: Daemon;
  #caller!: Caller;

  static async start(config: string): Promise<World> {
    const world = new World(new Place(config));
    await world.start();
    return world;
  }

  private constructor(place: Place) {
    this.place = place;
  }

  async start(): Promise<void> {
    this.daemon = await Daemon.start(this.place);
    const echo = () => ({ content: "ran", class: "public", untrusted: false }) as const;
    const to = { path: this.daemon.socket("tools") };
    const provider = await provide({ to, tools: { slow: echo, echo } });
    this.#caller = await connect({ to: { path: this.daemon.socket("agent") } });
    onCleanUp(() => Promise.all([this.#caller.close(), provider.close()]));
  }

  get state(): string {
    return join(this.place.directory, "state");
  }

  get storeBytes(): number {
    return statSync(join(this.state, "state.mdb")).blocks * 512;
  }

  /** So many calls, 32 at a time, all of which must come to their result. */
  async calls(count: number): Promise<void> {
    const text = "x".repeat(500);
    for (let done = 0; done < count; done += 32) {
      const batch = Array.from(
        { length: 32 },
        () => this.#caller.call("slow", { text }, { session: "s" }).final,
      );
      const statuses = new Set((await Promise.all(batch)).map(({ status }) => status));
      expect([...statuses]).toEqual(["result"]);
    }
  }

  /** `callgate audit …`, as the operator. */
  cli(...words: string[]) {
    return run(["audit", ...words, "--socket", this.daemon.socket("operator")]);
  }
}

/** In a process of its own; `look`: JavaScript that runs while it reads. Resolves to how often that went well. */
async function comeAndGo(state: string, times: number, look = ""): Promise<number> {
  const module = pathToFileURL(join(dirname(callgate()), "../src/host/stored_state.js")).href;
  const script = `
    const { withStored } = await import(${JSON.stringify(module)});
    let well = 0;
    for (let n = 0; n < ${times}; n += 1) {
      const read = await withStored(${JSON.stringify(state)}, async (engine) => {
        engine.get(Buffer.of(0));
        ${look};
        return { ok: true };
      });
      if (read.ok) well += 1;
      else console.error(read.fault);
    }
    console.log(well);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onCleanUp(() => child.kill("SIGKILL"));
  const [out] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (child.signalCode !== null) throw child.signalCode;
  return Number(out);
}

describe("readers that take long, beside steady writes", () => {
  const SMALL = `${ECHO}
[roles.agent.limits]
stored_bytes = 65536
calls_per_second = 100000
[audit]
bytes_max = 1048576
`;

  it("leave the store bounded, and no caller hears of them", async () => {
    const world = await World.start(SMALL);
    await world.calls(1600); // what is kept is at its bounds: from here on as much goes as comes
    const before = world.storeBytes;
    let reading = true;
    const reader = async () => {
      let reads = 0;
      for (; reading; reads += 1) {
        const [inside, beside] = await Promise.all([
          world.cli("verify"),
          run(["audit", "verify", "--state", world.state]),
        ]);
        expect([inside, beside].map(({ status, out, err }) => (status === 0 ? "" : `${out}${err}`))).toEqual([
          "",
          "",
        ]);
      }
      return reads;
    };
    const reads = reader();
    await world.calls(3200);
    reading = false;
    expect(await reads).toBeGreaterThan(0);
    const grown = world.storeBytes - before;
    await world.calls(1600);
    expect(world.storeBytes - before).toBeLessThan(Math.max(before, 8_388_608));
    // What a reader had held is used again once it is gone.
    expect(world.storeBytes - before - grown).toBeLessThan(Math.max(before / 2, 4_194_304));
  });

  it("that come and go by the thousand undo nothing that was written", async () => {
    const world = await World.start(`${ECHO}\n[roles.agent.limits]\ncalls_per_second = 100000\n`);
    await world.calls(32);
    let open = 3;
    const readers = Array.from({ length: open }, async () => {
      const read = await comeAndGo(world.state, 700);
      open -= 1;
      return read;
    });
    while (open > 0) await world.calls(64);
    expect(await Promise.all(readers)).toEqual([700, 700, 700]);
    const verified = await run(["audit", "verify", "--state", world.state]);
    expect(verified.out + verified.err).toMatch(/^the audit holds/);
  });

  it("that are killed in the midst of a look do not keep the store from using room again", async () => {
    const world = await World.start(SMALL);
    await world.calls(1600);
    const before = world.storeBytes;
    await expect(comeAndGo(world.state, 1, "process.kill(process.pid, 'SIGKILL')")).rejects.toBe("SIGKILL");
    await world.calls(3200); // longer than it takes until somebody looks for the dead
    const grown = world.storeBytes - before;
    await world.calls(3200);
    expect(world.storeBytes - before - grown).toBeLessThan(1_048_576);
  });

  it("that never lets go costs nobody a call", async () => {
    const world = await World.start(SMALL);
    await world.calls(64);
    const opened = LmdbSnapshot.open(join(world.state, "state.mdb"));
    if (!opened.ok) throw new Error(opened.fault);
    onCleanUp(() => opened.value.close());
    expect(opened.value.keys({ ...wholeTable(TABLE.auditBlocks), limit: 10 }).length).toBeGreaterThan(0);
    await world.calls(640);
    expect(await world.daemon.stop()).toBe(0);
    expect(world.daemon.count("store.failing") + world.daemon.count("store.stalled")).toBe(0);
  });
});

type Block = { readonly key: Buffer; readonly value: Buffer };

/** Changes what is on disk while no daemon runs. */
async function tamper(state: string, change: (blocks: readonly Block[]) => readonly (Block | Buffer)[]) {
  const opened = await LmdbEngine.open({
    directory: state,
    crashed: (error) => {
      throw error;
    },
  });
  if (!opened.ok) throw new Error(opened.fault);
  const engine = opened.value;
  const batch = engine.batch();
  for (const one of change(engine.range({ ...wholeTable(TABLE.auditBlocks), limit: 10_000 }))) {
    if (Buffer.isBuffer(one)) batch.delete(one);
    else batch.put(one.key, one.value);
  }
  await new Promise<void>((resolve, reject) =>
    engine.write(batch, (fault) => (fault === undefined ? resolve() : reject(new Error(fault.code)))),
  );
  await engine.close();
}

function middle<T>(all: readonly T[]): T {
  return all[Math.floor(all.length / 2)]!;
}

describe("an audit that was damaged while nothing ran", () => {
  it.each([
    [
      "the last records cut off",
      (blocks: readonly Block[]) => blocks.slice(-2).map(({ key }) => key),
      /missing|cut off/,
    ],
    ["one in the middle gone", (blocks: readonly Block[]) => [middle(blocks).key], /missing/],
    [
      "the last one torn",
      (blocks: readonly Block[]) => {
        const { key, value } = blocks.at(-1)!;
        return [{ key, value: value.subarray(0, value.length - 20) }];
      },
      /torn|altered|missing/,
    ],
    [
      "one altered",
      (blocks: readonly Block[]) => {
        const { key, value } = middle(blocks);
        const text = value.toString("latin1").replace('"slow"', '"sl0w"');
        return [{ key, value: Buffer.from(text, "latin1") }];
      },
      /altered/,
    ],
  ])(
    "(%s) keeps nobody from starting, calls go on, and verify says what is wrong",
    async (_, change, finding) => {
      const world = await World.start(ECHO);
      for (let i = 0; i < 6; i += 1) await world.calls(32);
      const noted = await world.cli("checkpoint");
      const checkpoint = noted.out.trim();
      await world.calls(32);
      expect(await world.daemon.stop()).toBe(0);
      await tamper(world.state, change);
      const offline = await run(["audit", "verify", "--state", world.state]);
      expect(offline).toMatchObject({ status: 4, out: expect.stringMatching(finding) });
      await world.start();
      await world.calls(32);
      for (const words of [["verify"], ["verify", "--checkpoint", checkpoint]]) {
        const verdict = await world.cli(...words);
        expect(verdict).toMatchObject({ status: 4, out: expect.stringMatching(finding) });
        expect(verdict.out).toMatch(/[Rr]ecords? \d+/);
      }
    },
  );

  it("with an earlier state put in its place is found with the checkpoint that the log has", async () => {
    const world = await World.start(ECHO);
    await world.calls(64);
    const early = await run([
      "backup",
      "--config",
      world.place.config,
      "--to",
      join(world.place.directory, "early"),
    ]);
    expect(early).toMatchObject({ status: 0, err: "" });
    await world.calls(64);
    expect(await world.daemon.stop()).toBe(0);
    const last = world.daemon.lines.findLast(({ event }) => event === "audit.checkpoint");
    const checkpoint = `${String(last?.["seq"])}:${String(last?.["hash"])}`;
    // The state of before, put in its place: all of it fits together, but it ends early.
    const before = join(world.place.directory, "early");
    expect(await run(["audit", "verify", "--state", before])).toMatchObject({ status: 0 });
    expect(await run(["audit", "verify", "--state", before, "--checkpoint", checkpoint])).toMatchObject({
      status: 4,
      out: expect.stringMatching(/the end was cut off/),
    });
  });
});
