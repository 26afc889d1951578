// The daemon's doors: one listening socket per role, made to fit the policy at start and at a reload.

import { mkdirSync } from "node:fs";
import type { Socket } from "node:net";
import { dirname } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import type { Log } from "../base/ports.ts";
import type { Policy, RolePolicy } from "../policy/policy.ts";
import { takeInherited } from "./activation.ts";
import type { Config } from "./config.ts";
import type { Libc } from "./libc.ts";
import {
  listenInherited,
  listenRole,
  openSocketDirectory,
  type RoleListener,
  type SocketDirectory,
} from "./listen.ts";
import { socketPath } from "./socket_files.ts";
import { checkDirectory, checkFile } from "./trusted_paths.ts";

/** Connections that may wait to be accepted; also handed to listen() again for inherited sockets. */
const BACKLOG = 4096;

export interface DoorsOptions {
  readonly config: Config;
  readonly libc: Libc | undefined;
  readonly log: Log;
  readonly env: NodeJS.ProcessEnv;
  readonly onConnection: (role: string, socket: Socket) => void;
}

interface Door {
  readonly listener: RoleListener;
  readonly socket: RolePolicy["socket"];
}

export class Doors {
  readonly #directory: SocketDirectory;
  readonly #options: DoorsOptions;
  readonly #open = new Map<string, Door>();

  /** Opens all roles' sockets, or none. The fault is a sentence for the owner. */
  static async open(options: DoorsOptions): Promise<Result<Doors>> {
    const { config, libc } = options;
    const trusted = checkFile(config.path, process.geteuid?.() ?? -1);
    if (!trusted.ok) return fault(`the config file: ${trusted.fault.sentence}`);
    const made = makeDirectory(config.socketsDir);
    if (!made.ok) return made;
    const directory = openSocketDirectory(config.socketsDir, libc);
    if (!directory.ok) return fault(`the sockets' directory: ${directory.fault.sentence}`);
    const doors = new Doors(directory.value, options);
    const opened = await doors.#openAll();
    if (!opened.ok) {
      doors.close();
      return opened;
    }
    return ok(doors);
  }

  private constructor(directory: SocketDirectory, options: DoorsOptions) {
    this.#directory = directory;
    this.#options = options;
  }

  /** Opens what the new policy adds or changes, closes what it takes away. Returns what could not be opened. */
  async fit(policy: Policy): Promise<readonly string[]> {
    const faults: string[] = [];
    for (const [name, door] of this.#open) {
      const role = policy.roles.get(name);
      if (role !== undefined && sameSocket(role.socket, door.socket)) continue;
      door.listener.stopAccepting();
      this.#open.delete(name);
    }
    for (const role of policy.roles.values()) {
      if (this.#open.has(role.name)) continue;
      const opened = await this.#openRole(role);
      if (!opened.ok) faults.push(opened.fault);
    }
    return faults;
  }

  stopAccepting(): void {
    for (const { listener } of this.#open.values()) listener.stopAccepting();
  }

  close(): void {
    for (const { listener } of this.#open.values()) listener.close();
    this.#open.clear();
    this.#directory.release();
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
      const given = inherited.value.get(role.name);
      if (given === undefined) {
        const opened = await this.#openRole(role);
        if (!opened.ok) return opened;
        continue;
      }
      const taken = await listenInherited(given, this.#listenOptions(role));
      if (!taken.ok) return fault(taken.fault.sentence);
      this.#open.set(role.name, { listener: taken.value, socket: role.socket });
    }
    return ok(undefined);
  }

  async #openRole(role: RolePolicy): Promise<Result<undefined>> {
    const opened = await listenRole(this.#directory, this.#listenOptions(role));
    if (!opened.ok) return fault(opened.fault.sentence);
    this.#open.set(role.name, { listener: opened.value, socket: role.socket });
    return ok(undefined);
  }

  #listenOptions(role: RolePolicy) {
    return {
      role: role.name,
      mode: role.socket.mode,
      gid: role.socket.gid,
      backlog: BACKLOG,
      onConnection: (socket: Socket) => this.#options.onConnection(role.name, socket),
      onAcceptFault: (code: string) => this.#options.log("error", "accept.failed", { role: role.name, code }),
    };
  }
}

function sameSocket(a: RolePolicy["socket"], b: RolePolicy["socket"]): boolean {
  return a.mode === b.mode && a.gid === b.gid;
}

/** Makes the last directory of the path, where what is above it can be trusted. */
function makeDirectory(path: string): Result<undefined> {
  const parent = checkDirectory(path, process.geteuid?.() ?? -1);
  if (parent.ok || parent.fault.code !== "missing") return ok(undefined); // what is wrong is said when it is opened
  try {
    mkdirSync(path, { mode: 0o755 });
    return ok(undefined);
  } catch {
    return fault(
      `the sockets' directory ${JSON.stringify(path)} is missing and can't be made: make ${JSON.stringify(dirname(path))} first`,
    );
  }
}
