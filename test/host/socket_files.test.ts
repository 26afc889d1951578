import { once } from "node:events";
import { lstatSync, mkdirSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { type Libc, loadLibc } from "../../src/host/libc.ts";
import { clearStale, lockDirectory, socketPath } from "../../src/host/socket_files.ts";
import { cleanUp, connected, daemon, onCleanUp, requireRoot, temporaryDirectory } from "./listen_fixture.ts";

let libc: Libc;

beforeAll(async () => {
  requireRoot();
  const loaded = await loadLibc();
  if (loaded === undefined) throw new Error("koffi must load where the tests run");
  libc = loaded;
});
afterEach(cleanUp);

async function cleared(path: string): Promise<string> {
  const result = await clearStale(path);
  return result.ok ? "clear" : result.fault.code;
}

async function bound(path: string): Promise<void> {
  const server = createServer().listen(path);
  onCleanUp(() => server.close());
  await once(server, "listening");
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

describe("the path of a role's socket", () => {
  it("may have 107 bytes and no more, counted as bytes", () => {
    const directory = `/${"d".repeat(98)}`;
    expect(socketPath(directory, "ab")).toEqual({ ok: true, value: `${directory}/ab.sock` });
    expect(socketPath(directory, "abc")).toMatchObject({ ok: false, fault: { code: "too_long" } });
    expect(socketPath(`/${"é".repeat(50)}`, "ab")).toMatchObject({ ok: false, fault: { code: "too_long" } });
  });
});

describe("room for a socket", () => {
  it("is there where nothing is", async () => {
    expect(await cleared(join(temporaryDirectory(), "a.sock"))).toBe("clear");
  });

  it("is not made by removing a file, a directory or a link: whatever was there stays", async () => {
    const directory = temporaryDirectory();
    const [file, folder, link] = ["file", "folder", "link"].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(file, "precious");
    mkdirSync(folder);
    await bound(join(directory, "live.sock"));
    symlinkSync("live.sock", link);
    for (const path of [file, folder, link]) {
      expect(await cleared(path)).toBe("not_a_socket");
      expect(exists(path)).toBe(true);
    }
  });

  it("is not made by removing a socket that answers", async () => {
    const path = join(temporaryDirectory(), "a.sock");
    await bound(path);
    expect(await cleared(path)).toBe("held_by_another");
    await connected(path);
  });

  it("is not made by removing the socket of a living daemon that is stopped and whose backlog is full", async () => {
    const directory = temporaryDirectory();
    const path = join(directory, "a.sock");
    const server = createServer().listen({ path, backlog: 1 });
    onCleanUp(() => server.close());
    // Nothing is accepted while this turn of the event loop lasts, which is what a stopped daemon looks like.
    const answers = await Promise.all(Array.from({ length: 8 }, () => cleared(path)));
    expect(new Set(answers)).toEqual(new Set(["held_by_another"]));
    expect(exists(path)).toBe(true);
  });

  it("is made by removing what a killed daemon left", async () => {
    const directory = temporaryDirectory();
    const left = await daemon({ directory, role: "a", mode: 0o600, libc: true });
    expect(await left.ask("listen")).toBe("listening");
    await left.kill();
    const path = join(directory, "a.sock");
    expect(exists(path)).toBe(true);
    expect(await cleared(path)).toBe("clear");
    expect(exists(path)).toBe(false);
  });
});

describe("the lock of a directory", () => {
  it("is had by one at a time, and again after its release", () => {
    const directory = temporaryDirectory();
    const first = lockDirectory(directory, libc);
    expect(first.ok).toBe(true);
    expect(lockDirectory(directory, libc)).toMatchObject({ ok: false, fault: { code: "held_by_another" } });
    if (first.ok) first.value.release();
    const second = lockDirectory(directory, libc);
    expect(second.ok).toBe(true);
    // A second release must not close whoever has the descriptor's number by now.
    if (first.ok) first.value.release();
    expect(lockDirectory(directory, libc).ok).toBe(false);
    if (second.ok) second.value.release();
  });

  it("is a file of the daemon alone, which stays", () => {
    const directory = temporaryDirectory();
    const lock = lockDirectory(directory, libc);
    if (lock.ok) lock.value.release();
    expect(lstatSync(join(directory, ".callgate.lock")).mode & 0o7777).toBe(0o600);
  });

  it("follows no link and takes no directory for a lock", () => {
    const directory = temporaryDirectory();
    const target = join(directory, "target");
    const lock = join(directory, ".callgate.lock");
    symlinkSync("target", lock);
    expect(lockDirectory(directory, libc)).toMatchObject({ ok: false, fault: { code: "unreadable" } });
    expect(exists(target)).toBe(false);
    unlinkSync(lock);
    mkdirSync(lock);
    expect(lockDirectory(directory, libc).ok).toBe(false);
  });

  it("is done without where libc is missing", () => {
    const directory = temporaryDirectory();
    expect(lockDirectory(directory, undefined).ok).toBe(true);
    expect(lockDirectory(directory, undefined).ok).toBe(true);
  });
});
