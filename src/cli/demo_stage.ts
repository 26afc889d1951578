// Where the demo plays: its directory, the processes it starts and ends, and its words.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Terminal } from "./terminal.ts";

/** A part of the demo that could not be started. */
export class StageFault extends Error {}

/** Processes, files and words of one run. */
export class Stage {
  readonly #terminal: Terminal;
  readonly #children: ChildProcess[];
  readonly directory: string;

  constructor(terminal: Terminal, directory: string, children: ChildProcess[]) {
    this.#terminal = terminal;
    this.#children = children;
    this.directory = directory;
  }

  say(text: string): void {
    this.#terminal.out(`${text}\n`);
  }

  /** Starts `callgate ARGS…` and waits for the line that says it is ready. */
  async start(ready: RegExp, ...args: string[]): Promise<void> {
    const script = process.argv[1] ?? "";
    const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#children.push(child);
    let errors = "";
    child.stderr.on("data", (chunk) => {
      errors += String(chunk);
    });
    const gone = once(child, "close").then(() =>
      Promise.reject(new StageFault(`callgate ${args[0]} ended before it was ready\n${errors}`.trimEnd())),
    );
    gone.catch(() => undefined); // once it was ready it may end
    await Promise.race([readyLine(child, ready), gone]);
  }
}

/** Resolves at the first line that fits; both streams are read to the end, so that the child never waits for us. */
function readyLine(child: ChildProcess, ready: RegExp): Promise<void> {
  return new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null)
        createInterface({ input: stream }).on("line", (line) => ready.test(line) && resolve());
    }
  });
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
