// What the service manager is told of this process (sd_notify(3)): ready, reloading, stopping, a line of status, and
// that the main loop still turns. Without NOTIFY_SOCKET nobody is told anything, and nothing is loaded.
// Invariants: telling never waits and never fails the daemon; what decides the unit's state (ready, reloading,
// stopping) goes out in its order and is tried again until it is taken; nothing is told as ready that has begun to stop.

import { fault, ok, type Result } from "../base/faults.ts";
import type { Log } from "../base/ports.ts";
import { ERRNO, openDatagrams, type SendDatagram } from "./libc.ts";

export interface Notifier {
  /** A call would be answered from now on; also at the end of a reload. */
  ready(status: string): void;
  reloading(): void;
  /** Of the rest, `withinMs` may be needed. */
  stopping(withinMs: number, status: string): void;
  /** One line; the same as before is not told again. */
  status(line: string): void;
}

export interface NotifierOptions {
  /** NOTIFY_SOCKET and the watchdog's variables are taken out of it, so that no child takes them as its own. */
  readonly env: NodeJS.ProcessEnv;
  readonly pid: number;
  readonly log: Log;
  readonly open?: (address: Uint8Array) => Promise<SendDatagram | undefined>;
  /** Calls `task` every so often while the process lives; the function returned ends it. */
  readonly every?: (ms: number, task: () => void) => () => void;
  /** CLOCK_MONOTONIC. */
  readonly monotonicUsec?: () => bigint;
}

const VARIABLES = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] as const;
const AF_UNIX = 1;
const SUN_PATH_BYTES = 108;
/** How often the start is told to go on, and for how long each time: much state takes long to read. */
const STARTING_EVERY_MS = 10_000;
const STARTING_FOR_MS = 40_000;
const RETRY_MS = 50;
/** What is shown of a line; journal and terminals have no use for more. */
const STATUS_CHARS_MAX = 500;
const USEC = 1000;

const NOBODY: Notifier = {
  ready: () => undefined,
  reloading: () => undefined,
  stopping: () => undefined,
  status: () => undefined,
};

/** Once, at start. From then on the start may take its time, and the watchdog is fed. */
export async function openNotifier(options: NotifierOptions): Promise<Notifier> {
  const { env, pid, log, open = openDatagrams } = options;
  const [path, watchdogUsec, watchdogPid] = VARIABLES.map((name) => env[name]);
  for (const name of VARIABLES) delete env[name];
  if (path === undefined || path === "") return NOBODY;
  const address = addressOf(path);
  if (!address.ok) {
    log("warn", "daemon.unheard", { why: address.fault });
    return NOBODY;
  }
  const send = await open(address.value);
  if (send === undefined) {
    log("warn", "daemon.unheard", { why: "koffi did not load, so the service manager hears nothing" });
    return NOBODY;
  }
  const isOurs = watchdogPid === undefined || watchdogPid === String(pid);
  return new SocketNotifier(send, options, isOurs ? watchdogMs(watchdogUsec) : undefined);
}

/** A `sockaddr_un`: a path, or a name that begins with `@` for the abstract ones. */
function addressOf(path: string): Result<Uint8Array> {
  const isAbstract = path.startsWith("@");
  if (!isAbstract && !path.startsWith("/")) return fault("NOTIFY_SOCKET names no Unix socket");
  const name = Buffer.from(isAbstract ? `\0${path.slice(1)}` : `${path}\0`);
  if (name.length > SUN_PATH_BYTES) return fault("NOTIFY_SOCKET is longer than a socket's path may be");
  const family = Buffer.from(Uint16Array.of(AF_UNIX).buffer);
  return ok(Buffer.concat([family, name]));
}

function watchdogMs(usec: string | undefined): number | undefined {
  if (usec === undefined || !/^[1-9][0-9]{0,15}$/.test(usec)) return undefined;
  return Number(usec) / USEC;
}

class SocketNotifier implements Notifier {
  readonly #send: SendDatagram;
  readonly #log: Log;
  readonly #every: NonNullable<NotifierOptions["every"]>;
  readonly #monotonicUsec: () => bigint;
  #state: "starting" | "running" | "stopping" = "starting";
  #status = "";
  /** In their order, not taken yet. */
  #waiting: string[] = [];
  #stopRetrying: (() => void) | undefined;
  #stopExtending: () => void;
  #isDeaf = false;

  constructor(send: SendDatagram, options: NotifierOptions, watchdog: number | undefined) {
    this.#send = send;
    this.#log = options.log;
    this.#every = options.every ?? every;
    this.#monotonicUsec = options.monotonicUsec ?? (() => process.hrtime.bigint() / BigInt(USEC));
    const goOn = `EXTEND_TIMEOUT_USEC=${STARTING_FOR_MS * USEC}`;
    this.#stopExtending = this.#every(STARTING_EVERY_MS, () => this.#trySend(goOn));
    // Half of what it allows, from the loop that answers calls: one that is held up is not fed.
    if (watchdog !== undefined) this.#every(Math.max(1, watchdog / 2), () => this.#trySend("WATCHDOG=1"));
  }

  ready(status: string): void {
    if (this.#state === "stopping") return;
    this.#stopExtending();
    this.#state = "running";
    this.#tell("READY=1", this.#statusLine(status));
  }

  reloading(): void {
    if (this.#state !== "running") return;
    this.#tell("RELOADING=1", `MONOTONIC_USEC=${this.#monotonicUsec()}`);
  }

  stopping(withinMs: number, status: string): void {
    if (this.#state === "stopping") return;
    this.#stopExtending();
    this.#state = "stopping";
    const extend = `EXTEND_TIMEOUT_USEC=${Math.ceil(withinMs) * USEC}`;
    this.#tell("STOPPING=1", extend, this.#statusLine(status));
  }

  status(line: string): void {
    if (line === this.#status || this.#waiting.length > 0) return;
    if (!this.#trySend(this.#statusLine(line))) this.#status = ""; // told again at the next look
  }

  #statusLine(line: string): string {
    this.#status = line;
    return `STATUS=${line.replaceAll(/\s+/g, " ").slice(0, STATUS_CHARS_MAX)}`;
  }

  /** What decides the unit's state. */
  #tell(...lines: readonly string[]): void {
    this.#waiting.push(lines.join("\n"));
    this.#pump();
  }

  #pump(): void {
    while (this.#waiting[0] !== undefined && this.#trySend(this.#waiting[0])) this.#waiting.shift();
    if (this.#waiting.length === 0) {
      this.#stopRetrying?.();
      this.#stopRetrying = undefined;
    } else this.#stopRetrying ??= this.#every(RETRY_MS, () => this.#pump());
  }

  /** Whether it is out of our hands: taken, or not to be taken by anybody. */
  #trySend(message: string): boolean {
    const outcome = this.#send(Buffer.from(message));
    if (outcome >= 0) return true;
    if (outcome === -ERRNO.EAGAIN) return false; // it is behind
    if (!this.#isDeaf) this.#log("warn", "daemon.unheard", { why: `sendto failed (errno ${-outcome})` });
    this.#isDeaf = true;
    return true;
  }
}

function every(ms: number, task: () => void): () => void {
  const timer = setInterval(task, ms).unref();
  return () => clearInterval(timer);
}
