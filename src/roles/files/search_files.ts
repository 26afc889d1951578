// search_files: a walk beneath one directory, by name and by content. Each directory is read through
// its own descriptor, so a directory that is swapped for a link is not left through; links, other
// roots and other file systems are passed over and counted. Bounded in names, depth, bytes and
// matches, and it stops at the next name once the call is cancelled.

import { isUtf8 } from "node:buffer";
import { fault, ok, type Result } from "../../base/faults.ts";
import type { SearchArguments } from "./arguments.ts";
import { openText, type Pinned, readBytes } from "./descriptor.ts";
import { describeName, type Entry, readEntries } from "./entries.ts";
import type { FileFault } from "./file_fault.ts";
import { joinPath, plainJson } from "./file_path.ts";
import type { FilesLimits, SearchLimits } from "./limits.ts";
import { matchingLines, nameMatches } from "./pattern.ts";
import type { PinnedRoot, Place } from "./roots.ts";
import { type JsonList, jsonList, type ToolText } from "./tool_text.ts";
import { pinDirectory, pinWithin, usePinned } from "./walk.ts";

/** Why something was not looked into; told in the answer, as counts. */
type Passed = "links" | "unreadable" | "not_text" | "too_large" | "elsewhere" | "too_deep";

interface Search {
  readonly root: PinnedRoot;
  readonly name: string | undefined;
  readonly content: Buffer | undefined;
  readonly limits: SearchLimits;
  readonly signal: AbortSignal;
  readonly found: JsonList;
  readonly passed: Map<Passed, number>;
  entriesLeft: number;
  bytesLeft: number;
  matchesLeft: number;
  /** Whether a bound was met, so that there may be more. */
  cut: boolean;
}

/** A directory on the way, as the caller would name it. */
interface Level {
  readonly path: string;
  readonly depth: number;
  /** Whether `path` is exact; false beneath a name that is not text. */
  readonly nameable: boolean;
}

/** `{"path":…,"matches":[{"path":…,"type":…,"line":…,"text":…},…],"passed_over":{…}}` */
export async function searchFiles(
  place: Place,
  args: SearchArguments,
  limits: FilesLimits,
  signal: AbortSignal,
): Promise<Result<ToolText, FileFault>> {
  const search: Search = {
    root: place.root,
    name: args.name,
    content: args.content === undefined ? undefined : Buffer.from(args.content, "utf8"),
    limits: limits.search,
    signal,
    found: jsonList({ path: place.path }, "matches", limits.contentBytesMax),
    passed: new Map(),
    entriesLeft: limits.search.entriesMax,
    bytesLeft: limits.search.bytesMax,
    matchesLeft: limits.search.matchesMax,
    cut: false,
  };
  return usePinned(pinDirectory(place.root, place.names, signal), async (directory) => {
    const done = await searchDirectory(search, directory, { path: place.path, depth: 0, nameable: true });
    if (!done.ok) return done;
    return ok(search.found.finish(search.cut, { passed_over: Object.fromEntries(search.passed) }));
  });
}

async function searchDirectory(
  search: Search,
  directory: Pinned,
  level: Level,
): Promise<Result<true, FileFault>> {
  const read = await readEntries(directory, search.entriesLeft, search.signal);
  if (!read.ok) return read;
  search.entriesLeft -= read.value.entries.length;
  search.cut ||= read.value.more;
  for (const entry of read.value.entries) {
    if (search.signal.aborted) return fault("cancelled");
    if (search.matchesLeft <= 0) search.cut = true;
    if (search.matchesLeft <= 0) return ok(true);
    const visited = await visit(search, directory, entry, level);
    if (!visited.ok && visited.fault === "cancelled") return visited;
    if (!visited.ok) passOver(search, visited.fault);
  }
  return ok(true);
}

