// The five tools over a set of pinned roots, apart from any wire. Here and nowhere else an outcome
// gets its labels: those of the root that the path lies in, whatever was found there.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { JsonObject } from "../../base/json.ts";
import type { DataClass } from "../../base/labels.ts";
import {
  type PathArguments,
  parsePathArguments,
  parseReadArguments,
  parseSearchArguments,
  parseWriteArguments,
} from "./arguments.ts";
import type { FilesToolName } from "./definitions.ts";
import { type FileFault, sentenceOf } from "./file_fault.ts";
import { describePath, listDirectory } from "./inspect.ts";
import { FILES_LIMITS, type FilesLimits } from "./limits.ts";
import { readText } from "./read_file.ts";
import { closeRoots, type FilesRoot, locate, type Place, pinRoots } from "./roots.ts";
import { searchFiles } from "./search_files.ts";
import type { ToolText } from "./tool_text.ts";
import { writeText } from "./write_file.ts";

export interface FilesResult {
  readonly content: string;
  readonly class: DataClass;
  readonly untrusted: boolean;
  /** Whether there is more than what is given. */
  readonly truncated: boolean;
}

/** A sentence for people; it quotes neither the arguments nor the disk. */
export interface FilesFailure {
  readonly failed: string;
}

export type FilesAnswer = FilesResult | FilesFailure;

/** `args` come from the caller and are trusted in nothing. An abort ends the call at its next step, with nothing changed. */
export type FilesTool = (args: JsonObject, signal: AbortSignal) => Promise<FilesAnswer>;

export interface FilesTools extends Readonly<Record<FilesToolName, FilesTool>> {
  /** Lets go of the roots; calls that still run may fail. */
  close(): void;
}

/** The fault is for the owner: which root cannot be served, and why. */
export async function createFilesTools(
  roots: readonly FilesRoot[],
  limits: FilesLimits = FILES_LIMITS,
): Promise<Result<FilesTools>> {
  const pinned = await pinRoots(roots);
  if (!pinned.ok) return pinned;
  const turns = { running: 0 };
  const tool = <A extends PathArguments>(
    parse: (args: JsonObject) => Result<A>,
    run: (place: Place, args: A, signal: AbortSignal) => Promise<Result<ToolText, FileFault>>,
  ): FilesTool => {
    return async (args, signal) => {
      const parsed = parse(args);
      if (!parsed.ok) return { failed: parsed.fault };
      const place = locate(pinned.value, parsed.value.path);
      if (!place.ok) return { failed: sentenceOf(place.fault) };
      return labelled(place.value, await run(place.value, parsed.value, signal));
    };
  };
  return ok({
    list_dir: tool(parsePathArguments, (place, _args, signal) => listDirectory(place, limits, signal)),
    read_file: tool((args) => parseReadArguments(args, limits), readText),
    write_file: tool(parseWriteArguments, (place, args, signal) => writeText(place, args, limits, signal)),
    stat: tool(parsePathArguments, (place, _args, signal) => describePath(place, signal)),
    search_files: tool(parseSearchArguments, (place, args, signal) =>
      inTurn(turns, limits.search.atOnceMax, () => searchFiles(place, args, limits, signal)),
    ),
    close: () => closeRoots(pinned.value),
  });
}

function labelled(place: Place, outcome: Result<ToolText, FileFault>): FilesAnswer {
  if (!outcome.ok) return { failed: sentenceOf(outcome.fault) };
  const { class: dataClass, untrusted } = place.root.config;
  return { ...outcome.value, class: dataClass, untrusted };
}

/** So that searches never take all the descriptors, memory and file system threads from the other tools. */
async function inTurn<T>(
  turns: { running: number },
  max: number,
  run: () => Promise<Result<T, FileFault>>,
): Promise<Result<T, FileFault>> {
  if (turns.running >= max) return fault("busy");
  turns.running += 1;
  try {
    return await run();
  } finally {
    turns.running -= 1;
  }
}
