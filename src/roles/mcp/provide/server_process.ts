// A server that runs as our child: its start, its three streams, its end. It has a session of its own, the environment
// it was given and no descriptor beside those streams. Invariant: from `ended` on no process of it is left that its keeper
// could find.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Environment } from "./environment.ts";
import { Keeper, MARK_NAME } from "./keeper.ts";

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Environment;
  readonly cwd?: string | undefined;
}

export interface ServerOutput {
  stdout(chunk: Buffer): void;
  stderr(chunk: Buffer): void;
}

export interface ServerEnd {
  /** A system's error code where it never started, `exit 1`, `SIGKILL`. */
  readonly how: string;
  readonly started: boolean;
  /** Processes of its that did not end by themselves; undefined where that is not known. */
  readonly ended: number | undefined;
}

/** After the end of its input, and after SIGTERM. */
const GRACE_MS = 2000;
/** Bytes for the server that it does not read. */
const UNREAD_BYTES_MAX = 33_554_432;

export class ServerProcess {
  /** Resolves when it and all that it started are gone. Never rejects. */
  readonly ended: Promise<ServerEnd>;
  readonly #child: ChildProcess;
  readonly #keeper: Keeper;
  readonly #exited: Promise<{ readonly how: string; readonly started: boolean }>;
  #stopping = false;

  /** @throws what `spawn` does where the system won't even try */
  constructor({ command, args, env, cwd }: ServerCommand, output: ServerOutput) {
    const mark = randomBytes(16).toString("hex");
    this.#keeper = new Keeper(mark, () => void this.stop(0));
    try {
      this.#child = spawn(command, [...args], {
        detached: true,
        stdio: ["pipe", "pipe", "pipe"],
        env: { ...env, [MARK_NAME]: mark },
        ...(cwd === undefined ? {} : { cwd }),
      });
    } catch (error) {
      void this.#keeper.finish(true);
      throw error;
    }
    this.#exited = exitOf(this.#child);
    this.#child.stdin?.on("error", () => undefined); // it does not read any more: its exit says why
    this.#child.stdout?.on("data", (chunk: Buffer) => output.stdout(chunk));
    this.#child.stderr?.on("data", (chunk: Buffer) => output.stderr(chunk));
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.on("error", () => undefined);
    if (this.#child.pid !== undefined) this.#keeper.watch(this.#child.pid);
    this.ended = this.#exited.then((exit) => this.#clear(exit));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** False: it has not read what it was given before, so this is not given to it. */
  write(line: string): boolean {
    const { stdin } = this.#child;
    if (stdin === null || !stdin.writable || stdin.writableLength > UNREAD_BYTES_MAX) return false;
    // Lines of one turn go out in one write: with many calls at once that is most of what a call costs here.
    if (stdin.writableCorked === 0) {
      stdin.cork();
      queueMicrotask(() => process.nextTick(() => stdin.uncork()));
    }
    stdin.write(line);
    return true;
  }

  /** Ends its input, then asks it with SIGTERM, then does not ask; `graceMs` each. */
  async stop(graceMs: number = GRACE_MS): Promise<ServerEnd> {
    if (this.#stopping) return this.ended;
    this.#stopping = true;
    this.#child.stdin?.end();
    if (!(await this.#within(graceMs))) {
      this.#signal("SIGTERM");
      if (!(await this.#within(graceMs))) this.#signal("SIGKILL");
    }
    return this.ended;
  }

  async #within(ms: number): Promise<boolean> {
    let callOff = () => {};
    const late = new Promise<false>((resolve) => {
      const timer = setTimeout(resolve, ms, false);
      callOff = () => clearTimeout(timer);
    });
    const exited = await Promise.race([this.#exited.then(() => true), late]);
    callOff();
    return exited;
  }

  /** To the whole group; false where nobody is in it. */
  #signal(signal: NodeJS.Signals | 0): boolean {
    try {
      return this.#child.pid !== undefined && process.kill(-this.#child.pid, signal);
    } catch {
      return false;
    }
  }

  async #clear({ how, started }: { readonly how: string; readonly started: boolean }): Promise<ServerEnd> {
    const ended = await this.#keeper.finish(!this.#signal(0));
    // What it left may hold the other ends of its streams.
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) stream?.destroy();
    return { how, started, ended };
  }
}

function exitOf(child: ChildProcess): Promise<{ readonly how: string; readonly started: boolean }> {
  return new Promise((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) resolve({ how: error.code ?? "unknown error", started: false });
    });
    child.once("exit", (code, signal) => resolve({ how: signal ?? `exit ${code}`, started: true }));
  });
}