async function visit(
  search: Search,
  directory: Pinned,
  { name, type }: Entry,
  level: Level,
): Promise<Result<true, FileFault>> {
  const shown = describeName(name);
  const at: Level = {
    path: joinPath(level.path, shown.name),
    depth: level.depth + 1,
    nameable: level.nameable && shown.unnameable === undefined,
  };
  const named = search.name === undefined || nameMatches(search.name, shown.name);
  if (named && search.content === undefined) report(search, at, { type });
  if (type === "symlink") count(search, "links");
  if (type === "directory") return descend(search, directory, name, at);
  const { content } = search;
  if (!named || content === undefined || type !== "file") return ok(true);
  return usePinned(pinWithin(search.root, directory, name), (file) =>
    searchContent(search, file, content, at),
  );
}

async function descend(
  search: Search,
  directory: Pinned,
  name: Buffer,
  at: Level,
): Promise<Result<true, FileFault>> {
  if (search.root.otherPaths.has(at.path)) return fault("other_root");
  if (at.depth < search.limits.depthMax) {
    const child = pinWithin(search.root, directory, name);
    return usePinned(child, (pinned) => searchChild(search, pinned, at));
  }
  count(search, "too_deep");
  search.cut = true;
  return ok(true);
}

/** What was a directory when the parent was read may be anything by now. */
async function searchChild(search: Search, child: Pinned, at: Level): Promise<Result<true, FileFault>> {
  return child.stat.isDirectory() ? searchDirectory(search, child, at) : fault("symlink");
}

async function searchContent(
  search: Search,
  entry: Pinned,
  needle: Buffer,
  at: Level,
): Promise<Result<true, FileFault>> {
  const bytes = await readWhole(search, entry);
  if (!bytes.ok) return bytes;
  const max = Math.min(search.limits.matchesPerFileMax, search.matchesLeft);
  const matching = matchingLines(bytes.value, needle, max, search.limits.lineCharsMax);
  search.cut ||= matching.more;
  for (const line of matching.lines) report(search, at, { type: "file", ...line });
  return ok(true);
}

/** The whole text; a file that grows while it is read counts by what was read. */
async function readWhole(search: Search, entry: Pinned): Promise<Result<Buffer, FileFault>> {
  const max = search.limits.fileBytesMax;
  if (entry.stat.size > BigInt(max)) return fault("too_large");
  if (entry.stat.size > BigInt(search.bytesLeft)) {
    search.cut = true;
    return ok(Buffer.alloc(0));
  }
  const file = await openText(entry);
  if (!file.ok) return file;
  try {
    const room = Math.min(Number(entry.stat.size), max) + GROWTH_BYTES;
    const bytes = await readBytes(file.value, 0, room, search.signal);
    if (!bytes.ok) return bytes;
    search.bytesLeft -= bytes.value.length;
    if (bytes.value.length === room) return fault("too_large");
    return bytes.value.includes(0) || !isUtf8(bytes.value) ? fault("not_utf8") : bytes;
  } finally {
    await file.value.close();
  }
}

/** Room for a file that grows meanwhile, and for kernel files that say they are empty. */
const GROWTH_BYTES = 65_536;

function report(search: Search, at: Level, found: Readonly<Record<string, unknown>>): void {
  const unnameable = at.nameable ? {} : { unnameable: true };
  const fits = search.found.add(plainJson({ path: at.path, ...unnameable, ...found }));
  search.matchesLeft = fits ? search.matchesLeft - 1 : 0;
}

function passOver(search: Search, why: FileFault): void {
  const passed = PASSED[why];
  // What has gone since the directory was read is no finding.
  if (why !== "missing") count(search, passed ?? "unreadable");
}

const PASSED: Partial<Record<FileFault, Passed>> = {
  symlink: "links",
  not_utf8: "not_text",
  too_large: "too_large",
  other_root: "elsewhere",
  other_filesystem: "elsewhere",
};

function count(search: Search, passed: Passed): void {
  search.passed.set(passed, (search.passed.get(passed) ?? 0) + 1);
}
