// The daemon's doors: one listening socket per role, made to fit the policy at start and at a reload.
// Invariant: either every role of a policy has its door, or the doors are as they were before.

import { chmodSync, mkdirSync } from "node:fs";
import type { Server, Socket } from "node:net";
import { dirname } from "node:path";
import { visibleLine } from "../base/display.ts";
import { fault, ok, type Result } from "../base/faults.ts";
import type { Log } from "../base/ports.ts";
import type { Policy, RolePolicy } from "../policy/policy.ts";
import { type Stranger, takeInherited } from "./activation.ts";
import type { Config } from "./config.ts";
import type { Libc } from "./libc.ts";
import {
  listenInherited,
  listenRole,
  openSocketDirectory,
  type RoleListener,
  type SocketDirectory,
  turnAway,
} from "./listen.ts";
import { checkNotWider, openToGroup, socketPath } from "./socket_files.ts";
import { checkDirectory, errnoCode } from "./trusted_paths.ts";

/** Connections that may wait to be accepted; also handed to listen() again for inherited sockets. */
const BACKLOG = 4096;

/** Between two log lines about accepts that failed: there is one for every connection that waits. */
const ACCEPT_FAULT_SILENCE_MS = 1000;

const MADE_DIRECTORY_MODE = 0o755;

const NAME_CHARS_MAX = 64;

export interface DoorsOptions {
  readonly config: Pick<Config, "socketsDir" | "policy">;
  readonly libc: Libc | undefined;
  readonly log: Log;
  readonly env: NodeJS.ProcessEnv;
  readonly onConnection: (role: string, socket: Socket) => void;
}

interface Door {
  readonly listener: RoleListener;
  readonly inherited: boolean;
  socket: RolePolicy["socket"];
}

export class Doors {
  readonly #directory: SocketDirectory;
  readonly #options: DoorsOptions;
  readonly #open = new Map<string, Door>();
  /** Sockets that were handed over and are of no role. */
  readonly #unclaimed: Server[] = [];
  /** Everybody who came in and is not gone, also through doors that were closed since. */
  readonly #inside = new Set<Socket>();
  #acceptFaults = { since: 0, quietUntilMs: 0 };

  /** Opens all roles' sockets, or none. The fault is a sentence for the owner. */
  static async open(options: DoorsOptions): Promise<Result<Doors>> {
    const { config, libc } = options;
    const made = makeDirectory(config.socketsDir);
    if (!made.ok) return made;
    const directory = openSocketDirectory(config.socketsDir, libc);
    if (!directory.ok) return fault(`the sockets' directory: ${directory.fault.sentence}`);
    const doors = new Doors(directory.value, options);
    const opened = await doors.#openAll();
    if (!opened.ok) {
      await doors.close();
      return opened;
    }
    return ok(doors);
  }

  private constructor(directory: SocketDirectory, options: DoorsOptions) {
    this.#directory = directory;
    this.#options = options;
  }

