// Opening the durable store for the daemon: its directory, its engine, its time, and all of it closed
// again where any of that fails, or in the end.

import { randomBytes } from "node:crypto";
import { fault, ok, type Result } from "../base/faults.ts";
import type { Clock, Log } from "../base/ports.ts";
import type { AuditBounds } from "../store/audit_segments.ts";
import { DurableStore } from "../store/durable.ts";
import { LmdbEngine } from "../store/lmdb.ts";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { DirectoryGate } from "./directory_gate.ts";
import type { Libc } from "./libc.ts";
import { reserveFile } from "./reserve_file.ts";
import { openStateDirectory } from "./state_dir.ts";

export interface OpenStoreOptions {
  readonly config: Pick<Config, "stateDir" | "replayForMs">;
  readonly libc: Libc | undefined;
  readonly log: Log;
  readonly auditBounds: () => AuditBounds;
  /** Bytes of ended calls kept for a role. */
  readonly storedBytesMax: (role: string) => number;
}

export interface OpenStore {
  readonly store: DurableStore;
  /** Never shows a time before one that the store has seen. */
  readonly clock: Clock;
  /** Everything that was committed is on disk when it resolves, and another daemon may start. */
  close(): Promise<void>;
}

/** The fault is a sentence for the owner. */
export async function openStore(options: OpenStoreOptions): Promise<Result<OpenStore>> {
  const { config, libc } = options;
  const directory = openStateDirectory(config.stateDir, libc);
  if (!directory.ok) return fault(`the state directory: ${directory.fault}`);
  const opened = await openIn(config.stateDir, options);
  if (opened.ok) {
    const { store, close } = opened.value;
    return ok({
      store,
      clock: store.clock,
      close: async () => {
        await close();
        directory.value.release();
      },
    });
  }
  directory.value.release();
  return fault(`the store in ${JSON.stringify(config.stateDir)}: ${opened.fault}`);
}

async function openIn(
  directory: string,
  { config, libc, log, auditBounds, storedBytesMax }: OpenStoreOptions,
): Promise<Result<{ readonly store: DurableStore; readonly close: () => Promise<void> }>> {
  const gate = DirectoryGate.entered(directory, libc);
  if (!gate.ok) return gate;
  const engine = await LmdbEngine.open({ directory, crashed, gate: gate.value });
  if (!engine.ok) {
    gate.value.close();
    return engine;
  }
  const store = await readable(() =>
    DurableStore.open({
      engine: engine.value,
      reserve: reserveFile(directory),
      clock: (floorMs) => systemClock(undefined, undefined, floorMs),
      log,
      random: randomBytes,
      replayForMs: config.replayForMs,
      storedBytesMax,
      auditBounds,
    }),
  );
  if (!store.ok) {
    await engine.value.close();
    gate.value.close();
    return store;
  }
  const close = async () => {
    await store.value.close();
    gate.value.close();
  };
  return ok({ store: store.value, close });
}

/** What the engine throws where its file is damaged, as a sentence. */
async function readable<T>(load: () => Promise<Result<T>>): Promise<Result<T>> {
  try {
    return await load();
  } catch {
    return fault("it is damaged and can't be read. Put a backup in its place with `callgate restore`.");
  }
}

/** Nothing can be promised any more: the process ends, and the service manager starts another. */
function crashed(error: Error): never {
  throw error;
}
