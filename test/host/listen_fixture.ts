// What the tests of the host's sockets share: directories of their own, other processes, other users.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Users and groups that no account needs to exist for. */
export const STRANGER = 54_321;
export const GROUP = 54_322;

/** These tests become other users and give files away; without root they would prove nothing. */
export function requireRoot(): void {
  if (process.getuid?.() !== 0) throw new Error("these tests must run as root");
}

const undo: (() => void)[] = [];

/** Undoes what the fixtures of a test have made; for `afterEach`. */
export function cleanUp(): void {
  for (const action of undo.splice(0).reverse()) action();
}

export function onCleanUp(action: () => void): void {
  undo.push(action);
}

/** A directory of ours that others may enter. */
export function temporaryDirectory(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "callgate-")));
  chmodSync(path, 0o755);
  onCleanUp(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export async function connected(path: string): Promise<Socket> {
  const socket = connect(path);
  onCleanUp(() => socket.destroy());
  await once(socket, "connect");
  socket.on("error", () => undefined);
  return socket;
}

/** Resolves when the socket is closed, by whichever side and however. */
export function closed(socket: Socket): Promise<void> {
  socket.resume();
  return new Promise((settle) => {
    if (socket.closed) settle();
    else socket.once("close", () => settle());
  });
}

/** Sends a word to an echoing daemon and waits until it is back. */
export async function echoes(socket: Socket, word: string): Promise<boolean> {
  socket.write(word);
  const [answer] = await once(socket, "data");
  return String(answer) === word;
}

/** A process of another user that connects to `path` and stays. */
export function connectAs(path: string, uid: number, gid: number, groups: readonly number[]): ChildProcess {
  const script = `require("node:net").connect(${JSON.stringify(path)}).on("error",()=>process.exit(3)).resume()`;
  const named = groups.length === 0 ? ["--clear-groups"] : ["--groups", groups.join(",")];
  const identity = ["--reuid", String(uid), "--regid", String(gid), ...named];
  const child = spawn("setpriv", [...identity, process.execPath, "-e", script], { stdio: "ignore" });
  onCleanUp(() => child.kill("SIGKILL"));
  return child;
}

export interface DaemonSetup {
  readonly directory: string;
  readonly role: string;
  readonly mode: number;
  /** Off: as where koffi cannot be loaded. */
  readonly libc: boolean;
}

/** `listening`, or the code of the fault. */
export type DaemonAnswer = string;

/** A second daemon: a process of its own that listens when it is told to (listen_daemon.ts). */
export interface Daemon {
  readonly child: ChildProcess;
  ask(order: "listen" | "close" | "cpu"): Promise<DaemonAnswer>;
  kill(): Promise<void>;
}

const DAEMON = join(import.meta.dirname, "listen_daemon.ts");

export async function daemon(setup: DaemonSetup): Promise<Daemon> {
  return ready(fork(DAEMON, [JSON.stringify(setup)], { execArgv: ["--import", "tsx"] }));
}

/** The same with a limit on open descriptors. */
export async function daemonWithDescriptors(setup: DaemonSetup, descriptors: number): Promise<Daemon> {
  const command = `ulimit -n ${descriptors}; exec "$0" "$@"`;
  const node = [process.execPath, "--import", "tsx", DAEMON, JSON.stringify(setup)];
  const stdio = ["ignore", "inherit", "inherit", "ipc"] as const;
  return ready(spawn("sh", ["-c", command, ...node], { stdio: [...stdio] }));
}

async function ready(child: ChildProcess): Promise<Daemon> {
  onCleanUp(() => child.kill("SIGKILL"));
  await once(child, "message");
  return {
    child,
    ask: async (order) => {
      child.send(order);
      const [answer] = await once(child, "message");
      return String(answer);
    },
    kill: async () => {
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}
