// What `callgate check` says of the machine as it is now: whether the config's files and the daemon's two
// directories could be written or replaced by others, so that a faultless config does not end in a
// refused start. Only looks; the daemon looks again itself.
// Invariant: what any daemon would refuse is a fault. What depends on the user that it runs as is a
// warning, since a config may be checked by another user, and on another machine.

import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import type { PolicyReach } from "../policy/reach.ts";
import { type ConfigRead, loadConfig } from "./config.ts";
import {
  type ConfigFault,
  type ConfigWarning,
  FILE_START,
  inFileOrder,
  type Position,
} from "./config_faults.ts";
import { reachOfConfig } from "./policy_reach.ts";
import {
  checkDirectory,
  checkFile,
  errnoCode,
  type PathFault,
  type PathFaultCode,
  pathFault,
} from "./trusted_paths.ts";

const OPEN_TO_OTHERS = 0o077;

export interface Inspected {
  readonly warnings: readonly ConfigWarning[];
  /** What its policy comes to; `writes`: a write counts as the end of a way too. */
  readonly reach: (writes: boolean) => PolicyReach;
}

/** Loads a config, and looks at the places that it names with the eyes of a daemon of this user. */
export async function inspectConfig(path: string): Promise<Result<Inspected, readonly ConfigFault[]>> {
  const loaded = await loadConfig(path);
  if (!loaded.ok) return loaded;
  const { faults, warnings } = inspectPlaces(loaded.value, process.geteuid?.() ?? -1);
  if (faults.length > 0) return fault(inFileOrder(faults));
  const { policy } = loaded.value.config;
  return ok({
    warnings: inFileOrder([...loaded.value.warnings, ...warnings]),
    reach: (writes) => reachOfConfig(policy, Date.now(), writes),
  });
}

/** Wrong whoever the daemon is; everything else depends on its user. */
const FOR_ANYBODY: ReadonlySet<PathFaultCode> = new Set<PathFaultCode>([
  "not_plain",
  "too_many_links",
  "not_a_directory",
  "not_a_file",
  "open_to_others",
]);

export function inspectPlaces(
  { config, at, schemaFiles }: Pick<ConfigRead, "config" | "at" | "schemaFiles">,
  uid: number,
): { readonly faults: readonly ConfigFault[]; readonly warnings: readonly ConfigWarning[] } {
  const found: readonly (readonly [Position, Result<void, PathFault>])[] = [
    [FILE_START, checkFile(config.path, uid)],
    [at.sockets, checkOrMake(config.socketsDir, uid)],
    [at.state, checkState(config.stateDir, uid)],
    ...schemaFiles.map((file) => [file.at, checkFile(file.value, uid)] as const),
  ];
  const faults: ConfigFault[] = [];
  const warnings: ConfigWarning[] = [];
  for (const [where, checked] of found) {
    if (checked.ok) continue;
    const { code, sentence } = checked.fault;
    if (FOR_ANYBODY.has(code)) faults.push({ ...where, message: `the daemon would not start: ${sentence}` });
    else {
      const message = `a daemon of this user (uid ${uid}) would not start: ${sentence}`;
      warnings.push({ ...where, code: "place", message });
    }
  }
  return { faults, warnings };
}

/** A directory that is there, or that the daemon can make in the one above it. */
function checkOrMake(path: string, uid: number): Result<void, PathFault> {
  const there = checkDirectory(path, uid);
  if (there.ok || there.fault.code !== "missing") return there;
  const parent = dirname(path);
  if (there.fault.path !== path)
    return pathFault("missing", path, `can't be made: make ${quoted(parent)} first.`);
  try {
    accessSync(parent, constants.W_OK);
    return ok(undefined);
  } catch (error) {
    const remedy = "make it, and give it to the daemon's user";
    return pathFault("missing", path, `does not exist and can't be made (${errnoCode(error)}): ${remedy}.`);
  }
}

/** Beside that it is the daemon's own, and nobody else so much as enters it. */
function checkState(path: string, uid: number): Result<void, PathFault> {
  const there = checkOrMake(path, uid);
  // The walk was there: what a link in this place leads to can be replaced by root and by us only.
  const stats = there.ok ? statSync(path, { throwIfNoEntry: false }) : undefined;
  if (stats === undefined) return there;
  if ((stats.mode & OPEN_TO_OTHERS) !== 0) {
    const mode = (stats.mode & 0o7777).toString(8).padStart(4, "0");
    const what = `can be entered by others than its owner (mode ${mode}): chmod 700 ${quoted(path)}.`;
    return pathFault("open_to_others", path, what);
  }
  if (stats.uid === uid) return ok(undefined);
  return pathFault("foreign_owner", path, `belongs to uid ${stats.uid}: chown it to the daemon's user.`);
}

function quoted(path: string): string {
  return JSON.stringify(path);
}
