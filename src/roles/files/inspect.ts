// list_dir and stat: what is there, never what is in it. Answers are JSON text in which every odd
// character of a name is an escape.

import { lstatSync } from "node:fs";
import { fault, ok, type Result } from "../../base/faults.ts";
import { type Pinned, pathOfChild } from "./descriptor.ts";
import { describeName, describeStat, readEntries, typeOf } from "./entries.ts";
import { attemptNow, type FileFault } from "./file_fault.ts";
import { plainJson } from "./file_path.ts";
import type { FilesLimits } from "./limits.ts";
import type { Place } from "./roots.ts";
import { jsonList, type ToolText } from "./tool_text.ts";
import { pinDirectory, pinPath, usePinned } from "./walk.ts";

/** `{"path":…,"entries":[{"name":…,"type":…,"size":…},…]}`, by name in byte order. */
export async function listDirectory(
  place: Place,
  limits: FilesLimits,
  signal: AbortSignal,
): Promise<Result<ToolText, FileFault>> {
  return usePinned(pinDirectory(place.root, place.names, signal), async (directory) => {
    const read = await readEntries(directory, limits.listNamesMax, signal);
    if (!read.ok) return read;
    const list = jsonList({ path: place.path }, "entries", limits.contentBytesMax);
    for (const { name } of read.value.entries) {
      if (signal.aborted) return fault("cancelled");
      const entry = describeEntry(directory, name);
      if (entry !== undefined && !list.add(entry)) break;
    }
    return ok(list.finish(read.value.more));
  });
}

/** undefined where it has gone since. */
function describeEntry(directory: Pinned, name: Buffer): string | undefined {
  const path = pathOfChild(directory, name);
  const stat = attemptNow(() => lstatSync(path, { bigint: true }));
  if (!stat.ok) return stat.fault === "missing" ? undefined : plainJson(describeName(name));
  const type = typeOf(stat.value);
  const size = type === "file" ? { size: Number(stat.value.size) } : {};
  return plainJson({ ...describeName(name), type, ...size });
}

/** `{"path":…,"type":…,"size":…,"modified":…,"mode":…}`; a symbolic link is described, not followed. */
export async function describePath(place: Place, signal: AbortSignal): Promise<Result<ToolText, FileFault>> {
  return usePinned(pinPath(place.root, place.names, signal), async (pinned) => {
    const content = plainJson({ path: place.path, ...describeStat(pinned.stat) });
    return ok({ content, truncated: false });
  });
}
