import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, linkSync, lstatSync, mkdirSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { type Libc, loadLibc } from "../../src/host/libc.ts";
import {
  listenRole,
  openSocketDirectory,
  type RoleListener,
  type SocketDirectory,
} from "../../src/host/listen.ts";
import {
  cleanUp,
  closed,
  connectAs,
  connected,
  type Daemon,
  daemon,
  daemonWithDescriptors,
  echoes,
  GROUP,
  onCleanUp,
  requireRoot,
  STRANGER,
  temporaryDirectory,
} from "./listen_fixture.ts";

let libc: Libc;

beforeAll(async () => {
  requireRoot();
  const loaded = await loadLibc();
  if (loaded === undefined) throw new Error("koffi must load where the tests run");
  libc = loaded;
});
afterEach(cleanUp);

function opened(path = temporaryDirectory()): SocketDirectory {
  const directory = openSocketDirectory(path, libc);
  if (!directory.ok) throw new Error(directory.fault.sentence);
  onCleanUp(directory.value.release);
  return directory.value;
}

interface Attempt {
  readonly role?: string;
  readonly mode?: number;
  readonly gid?: number;
  readonly onConnection?: (socket: Socket) => void;
}

function attempt(
  directory: SocketDirectory,
  { role = "agent", mode = 0o600, gid, onConnection }: Attempt = {},
) {
  return listenRole(directory, {
    role,
    mode,
    gid,
    backlog: 511,
    onConnection: onConnection ?? ((socket) => socket.pipe(socket)),
    onAcceptFault: () => undefined,
  });
}

