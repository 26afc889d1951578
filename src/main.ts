// The composition root: config, effects, store, broker, doors, signals, ready. The only file that
// knows every layer.

import { fstatSync } from "node:fs";
import type { Socket } from "node:net";
import { resolve } from "node:path";
import { fault, ok, type Result } from "./base/faults.ts";
import { ROLE_LIMITS_DEFAULT } from "./base/limits.ts";
import { Broker } from "./broker/broker.ts";
import { sha256, systemRandomness } from "./host/clock.ts";
import { type Config, type ConfigRead, loadConfig } from "./host/config.ts";
import { type ConfigFault, FILE_START } from "./host/config_faults.ts";
import { type PeerReader, peerReader } from "./host/credentials.ts";
import { descriptorsMax, missingDescriptors } from "./host/descriptors.ts";
import { Doors } from "./host/doors.ts";
import { type Libc, loadLibc } from "./host/libc.ts";
import { isJournal, type LogSink, openLog, tellStandardError } from "./host/logs.ts";
import { type OpenStore, openStore } from "./host/open_store.ts";
import { ProcessWatch } from "./host/process_figures.ts";
import { ReturningRoles } from "./host/returning.ts";
import { type Notifier, openNotifier } from "./host/sd_notify.ts";
import { statusLine } from "./host/status_line.ts";
import { checkFile } from "./host/trusted_paths.ts";
import { loadConditionCompiler } from "./policy/conditions.ts";
import type { Policy } from "./policy/policy.ts";

/** Exit status of a daemon that could not start (EX_CONFIG) or met a fault of its own (EX_SOFTWARE). */
const EXIT_CONFIG = 78;
const EXIT_FAULT = 70;

/** What is still to be written to peers when all calls have ended may take so long. */
const FAREWELL_MS_MIN = 1000;

/** The store may take so long to write what is left; a disk that does not answer must not hold us for ever. */
const CLOSE_MS_MAX = 10_000;

/** Between two looks at what the service manager is to show. */
const STATUS_EVERY_MS = 5000;

/** Calls that had not ended when the daemon stopped. */
type Stopped = { readonly unfinished: number };

/** Runs the daemon until a signal ends it; `version` is the program's. Resolves with its exit status; everything logged is out by then. */
export async function serve(configPath: string, version: string): Promise<number> {
  const sink = openLog({
    level: "info",
    fd: 1,
    journal: isJournal(process.env["JOURNAL_STREAM"], fstatSync(1)),
  });
  reportFaults(sink);
  try {
    return await new Daemon(sink, resolve(configPath), version).run();
  } finally {
    sink.flush();
  }
}

/** The last resort: what nobody caught is said, without the text of the fault, and the service manager restarts. */
function reportFaults(sink: LogSink): void {
  const fatal = (error: unknown) => {
    const stack = error instanceof Error ? (error.stack ?? "").split("\n    at ").slice(1, 9) : [];
    sink.log("error", "daemon.fatal", { fault: error instanceof Error ? error.name : "unknown", stack });
    sink.flush();
    process.exit(EXIT_FAULT);
  };
  process.on("uncaughtException", fatal);
  process.on("unhandledRejection", fatal);
  // Nobody reads standard error any more: that is no reason to stop.
  process.stderr.on("error", () => undefined);
}

class Daemon {
  readonly #sink: LogSink;
  readonly #path: string;
  readonly #version: string;
  #notifier: Notifier | undefined;
  #libc: Libc | undefined;
  #config: Config | undefined;
  #reloading: Promise<unknown> = Promise.resolve();
  #nextReload: Promise<string | undefined> | undefined;
  #doors: Doors | undefined;
  #broker: Broker | undefined;
  #stopping = false;

  constructor(sink: LogSink, path: string, version: string) {
    this.#sink = sink;
    this.#path = path;
    this.#version = version;
  }

