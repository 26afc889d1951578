// The composition root of the model connector: config, secrets, backend, store, service, port, signals, ready. A process
// of its own, apart from the broker: it alone holds a provider's key, and it does nothing else.

import { randomBytes } from "node:crypto";
import { fstatSync } from "node:fs";
import { resolve } from "node:path";
import { fault, ok, type Result } from "./base/faults.ts";
import type { Clock } from "./base/ports.ts";
import type { ProviderBackend } from "./connector/backend.ts";
import { loadBackend } from "./connector/backends/load_backend.ts";
import { type ConnectorServer, serve } from "./connector/serve.ts";
import { TransportService } from "./connector/service.ts";
import type { ServiceConfig } from "./connector/service_config.ts";
import { startErrorSentence } from "./connector/start_error.ts";
import { systemClock, wallClock } from "./host/clock.ts";
import type { ConfigFault } from "./host/config_faults.ts";
import { withKey } from "./host/connector_backend.ts";
import { type ConnectorConfig, loadConnectorConfig } from "./host/connector_config.ts";
import { openReplayStore } from "./host/connector_replay.ts";
import { readSecret, type SecretPlaces, secretPlaces } from "./host/connector_secret_source.ts";
import { serviceConfig } from "./host/connector_secrets.ts";
import { descriptorsMax, missingDescriptors } from "./host/descriptors.ts";
import { exposureOf, keepDebuggerShut } from "./host/exposure.ts";
import { forbidDumps, loadLibc } from "./host/libc.ts";
import { isJournal, type LogSink, openLog, tellStandardError } from "./host/logs.ts";
import { type Notifier, openNotifier } from "./host/sd_notify.ts";

/** Exit status of a daemon that could not start (EX_CONFIG) or met a fault of its own (EX_SOFTWARE). */
const EXIT_CONFIG = 78;
const EXIT_FAULT = 70;

/** Beyond the time to drain: a disk that does not answer must not hold us for ever. */
const CLOSE_MS_MAX = 10_000;

/**
 * What small buffers are cut from. A turn makes a dozen of a few KiB, above what Node's default pool gives: with this one
 * the codec takes two thirds of the time.
 */
const POOL_BYTES = 131_072;

/** Between two looks for records that may go. */
const PRUNE_EVERY_MS = 60_000;

/** Runs the connector until a signal ends it. Resolves with its exit status; everything logged is out by then. */
export async function serveConnector(configPath: string): Promise<number> {
  const sink = openLog({
    level: "info",
    fd: 1,
    journal: isJournal(process.env["JOURNAL_STREAM"], fstatSync(1)),
  });
  reportFaults(sink);
  Buffer.poolSize = POOL_BYTES;
  try {
    return await new Connector(sink, resolve(configPath)).run();
  } finally {
    sink.flush();
  }
}

/**
 * The last resort: that something was not caught is said, and where, but not what: its text may hold a prompt or a key. The
 * service manager restarts.
 */
function reportFaults(sink: LogSink): void {
  const fatal = (error: unknown) => {
    const stack = error instanceof Error ? (error.stack ?? "").split("\n    at ").slice(1, 9) : [];
    sink.log("error", "connector.fatal", { fault: error instanceof Error ? error.name : "unknown", stack });
    sink.flush();
    process.exit(EXIT_FAULT);
  };
  process.on("uncaughtException", fatal);
  process.on("unhandledRejection", fatal);
  // Nobody reads standard error any more: that is no reason to stop.
  process.stderr.on("error", () => undefined);
}

interface Started {
  readonly service: TransportService;
  readonly server: ConnectorServer;
}

class Connector {
  readonly #sink: LogSink;
  readonly #path: string;
  readonly #clock: Clock = systemClock();
  readonly #places: SecretPlaces = secretPlaces();
  #notifier: Notifier | undefined;

  constructor(sink: LogSink, path: string) {
    this.#sink = sink;
    this.#path = path;
  }

