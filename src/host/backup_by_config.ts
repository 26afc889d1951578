// Backup and restore as the command line asks for them: by the config that names the state directory.
// Loaded only by these commands.

import { resolve } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import { takeBackup } from "./backup.ts";
import { type Config, loadConfig } from "./config.ts";
import { loadLibc } from "./libc.ts";
import { restoreBackup } from "./restore.ts";

/** What was written, and where its audit ends (SEQ:HASH). */
export interface BackupReport {
  readonly path: string;
  readonly bytes: number;
  readonly records: number;
  readonly checkpoint: string;
}

export interface RestoreReport {
  readonly state: string;
  /** Where the audit of the backup ended (SEQ:HASH). */
  readonly checkpoint: string;
  readonly floor: string;
  readonly keptAside: string | undefined;
  readonly unread: boolean;
  readonly voided: number;
  readonly closed: number;
  readonly takenBack: number;
}

type OnStep = (step: string) => void;

/** A string says why there is no backup, in a sentence for people. `onStep`: told what is begun. */
export async function backup(
  configPath: string,
  to: string,
  onStep?: OnStep,
): Promise<BackupReport | string> {
  const config = await configOf(configPath);
  if (!config.ok) return config.fault;
  const taken = await takeBackup({ stateDir: config.value.stateDir, to: resolve(to), onStep });
  if (!taken.ok) return taken.fault;
  const { path, bytes, records, head } = taken.value;
  return { path, bytes, records, checkpoint: `${head.seq}:${head.hash}` };
}

/** A string says why nothing was restored, in a sentence for people. */
export async function restore(
  configPath: string,
  from: string,
  replace: boolean,
  onStep?: OnStep,
): Promise<RestoreReport | string> {
  const config = await configOf(configPath);
  if (!config.ok) return config.fault;
  const { stateDir, audit } = config.value;
  const restored = await restoreBackup({
    stateDir,
    from: resolve(from),
    replace,
    auditBounds: audit,
    libc: await loadLibc(),
    nowMs: Date.now(),
    onStep,
  });
  if (!restored.ok) return restored.fault;
  const { head, floor, ...report } = restored.value;
  return { state: stateDir, checkpoint: `${head.seq}:${head.hash}`, floor: floor.toString(), ...report };
}

async function configOf(path: string): Promise<Result<Config>> {
  const loaded = await loadConfig(path);
  if (loaded.ok) return ok(loaded.value.config);
  const [first, ...others] = loaded.fault;
  const named = JSON.stringify(path);
  if (first !== undefined && others.length === 0 && first.line === 1 && first.column === 1)
    return fault(`the config ${named} can't be used: ${first.message}.`); // as a rule about the file itself
  const where = first === undefined ? "" : ` (line ${first.line}: ${first.message})`;
  return fault(`the config ${named} has a mistake${where}: callgate check --config ${named} lists them all.`);
}
