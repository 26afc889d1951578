// A daemon for the tests, as a process: listens on one role when its parent says so, echoes, and
// answers each order with one word.

import { loadLibc } from "../../src/host/libc.ts";
import {
  listenRole,
  openSocketDirectory,
  type RoleListener,
  type SocketDirectory,
} from "../../src/host/listen.ts";
import type { DaemonSetup } from "./listen_fixture.ts";

const setup = JSON.parse(process.argv[2] ?? "") as DaemonSetup;
const libc = setup.libc ? await loadLibc() : undefined;
let directory: SocketDirectory | undefined;
let listener: RoleListener | undefined;

async function listen(): Promise<string> {
  const opened = openSocketDirectory(setup.directory, libc);
  if (!opened.ok) return opened.fault.code;
  directory = opened.value;
  const listening = await listenRole(directory, {
    role: setup.role,
    mode: setup.mode,
    gid: undefined,
    backlog: 511,
    onConnection: (socket) => socket.pipe(socket),
    onAcceptFault: () => undefined,
  });
  if (!listening.ok) return listening.fault.code;
  listener = listening.value;
  return "listening";
}

function close(): string {
  listener?.close();
  directory?.release();
  return "closed";
}

const orders: Readonly<Record<string, () => string | Promise<string>>> = {
  listen,
  close,
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return String(user + system);
  },
};

process.on("message", async (order) => {
  process.send?.(await orders[String(order)]?.());
});
process.send?.("ready");
