// write_file: a whole file, or nothing. The text goes to a new file beside the target, reaches the
// disk there, and takes the target's name in one step; until then nobody sees a change, and on
// every failure the new file is removed. (After a kill -9 it stays, as `.callgate-….tmp`, mode 0600.)

import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, link, open, rename, unlink } from "node:fs/promises";
import { fault, ok, type Result } from "../../base/faults.ts";
import type { WriteArguments } from "./arguments.ts";
import { checkWritable, letGo, notRegular, openDirectory, type Pinned, pathOfChild } from "./descriptor.ts";
import { attempt, type FileFault } from "./file_fault.ts";
import { plainJson } from "./file_path.ts";
import type { FilesLimits } from "./limits.ts";
import type { Place } from "./roots.ts";
import type { ToolText } from "./tool_text.ts";
import { pinDirectory, pinExact, usePinned } from "./walk.ts";

/** A new file is its owner's alone; a replaced one keeps its permissions. */
const NEW_FILE_MODE = 0o600;
/** Set-user-id, set-group-id and sticky are dropped: nobody gives a model's text those. */
const PERMISSIONS = 0o777;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** `{"path":…,"bytes":…,"created":…}`. A cancel before the last step leaves everything as it was. */
export async function writeText(
  place: Place,
  args: WriteArguments,
  limits: FilesLimits,
  signal: AbortSignal,
): Promise<Result<ToolText, FileFault>> {
  if (!place.root.config.writable) return fault("read_only");
  if (/\p{Cs}/u.test(args.content)) return fault("not_text");
  const bytes = Buffer.from(args.content, "utf8");
  if (bytes.length > limits.writeBytesMax) return fault("too_large");
  const name = place.names.at(-1);
  if (name === undefined) return fault("is_directory");
  const parent = pinDirectory(place.root, place.names.slice(0, -1), signal);
  return usePinned(parent, async (directory) => {
    const existing = pinExisting(place, directory, name);
    if (!existing.ok) return existing;
    const target = { directory, name, existing: existing.value, mode: args.mode };
    try {
      const written = await replaceDurably(target, bytes, signal);
      if (!written.ok) return written;
    } finally {
      if (existing.value !== undefined) letGo(existing.value);
    }
    const created = existing.value === undefined;
    return ok({ content: plainJson({ path: place.path, bytes: bytes.length, created }), truncated: false });
  });
}

interface Target {
  readonly directory: Pinned;
  readonly name: string;
  readonly existing: Pinned | undefined;
  readonly mode: WriteArguments["mode"];
}

function pinExisting(place: Place, directory: Pinned, name: string): Result<Pinned | undefined, FileFault> {
  const found = pinExact(place.root, directory, name);
  if (found.ok) return found;
  return found.fault === "missing" ? ok(undefined) : found;
}

async function replaceDurably(
  target: Target,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<Result<true, FileFault>> {
  const allowed = await checkTarget(target);
  if (!allowed.ok) return allowed;
  // Opened first: a directory that can't be synced is found out before anything is changed.
  const directory = await openDirectory(target.directory);
  if (!directory.ok) return directory;
  try {
    const placed = await writeBeside(target, bytes, signal);
    if (!placed.ok) return placed;
    const synced = await attempt(() => directory.value.sync());
    return synced.ok ? ok(true) : fault("not_durable");
  } finally {
    await directory.value.close();
  }
}

/** A rename needs only the directory's permission; the file's own is asked for as well. */
async function checkTarget(target: Target): Promise<Result<true, FileFault>> {
  if (target.existing === undefined) return ok(true);
  const objection = notRegular(target.existing);
  if (objection !== undefined) return fault(objection);
  return target.mode === "create" ? fault("exists") : checkWritable(target.existing);
}

async function writeBeside(
  target: Target,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<Result<true, FileFault>> {
  const beside = pathOfChild(target.directory, `.callgate-${randomBytes(16).toString("hex")}.tmp`);
  const opened = await attempt(() => open(beside, CREATE, NEW_FILE_MODE));
  if (!opened.ok) return opened;
  let placed: Result<true, FileFault> = fault("io");
  try {
    placed = await fill(opened.value, target.existing, bytes, signal);
    if (placed.ok) placed = signal.aborted ? fault("cancelled") : await putInPlace(beside, target);
    return placed;
  } finally {
    await opened.value.close();
    // After a link the name beside is a second one of the new file; after a rename it has gone.
    if (!placed.ok || target.existing === undefined) await attempt(() => unlink(beside));
  }
}

async function fill(
  file: FileHandle,
  existing: Pinned | undefined,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<Result<true, FileFault>> {
  if (signal.aborted) return fault("cancelled");
  const filled = await attempt(() => file.writeFile(bytes));
  if (!filled.ok) return filled;
  const kept = existing === undefined ? ok(true as const) : await keepAccess(file, existing);
  if (!kept.ok) return kept;
  const synced = await attempt(() => file.sync());
  return synced.ok ? ok(true) : synced;
}

async function keepAccess(file: FileHandle, existing: Pinned): Promise<Result<true, FileFault>> {
  const { uid, gid, mode } = existing.stat;
  const own = await attempt(() => file.stat({ bigint: true }));
  if (!own.ok) return own;
  if (own.value.uid !== uid || own.value.gid !== gid) {
    const given = await attempt(() => file.chown(Number(uid), Number(gid)));
    if (!given.ok) return fault("owner_lost");
  }
  const kept = await attempt(() => file.chmod(Number(mode) & PERMISSIONS));
  return kept.ok ? ok(true) : kept;
}

/** A link fails where something has appeared since, a rename replaces it; neither follows what is there. */
async function putInPlace(beside: string | Buffer, target: Target): Promise<Result<true, FileFault>> {
  const named = pathOfChild(target.directory, target.name);
  const step = target.existing === undefined ? link : rename;
  const placed = await attempt(() => step(beside, named));
  return placed.ok ? ok(true) : placed;
}