  async run(): Promise<number> {
    if (process.platform !== "linux") return this.#refuse("callgate runs on Linux only");
    const signalled = this.#onSignal();
    // Before the first secret is read.
    const exposed = exposureOf();
    if (exposed !== undefined) return this.#refuse(exposed);
    if (!(await forbidDumps()))
      this.#sink.log("warn", "connector.dumpable", { why: "core dumps can't be turned off" });
    const { env, pid } = process;
    this.#notifier = await openNotifier({ env, pid, log: this.#sink.log });
    const loaded = await loadConnectorConfig(this.#path, this.#places.uid);
    if (!loaded.ok) return this.#refuseConfig(loaded.fault);
    const config = loaded.value;
    this.#sink.setLevel(config.settings.logLevel);
    const secrets = await serviceConfig(config, this.#places);
    if (!secrets.ok) return this.#refuseConfig(secrets.fault);
    const started = await this.#start(config, secrets.value);
    if (!started.ok) return this.#refuse(started.fault);
    await this.#untilSignalled(started.value, config, signalled);
    this.#sink.log("info", "connector.stopped", {});
    return 0;
  }

  async #start(config: ConnectorConfig, secrets: ServiceConfig): Promise<Result<Started>> {
    const backend = await this.#backend(config);
    if (!backend.ok) return backend;
    const libc = await loadLibc();
    const service = await TransportService.open({
      config: secrets,
      backend: backend.value,
      store: () =>
        openReplayStore({
          directory: config.settings.stateDir,
          libc,
          clock: this.#clock,
          log: this.#sink.log,
        }),
      clock: wallClock(), // callers take an expiry from the machine's clock
      random: randomBytes,
      log: this.#sink.log,
    });
    if (!service.ok) return fault(startErrorSentence(service.fault));
    const server = await serve(service.value, { clock: this.#clock, log: this.#sink.log });
    if (server.ok) return ok({ service: service.value, server: server.value });
    await service.value.close();
    return fault(startErrorSentence(server.fault));
  }

  async #backend({ backend }: ConnectorConfig): Promise<Result<ProviderBackend>> {
    const { key } = backend;
    const unread = (why: string) => this.#sink.log("warn", "connector.no_key", { why });
    if (key !== undefined) {
      const read = await readSecret(key, this.#places);
      if (!read.ok) unread(read.fault); // it may come later; until then turns fail for want of it
    }
    const settings = withKey(backend, (source) => readSecret(source, this.#places), unread);
    return loadBackend(settings, { clock: this.#clock });
  }

  /** Waits for SIGTERM or SIGINT; then drains. A second one exits at once. */
  async #untilSignalled(
    { service, server }: Started,
    config: ConnectorConfig,
    signalled: Promise<string>,
  ): Promise<void> {
    const stopPruning = this.#prune(service);
    this.#ready(config, server);
    const signal = await signalled;
    const { drainTimeoutMs } = config.settings;
    this.#notifier?.stopping(drainTimeoutMs + CLOSE_MS_MAX, "draining");
    this.#sink.log("info", "connector.draining", { signal, drain_timeout_ms: drainTimeoutMs });
    stopPruning();
    const unclosed = setTimeout(() => this.#leaveUnclosed(), drainTimeoutMs + CLOSE_MS_MAX);
    await server.close(drainTimeoutMs);
    await service.close();
    clearTimeout(unclosed);
  }

  /** The disk does not answer, and neither does the thread that writes to it: only the end of the process ends both. */
  #leaveUnclosed(): never {
    this.#sink.log("error", "connector.unclosed", { after_ms: CLOSE_MS_MAX });
    this.#sink.flush();
    process.exit(EXIT_FAULT);
  }

  #ready({ settings, backend, callers }: ConnectorConfig, server: ConnectorServer): void {
    const needed = missingDescriptors(settings.maxConnections);
    if (needed !== undefined) this.#sink.log("warn", "descriptors.few", { needed, max: descriptorsMax() });
    this.#sink.log("info", "connector.ready", {
      pid: process.pid,
      bind: settings.bind,
      port: server.port,
      backend: backend.settings.kind,
      callers: callers.map(({ id }) => id),
    });
    const told = `${backend.settings.kind} at ${settings.bind}:${server.port}, callers: ${callers.length}`;
    this.#notifier?.ready(told);
  }

  /** Now, and again and again; the function returned ends it. */
  #prune(service: TransportService): () => void {
    let callOff = (): void => undefined;
    let ended = false;
    const again = async (): Promise<void> => {
      const records = await service.prune();
      if (records > 0) this.#sink.log("info", "connector.pruned", { records });
      if (!ended) callOff = this.#clock.after(PRUNE_EVERY_MS, () => void again());
    };
    void again();
    return () => {
      ended = true;
      callOff();
    };
  }

  #onSignal(): Promise<string> {
    // What it would reload is read anew anyway (the key, at each turn), or holds for the process's life.
    process.on("SIGHUP", () =>
      this.#sink.log("warn", "connector.not_reloaded", {
        why: "the config and the callers' secrets are read at the start: restart it; the provider's key is read at each turn",
      }),
    );
    keepDebuggerShut(() =>
      this.#sink.log("warn", "connector.not_reloaded", {
        why: "SIGUSR1 does nothing here: no debugger is opened",
      }),
    );
    return new Promise((resolveSignal) => {
      let asked = false;
      for (const signal of ["SIGTERM", "SIGINT"] as const) {
        process.on(signal, () => {
          if (asked) {
            this.#sink.log("warn", "connector.killed", { signal });
            this.#sink.flush();
            process.exit(0);
          }
          asked = true;
          resolveSignal(signal);
        });
      }
    });
  }

  #refuseConfig(faults: readonly ConfigFault[]): number {
    for (const { line, column, message } of faults) {
      this.#sink.log("error", "config.fault", { line, column, message });
      tellStandardError(`${this.#path}:${line}:${column}: ${message}\n`);
    }
    return this.#refuse(`the config has ${faults.length} mistake${faults.length === 1 ? "" : "s"}`);
  }

  #refuse(why: string): number {
    this.#sink.log("error", "connector.not_started", { why });
    tellStandardError(`callgate: ${why}\n`);
    return EXIT_CONFIG;
  }
}
