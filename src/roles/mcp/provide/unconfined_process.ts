// A server that runs like any child of ours: in a session of its own, with a keeper that ends what it leaves, as far as
// that can be found.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { ServerCommand } from "./confinement.ts";
import { type Housing, passOn, type ServerExit, type ServerOutput, signalGroup } from "./housing.ts";
import { Keeper, MARK_NAME } from "./keeper.ts";

export class UnconfinedProcess implements Housing {
  readonly child: ChildProcess;
  readonly exited: Promise<ServerExit>;
  readonly #keeper: Keeper;

  /**
   * `onUnkept`: its keeper is gone.
   *
   * @throws what `spawn` does where the system won't even try
   */
  constructor({ command, args, env, cwd }: ServerCommand, output: ServerOutput, onUnkept: () => void) {
    const mark = randomBytes(16).toString("hex");
    this.#keeper = new Keeper(mark, onUnkept);
    try {
      this.child = spawn(command, [...args], {
        detached: true,
        stdio: ["pipe", "pipe", "pipe"],
        env: { ...env, [MARK_NAME]: mark },
        ...(cwd === undefined ? {} : { cwd }),
      });
    } catch (error) {
      void this.#keeper.finish(true);
      throw error;
    }
    this.exited = exitOf(this.child);
    passOn(this.child, output);
    if (this.child.pid !== undefined) this.#keeper.watch(this.child.pid);
  }

  askToEnd(): void {
    signalGroup(this.child, "SIGTERM");
  }

  end(): void {
    signalGroup(this.child, "SIGKILL");
  }

  clear(): Promise<number | undefined> {
    return this.#keeper.finish(!signalGroup(this.child, 0));
  }

  isHidden(): boolean {
    return true; // nothing is
  }
}

function exitOf(child: ChildProcess): Promise<ServerExit> {
  return new Promise((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) resolve({ how: error.code ?? "unknown error", hopeless: true });
    });
    child.once("exit", (code, signal) => resolve({ how: signal ?? `exit ${code}`, hopeless: false }));
  });
}
