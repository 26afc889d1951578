// Openings of a store beside the process that writes it: neither comes while the other is there, and neither waits for ever.
// Locks of one process's own two descriptors exclude each other as two processes' do.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { aloneIn, DirectoryGate } from "../../src/host/directory_gate.ts";
import { type Libc, loadLibc } from "../../src/host/libc.ts";
import { cleanUp, onCleanUp, temporaryDirectory } from "./listen_fixture.ts";

afterEach(cleanUp);

const libc = await loadLibc();

function entered(directory: string): DirectoryGate {
  const gate = DirectoryGate.entered(directory, libc);
  if (!gate.ok) throw new Error(gate.fault);
  onCleanUp(() => gate.value.close());
  return gate.value;
}

function entering(gate: DirectoryGate): Promise<void> {
  return new Promise((resolve) => gate.enter(resolve));
}

/** A process that enters, says so, and stays for so long. */
async function another(directory: string, stayMs: number) {
  const module = (name: string) => JSON.stringify(pathToFileURL(join("src/host", name)).href);
  const script = `
    const { DirectoryGate } = await import(${module("directory_gate.ts")});
    const { loadLibc } = await import(${module("libc.ts")});
    const gate = DirectoryGate.entered(${JSON.stringify(directory)}, await loadLibc());
    process.stdout.write(gate.ok ? "in" : gate.fault);
    setTimeout(() => process.exit(), ${stayMs});`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onCleanUp(() => child.kill("SIGKILL"));
  const [said] = await once(child.stdout, "data");
  expect(String(said)).toBe("in");
  return child;
}

describe("a batch", () => {
  it("waits until nobody opens the store, whose transaction would be undone", async () => {
    const directory = temporaryDirectory();
    const writer = entered(directory);
    writer.leave();
    const reader = entered(directory);
    let isIn = false;
    const batch = entering(writer).then(() => {
      isIn = true;
    });
    await after(20);
    expect(isIn).toBe(false);
    reader.leave();
    await batch;
    writer.leave();
    await entering(reader);
  });

  it("is let in where who opened it was killed", async () => {
    const directory = temporaryDirectory();
    const writer = entered(directory);
    writer.leave();
    const child = await another(directory, 1_000_000);
    const batch = entering(writer);
    child.kill("SIGKILL");
    await batch;
  });
});

describe("who opens the store", () => {
  it("waits for the batch that is being written", async () => {
    const directory = temporaryDirectory();
    const child = await another(directory, 50);
    const ended = once(child, "exit");
    await expect(aloneIn(directory, libc, () => "looked")).resolves.toEqual({ ok: true, value: "looked" });
    await ended;
  });

  it("is let in where batch follows batch", async () => {
    const directory = temporaryDirectory();
    const writer = entered(directory);
    let batches = 0;
    const next = () => {
      writer.leave();
      batches += 1;
      if (batches < 1_000_000) writer.enter(next);
    };
    next();
    const child = await another(directory, 0);
    await once(child, "exit");
    expect(batches).toBeLessThan(1_000_000);
    batches = 1_000_000;
  });

  it("is told why it can't, and does not wait for ever", async () => {
    const directory = temporaryDirectory();
    const held = entered(directory);
    const fault = (gate: ReturnType<typeof DirectoryGate.entered>) => (gate.ok ? "" : gate.fault);
    expect(fault(DirectoryGate.entered(directory, libc, 3))).toMatch(/does not go on: is one stopped/);
    held.leave();
    expect(fault(DirectoryGate.entered(join(directory, "none"), libc))).toMatch(/ENOENT/);
    expect(fault(DirectoryGate.entered(directory, undefined))).toBe("koffi did not load.");
    const unlockable: Libc = { ...libc!, lockExclusive: () => -37 };
    expect(fault(DirectoryGate.entered(directory, unlockable))).toMatch(/can't be locked \(errno 37\)/);
  });

  it("leaves the directory to others, whatever it did there", async () => {
    const directory = temporaryDirectory();
    const work = () => {
      throw new Error("broken");
    };
    await expect(aloneIn(directory, libc, work)).rejects.toThrow("broken");
    entered(directory);
    expect(process.listenerCount("SIGTSTP")).toBe(0);
  });

  it("is not stopped at the terminal while it holds up the daemon", () => {
    const directory = temporaryDirectory();
    const module = (name: string) => JSON.stringify(pathToFileURL(join("src/host", name)).href);
    const script = `
      const { aloneIn } = await import(${module("directory_gate.ts")});
      const { loadLibc } = await import(${module("libc.ts")});
      await aloneIn(${JSON.stringify(directory)}, await loadLibc(), () => process.kill(process.pid, "SIGTSTP"));`;
    const { status, stderr } = spawnSync(
      process.execPath,
      ["--import", "tsx", "--input-type=module", "-e", script],
      { encoding: "utf8", timeout: 60_000 },
    );
    expect([status, stderr]).toEqual([0, ""]);
  });
});
