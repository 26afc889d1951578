// A server that runs as our child: its start, its three streams, its end. Invariant: from `ended` on no process of it is
// left; of one that is not confined, none that its keeper could find.

import type { ChildProcess } from "node:child_process";
import { fault, ok, type Result } from "../../../base/faults.ts";
import { ConfinedProcess, unconfinable } from "./confined_process.ts";
import { type Confinement, cannotRun, confinedWords, type ServerCommand } from "./confinement.ts";
import { type Housing, isWithin, type ServerExit, type ServerOutput } from "./housing.ts";
import { keeperFault } from "./keeper.ts";
import { UnconfinedProcess } from "./unconfined_process.ts";

export interface ServerEnd extends ServerExit {
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
  readonly #housing: Housing;
  #stopping = false;

  /** The fault is why it was not started. */
  static start(command: ServerCommand, output: ServerOutput): Result<ServerProcess, ServerExit> {
    const refused = cannotRun(command);
    if (refused !== undefined) return fault({ how: refused, hopeless: true });
    // Its keeper can be lost before we have it.
    let server: ServerProcess | undefined;
    try {
      const housing = housingOf(command, output, () => void server?.stop(0));
      if (!housing.ok) return housing;
      server = new ServerProcess(housing.value);
      return ok(server);
    } catch (error) {
      const { code = "unknown error" } = error as NodeJS.ErrnoException;
      return fault({ how: code, hopeless: true });
    }
  }

  private constructor(housing: Housing) {
    this.#housing = housing;
    this.ended = housing.exited.then((exit) => this.#clear(exit));
  }

  get pid(): number | undefined {
    return this.#housing.child.pid;
  }

  /** Whether what it must not see is hidden still. */
  get isHidden(): boolean {
    return this.#housing.isHidden();
  }

  /** False: it has not read what it was given before, so this is not given to it. */
  write(line: string): boolean {
    const { stdin } = this.#housing.child;
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
    const { child, exited } = this.#housing;
    child.stdin?.end();
    if (!(await isWithin(graceMs, exited))) {
      this.#housing.askToEnd();
      if (!(await isWithin(graceMs, exited))) this.#housing.end();
    }
    return this.ended;
  }

  async #clear(exit: ServerExit): Promise<ServerEnd> {
    const ended = await this.#housing.clear();
    closeStreams(this.#housing.child);
    return { ...exit, ended };
  }
}

const PLAIN: Confinement = { socket: undefined, hidden: [] };

/** @throws what `spawn` does */
function housingOf(
  command: ServerCommand,
  output: ServerOutput,
  onUnkept: () => void,
): Result<Housing, ServerExit> {
  const { confinement = PLAIN } = command;
  if (confinement === "none") {
    const unkept = keeperFault();
    if (unkept !== undefined) return fault({ how: unkept, hopeless: true });
    return ok(new UnconfinedProcess(command, output, onUnkept));
  }
  const words = confinedWords(command, confinement, process.getuid?.() ?? 0);
  if (!words.ok) return fault({ how: unconfinable(words.fault.why), hopeless: !words.fault.passes });
  return ok(new ConfinedProcess(words.value, output));
}

/** What an unconfined one left may hold the other ends. */
function closeStreams({ stdin, stdout, stderr }: ChildProcess): void {
  for (const stream of [stdin, stdout, stderr]) stream?.destroy();
}
