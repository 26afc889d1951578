// The directories that the provider serves. Each is pinned once, at the start: what is later put in
// its place is never served. A path belongs to the root with the longest path above it, and takes
// its labels and rights from that one alone.

import { realpath } from "node:fs/promises";
import { fault, ok, type Result } from "../../base/faults.ts";
import type { DataClass } from "../../base/labels.ts";
import {
  identityOf,
  letGo,
  mountOf,
  type Pinned,
  pathOfDescriptor,
  pinAbsolute,
  pinChild,
} from "./descriptor.ts";
import { attempt, type FileFault, sentenceOf } from "./file_fault.ts";
import { namesBeneath, parsePath } from "./file_path.ts";

/** As the owner configures it. */
export interface FilesRoot {
  /** Absolute, and the directory's real path: no link in it. */
  readonly path: string;
  readonly class: DataClass;
  readonly untrusted: boolean;
  readonly writable: boolean;
}

export interface PinnedRoot {
  readonly config: FilesRoot;
  readonly names: readonly string[];
  readonly directory: Pinned;
  /** The one mount that a walk stays on (`mountOf`). */
  readonly mount: string;
  /** Identities of the other roots: a walk from this one never enters them, by whatever name. */
  readonly others: ReadonlySet<string>;
  /** Their paths: what was put in another root's place is not taken for part of this one. */
  readonly otherPaths: ReadonlySet<string>;
}

/** A root before the others are known. */
type UnrelatedRoot = Omit<PinnedRoot, "others" | "otherPaths">;

/** Where a path lies: its root, and the names that lead there from the root. */
export interface Place {
  readonly root: PinnedRoot;
  readonly names: readonly string[];
  readonly path: string;
}

/** All or none. The fault is for the owner and names the root. */
export async function pinRoots(roots: readonly FilesRoot[]): Promise<Result<readonly PinnedRoot[]>> {
  if (roots.length === 0) return fault("no root is given");
  const outcomes = await Promise.all(roots.map(pinRoot));
  const pinned = outcomes.flatMap((outcome) => (outcome.ok ? [outcome.value] : []));
  const identities = pinned.map((root) => identityOf(root.directory.stat));
  const refused = outcomes.find((outcome) => !outcome.ok);
  const twice = new Set(identities).size < identities.length;
  if (refused !== undefined || twice) {
    closeRoots(pinned);
    return refused ?? fault("two roots are the same directory");
  }
  const paths = pinned.map((root) => root.config.path);
  return ok(
    pinned.map((root, at) => ({
      ...root,
      others: new Set(identities.toSpliced(at, 1)),
      otherPaths: new Set(paths.toSpliced(at, 1)),
    })),
  );
}

export function closeRoots(roots: readonly Pick<PinnedRoot, "directory">[]): void {
  for (const root of roots) letGo(root.directory);
}

/** The longest root that the path lies in. Text only: the disk is not asked. */
export function locate(roots: readonly PinnedRoot[], path: string): Result<Place, FileFault> {
  const parsed = parsePath(path);
  if (!parsed.ok) return parsed;
  const places = roots.flatMap((root) => {
    const names = namesBeneath(root.names, parsed.value);
    return names === undefined ? [] : [{ root, names, path }];
  });
  const [nearest] = places.sort((a, b) => a.names.length - b.names.length);
  return nearest === undefined ? fault("outside") : ok(nearest);
}

async function pinRoot(config: FilesRoot): Promise<Result<UnrelatedRoot>> {
  const names = parsePath(config.path);
  if (!names.ok) return fault(`root ${shown(config)}: ${sentenceOf(names.fault)}`);
  const real = await attempt(() => realpath(config.path));
  if (!real.ok) return fault(`root ${shown(config)}: ${sentenceOf(real.fault)}`);
  // Conditions judge paths as text: with a link in the root's own path they would judge another place.
  if (real.value !== config.path) {
    return fault(`root ${shown(config)} leads through a link; give ${JSON.stringify(real.value)}`);
  }
  const directory = pinAbsolute(config.path);
  if (!directory.ok) return fault(`root ${shown(config)}: ${sentenceOf(directory.fault)}`);
  const objection = await objectionTo(directory.value, config.path);
  if (objection === undefined) return ok(rooted(config, names.value, directory.value));
  letGo(directory.value);
  return fault(`root ${shown(config)}: ${objection}`);
}

function rooted(config: FilesRoot, names: readonly string[], directory: Pinned): UnrelatedRoot {
  return { config, names, directory, mount: mountOf(directory) };
}

async function objectionTo(directory: Pinned, path: string): Promise<string | undefined> {
  if (!directory.stat.isDirectory()) return sentenceOf("not_directory");
  const self = pinChild(directory, ".");
  if (!self.ok) return "/proc must be mounted, and the directory must be searchable";
  letGo(self.value);
  // After pinning, so that a link which appeared between the two look-ups is seen.
  const now = await attempt(() => realpath(pathOfDescriptor(directory.descriptor)));
  if (now.ok && now.value === path && identityOf(self.value.stat) === identityOf(directory.stat)) {
    return undefined;
  }
  return "the directory changed while it was opened";
}

function shown(root: FilesRoot): string {
  return JSON.stringify(root.path);
}