  async run(): Promise<number> {
    if (process.platform !== "linux") return this.#refuse("callgate runs on Linux only");
    // From the first moment: what comes while we start must not end us half-way.
    process.on("SIGHUP", () => void this.#reload());
    const signalled = this.#onSignal();
    const { env, pid } = process;
    const [loaded, libc, notifier] = await Promise.all([
      this.#load(),
      loadLibc(),
      openNotifier({ env, pid, log: this.#sink.log }),
    ]);
    this.#libc = libc;
    this.#notifier = notifier;
    if (!loaded.ok) return this.#refuseConfig(loaded.fault);
    const { config } = loaded.value;
    const unable = this.#unreadable(config.policy);
    if (unable !== undefined) return this.#refuse(unable);
    this.#config = config;
    this.#sink.setLevel(config.logLevel);
    this.#warn(loaded.value);
    const readPeer = peerReader(libc);
    const opened = await this.#openStore(config);
    if (!opened.ok) return this.#refuse(opened.fault);
    const open = opened.value;
    const stopped = await this.#serve(config, open, readPeer, signalled);
    // Whatever ended it: what was committed is on disk when we go.
    if (!(await closedWithin(open, CLOSE_MS_MAX))) return this.#leaveUnclosed();
    if (!stopped.ok) return this.#refuse(stopped.fault);
    this.#sink.log("info", "daemon.stopped", stopped.value);
    return 0;
  }

  /** The disk does not answer, and neither does the thread that writes to it: only the end of the process ends both. */
  #leaveUnclosed(): never {
    this.#sink.log("error", "store.unclosed", { after_ms: CLOSE_MS_MAX });
    this.#sink.flush();
    process.exit(EXIT_FAULT);
  }

  async #serve(
    config: Config,
    open: OpenStore,
    readPeer: PeerReader,
    signalled: Promise<string>,
  ): Promise<Result<Stopped>> {
    const broker = await this.#makeBroker(config, open);
    this.#broker = broker;
    const returning = new ReturningRoles(config.policy, (role, socket) =>
      this.#connected(readPeer, role, socket),
    );
    const doors = await Doors.open({
      config,
      libc: this.#libc,
      log: this.#sink.log,
      env: process.env,
      onConnection: (role, socket) => returning.connected(role, socket),
    });
    if (!doors.ok) return doors;
    this.#doors = doors.value;
    if (doors.value.areInherited) returning.start((ms, task) => setTimeout(task, ms).unref());
    else returning.open();
    this.#sink.log("info", "daemon.ready", {
      pid: process.pid,
      version: this.#version,
      sockets: config.socketsDir,
      roles: [...config.policy.roles.keys()],
      policy: config.policy.version,
    });
    this.#notifier?.ready(statusLine(broker.state()));
    setInterval(() => this.#notifier?.status(statusLine(broker.state())), STATUS_EVERY_MS).unref();
    return ok(await this.#untilSignalled(signalled, broker, doors.value));
  }

  async #load(): Promise<Result<ConfigRead, readonly ConfigFault[]>> {
    const loaded = await loadConfig(this.#path);
    if (!loaded.ok) return loaded;
    const trusted = checkFile(this.#path, process.geteuid?.() ?? -1);
    return trusted.ok ? loaded : fault([{ ...FILE_START, message: trusted.fault.sentence }]);
  }

  #openStore(config: Config): Promise<Result<OpenStore>> {
    return openStore({
      config,
      libc: this.#libc,
      log: this.#sink.log,
      auditBounds: () => (this.#config ?? config).audit,
      storedBytesMax: (role) => this.#storedBytesMax(this.#config ?? config, role),
    });
  }

  /** A role that a reload took away keeps what it has for when it comes back. */
  #storedBytesMax({ policy }: Config, role: string): number {
    return (policy.roles.get(role)?.limits ?? ROLE_LIMITS_DEFAULT).stored_bytes;
  }

  #makeBroker(config: Config, { store, clock }: OpenStore): Promise<Broker> {
    const watch = new ProcessWatch();
    return Broker.create(config.policy, {
      clock,
      store,
      log: this.#sink.log,
      random: systemRandomness,
      digest: sha256,
      frameTimeoutMs: config.frameTimeoutMs,
      replayForMs: config.replayForMs,
      checkpointEveryMs: config.audit.checkpointEveryMs,
      loadConditions: loadConditionCompiler,
      requestReload: () => this.#reload(),
      processFigures: () => watch.read(),
      version: this.#version,
    });
  }