async function listening(directory: SocketDirectory, options: Attempt = {}): Promise<RoleListener> {
  const listener = await attempt(directory, options);
  if (!listener.ok) throw new Error(listener.fault.sentence);
  onCleanUp(listener.value.close);
  return listener.value;
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function access(path: string): { readonly mode: number; readonly gid: number } {
  const { mode, gid } = lstatSync(path);
  return { mode: mode & 0o7777, gid };
}

describe("a role's socket", () => {
  it("has the configured mode and group, and the umask is as before", async () => {
    const before = process.umask();
    const { path } = await listening(opened(), { mode: 0o660, gid: GROUP });
    expect(access(path)).toEqual({ mode: 0o660, gid: GROUP });
    expect(process.umask()).toBe(before);
  });

  it("has the daemon's group where none is configured, also in a directory that hands down its own", async () => {
    const directory = temporaryDirectory();
    chownSync(directory, 0, GROUP);
    chmodSync(directory, 0o2755);
    const { path } = await listening(opened(directory), { mode: 0o660 });
    expect(access(path)).toEqual({ mode: 0o660, gid: process.getegid?.() });
  });

  it("lets in whom its group names, and keeps out who is not in it", async () => {
    const arrivals: Socket[] = [];
    const { path, server } = await listening(opened(), {
      mode: 0o660,
      gid: GROUP,
      onConnection: (socket) => arrivals.push(socket),
    });
    const [code] = await once(connectAs(path, STRANGER, STRANGER, []), "exit");
    expect(code).toBe(3);
    connectAs(path, STRANGER, STRANGER, [GROUP]);
    await once(server, "connection");
    expect(arrivals).toHaveLength(1);
  });

  it("is never wider than configured, seen from outside through two hundred starts", async () => {
    const directory = opened();
    const path = join(directory.path, "agent.sock");
    const watcher = fork(join(import.meta.dirname, "listen_watcher.ts"), [path], {
      execArgv: ["--import", "tsx"],
    });
    onCleanUp(() => watcher.kill("SIGKILL"));
    await once(watcher, "message");
    for (let start = 0; start < 200; start += 1)
      (await listening(directory, { mode: 0o660, gid: GROUP })).close();
    await listening(directory, { mode: 0o660, gid: GROUP });
    watcher.send("report once the socket was seen open");
    const [seen] = (await once(watcher, "message")) as [string[]];
    const allowed = [`600 ${process.getegid?.()}`, `600 ${GROUP}`, `660 ${GROUP}`];
    expect(seen).toContain(`660 ${GROUP}`);
    expect(seen.filter((state) => !allowed.includes(state))).toEqual([]);
  });

  it("answers after its peer has half-closed", async () => {
    const { path } = await listening(opened(), {
      onConnection: (socket) => {
        socket.resume();
        socket.on("end", () => setImmediate(() => socket.end("late answer")));
      },
    });
    const socket = await connected(path);
    socket.end();
    const [answer] = await once(socket, "data");
    expect(String(answer)).toBe("late answer");
  });

  it("goes on when a peer is gone in the middle of a write", async () => {
    const arrivals: Socket[] = [];
    const { path, server } = await listening(opened(), { onConnection: (socket) => arrivals.push(socket) });
    const [client] = await Promise.all([connected(path), once(server, "connection")]);
    client.destroy();
    arrivals[0]!.write(Buffer.alloc(4_000_000));
    await closed(arrivals[0]!);
    await connected(path);
  });
});

describe("a daemon does not start", () => {
  it("where the socket's path would be cut silently at 107 bytes", async () => {
    const directory = temporaryDirectory();
    const long = join(directory, "d".repeat(120 - directory.length - "/".length - "/agent.sock".length));
    mkdirSync(long, { mode: 0o755 });
    const result = await attempt(opened(long));
    expect(result).toMatchObject({ ok: false, fault: { code: "too_long" } });
    if (!result.ok) expect(Buffer.byteLength(result.fault.path)).toBe(120);
  });

  it("in a directory that belongs to somebody else", () => {
    const directory = temporaryDirectory();
    chownSync(directory, STRANGER, STRANGER);
    expect(openSocketDirectory(directory, libc)).toMatchObject({
      ok: false,
      fault: { code: "foreign_owner" },
    });
    expect(exists(join(directory, ".callgate.lock"))).toBe(false);
  });

  it("over a file, which stays as it was", async () => {
    const directory = opened();
    const path = join(directory.path, "agent.sock");
    writeFileSync(path, "precious", { mode: 0o644 });
    expect(await attempt(directory, { mode: 0o666 })).toMatchObject({ fault: { code: "not_a_socket" } });
    expect(lstatSync(path)).toMatchObject({ size: 8, mode: 0o100644 });
  });

  it.each([true, false])("beside a living one, which keeps its socket (libc: %s)", async (withLibc) => {
    const directory = temporaryDirectory();
    const setup = { directory, role: "agent", mode: 0o600, libc: withLibc };
    const [living, second] = await Promise.all([daemon(setup), daemon(setup)]);
    expect(await living.ask("listen")).toBe("listening");
    const client = await connected(join(directory, "agent.sock"));
    const before = lstatSync(join(directory, "agent.sock")).ino;
    expect(await second.ask("listen")).toBe("held_by_another");
    expect(await second.ask("close")).toBe("closed");
    await second.kill();
    expect(lstatSync(join(directory, "agent.sock")).ino).toBe(before);
    expect(await echoes(client, "old")).toBe(true);
    expect(await echoes(await connected(join(directory, "agent.sock")), "new")).toBe(true);
  });

  it("together with another: of two at once, beside a stale socket, exactly one wins each time", async () => {
    const directory = temporaryDirectory();
    const setup = { directory, role: "agent", mode: 0o600, libc: true };
    const pair = await Promise.all([daemon(setup), daemon(setup)]);
    for (let round = 0; round < 20; round += 1) {
      await leaveStale(join(directory, "agent.sock"));
      const answers = await Promise.all(pair.map((one) => one.ask("listen")));
      expect([...answers].sort()).toEqual(["held_by_another", "listening"]);
      expect(await echoes(await connected(join(directory, "agent.sock")), "served")).toBe(true);
      await Promise.all(pair.map((one) => one.ask("close")));
    }
  });
});

/** A socket file that nobody listens on: the second name of one whose first name went with its server. */
async function leaveStale(path: string): Promise<void> {
  const server = createServer().listen(`${path}.first`);
  linkSync(`${path}.first`, path);
  server.close();
  await once(server, "close");
}

describe("a daemon whose sockets are all inherited", () => {
  it("writes nothing in their directory: the lock is taken when the first socket is bound", async () => {
    const directory = opened();
    const lock = join(directory.path, ".callgate.lock");
    expect(exists(lock)).toBe(false);
    await listening(directory);
    expect(exists(lock)).toBe(true);
  });
});

describe("a daemon that was killed", () => {
  it.each([true, false])("starts again although its socket file is there (libc: %s)", async (withLibc) => {
    const directory = temporaryDirectory();
    const setup = { directory, role: "agent", mode: 0o600, libc: withLibc };
    const [first, second] = await Promise.all([daemon(setup), daemon(setup)]);
    expect(await first.ask("listen")).toBe("listening");
    await first.kill();
    expect(exists(join(directory, "agent.sock"))).toBe(true);
    expect(await second.ask("listen")).toBe("listening");
    expect(await echoes(await connected(join(directory, "agent.sock")), "again")).toBe(true);
  });
});

describe("a listener that stops", () => {
  it("removes its socket and leaves its connections, and ends them when it closes", async () => {
    const listener = await listening(opened());
    const client = await connected(listener.path);
    expect(await echoes(client, "before")).toBe(true);
    listener.stopAccepting();
    expect(exists(listener.path)).toBe(false);
    expect(await echoes(client, "after")).toBe(true);
    listener.close();
    await closed(client);
  });

  it("never removes the socket of whoever has taken its place", async () => {
    const listener = await listening(opened());
    unlinkSync(listener.path);
    const other = createServer((socket) => socket.pipe(socket)).listen(listener.path);
    onCleanUp(() => other.close());
    const theirs = lstatSync(listener.path).ino;
    listener.close();
    listener.close();
    expect(lstatSync(listener.path).ino).toBe(theirs);
    expect(await echoes(await connected(listener.path), "still here")).toBe(true);
  });

  it("never removes a file that was put in its place", async () => {
    const listener = await listening(opened());
    unlinkSync(listener.path);
    writeFileSync(listener.path, "precious");
    listener.close();
    expect(lstatSync(listener.path).size).toBe(8);
  });

  it("leaves nothing behind when its group cannot be given", async () => {
    const directory = opened();
    expect(await attempt(directory, { gid: 2 ** 33 })).toMatchObject({ fault: { code: "not_ours_to_set" } });
    expect(exists(join(directory.path, "agent.sock"))).toBe(false);
  });
});

describe("connections up to the limit of descriptors", () => {
  it("do not stop those that run, cost no processor time, and are accepted again when there is room", async () => {
    const directory = temporaryDirectory();
    const full = await daemonWithDescriptors({ directory, role: "agent", mode: 0o600, libc: true }, 48);
    expect(await full.ask("listen")).toBe("listening");
    const path = join(directory, "agent.sock");
    const running = await connected(path);
    expect(await echoes(running, "before")).toBe(true);

    const crowd = await Promise.all(Array.from({ length: 100 }, () => connected(path)));
    await Promise.race(crowd.map(closed));
    expect(await echoes(running, "while full")).toBe(true);
    expect(await shareOfProcessor(full)).toBeLessThan(0.5);
    await closed(await connected(path));

    for (const socket of crowd) socket.destroy();
    await Promise.all(crowd.map(closed));
    expect(await echoesInTime(path)).toBe(true);
    expect(await echoes(running, "after")).toBe(true);
  });
});

/** Of one processor, that the daemon takes while another process starts and ends. */
async function shareOfProcessor(full: Daemon): Promise<number> {
  const beforeUs = Number(await full.ask("cpu"));
  const startedAtMs = performance.now();
  await once(spawn(process.execPath, ["-e", "setTimeout(() => {}, 300)"]), "exit");
  const elapsedUs = (performance.now() - startedAtMs) * 1000;
  return (Number(await full.ask("cpu")) - beforeUs) / elapsedUs;
}

/** Tries again where it is shed: the daemon may not have seen yet that the others are gone. */
async function echoesInTime(path: string): Promise<boolean> {
  for (let attempts = 0; attempts < 100; attempts += 1) {
    const socket = await connected(path);
    const answered = await Promise.race([
      echoes(socket, "room again").catch(() => false),
      closed(socket).then(() => false),
    ]);
    if (answered) return true;
  }
  return false;
}
