// A server in namespaces of its own: how it is started there, and how it ends. Invariant: it starts only once the kernel
// ends all of it with us, and from `clear` on none of its processes is left.

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Duplex } from "node:stream";
import { visibleLine } from "../../../base/display.ts";
import type { ConfinedWords } from "./confinement.ts";
import { HeldDirectory } from "./confinement_covers.ts";
import {
  type Housing,
  isWithin,
  passOn,
  type ServerExit,
  type ServerOutput,
  signalGroup,
} from "./housing.ts";
import { forbiddingSettings } from "./namespaces.ts";

/** How long the namespace may take to end before its outermost process is killed too. */
const PATIENCE_MS = 2000;
/** Of what went wrong before the server was started. */
const COMPLAINT_CHARS_MAX = 300;
const LINE_CHARS_MAX = 200;
const LOOK_MS = 5;

export class ConfinedProcess implements Housing {
  readonly child: ChildProcess;
  readonly exited: Promise<ServerExit>;
  /** Where the sockets are, hidden from the server. */
  readonly #hidden: HeldDirectory | undefined;
  readonly #way: Duplex;
  /** Pid 1 of the namespace, as we see it; undefined: the server is not started yet. */
  #first: number | undefined;
  #end: { readonly status: number; readonly left: number } | undefined;
  #isOver = false;
  #complaint = "";
  #said = "";

  /** @throws what `spawn` does where the system won't even try */
  constructor(words: ConfinedWords, output: ServerOutput) {
    const { socketDirectory } = words.covers;
    this.#hidden = socketDirectory === undefined ? undefined : new HeldDirectory(socketDirectory);
    this.child = spawn(words.file, [...words.args], {
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe"],
      env: words.env,
      cwd: "/", // no directory from before the covers is held
    });
    this.#way = this.child.stdio[3] as Duplex; // what "pipe" makes
    this.#way.on("error", () => undefined);
    this.#way.on("data", (chunk: Buffer) => this.#heard(chunk));
    passOn(this.child, {
      stdout: (chunk) => output.stdout(chunk),
      stderr: (chunk) => (this.#first === undefined ? this.#complains(chunk) : output.stderr(chunk)),
    });
    this.exited = this.#untilExit();
  }

  askToEnd(): void {
    signalGroup(this.child, "SIGTERM");
  }

  /** Pid 1 counts what is there and ends; where it can't, it and what waits for it are killed. */
  end(): void {
    signalGroup(this.child, "SIGINT");
    void isWithin(PATIENCE_MS, this.exited).then((over) => over || signalGroup(this.child, "SIGKILL"));
  }

  async clear(): Promise<number | undefined> {
    this.#way.destroy();
    this.#isOver = true;
    this.#hidden?.release();
    if (this.#end !== undefined) return this.#end.left;
    if (this.#first === undefined) return 0;
    // What waits for pid 1 was killed: the kernel is still at it.
    const sinceMs = performance.now();
    while (isRunning(this.#first) && performance.now() - sinceMs < PATIENCE_MS)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    return undefined;
  }

  isHidden(): boolean {
    return this.#isOver || (this.#hidden?.isThere() ?? true);
  }

  #complains(chunk: Buffer): void {
    this.#complaint = (this.#complaint + chunk.toString("utf8")).slice(0, COMPLAINT_CHARS_MAX);
  }

  #heard(chunk: Buffer): void {
    const lines = (this.#said + chunk.toString("latin1")).slice(-LINE_CHARS_MAX).split("\n");
    this.#said = lines.pop() ?? "";
    for (const line of lines) {
      const [word, one, two] = line.split(" ");
      if (word === "end") this.#end = { status: Number(one), left: Number(two) };
      if (word !== "ready" || this.#first !== undefined) continue;
      this.#first = Number(one);
      this.#way.write("go\n");
    }
  }

  #untilExit(): Promise<ServerExit> {
    return new Promise((resolve) => {
      this.child.once("error", (error: NodeJS.ErrnoException) => {
        if (this.child.pid === undefined) resolve({ how: error.code ?? "unknown error", hopeless: true });
      });
      // Not before all that it has said was read.
      this.child.once("close", (code, signal) => resolve(this.#exitOf(code, signal)));
    });
  }

  #exitOf(code: number | null, signal: NodeJS.Signals | null): ServerExit {
    if (this.#end !== undefined) return { how: statusText(this.#end.status), hopeless: false };
    const how = signal ?? `exit ${code}`;
    if (this.#first !== undefined) return { how, hopeless: false };
    if (signal !== null) return { how, hopeless: false }; // it was ended before it began
    return {
      how: unconfinable(forbidden(this.#complaint.trim() === "" ? how : this.#complaint)),
      hopeless: true,
    };
  }
}

/** What an owner can do about a server that can't be confined. */
export function unconfinable(why: string): string {
  return `it can't be confined: ${why}. With --unconfined it runs as it is: a hostile server can then reach what the role's user can, so give it a user of its own`;
}

/** What the system's programs said when they failed. */
function forbidden(complaint: string): string {
  const words = [visibleLine(complaint.trim(), COMPLAINT_CHARS_MAX), ...forbiddingSettings()].join("; ");
  return `this user must be able to make user, mount and PID namespaces, with a /proc that nothing is mounted over (${words})`;
}

/** As a shell has it: above 128 it is a signal's. */
function statusText(status: number): string {
  const signal = Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0];
  return signal ?? `exit ${status}`;
}

/** A process that has ended and that nobody has asked for yet does not run. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