  #connected(readPeer: PeerReader, role: string, socket: Socket): void {
    this.#broker?.accept(role, socket, readPeer(socket));
  }

  /** Waits for SIGTERM or SIGINT; then drains. A second one exits at once. */
  async #untilSignalled(signalled: Promise<string>, broker: Broker, doors: Doors): Promise<Stopped> {
    const signal = await signalled;
    const drainTimeoutMs = this.#config?.drainTimeoutMs ?? 0;
    this.#sink.log("info", "daemon.draining", { signal, drain_timeout_ms: drainTimeoutMs });
    const startedAtMs = performance.now();
    this.#stopping = true;
    const running = `draining; ${statusLine(broker.state())}`;
    this.#notifier?.stopping(drainTimeoutMs + FAREWELL_MS_MIN + CLOSE_MS_MAX, running);
    const late = doors.areInherited ? "left" : "refused"; // looked at before the doors are shut
    doors.stopAccepting();
    const { unfinished } = await broker.drain(drainTimeoutMs, late);
    // A long last answer to a slow reader may use what is left of the time.
    const leftMs = drainTimeoutMs - (performance.now() - startedAtMs);
    await doors.emptied(Math.max(FAREWELL_MS_MIN, leftMs));
    broker.close();
    await this.#reloading; // one that began before may still be opening a door
    await doors.close();
    return { unfinished };
  }

  #onSignal(): Promise<string> {
    return new Promise((resolveSignal) => {
      let asked = false;
      for (const signal of ["SIGTERM", "SIGINT"] as const) {
        process.on(signal, () => {
          if (asked) {
            this.#sink.log("warn", "daemon.killed", { signal });
            this.#sink.flush();
            process.exit(0);
          }
          asked = true;
          resolveSignal(signal);
        });
      }
    });
  }

  /**
   * One reload at a time. Whoever asks while one runs gets the next, since the file may have changed
   * after it was read; all who wait for that share it.
   */
  #reload(): Promise<string | undefined> {
    this.#nextReload ??= this.#reloading.then(() => {
      this.#nextReload = undefined;
      const running = this.#reloadOnce();
      this.#reloading = running;
      return running;
    });
    return this.#nextReload;
  }

  /** All of the new config or nothing of it; why not, is the answer. */
  async #reloadOnce(): Promise<string | undefined> {
    const doors = this.#doors;
    const broker = this.#broker;
    if (doors === undefined || broker === undefined) return undefined; // starting: the file is being read anyway
    this.#notifier?.reloading();
    try {
      return await this.#takeConfig(doors, broker);
    } finally {
      this.#notifier?.ready(statusLine(broker.state())); // what is served on, old or new, is in it
    }
  }

  async #takeConfig(doors: Doors, broker: Broker): Promise<string | undefined> {
    const loaded = await this.#load();
    if (this.#stopping) return this.#keepOld("the daemon is stopping");
    if (!loaded.ok) {
      this.#logFaults(loaded.fault);
      return this.#keepOld(firstFault(loaded.fault));
    }
    const { config } = loaded.value;
    const refused = this.#unchangeable(config) ?? this.#unreadable(config.policy);
    if (refused !== undefined) return this.#keepOld(refused);
    const fitted = await doors.fit(config.policy, () => broker.reload(config.policy));
    if (!fitted.ok) return this.#keepOld(fitted.fault);
    this.#config = config;
    this.#sink.setLevel(config.logLevel);
    this.#warn(loaded.value);
    this.#sink.log("info", "config.reloaded", { policy: config.policy.version });
    return undefined;
  }

  #keepOld(why: string): string {
    this.#broker?.reloadRefused(why);
    this.#sink.log("error", "config.refused", { why });
    return why;
  }

  /** What only a restart can change. */
  #unchangeable(next: Config): string | undefined {
    const now = this.#config;
    if (now === undefined) return undefined;
    if (next.socketsDir !== now.socketsDir) return "`daemon.sockets` changes only with a restart";
    if (next.stateDir !== now.stateDir) return "`daemon.state` changes only with a restart";
    if (next.frameTimeoutMs !== now.frameTimeoutMs)
      return "`daemon.frame_timeout` changes only with a restart";
    if (next.replayForMs !== now.replayForMs) return "`daemon.replay_for` changes only with a restart";
    return undefined;
  }

  /** A policy that names peers, where the kernel can't be asked for them. */
  #unreadable(policy: Policy): string | undefined {
    const named = [...policy.roles.values()].some((role) => role.admits !== "anyone");
    if (this.#libc !== undefined || !named) return undefined;
    return "the config names users or groups, and the kernel can't be asked who connects: koffi did not load";
  }

  #warn({ warnings, config }: ConfigRead): void {
    for (const { line, code, message } of warnings)
      this.#sink.log("warn", "config.warning", { line, code, message });
    let connections = 0;
    for (const role of config.policy.roles.values()) connections += role.limits.connections;
    const needed = missingDescriptors(connections);
    if (needed !== undefined)
      this.#sink.log("warn", "descriptors.few", { needed, max: descriptorsMax(), connections });
  }

  #logFaults(faults: readonly ConfigFault[]): void {
    for (const { line, column, message } of faults)
      this.#sink.log("error", "config.fault", { line, column, message });
  }

  #refuseConfig(faults: readonly ConfigFault[]): number {
    this.#logFaults(faults);
    for (const { line, column, message } of faults)
      tellStandardError(`${this.#path}:${line}:${column}: ${message}\n`);
    const [first] = faults;
    if (faults.length === 1 && first?.line === 1 && first.column === 1)
      return this.#refuse(`the config can't be used: ${first.message}`); // as a rule about the file itself
    return this.#refuse(`the config has ${faults.length} mistake${faults.length === 1 ? "" : "s"}`);
  }

  #refuse(why: string): number {
    this.#sink.log("error", "daemon.refused", { why });
    tellStandardError(`callgate: ${why}\n`);
    return EXIT_CONFIG;
  }
}

async function closedWithin(open: OpenStore, withinMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((settle) => {
    timer = setTimeout(() => settle(false), withinMs);
  });
  const closed = await Promise.race([open.close().then(() => true), late]);
  clearTimeout(timer);
  return closed;
}

function firstFault(faults: readonly ConfigFault[]): string {
  const [first] = faults;
  if (first === undefined) return "the config can't be read";
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : "";
  return `line ${first.line}: ${first.message}${more}`;
}
