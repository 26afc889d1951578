// The composition root: config, effects, store, broker, doors, signals, ready. The only file that
// knows every layer.

import { fstatSync } from "node:fs";
import type { Socket } from "node:net";
import { resolve } from "node:path";
import type { LogLevel } from "./base/ports.ts";
import { Broker } from "./broker/broker.ts";
import { sha256, systemClock, systemRandomness } from "./host/clock.ts";
import { type Config, loadConfig } from "./host/config.ts";
import type { ConfigFault } from "./host/config_faults.ts";
import { type PeerReader, peerReader } from "./host/credentials.ts";
import { Doors } from "./host/doors.ts";
import { loadLibc } from "./host/libc.ts";
import { isJournal, type LogSink, openLog } from "./host/logs.ts";
import type { Policy } from "./policy/policy.ts";
import { MemoryStore } from "./store/memory.ts";

/** Exit status of a daemon that could not start (EX_CONFIG) or met a fault of its own (EX_SOFTWARE). */
const EXIT_CONFIG = 78;
const EXIT_FAULT = 70;

/** Runs the daemon until a signal ends it. Resolves with its exit status; everything logged is out by then. */
export async function serve(configPath: string): Promise<number> {
  const sink = openLog({
    level: "info",
    fd: 1,
    journal: isJournal(process.env["JOURNAL_STREAM"], fstatSync(1)),
  });
  reportFaults(sink);
  try {
    return await new Daemon(sink, resolve(configPath)).run();
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
  #config: Config | undefined;
  #reloading: Promise<string | undefined> | undefined;
  #doors: Doors | undefined;
  #broker: Broker | undefined;

  constructor(sink: LogSink, path: string) {
    this.#sink = sink;
    this.#path = path;
  }

  async run(): Promise<number> {
    if (process.platform !== "linux") return this.#refuse("callgate runs on Linux only");
    const loaded = await loadConfig(this.#path);
    if (!loaded.ok) return this.#refuseConfig(loaded.fault);
    const { config, warnings } = loaded.value;
    this.#config = config;
    this.#sink.setLevel(config.logLevel satisfies LogLevel);
    for (const { line, code, message } of warnings)
      this.#sink.log("warn", "config.warning", { line, code, message });
    const libc = await loadLibc();
    if (libc === undefined && namesPeers(config.policy)) {
      return this.#refuse(
        "the config names users or groups, and the kernel can't be asked who connects: koffi did not load",
      );
    }
    const readPeer = peerReader(libc);
    const broker = await this.#makeBroker(config);
    this.#broker = broker;
    const doors = await Doors.open({
      config,
      libc,
      log: this.#sink.log,
      env: process.env,
      onConnection: (role, socket) => this.#connected(readPeer, role, socket),
    });
    if (!doors.ok) return this.#refuse(doors.fault);
    this.#doors = doors.value;
    return await this.#untilSignalled(broker, doors.value, config);
  }

  #makeBroker(config: Config): Promise<Broker> {
    const clock = systemClock();
    const store = new MemoryStore(clock, {
      replayForMs: config.replayForMs,
      storedBytesMax: (role) => this.#broker?.policy.roles.get(role)?.limits.stored_bytes ?? 0,
    });
    return Broker.create(config.policy, {
      clock,
      store,
      log: this.#sink.log,
      random: systemRandomness,
      digest: sha256,
      frameTimeoutMs: config.frameTimeoutMs,
      replayForMs: config.replayForMs,
      requestReload: () => this.#reload(),
    });
  }

  #connected(readPeer: PeerReader, role: string, socket: Socket): void {
    this.#broker?.accept(role, socket, readPeer(socket));
  }

  /** Waits for SIGTERM or SIGINT; then drains. A second one exits at once. SIGHUP reloads. */
  async #untilSignalled(broker: Broker, doors: Doors, config: Config): Promise<number> {
    const { log } = this.#sink;
    process.on("SIGHUP", () => void this.#reload());
    const signalled = new Promise<string>((resolveSignal) => {
      let asked = false;
      for (const signal of ["SIGTERM", "SIGINT"] as const) {
        process.on(signal, () => {
          if (asked) {
            log("warn", "daemon.killed", { signal });
            this.#sink.flush();
            process.exit(0);
          }
          asked = true;
          resolveSignal(signal);
        });
      }
    });
    log("info", "daemon.ready", {
      pid: process.pid,
      sockets: config.socketsDir,
      roles: [...config.policy.roles.keys()],
      policy: config.policy.version,
    });
    const signal = await signalled;
    log("info", "daemon.draining", { signal, drain_timeout_ms: config.drainTimeoutMs });
    doors.stopAccepting();
    const { unfinished } = await broker.drain(this.#config?.drainTimeoutMs ?? config.drainTimeoutMs);
    await new Promise((written) => setImmediate(written)); // what drain queued goes out
    broker.close();
    doors.close();
    log("info", "daemon.stopped", { unfinished });
    return 0;
  }

  /** One reload at a time: whoever asks while one runs hears how that one ended. */
  #reload(): Promise<string | undefined> {
    this.#reloading ??= this.#reloadOnce().finally(() => {
      this.#reloading = undefined;
    });
    return this.#reloading;
  }

  async #reloadOnce(): Promise<string | undefined> {
    const loaded = await loadConfig(this.#path);
    const refused = loaded.ok ? this.#unchangeable(loaded.value.config) : firstFault(loaded.fault);
    if (!loaded.ok || refused !== undefined) {
      const why = refused ?? "";
      this.#broker?.reloadRefused(why);
      this.#sink.log("error", "config.refused", { why });
      return why;
    }
    const { config, warnings } = loaded.value;
    this.#config = config;
    this.#sink.setLevel(config.logLevel);
    this.#broker?.reload(config.policy);
    for (const { line, code, message } of warnings)
      this.#sink.log("warn", "config.warning", { line, code, message });
    const faults = (await this.#doors?.fit(config.policy)) ?? [];
    for (const sentence of faults) this.#sink.log("error", "socket.failed", { why: sentence });
    this.#sink.log("info", "config.reloaded", { policy: config.policy.version });
    return faults[0];
  }

  /** What only a restart can change. */
  #unchangeable(next: Config): string | undefined {
    const now = this.#config;
    if (now === undefined) return undefined;
    if (next.socketsDir !== now.socketsDir) return "`daemon.sockets` changes only with a restart";
    if (next.frameTimeoutMs !== now.frameTimeoutMs)
      return "`daemon.frame_timeout` changes only with a restart";
    if (next.replayForMs !== now.replayForMs) return "`daemon.replay_for` changes only with a restart";
    return undefined;
  }

  #refuseConfig(faults: readonly ConfigFault[]): number {
    for (const { line, column, message } of faults)
      this.#sink.log("error", "config.fault", { line, column, message });
    return this.#refuse(
      `${this.#path} has ${faults.length} mistake${faults.length === 1 ? "" : "s"}; \`callgate check\` lists them`,
    );
  }

  #refuse(why: string): number {
    this.#sink.log("error", "daemon.refused", { why });
    process.stderr.write(`callgate: ${why}\n`);
    return EXIT_CONFIG;
  }
}

function firstFault(faults: readonly ConfigFault[]): string {
  const [first] = faults;
  return first === undefined ? "the config can't be read" : `line ${first.line}: ${first.message}`;
}

function namesPeers(policy: Policy): boolean {
  return [...policy.roles.values()].some((role) => role.admits !== "anyone");
}
