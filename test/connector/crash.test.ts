// A connector that is ended with SIGKILL at every point where a record is written or bytes leave, and started again on what
// it left: nothing runs twice, and what was heard once is heard again, byte for byte.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { transformSync } from "esbuild";
import { afterEach, describe, expect, it } from "vitest";
import { withLength } from "../../src/connector/frame.ts";
import type { Order, Passed } from "../crash/points.ts";
import { RawPeer } from "./raw_peer.ts";
import { request, type Wanted, wordsOf } from "./service_rig.ts";

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const action of undo.splice(0).reverse()) await action();
});

const PRELOAD = `data:text/javascript,${encodeURIComponent(
  transformSync(readFileSync(join(import.meta.dirname, "../crash/points.ts"), "utf8"), { loader: "ts" }).code,
)}`;

class Daemon {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  readonly #lines: string[] = [];
  #waiting: (() => void)[] = [];

  constructor(directory: string) {
    const program = join(import.meta.dirname, "crash_daemon.ts");
    this.child = spawn(process.execPath, ["--import", "tsx", "--import", PRELOAD, program, directory], {
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    });
    this.ended = once(this.child, "exit");
    undo.push(() => this.kill());
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      this.#lines.push(line);
      for (const heard of this.#waiting.splice(0)) heard();
    });
  }

  /** Resolves to the first line that begins so. */
  async line(start: string): Promise<string> {
    for (;;) {
      const found = this.#lines.find((line) => line.startsWith(start));
      if (found !== undefined) return found;
      await Promise.race([new Promise<void>((resolve) => this.#waiting.push(resolve)), this.#died()]);
    }
  }

  async port(): Promise<number> {
    return Number((await this.line("port")).slice(5));
  }

  /** It was told; undefined where it died before it answered. */
  async order(order: Order): Promise<number | undefined> {
    const answered = once(this.child, "message").then(([told]) => (told as Passed).passed);
    if (this.child.connected) this.child.send(order, () => undefined);
    return Promise.race([answered, this.ended.then(() => undefined)]);
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async #died(): Promise<never> {
    await this.ended;
    throw new Error("the connector ended");
  }
}

class World {
  readonly directory: string;
  daemon: Daemon;

  constructor() {
    this.directory = mkdtempSync(join(tmpdir(), "callgate-connector-crash-"));
    undo.push(() => rmSync(this.directory, { recursive: true, force: true }));
    this.daemon = new Daemon(this.directory);
  }

  async restart(): Promise<void> {
    await this.daemon.kill();
    this.daemon = new Daemon(this.directory);
  }

  calls(id: string): number {
    const file = join(this.directory, "calls");
    if (!existsSync(file)) return 0;
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line === id).length;
  }

  /** The frame that came whole; undefined: nothing, or a part of one. */
  async ask(wanted: Wanted): Promise<Buffer | undefined> {
    const port = await this.daemon.port();
    const peer = await RawPeer.connect(port);
    await peer.send(withLength(request(wanted)));
    const { bytes } = await peer.ended;
    peer.close();
    const whole = bytes.length > 4 && bytes.readUInt32BE() === bytes.length - 4;
    return whole ? bytes.subarray(4) : undefined;
  }
}

/** One turn with an end at its `at`-th point, and all that must hold after. Returns how many points it has, where it met no end. */
async function play(world: World, at: number, lies = false): Promise<number | undefined> {
  const wanted = { request_id: `request-${at}`, expiresAtUnixMs: Date.now() + 60_000 };
  await world.daemon.port();
  await world.daemon.order({ armAt: Number.isFinite(at) ? at : 0, lies });
  const heard = await world.ask(wanted).catch(() => undefined);
  const passed = await world.daemon.order("disarm");
  if (passed === undefined) await world.restart();
  const before = world.calls(wanted.request_id);
  const again = await world.ask(wanted);
  if (heard !== undefined) expect(again).toEqual(heard);
  const words = wordsOf(again);
  if (words === "Completed") expect(world.calls(wanted.request_id)).toBe(1);
  else {
    expect(words).toBe("refused Indeterminate");
    expect(world.calls(wanted.request_id)).toBe(before);
  }
  if (passed === undefined && at % 4 !== 0) return passed; // a second end after the first is dear, and the same for all
  await world.restart();
  const last = await world.ask(wanted);
  expect(wordsOf(last)).toBe(words);
  if (words === "Completed") expect(last).toEqual(again);
  expect(world.calls(wanted.request_id)).toBeLessThanOrEqual(1);
  return passed;
}

describe("a connector that is killed", () => {
  it("at any point of a turn runs nothing twice and loses nothing that was heard", {
    timeout: 180_000,
  }, async () => {
    const world = new World();
    const points = (await play(world, Number.POSITIVE_INFINITY)) ?? 0;
    // Two writes of four points each, and a reply of three.
    expect(points).toBeGreaterThanOrEqual(11);
    for (let at = 1; at <= points; at += 1) await play(world, at);
  });

  it("while the backend has the turn leaves it indeterminate", async () => {
    const world = new World();
    const wanted = {
      request_id: "request-held",
      conversation_id: "held",
      expiresAtUnixMs: Date.now() + 60_000,
    };
    const asked = world.ask(wanted);
    await world.daemon.line("entered");
    await world.restart();
    expect(await asked).toBeUndefined();
    for (let i = 0; i < 2; i += 1) expect(wordsOf(await world.ask(wanted))).toBe("refused Indeterminate");
    expect(world.calls("request-held")).toBe(1);
  });

  it("and whose store only says that it writes is found out by this test", async () => {
    const world = new World();
    const points = (await play(world, Number.POSITIVE_INFINITY)) ?? 0;
    await expect(play(world, points, true)).rejects.toThrow();
  });
});
