// What a server's process is to the rest, however it is kept: three streams, two signals, an end.

import type { ChildProcess } from "node:child_process";

export interface ServerOutput {
  stdout(chunk: Buffer): void;
  stderr(chunk: Buffer): void;
}

export interface ServerExit {
  /** A system's error code where it never started, a sentence where it was not tried, `exit 1`, `SIGKILL`. */
  readonly how: string;
  /** It can't be started as things are: trying again is of no use. */
  readonly hopeless: boolean;
}

export interface Housing {
  readonly child: ChildProcess;
  readonly exited: Promise<ServerExit>;
  /** SIGTERM, to its process group. */
  askToEnd(): void;
  /** SIGKILL. */
  end(): void;
  /** After `exited`: ends what it started. How many processes of its were still there; undefined where that is not known. */
  clear(): Promise<number | undefined>;
  /** Whether what it must not see is hidden still. */
  isHidden(): boolean;
}

export function passOn({ stdin, stdout, stderr }: ChildProcess, output: ServerOutput): void {
  stdin?.on("error", () => undefined); // it does not read any more: its exit says why
  stdout?.on("data", (chunk: Buffer) => output.stdout(chunk));
  stderr?.on("data", (chunk: Buffer) => output.stderr(chunk));
  for (const stream of [stdout, stderr]) stream?.on("error", () => undefined);
}

/** To the process group that the child leads; false where nobody is in it. */
export function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  try {
    return pid !== undefined && process.kill(-pid, signal);
  } catch {
    return false;
  }
}

/** Whether it comes within the time. */
export async function isWithin(ms: number, event: Promise<unknown>): Promise<boolean> {
  let callOff = () => {};
  const late = new Promise<false>((resolve) => {
    const timer = setTimeout(resolve, ms, false);
    callOff = () => clearTimeout(timer);
  });
  const came = await Promise.race([event.then(() => true), late]);
  callOff();
  return came;
}