  /**
   * Opens what the policy adds, sets what it changes and, once `adopt` has put it into force, closes
   * what it takes away. With a fault nothing has changed and `adopt` was not called.
   */
  async fit(policy: Policy, adopt: () => void): Promise<Result<undefined>> {
    const added: string[] = [];
    const changed: Door[] = [];
    const failed = await this.#prepare(policy, added, changed);
    if (failed !== undefined) {
      for (const door of changed) setSocket(door, door.socket); // back to what it was
      for (const name of added) this.#shut(name);
      return fault(failed);
    }
    for (const door of changed) door.socket = policy.roles.get(door.listener.role)?.socket ?? door.socket;
    adopt();
    for (const name of this.#open.keys()) if (!policy.roles.has(name)) this.#shut(name);
    return ok(undefined);
  }

  /** A socket was handed over: somebody keeps it while there is no daemon. */
  get areInherited(): boolean {
    return [...this.#open.values()].some(({ inherited }) => inherited);
  }

  stopAccepting(): void {
    for (const { listener } of this.#open.values()) listener.stopAccepting();
    for (const server of this.#unclaimed.splice(0)) server.close();
  }

  /** Resolves when everything that was sent to those inside is with the kernel, or after `withinMs`. */
  async emptied(withinMs: number): Promise<void> {
    const closing = [...this.#inside].map(written);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((settle) => {
      timer = setTimeout(settle, withinMs);
    });
    await Promise.race([Promise.all(closing), late]);
    clearTimeout(timer);
  }

  /** Also ends every connection; resolves when all are gone. */
  async close(): Promise<void> {
    const gone = [...this.#inside].map(
      (socket) => new Promise<void>((settle) => socket.once("close", () => settle())),
    );
    this.stopAccepting();
    for (const { listener } of this.#open.values()) listener.close();
    for (const socket of this.#inside) socket.destroy();
    this.#open.clear();
    this.#directory.release();
    await Promise.all(gone);
  }

  async #prepare(policy: Policy, added: string[], changed: Door[]): Promise<string | undefined> {
    for (const role of policy.roles.values()) {
      const door = this.#open.get(role.name);
      if (door === undefined) {
        const opened = await this.#openRole(role);
        if (!opened.ok) return opened.fault;
        added.push(role.name);
      } else if (!sameSocket(role.socket, door.socket)) {
        changed.push(door);
        const set = setSocket(door, role.socket);
        if (!set.ok) return set.fault;
      }
    }
    return undefined;
  }

  #shut(name: string): void {
    this.#open.get(name)?.listener.stopAccepting();
    this.#open.delete(name);
  }

  async #openAll(): Promise<Result<undefined>> {
    const { config, env, libc } = this.#options;
    const paths = new Map<string, string>();
    for (const name of config.policy.roles.keys()) {
      const path = socketPath(this.#directory.path, name);
      if (!path.ok) return fault(path.fault.sentence);
      paths.set(name, path.value);
    }
    const inherited = takeInherited(env, process.pid, paths, libc);
    if (!inherited.ok) return fault(inherited.fault.sentence);
    for (const role of config.policy.roles.values()) {
      const given = inherited.value.byRole.get(role.name);
      if (given === undefined) {
        const opened = await this.#openRole(role);
        if (!opened.ok) return opened;
        continue;
      }
      const taken = await listenInherited(given, this.#listenOptions(role));
      if (!taken.ok) return fault(taken.fault.sentence);
      this.#open.set(role.name, { listener: taken.value, inherited: true, socket: role.socket });
    }
    for (const stranger of inherited.value.strangers) await this.#turnAway(stranger);
    return ok(undefined);
  }

  async #turnAway({ name, fd }: Stranger): Promise<void> {
    const server = await turnAway(fd, BACKLOG);
    if (server !== undefined) this.#unclaimed.push(server);
    this.#options.log("warn", "socket.unclaimed", { name: visibleLine(name, NAME_CHARS_MAX) });
  }

  async #openRole(role: RolePolicy): Promise<Result<undefined>> {
    const opened = await listenRole(this.#directory, this.#listenOptions(role));
    if (!opened.ok) return fault(`${opened.fault.sentence}${this.#missingSocket(role.name)}`);
    this.#open.set(role.name, { listener: opened.value, inherited: false, socket: role.socket });
    return ok(undefined);
  }

  /** Where a service manager makes the sockets, one that we could not make is one that it was not told of. */
  #missingSocket(role: string): string {
    if (!this.areInherited) return "";
    return ` Other roles' sockets were handed over, but none for ${role}: make its unit (callgate install) and restart.`;
  }

  #listenOptions(role: RolePolicy) {
    return {
      role: role.name,
      mode: role.socket.mode,
      gid: role.socket.gid,
      backlog: BACKLOG,
      onConnection: (socket: Socket) => this.#connected(role.name, socket),
      onAcceptFault: (code: string) => this.#acceptFailed(role.name, code),
    };
  }

  #connected(role: string, socket: Socket): void {
    this.#inside.add(socket);
    socket.once("close", () => this.#inside.delete(socket));
    this.#options.onConnection(role, socket);
  }

  #acceptFailed(role: string, code: string): void {
    const faults = this.#acceptFaults;
    faults.since += 1;
    const nowMs = performance.now();
    if (nowMs < faults.quietUntilMs) return;
    this.#options.log("error", "accept.failed", { role, code, count: faults.since });
    this.#acceptFaults = { since: 0, quietUntilMs: nowMs + ACCEPT_FAULT_SILENCE_MS };
  }
}

/** All that was written is with the kernel, or nobody is there to get it. */
function written(socket: Socket): Promise<void> {
  return new Promise((settle) => {
    if (socket.writableFinished || socket.destroyed) settle();
    for (const event of ["finish", "close"]) socket.once(event, () => settle());
  });
}

function sameSocket(a: RolePolicy["socket"], b: RolePolicy["socket"]): boolean {
  return a.mode === b.mode && a.gid === b.gid;
}

/** Sets group and mode of an open door's socket file; on the way it is never wider than both allow. */
function setSocket({ listener, inherited, socket }: Door, next: RolePolicy["socket"]): Result<undefined> {
  const { path } = listener;
  if (inherited) {
    const wide = checkNotWider(path, next.mode, next.gid);
    return wide.ok ? ok(undefined) : fault(wide.fault.sentence);
  }
  try {
    chmodSync(path, socket.mode & next.mode & 0o600);
  } catch (error) {
    return fault(`the mode of ${JSON.stringify(path)} can't be set (${errnoCode(error)})`);
  }
  const set = openToGroup(path, next.mode, next.gid ?? process.getegid?.() ?? -1);
  return set.ok ? ok(undefined) : fault(set.fault.sentence);
}

/** Makes the last directory of the path, where what is above it can be trusted. */
function makeDirectory(path: string): Result<undefined> {
  const there = checkDirectory(path, process.geteuid?.() ?? -1);
  if (there.ok || there.fault.code !== "missing") return ok(undefined); // what is wrong is said when it is opened
  try {
    mkdirSync(path, { mode: MADE_DIRECTORY_MODE });
    chmodSync(path, MADE_DIRECTORY_MODE); // whatever the umask: roles of other users must get to their sockets
    return ok(undefined);
  } catch {
    return fault(
      `the sockets' directory ${JSON.stringify(path)} is missing and can't be made: make ${JSON.stringify(dirname(path))} first`,
    );
  }
}
