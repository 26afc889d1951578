// The real daemon for tests: its config in a directory of its own, its process, its log as events to wait
// for; and the command line beside it. Ends only processes that it started.

import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { inject } from "vitest";

export type LogLine = Readonly<Record<string, unknown>> & { readonly event: string };

/** The compiled command's file. */
export function callgate(): string {
  const compiled = inject("compiled");
  if ("fault" in compiled) throw new Error(`the source does not compile: ${compiled.fault}`);
  return join(compiled.directory, "bin/callgate.js");
}

const undo: (() => unknown)[] = [];

/** Undoes what was made, the last thing first; for `afterEach` or `afterAll`. */
export async function cleanUp(): Promise<void> {
  for (const action of undo.splice(0).reverse()) await action();
}

export function onCleanUp(action: () => unknown): void {
  undo.push(action);
}

/** A directory that others may enter, with a config in it. */
export class Place {
  readonly directory: string;

  constructor(config: string) {
    this.directory = realpathSync(mkdtempSync(join(tmpdir(), "callgate-")));
    chmodSync(this.directory, 0o755);
    onCleanUp(() => rmSync(this.directory, { recursive: true, force: true }));
    this.write(config);
  }

  get config(): string {
    return join(this.directory, "callgate.toml");
  }

  write(config: string): void {
    writeFileSync(this.config, `[daemon]\nsockets = "run"\nstate = "state"\n${config}`, { mode: 0o644 }); // also where the umask is 002
  }

  socket(role: string): string {
    return join(this.directory, "run", `${role}.sock`);
  }
}

export interface StartOptions {
  /** Before the script: `--import`, `--max-old-space-size`. */
  readonly node?: readonly string[];
  /** A shell's words before the daemon's: `ulimit -n 64;`. */
  readonly shell?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Not read by us: the test holds the other end, or there is none. */
  readonly stdio?: StdioOptions;
  /** Waits for `daemon.ready` (default), or not. */
  readonly ready?: boolean;
}

export class Daemon {
  readonly place: Place;
  readonly child: ChildProcess;
  readonly lines: LogLine[] = [];
  /** All of standard error, when it has ended. */
  readonly errors: Promise<string>;
  /** Exit status or signal, once standard output is read to its end. */
  readonly ended: Promise<number | NodeJS.Signals>;
  #waiting: (() => void)[] = [];
  #over = false;

  static async start(from: string | Place, options: StartOptions = {}): Promise<Daemon> {
    const daemon = new Daemon(typeof from === "string" ? new Place(from) : from, options);
    if (options.ready !== false) await daemon.event("daemon.ready");
    return daemon;
  }

  private constructor(place: Place, { node = [], shell, env, stdio }: StartOptions) {
    this.place = place;
    const words = [process.execPath, ...node, callgate(), "serve", "--config", place.config];
    const settings = {
      stdio: stdio ?? ["ignore", "pipe", "pipe"],
      env: { ...process.env, NODE_OPTIONS: "", ...env },
    } satisfies Parameters<typeof spawn>[2];
    this.child =
      shell === undefined
        ? spawn(words[0]!, words.slice(1), settings)
        : spawn("sh", ["-c", `${shell} exec "$0" "$@"`, ...words], settings);
    onCleanUp(() => this.kill());
    this.errors = this.child.stderr === null ? Promise.resolve("") : text(this.child.stderr).catch(() => "");
    this.ended = this.#untilEnded();
    this.#read();
  }

  get pid(): number {
    return this.child.pid!;
  }

  socket(role: string): string {
    return this.place.socket(role);
  }

  /** The first line of that event at or after `from` that fits, come or to come. */
  async event(event: string, fits: (line: LogLine) => boolean = () => true, from = 0): Promise<LogLine> {
    for (let next = from; ; next += 1) {
      while (next >= this.lines.length) {
        if (this.#over) {
          const seen = this.lines.map((line) => line.event).join(" ");
          throw new Error(`the daemon ended without ${event}: ${seen}\n${await this.errors}`);
        }
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
      const line = this.lines[next]!;
      if (line.event === event && fits(line)) return line;
    }
  }

  count(event: string, fits: (line: LogLine) => boolean = () => true): number {
    return this.lines.filter((line) => line.event === event && fits(line)).length;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async stop(): Promise<number | NodeJS.Signals> {
    this.signal("SIGTERM");
    return this.ended;
  }

  async kill(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill("SIGKILL");
      await once(this.child, "exit");
    }
  }

  /** Resident memory in bytes. */
  memory(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
  }

  /** Processor time used so far, in hundredths of a second. */
  cpu(): number {
    const fields = readFileSync(`/proc/${this.pid}/stat`, "utf8").split(") ")[1]!.split(" ");
    return Number(fields[11]) + Number(fields[12]);
  }

  descriptors(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  #read(): void {
    if (this.child.stdout === null) return;
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      this.lines.push(JSON.parse(line) as LogLine);
      this.#wake();
    });
  }

  async #untilEnded(): Promise<number | NodeJS.Signals> {
    const [status, signal] = (await once(this.child, "close")) as [number | null, NodeJS.Signals | null];
    this.#over = true;
    this.#wake();
    return status ?? signal!;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

export interface Ran {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly input?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Becomes this user (and the group of the same number), with no other groups, before it connects. */
  readonly uid?: number;
}

/** Runs `callgate ARGS…` to its end. */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { input = "", env, uid } = options;
  const child = spawn(process.execPath, [...(uid === undefined ? [] : becoming(uid)), callgate(), ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, NODE_OPTIONS: "", ...env },
  });
  onCleanUp(() => child.kill("SIGKILL"));
  child.stdin.on("error", () => undefined); // it may end without reading
  child.stdin.end(input);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { status: child.exitCode, out, err };
}

/** Not from the start: the other user may have no right to read this very checkout. */
function becoming(uid: number): string[] {
  const script = `
    import { Socket } from "node:net";
    const { connect } = Socket.prototype;
    Socket.prototype.connect = function (...to) {
      process.setgroups([]);
      process.setgid(${uid});
      process.setuid(${uid});
      return connect.apply(this, to);
    };`;
  return ["--import", `data:text/javascript,${encodeURIComponent(script)}`];
}
