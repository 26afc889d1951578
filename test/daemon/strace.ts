// What a running daemon writes and flushes, in the order in which the kernel did it, by strace.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Daemon, onCleanUp } from "./daemon.ts";

const CALLS = "write,writev,sendmsg,sendto,pwrite64,pwritev,fdatasync,fsync,msync";
/** Of each buffer: more than a page of the store, or a frame of these tests. */
const BYTES_SHOWN = 65_536;

/** One system call of the daemon, of whichever thread. Times are line numbers: what ended before another began came before it. */
export interface SystemCall {
  readonly name: string;
  readonly fd: number;
  /** What the descriptor is: a path, or a socket with its path. */
  readonly of: string;
  /** The bytes as strace writes them: ASCII as it is. */
  readonly data: string;
  readonly beganAt: number;
  readonly endedAt: number;
  readonly result: number;
}

export class Trace {
  readonly #strace: ChildProcess;
  readonly #file: string;

  /** Watches all threads of the daemon from now on. @throws where strace is missing: nothing is proved without it */
  static async of(daemon: Daemon): Promise<Trace> {
    const file = join(daemon.place.directory, "trace");
    const shown = ["-f", "-yy", "-s", String(BYTES_SHOWN), "-e", `trace=${CALLS}`, "-e", "signal=none"];
    const strace = spawn("strace", [...shown, "-o", file, "-p", String(daemon.pid)], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    onCleanUp(() => strace.kill("SIGKILL"));
    await attached(strace);
    return new Trace(strace, file);
  }

  private constructor(strace: ChildProcess, file: string) {
    this.#strace = strace;
    this.#file = file;
  }

  /** Lets the daemon go; everything that it did meanwhile. */
  async end(): Promise<readonly SystemCall[]> {
    this.#strace.kill("SIGINT");
    await once(this.#strace, "exit");
    return parseTrace(readFileSync(this.#file, "latin1"));
  }
}

async function attached(strace: ChildProcess): Promise<void> {
  const failed = once(strace, "error").then(([error]) => {
    throw new Error(`strace did not start (${String(error)}): apt-get install -y strace`);
  });
  const lines = createInterface({ input: strace.stderr! });
  const said: string[] = [];
  const told = new Promise<void>((resolve, reject) => {
    lines.on("line", (line) => {
      said.push(line);
      if (/ attached/.test(line)) resolve();
    });
    strace.once("exit", () => reject(new Error(`strace could not attach: ${said.join(" ")}`)));
  });
  await Promise.race([told, failed]);
}

const BEGAN = /^(\d+) +(\w+)\((\d+)<(.*?)>(?:, |\)| <unfinished)/;
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>/;
const ENDED = / = (-?\d+)(?: \w+ \(.*\))?$/;

/** A call that another thread came in between of is split: `<unfinished ...>`, and later `<... resumed>`. */
export function parseTrace(text: string): readonly SystemCall[] {
  const calls: SystemCall[] = [];
  const unfinished = new Map<string, Omit<SystemCall, "endedAt" | "result">>();
  for (const [at, line] of text.split("\n").entries()) {
    const resumed = RESUMED.exec(line);
    const result = Number(ENDED.exec(line)?.[1] ?? Number.NaN);
    if (resumed !== null) {
      const call = unfinished.get(resumed[1]!);
      if (call !== undefined) calls.push({ ...call, endedAt: at, result });
      unfinished.delete(resumed[1]!);
      continue;
    }
    const began = BEGAN.exec(line);
    if (began === null) continue;
    const [head, thread, name, fd, of] = began as unknown as [string, string, string, string, string];
    const call = { name, fd: Number(fd), of, data: line.slice(head.length), beganAt: at };
    if (line.endsWith("<unfinished ...>")) unfinished.set(thread, call);
    else calls.push({ ...call, endedAt: at, result });
  }
  return calls;
}
